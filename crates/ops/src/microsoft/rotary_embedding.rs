//! [`RotaryEmbedding`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.RotaryEmbedding):
//! pairs of each head's elements rotated by the angle of their position, which is given, or counted from one that is given.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers;
use crate::onnx::rotary_embedding::{Layout, Turn};
use crate::real::Real;
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "RotaryEmbedding",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Rotary {
    heads: usize,
    /// Elements of a head that are rotated; 0 is all.
    dim: usize,
    interleaved: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"])?;
    let attributes = &cx.node.attributes;
    if attributes.int_or("is_packed_batching", 0)? != 0 {
        return Err(unsupported("is_packed_batching", 1, "batch entries of one length are"));
    }
    match attributes.float_or("scale", 1.0)? {
        1.0 => {}
        other => return Err(unsupported("scale", other, "1 is")),
    }
    let count = |name: &str| -> Result<usize, BuildError> {
        let value = attributes.int_or(name, 0)?;
        usize::try_from(value).map_err(|_| unsupported(name, value, "it is a number of elements"))
    };
    let (heads, dim) = (count("num_heads")?, count("rotary_embedding_dim")?);
    if dim % 2 != 0 {
        return Err(unsupported("rotary_embedding_dim", dim, "pairs are rotated"));
    }
    Ok(Box::new(Rotary { heads, dim, interleaved: attributes.int_or("interleaved", 0)? != 0 }))
}

impl Kernel for Rotary {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16], T => self.rotate::<T>(cx),
            _ => Err(wrong_type(cx, 0, "FLOAT, FLOAT16 or BFLOAT16")))
    }
}

impl Rotary {
    fn rotate<T: Real>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (x, cos, sin) = (cx.dense(0)?, cx.dense(2)?, cx.dense(3)?);
        let &[rows, half] = cos.shape() else {
            return Err(misfit("cosines and sines are [positions, pairs]", &[cos.shape(), sin.shape()]));
        };
        let unfit = || {
            let what = "the input is [batch, heads, sequence, size] or [batch, sequence, heads * size], and as many \
                        pairs as the angles have are rotated";
            let shapes = [x.shape(), cos.shape(), sin.shape()].map(Shape::from_slice).into();
            KernelError::Shape { what, shapes }
        };
        let layout = match *x.shape() {
            [batch, heads, sequence, size] if self.heads == 0 || self.heads == heads => {
                Layout { batch, sequence, heads, size, heads_first: true }
            }
            [batch, sequence, hidden] => {
                // Without their number heads are as wide as what is rotated.
                let heads = if self.heads == 0 { hidden / (2 * half).max(1) } else { self.heads };
                if heads == 0 || hidden % heads != 0 {
                    return Err(unfit());
                }
                Layout { batch, sequence, heads, size: hidden / heads, heads_first: false }
            }
            _ => return Err(unfit()),
        };
        let dim = if self.dim == 0 { layout.size } else { self.dim };
        if dim > layout.size || dim != 2 * half || cos.shape() != sin.shape() {
            return Err(unfit());
        }
        let ids = integers::list(cx, 1)?;
        let tokens = layout.batch * layout.sequence;
        if ids.len() != 1 && ids.len() != tokens {
            return Err(misfit(
                "there is a position for each token, or the first one's",
                &[&[ids.len()], x.shape()],
            ));
        }
        let counted = ids.len() == 1;
        let turn = Turn { layout: &layout, dim, interleaved: self.interleaved };
        let out = turn.run::<T>(cx, &x, (&cos, &sin), |batch, place| {
            let value = match counted {
                true => ids[0].saturating_add(place as i64),
                false => ids[batch * layout.sequence + place],
            };
            let high = rows as i64 - 1;
            let range = KernelError::Range { what: "a position", value, low: 0, high };
            usize::try_from(value).ok().filter(|_| value <= high).ok_or(range)
        })?;
        cx.set(0, out);
        Ok(())
    }
}
