//! [`CausalConvWithState`](https://onnx.ai/onnx/operators/onnx__CausalConvWithState.html): a convolution of each
//! channel with its own kernel over past and present positions; the last positions are the next call's past.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::reals::{input, misfit, opt_input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "CausalConvWithState",
    versions: (27, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct CausalConv {
    swish: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["activation"])?;
    let swish = match cx.node.attributes.opt_string("activation")? {
        None | Some(b"none") => false,
        Some(b"silu" | b"swish") => true,
        Some(other) => {
            return Err(unsupported(
                "activation",
                String::from_utf8_lossy(other),
                "silu, swish and none are",
            ));
        }
    };
    Ok(Box::new(CausalConv { swish }))
}

impl Kernel for CausalConv {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let ((dtype, shape, x), (_, w_shape, w)) = (input(cx, 0)?, input(cx, 1)?);
        let fault = || {
            misfit("the input is [batch, channels, length], the weight [channels, 1, k]", &[&shape, &w_shape])
        };
        let (&[batch, channels, length], &[maps, 1, k]) = (&*shape, &*w_shape) else { return Err(fault()) };
        if maps != channels || k == 0 {
            return Err(fault());
        }
        let bias = opt_input(cx, 2)?;
        if bias.as_ref().is_some_and(|b| *b.1 != [channels]) {
            return Err(misfit("the bias has one element for each channel", &[&shape]));
        }
        let past = opt_input(cx, 3)?;
        if past.as_ref().is_some_and(|p| *p.1 != [batch, channels, k - 1]) {
            return Err(misfit("the past is [batch, channels, k - 1]", &[&shape]));
        }
        let mut watch = cx.cancel().watch();
        let (mut out, mut kept) = (Vec::with_capacity(x.len()), Vec::new());
        for row in 0..batch * channels {
            watch.pass(length * k)?;
            let channel = row % channels;
            let before = past.as_ref().map(|p| &p.2[row * (k - 1)..][..k - 1]);
            let mut line: Vec<f64> = before.map_or_else(|| vec![0.0; k - 1], Vec::from);
            line.extend(&x[row * length..][..length]);
            let own = &w[channel * k..][..k];
            let shift = bias.as_ref().map_or(0.0, |b| b.2[channel]);
            for at in 0..length {
                let sum: f64 = line[at..].iter().zip(own).map(|(x, w)| x * w).sum::<f64>() + shift;
                out.push(if self.swish { sum / (1.0 + (-sum).exp()) } else { sum });
            }
            kept.extend(&line[length..]);
        }
        let out = written(cx, dtype, &shape, &out)?;
        cx.set(0, out);
        if cx.output_count() > 1 {
            let kept = written(cx, dtype, &[batch, channels, k - 1], &kept)?;
            cx.set(1, kept);
        }
        Ok(())
    }
}
