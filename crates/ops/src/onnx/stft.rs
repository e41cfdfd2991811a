//! [`STFT`](https://onnx.ai/onnx/operators/onnx__STFT.html): the discrete Fourier transforms of frames of a signal,
//! each weighted by a window.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::fourier::{Complex, transform};
use crate::integers::{extent, list, opt_list};
use crate::reals::{input, misfit, opt_input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "STFT",
    versions: (17, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Stft {
    onesided: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["onesided"])?;
    Ok(Box::new(Stft { onesided: cx.node.attributes.int_or("onesided", 1)? != 0 }))
}

impl Kernel for Stft {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, shape, x) = input(cx, 0)?;
        let (batch, length, parts) = match *shape {
            [batch, length] => (batch, length, 1),
            [batch, length, parts @ 1..=2] => (batch, length, parts),
            _ => return Err(misfit("the signal is [batch, length, 1 or 2]", &[&shape])),
        };
        let step = extent("the frame step", list(cx, 1)?.first().copied().unwrap_or(0))?;
        let window = opt_input(cx, 2)?;
        let asked = opt_list(cx, 3)?.and_then(|l| l.first().copied());
        let frame = match (asked, &window) {
            (Some(n), _) => extent("the frame length", n)?,
            (None, Some((_, shape, _))) => shape.iter().product(),
            (None, None) => {
                return Err(KernelError::Other("neither a window nor a frame length is given".into()));
            }
        };
        if step == 0 || frame == 0 || frame > length || window.as_ref().is_some_and(|w| w.2.len() != frame) {
            return Err(misfit(
                "frames lie within the signal, and the window is as long as one",
                &[&shape, &[frame]],
            ));
        }
        let frames = (length - frame) / step + 1;
        let kept = if self.onesided { frame / 2 + 1 } else { frame };
        let mut out = Vec::with_capacity(batch * frames * kept * 2);
        for b in 0..batch {
            for f in 0..frames {
                cx.cancel().check()?;
                let signal: Vec<Complex> = (0..frame)
                    .map(|i| {
                        let at = (b * length + f * step + i) * parts;
                        let weight = window.as_ref().map_or(1.0, |w| w.2[i]);
                        (x[at] * weight, if parts == 2 { x[at + 1] * weight } else { 0.0 })
                    })
                    .collect();
                out.extend(transform(&signal, false).into_iter().take(kept).flat_map(|v| [v.0, v.1]));
            }
        }
        let out = written(cx, dtype, &[batch, frames, kept, 2], &out)?;
        cx.set(0, out);
        Ok(())
    }
}
