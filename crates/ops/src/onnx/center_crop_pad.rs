//! [`CenterCropPad`](https://onnx.ai/onnx/operators/onnx__CenterCropPad.html): axes cut or padded with zeros on both
//! sides to given extents.

use heirloom_mem::{Shape, copy};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers::{self, Ints, extent};
use crate::reals::misfit;
use crate::window::for_each_index;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "CenterCropPad",
    versions: (18, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct CenterCropPad {
    axes: Option<Ints>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axes"])?;
    Ok(Box::new(CenterCropPad { axes: cx.node.attributes.opt_ints("axes")?.map(Ints::from_slice) }))
}

impl Kernel for CenterCropPad {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let x = cx.dense(0)?;
        let wanted = integers::list(cx, 1)?;
        let rank = x.shape().len();
        let axes: Ints = self.axes.clone().unwrap_or_else(|| (0..rank as i64).collect());
        if axes.len() != wanted.len() {
            return Err(misfit("there is an extent for each axis", &[x.shape(), &[wanted.len()]]));
        }
        integers::axes(&axes, rank)?;
        let mut shape = Shape::from_slice(x.shape());
        for (&axis, &size) in axes.iter().zip(&wanted) {
            shape[heirloom_runtime::normalize_axis(axis, rank)?] = extent("an extent", size)?;
        }
        let width = x.dtype().bit_width().filter(|w| w % 8 == 0).map_or(0, |w| w as usize / 8);
        if width == 0 {
            return Err(crate::elementwise::wrong_type(cx, 0, "elements of whole bytes"));
        }
        let mut out = cx.alloc(x.dtype(), &shape)?;
        out.bytes_mut().fill(0);
        // Where each axis begins in the input and in the output.
        let starts: Vec<(usize, usize, usize)> = x
            .shape()
            .iter()
            .zip(&shape)
            .map(|(&d, &s)| if s <= d { ((d - s) / 2, 0, s) } else { (0, (s - d) / 2, d) })
            .collect();
        let (outer, last) = match starts.split_last() {
            Some((last, outer)) => (outer, *last),
            None => (&[][..], (0, 0, 1)),
        };
        let counts: Shape = outer.iter().map(|s| s.2).collect();
        let bytes = x.dense_bytes().unwrap_or(&[]);
        let (ledger, mut watch, mut on) = (cx.ledger(), cx.cancel().watch(), Ok(()));
        for_each_index(&counts, |_, index| {
            on = on.and_then(|()| watch.pass(last.2.max(8)));
            if on.is_err() {
                return;
            }
            let (mut from, mut to) = (0, 0);
            for (axis, (&i, start)) in index.iter().zip(outer).enumerate() {
                from = from * x.shape()[axis] + start.0 + i;
                to = to * shape[axis] + start.1 + i;
            }
            let from = (from * x.shape().last().copied().unwrap_or(1) + last.0) * width;
            let to = (to * shape.last().copied().unwrap_or(1) + last.1) * width;
            let len = last.2 * width;
            copy::into(
                &mut out.bytes_mut()[to..to + len],
                &bytes[from..from + len],
                copy::Purpose::Kernel,
                ledger,
            );
        });
        on?;
        cx.set(0, out.freeze());
        Ok(())
    }
}
