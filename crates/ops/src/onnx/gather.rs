//! [`Gather`](https://onnx.ai/onnx/operators/onnx__Gather.html): the slices of an axis that indices name; negative ones count
//! from the end.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::cells::pick;
use crate::integers;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Gather",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Gather {
    axis: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Ok(Box::new(Gather { axis: cx.node.attributes.int_or("axis", 0)? }))
}

/// Indices of an axis of `extent` elements, checked and counted from the front.
pub(crate) fn places(indices: &[i64], extent: usize) -> Result<integers::Places, KernelError> {
    let n = i64::try_from(extent).unwrap_or(i64::MAX);
    let place = |&value: &i64| {
        let at = if value < 0 { value.saturating_add(n) } else { value };
        let range = || KernelError::Range { what: "an index", value, low: -n, high: n - 1 };
        usize::try_from(at).ok().filter(|&at| at < extent).ok_or_else(range)
    };
    indices.iter().map(place).collect()
}

impl Kernel for Gather {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let from = shape_of(cx, 0)?;
        let axis = heirloom_runtime::normalize_axis(self.axis, from.len())?;
        let places = places(&integers::list(cx, 1)?, from[axis])?;
        let mut shape = Shape::from_slice(&from[..axis]);
        shape.extend_from_slice(cx.tensor(1)?.shape());
        shape.extend_from_slice(&from[axis + 1..]);
        let inner: usize = from[axis + 1..].iter().product();
        let outer: usize = from[..axis].iter().product();
        let (places, extent) = (&places[..], from[axis]);
        let starts = (0..outer)
            .flat_map(|block| places.iter().map(move |at| (block * extent + at) * inner))
            .filter(|_| inner != 0);
        let narrow = match cx.value(0) {
            Some(Value::Tensor(tensor)) => {
                let bits = tensor.dtype().bit_width().map_or(8, |bits| bits as usize);
                !(inner * bits).is_multiple_of(8)
            }
            _ => true,
        };
        if narrow {
            // Strings, and slices that fill no whole bytes, move one by one.
            let starts: Vec<usize> = starts.collect();
            let value = pick(cx, 0, &shape, &starts, inner)?;
            cx.set(0, value);
            return Ok(());
        }
        let data = cx.dense(0)?;
        let bits = data.dtype().bit_width().map_or(8, |bits| bits as usize);
        let mut out = cx.alloc(data.dtype(), &shape)?;
        let bytes = data.dense_bytes().unwrap_or(&[]);
        let runs = starts.map(|at| &bytes[at * bits / 8..(at + inner) * bits / 8]);
        crate::movement::fill(cx, out.bytes_mut(), runs)?;
        cx.set(0, out.freeze());
        Ok(())
    }
}
