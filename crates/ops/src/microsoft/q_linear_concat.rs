//! [`QLinearConcat`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.QLinearConcat):
//! quantized tensors one behind the other along an axis, each requantized to the result's scale and zero point.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, normalize_axis};

use crate::attributes::only;
use crate::q_linear::{read, write};
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "QLinearConcat",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct QLinearConcat {
    axis: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Ok(Box::new(QLinearConcat { axis: cx.node.attributes.int("axis")? }))
}

impl Kernel for QLinearConcat {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let mut parts = Vec::new();
        for index in (2..cx.input_count()).step_by(3) {
            parts.push(read(cx, index)?);
        }
        let Some((first, _)) = parts.first() else { return Err(KernelError::MissingInput { index: 2 }) };
        let axis = normalize_axis(self.axis, first.len())?;
        let mut shape = first.clone();
        for (other, _) in &parts[1..] {
            let same = |(at, (a, b)): (usize, (&usize, &usize))| at == axis || a == b;
            if other.len() != shape.len() || !other.iter().zip(&shape).enumerate().all(same) {
                return Err(misfit("inputs of a concatenation differ along its axis only", &[&shape, other]));
            }
            shape[axis] = shape[axis].saturating_add(other[axis]);
        }
        let outer: usize = shape[..axis].iter().product();
        let run = |shape: &Shape| shape[axis..].iter().product::<usize>();
        let mut values = Vec::new();
        for block in 0..outer {
            for (shape, part) in &parts {
                values.extend_from_slice(&part[block * run(shape)..(block + 1) * run(shape)]);
            }
        }
        write(cx, 0, cx.tensor(2)?.dtype(), &shape, &values)
    }
}
