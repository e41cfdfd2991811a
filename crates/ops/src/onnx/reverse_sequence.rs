//! [`ReverseSequence`](https://onnx.ai/onnx/operators/onnx__ReverseSequence.html): the first elements along the time axis,
//! as many as each sample's length says, in reverse.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::cells::pick;
use crate::integers;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "ReverseSequence",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ReverseSequence {
    time_first: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["batch_axis", "time_axis"])?;
    let attributes = &cx.node.attributes;
    let (batch, time) = (attributes.int_or("batch_axis", 1)?, attributes.int_or("time_axis", 0)?);
    match (batch, time) {
        (1, 0) => Ok(Box::new(ReverseSequence { time_first: true })),
        (0, 1) => Ok(Box::new(ReverseSequence { time_first: false })),
        _ => Err(unsupported("time_axis", time, "one of `batch_axis` and `time_axis` is 0, the other 1")),
    }
}

impl Kernel for ReverseSequence {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let [first, second, ref rest @ ..] = shape[..] else {
            return Err(KernelError::Shape {
                what: "there are a batch and a time axis",
                shapes: vec![shape],
            });
        };
        let (batch, time) = if self.time_first { (second, first) } else { (first, second) };
        let lengths = integers::list(cx, 1)?;
        let mut checked = Vec::with_capacity(batch);
        for &value in &lengths {
            let high = i64::try_from(time).unwrap_or(i64::MAX);
            let length = usize::try_from(value).ok().filter(|&length| length <= time);
            checked.push(length.ok_or(KernelError::Range { what: "a length", value, low: 0, high })?);
        }
        if checked.len() != batch {
            return Err(KernelError::Other(format!("{} lengths for {batch} samples", checked.len())));
        }
        let run: usize = rest.iter().product();
        let place = |sample: usize, at: usize| {
            let at = if at < checked[sample] { checked[sample] - 1 - at } else { at };
            (if self.time_first { at * batch + sample } else { sample * time + at }) * run
        };
        let starts: Vec<usize> = match self.time_first {
            true => (0..time)
                .flat_map(|at| (0..batch).map(move |sample| (sample, at)))
                .map(|(s, t)| place(s, t))
                .collect(),
            false => (0..batch)
                .flat_map(|sample| (0..time).map(move |at| (sample, at)))
                .map(|(s, t)| place(s, t))
                .collect(),
        };
        let value = pick(cx, 0, &shape, &starts, run)?;
        cx.set(0, value);
        Ok(())
    }
}
