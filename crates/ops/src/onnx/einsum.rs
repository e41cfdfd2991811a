//! [`Einsum`](https://onnx.ai/onnx/operators/onnx__Einsum.html): sums of products over labelled axes, such as `bij,bjk->bik`.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::einsum::{Equation, Operand};
use crate::elementwise::{common_type, wrong_type};
use crate::product::Ring;
use crate::scalar::Numeric;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Einsum",
    versions: (12, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Einsum {
    equation: Equation,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["equation"])?;
    let text = String::from_utf8_lossy(cx.node.attributes.string("equation")?);
    let equation = Equation::parse(&text).map_err(|reason| unsupported("equation", &text, &reason))?;
    if equation.inputs() != cx.node.inputs.len() {
        return Err(unsupported("equation", &text, "it has as many terms as the node has inputs"));
    }
    Ok(Box::new(Einsum { equation }))
}

impl Kernel for Einsum {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let dtype = common_type(cx, self.equation.inputs())?;
        by_type!(dtype, [f32, f64, half::f16, half::bf16, i64, i32, u64, u32], T => self.sum::<T>(cx),
            _ => Err(wrong_type(cx, 0, "numbers of 32 or 64 bits, FLOAT16 or BFLOAT16")))
    }
}

impl Einsum {
    fn sum<T: Numeric>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError>
    where
        T::Wide: Ring,
    {
        let mut shapes: Vec<Shape> = Vec::new();
        for index in 0..self.equation.inputs() {
            shapes.push(Shape::from_slice(cx.tensor(index)?.shape()));
        }
        let plan = self.equation.plan(&shapes)?;
        let mut operands = Vec::with_capacity(shapes.len());
        for (index, labels) in plan.terms.iter().enumerate() {
            let tensor = cx.dense(index)?;
            let elements: Vec<T::Wide> = tensor.as_slice::<T>()?.iter().map(|v| v.up()).collect();
            operands.push(Operand::new(elements, &shapes[index], labels));
        }
        let result = plan.contract(operands, cx.cancel())?;
        let mut out = cx.alloc(T::DTYPE, &plan.result_shape())?;
        out.elements_mut::<T>().iter_mut().zip(result).for_each(|(o, v)| *o = T::down(v));
        cx.set(0, out.freeze());
        Ok(())
    }
}
