//! Tensors of random numbers.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, RunCx};

use crate::attributes::{dtype, only, unsupported};
use crate::by_type::by_real;
use crate::movement::shape_of;
use crate::random::Random;
use crate::scalar::{Numeric, Scalar};

/// How the numbers are distributed, with the names of the two parameters.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Distribution {
    /// From `low` on, below `high`.
    Uniform,
    /// Around `mean` with the deviation `scale`.
    Normal,
}

struct Fill {
    distribution: Distribution,
    /// Of the result; `None` is that of input 0.
    shape: Option<Shape>,
    dtype: Option<DType>,
    /// `low` and `high`, or `mean` and `scale`.
    parameters: (f64, f64),
    seed: Option<f32>,
}

/// The kernel of a node whose shape is an attribute, or that of input 0 (`like`).
pub(crate) fn build(
    cx: &BuildCx<'_>,
    distribution: Distribution,
    like: bool,
) -> Result<Box<dyn Kernel>, BuildError> {
    let (first, second, defaults) = match distribution {
        Distribution::Uniform => ("low", "high", (0.0, 1.0)),
        Distribution::Normal => ("mean", "scale", (0.0, 1.0)),
    };
    let mut known = vec!["dtype", "seed", first, second];
    known.extend((!like).then_some("shape"));
    only(cx, &known)?;
    let attributes = &cx.node.attributes;
    let ty = match dtype(cx, "dtype")? {
        None if like => None,
        ty => Some(ty.unwrap_or(DType::Float)),
    };
    if let Some(ty) = ty {
        by_real!(ty, _T => {}, _ => return Err(unsupported("dtype", ty, "floating-point types are")));
    }
    let shape = match like {
        true => None,
        false => {
            let list = attributes.ints("shape")?;
            let shape: Option<Shape> = list.iter().map(|&extent| usize::try_from(extent).ok()).collect();
            let negative = || unsupported("shape", format!("{list:?}"), "extents are not negative");
            Some(shape.ok_or_else(negative)?)
        }
    };
    Ok(Box::new(Fill {
        distribution,
        shape,
        dtype: ty,
        parameters: (
            attributes.float_or(first, defaults.0)?.into(),
            attributes.float_or(second, defaults.1)?.into(),
        ),
        seed: attributes.opt_float("seed")?,
    }))
}

impl Kernel for Fill {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = match &self.shape {
            Some(shape) => shape.clone(),
            None => shape_of(cx, 0)?,
        };
        let dtype = match self.dtype {
            Some(dtype) => dtype,
            None => cx.tensor(0)?.dtype(),
        };
        let mut random = Random::of(self.seed);
        let (a, b) = self.parameters;
        let mut out = cx.alloc(dtype, &shape)?;
        let mut watch = cx.cancel().watch();
        by_real!(dtype, T => for o in out.elements_mut::<T>() {
            watch.pass(4)?;
            let value = match self.distribution {
                Distribution::Uniform => a + (b - a) * random.uniform(),
                Distribution::Normal => a + b * random.normal(),
            };
            *o = T::down(<T as Numeric>::Wide::from_f64(value));
        }, _ => return Err(crate::elementwise::wrong_type(cx, 0, "floating-point numbers")));
        cx.set(0, out.freeze());
        Ok(())
    }
}
