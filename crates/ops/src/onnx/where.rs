//! [`Where`](https://onnx.ai/onnx/operators/onnx__Where.html): X where the condition holds, else Y, all broadcast.

use heirloom_mem::{Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, Watch};
use heirloom_types::Value;

use crate::attributes::only;
use crate::broadcast::{self, Walk};
use crate::cells::{Moves, moved};
use crate::elementwise::{Plain, bools, wrong_type};
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Where",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let condition = cx.dense(0)?;
    if matches!(cx.value(1), Some(Value::Strings(_))) || narrow(cx, 1)? {
        let shapes = [Shape::from_slice(condition.shape()), shape_of(cx, 1)?, shape_of(cx, 2)?];
        let shape = broadcast::shape(&[&shapes[0], &shapes[1], &shapes[2]])?;
        let chosen = bools(&condition, 0)?.iter().map(|&byte| byte != 0).collect();
        let value = moved(cx, &[1, 2], &shape, &Select { chosen, shape: shape.clone(), shapes })?;
        cx.set(0, value);
        return Ok(());
    }
    let (x, y) = (cx.dense(1)?, cx.dense(2)?);
    if x.dtype() != y.dtype() {
        return Err(wrong_type(cx, 2, "a tensor of the type of input 1"));
    }
    match x.dtype().bit_width() {
        Some(8) => select::<1>(cx, &condition, &x, &y),
        Some(16) => select::<2>(cx, &condition, &x, &y),
        Some(32) => select::<4>(cx, &condition, &x, &y),
        Some(64) => select::<8>(cx, &condition, &x, &y),
        Some(128) => select::<16>(cx, &condition, &x, &y),
        _ => Err(wrong_type(cx, 1, "elements of whole bytes")),
    }
}

/// Elements of `W` bytes.
fn select<const W: usize>(
    cx: &mut RunCx<'_>,
    condition: &Tensor,
    x: &Tensor,
    y: &Tensor,
) -> Result<(), KernelError> {
    let shape = broadcast::shape(&[condition.shape(), x.shape(), y.shape()])?;
    let mut out = cx.alloc(x.dtype(), &shape)?;
    let condition_bytes = bools(condition, 0)?;
    let (xs, _) = x.dense_bytes().unwrap_or(&[]).as_chunks::<W>();
    let (ys, _) = y.dense_bytes().unwrap_or(&[]).as_chunks::<W>();
    let (outs, _) = out.bytes_mut().as_chunks_mut::<W>();
    let walk = Walk::new(&shape, [condition.shape(), x.shape(), y.shape()]);
    let [c_step, x_step, y_step] = walk.step;
    walk.pieces(&mut cx.cancel().watch(), |at, [c, i, j], run| {
        for (k, o) in outs[at..at + run].iter_mut().enumerate() {
            *o = if condition_bytes[c + k * c_step] != 0 { xs[i + k * x_step] } else { ys[j + k * y_step] };
        }
    })?;
    cx.set(0, out.freeze());
    Ok(())
}

/// Whether elements are narrower than a byte.
fn narrow(cx: &RunCx<'_>, index: usize) -> Result<bool, KernelError> {
    Ok(cx.tensor(index)?.dtype().bit_width().is_some_and(|bits| bits < 8))
}

/// The choice for strings and for elements of less than a byte.
struct Select {
    chosen: Vec<bool>,
    shape: Shape,
    shapes: [Shape; 3],
}

impl Moves for Select {
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError> {
        let [condition, x, y] = &self.shapes;
        let walk = Walk::new(&self.shape, [condition, x, y]);
        let [c_step, x_step, y_step] = walk.step;
        walk.pieces(watch, |at, [c, i, j], run| {
            for (k, o) in out[at..at + run].iter_mut().enumerate() {
                let from = if self.chosen[c + k * c_step] {
                    &inputs[0][i + k * x_step]
                } else {
                    &inputs[1][j + k * y_step]
                };
                *o = from.clone();
            }
        })?;
        Ok(())
    }
}
