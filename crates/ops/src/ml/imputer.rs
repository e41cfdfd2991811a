//! [`Imputer`](https://onnx.ai/onnx/operators/onnx_aionnxml_Imputer.html): a value in the place of those that are
//! missing, by feature.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::elementwise::wrong_type;
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "Imputer",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

enum Imputer {
    Floats { values: Vec<f32>, missing: f32 },
    Integers { values: Vec<i64>, missing: i64 },
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &["imputed_value_floats", "imputed_value_int64s", "replaced_value_float", "replaced_value_int64"],
    )?;
    let attributes = &cx.node.attributes;
    if let Some(list) = attributes.opt_floats("imputed_value_floats")?.filter(|list| !list.is_empty()) {
        let missing = attributes.float_or("replaced_value_float", 0.0)?;
        return Ok(Box::new(Imputer::Floats { values: Vec::from(list), missing }));
    }
    match attributes.opt_ints("imputed_value_int64s")?.filter(|list| !list.is_empty()) {
        Some(list) => {
            let missing = attributes.int_or("replaced_value_int64", 0)?;
            Ok(Box::new(Imputer::Integers { values: Vec::from(list), missing }))
        }
        None => Err(unsupported("imputed_value_floats", "nothing", "there is a value to put in")),
    }
}

impl Kernel for Imputer {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let x = cx.dense(0)?;
        let width = x.shape().last().copied().unwrap_or(1).max(1);
        let fits = |len: usize| len == 1 || len == width;
        let mut out = cx.alloc(x.dtype(), x.shape())?;
        match self {
            Imputer::Floats { values, missing } if x.dtype() == DType::Float && fits(values.len()) => {
                let pairs = out.elements_mut::<f32>().iter_mut().zip(x.as_slice::<f32>()?).enumerate();
                for (at, (o, &v)) in pairs {
                    let is_missing = v == *missing || (v.is_nan() && missing.is_nan());
                    *o = if is_missing { values[at % width % values.len()] } else { v };
                }
            }
            Imputer::Integers { values, missing } if x.dtype() == DType::Int64 && fits(values.len()) => {
                let pairs = out.elements_mut::<i64>().iter_mut().zip(x.as_slice::<i64>()?).enumerate();
                pairs.for_each(|(at, (o, &v))| {
                    *o = if v == *missing { values[at % width % values.len()] } else { v }
                });
            }
            Imputer::Floats { .. } if x.dtype() != DType::Float => return Err(wrong_type(cx, 0, "FLOAT")),
            Imputer::Integers { .. } if x.dtype() != DType::Int64 => return Err(wrong_type(cx, 0, "INT64")),
            _ => return Err(misfit("there is one value, or one for each feature", &[x.shape()])),
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
