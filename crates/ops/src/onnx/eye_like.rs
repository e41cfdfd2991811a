//! [`EyeLike`](https://onnx.ai/onnx/operators/onnx__EyeLike.html): a matrix of the input's shape with 1 on the k-th diagonal and
//! 0 elsewhere.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_number;
use crate::scalar::{Numeric, Scalar};
use crate::spread;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "EyeLike",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct EyeLike {
    dtype: Option<DType>,
    k: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["dtype", "k"])?;
    let dtype = crate::attributes::dtype(cx, "dtype")?;
    if let Some(dtype) = dtype.filter(|&dtype| dtype != DType::Bool) {
        by_number!(dtype, _T => {}, _ => return Err(unsupported("dtype", dtype, "number types and BOOL are")));
    }
    Ok(Box::new(EyeLike { dtype, k: cx.node.attributes.int_or("k", 0)? }))
}

impl Kernel for EyeLike {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = cx.tensor(0)?;
        let shape = Shape::from_slice(input.shape());
        let dtype = self.dtype.unwrap_or(input.dtype());
        let [rows, columns] = shape[..] else {
            return Err(KernelError::Shape { what: "a matrix has two axes", shapes: vec![shape] });
        };
        let mut out = cx.alloc(dtype, &shape)?;
        spread::pieces(cx.cancel(), out.bytes_mut(), |_, piece| piece.fill(0))?;
        let ones: Vec<usize> = (0..rows)
            .filter_map(|row| {
                let column = i64::try_from(row).ok()?.checked_add(self.k)?;
                let column = usize::try_from(column).ok().filter(|&column| column < columns)?;
                Some(row * columns + column)
            })
            .collect();
        if dtype == DType::Bool {
            ones.iter().for_each(|&at| out.bytes_mut()[at] = 1);
        } else {
            by_number!(dtype, T => {
                let elements = out.elements_mut::<T>();
                ones.iter().for_each(|&at| elements[at] = T::down(<T as Numeric>::Wide::ONE));
            }, _ => return Err(crate::elementwise::wrong_type(cx, 0, "numbers or BOOL")));
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
