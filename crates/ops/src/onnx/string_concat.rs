//! [`StringConcat`](https://onnx.ai/onnx/operators/onnx__StringConcat.html): strings one behind the other, broadcast.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast;
use crate::cells::{strings, strings_of};
use crate::elementwise::{Plain, zip};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "StringConcat",
    versions: (20, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let (a, b) = (strings_of(cx, 0)?, strings_of(cx, 1)?);
    let shape = broadcast::shape(&[&a.shape, &b.shape])?;
    let mut out: Vec<Box<[u8]>> = vec![Box::default(); shape.iter().product()];
    let (x, y): (Vec<&[u8]>, Vec<&[u8]>) =
        (a.elements.iter().map(|s| &**s).collect(), b.elements.iter().map(|s| &**s).collect());
    let shapes: [&[usize]; 2] = [&a.shape, &b.shape];
    zip(&mut cx.cancel().watch(), &mut out, &shape, shapes, &x, &y, |x, y| [x, y].concat().into())?;
    cx.set(0, strings(&shape, out));
    Ok(())
}
