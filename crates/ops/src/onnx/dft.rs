//! [`DFT`](https://onnx.ai/onnx/operators/onnx__DFT.html): the discrete Fourier transform along an axis, of real or
//! complex signals.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::fourier::{Complex, transform};
use crate::integers::{extent, opt_list};
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DFT",
    versions: (17, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Dft {
    /// Before version 20 the axis is an attribute.
    axis: Option<i64>,
    inverse: bool,
    onesided: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, if cx.opset < 20 { &["axis", "inverse", "onesided"] } else { &["inverse", "onesided"] })?;
    let attributes = &cx.node.attributes;
    Ok(Box::new(Dft {
        axis: if cx.opset < 20 { Some(attributes.int_or("axis", 1)?) } else { None },
        inverse: attributes.int_or("inverse", 0)? != 0,
        onesided: attributes.int_or("onesided", 0)? != 0,
    }))
}

impl Kernel for Dft {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, shape, x) = input(cx, 0)?;
        let rank = shape.len();
        let parts = shape.last().copied().unwrap_or(0);
        if rank < 2 || !(1..=2).contains(&parts) {
            return Err(misfit("the input is [batch…, signal…, 1 or 2]", &[&shape]));
        }
        let first = |list: Option<crate::integers::Ints>| list.and_then(|l| l.first().copied());
        let axis = match self.axis {
            Some(axis) => axis,
            None => first(opt_list(cx, 2)?).unwrap_or(-2),
        };
        let axis = heirloom_runtime::normalize_axis(axis, rank)?;
        if axis + 1 == rank {
            return Err(misfit("the last axis has real and imaginary parts and is no signal", &[&shape]));
        }
        // A one-sided spectrum stands for the rest of a real signal's.
        let mirrored = self.inverse && self.onesided;
        let asked = first(opt_list(cx, 1)?).map(|n| extent("the length", n)).transpose()?;
        let length = asked.unwrap_or(if mirrored { 2 * (shape[axis].max(1) - 1) } else { shape[axis] });
        let kept = if self.onesided && !self.inverse { length / 2 + 1 } else { length };
        let out_parts = if mirrored { 1 } else { 2 };
        let mut out_shape = Shape::from_slice(&shape);
        (out_shape[axis], out_shape[rank - 1]) = (kept, out_parts);
        let inner: usize = shape[axis + 1..rank - 1].iter().product();
        let outer: usize = shape[..axis].iter().product();
        let mut out = vec![0.0; out_shape.iter().product()];
        for lane in 0..outer * inner {
            cx.cancel().check()?;
            let (o, i) = (lane / inner, lane % inner);
            let at = |k: usize| ((o * shape[axis] + k) * inner + i) * parts;
            let value = |k: usize| -> Complex {
                if k >= shape[axis] {
                    return (0.0, 0.0);
                }
                (x[at(k)], if parts == 2 { x[at(k) + 1] } else { 0.0 })
            };
            let signal: Vec<Complex> = (0..length)
                .map(|k| match mirrored && k > length / 2 {
                    true => {
                        let (re, im) = value(length - k);
                        (re, -im)
                    }
                    false => value(k),
                })
                .collect();
            let spectrum = transform(&signal, self.inverse);
            for (k, v) in spectrum.into_iter().take(kept).enumerate() {
                let to = ((o * kept + k) * inner + i) * out_parts;
                out[to] = v.0;
                if out_parts == 2 {
                    out[to + 1] = v.1;
                }
            }
        }
        let out = written(cx, dtype, &out_shape, &out)?;
        cx.set(0, out);
        Ok(())
    }
}
