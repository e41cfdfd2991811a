//! Linear layers: `Gemm` with a constant weight [n, k], in records of a format or dense.

use std::sync::Arc;

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{EncodedValue, Layout, Value};

use crate::ahead::Follower;
use crate::lanes;
use crate::matmul::{Bias, Call, Product, ProductError};

/// ONNX `Gemm` of FLOAT activations [m, k] with `transA = 0`, `transB = 1`, `beta = 1` (or no bias) and a constant
/// weight [n, k]: an encoded value in records of a format, each row a whole number of records, or a dense tensor.
pub(crate) const GEMM: KernelSpec = KernelSpec {
    domain: "",
    op: "Gemm",
    versions: (7, i64::MAX),
    rank: 10,
    accepts: |cx| {
        let attributes = &cx.node.attributes;
        let int = |name, expected| attributes.int_or(name, 0).is_ok_and(|v| v == expected);
        let biased = cx.node.inputs.get(2).copied().flatten().is_some();
        int("transA", 0)
            && int("transB", 1)
            && (!biased || attributes.float_or("beta", 1.0).is_ok_and(|b| b == 1.0))
            && cx.inputs.iter().enumerate().all(|(i, f)| {
                i == 1 || !matches!(f.as_ref().and_then(|f| f.constant.as_ref()), Some(Value::Encoded(_)))
            })
            && !matches!(weight(cx), Ok(None))
    },
    build: |cx| {
        let weight = weight(cx)?.ok_or(BuildError::MissingInput { index: 1 })?;
        let alpha = cx.node.attributes.float_or("alpha", 1.0)?;
        Ok(Box::new(Linear { weight, alpha, follower: Arc::default() }))
    },
};

/// A constant matrix whose rows a product reads.
pub(crate) struct Weight {
    pub(crate) product: Product,
    pub(crate) rows: usize,
    pub(crate) row_len: usize,
    bytes: Source,
}

enum Source {
    Encoded(Arc<EncodedValue>),
    Dense(Tensor),
}

impl Weight {
    /// The matrix in `value`, if a product reads its layout.
    pub(crate) fn of(value: &Value) -> Result<Option<Weight>, BuildError> {
        let (shape, product, bytes) = match value {
            Value::Encoded(encoded) => {
                let (Layout::Struct(layout), Some(logical)) = (&encoded.layout, &encoded.logical) else {
                    return Ok(None);
                };
                let Some(format) = heirloom_formats::recognize(layout) else { return Ok(None) };
                if logical.dtype != DType::Float {
                    return Ok(None);
                }
                let product = Product::of_format(lanes::selected()?, format);
                (logical.shape.clone(), product, Source::Encoded(encoded.clone()))
            }
            Value::Tensor(tensor) if tensor.dense_bytes().is_some() => {
                let Some(product) = Product::of_dtype(lanes::selected()?, tensor.dtype()) else {
                    return Ok(None);
                };
                (Shape::from_slice(tensor.shape()), product, Source::Dense(tensor.clone()))
            }
            _ => return Ok(None),
        };
        let &[rows, row_len] = &*shape else { return Ok(None) };
        if row_len == 0 || !row_len.is_multiple_of(product.elements()) {
            return Ok(None);
        }
        let weight = Weight { product, rows, row_len, bytes };
        let (actual, expected) = (weight.bytes().len(), rows.checked_mul(weight.product.row_bytes(row_len)));
        if Some(actual) != expected {
            return Err(BuildError::Unsupported {
                name: "the weight's payload".into(),
                value: format!("{actual} bytes"),
                reason: format!("a matrix {shape:?} in its layout takes {expected:?}"),
            });
        }
        Ok(Some(weight))
    }

    /// The rows' bytes, where they were loaded or mapped.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Source::Encoded(encoded) => &encoded.payload,
            Source::Dense(tensor) => tensor.dense_bytes().unwrap_or(&[]),
        }
    }
}

fn weight(cx: &BuildCx<'_>) -> Result<Option<Weight>, BuildError> {
    match cx.constant(1) {
        // A dense weight of another type than the activations' is no Gemm of ONNX.
        Some(Value::Tensor(tensor)) if tensor.dtype() != DType::Float => Ok(None),
        Some(value) => Weight::of(value),
        None => Ok(None),
    }
}

struct Linear {
    weight: Weight,
    alpha: f32,
    follower: Arc<Follower>,
}

impl Kernel for Linear {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let Weight { product, rows: n, row_len: k, .. } = &self.weight;
        let (n, k) = (*n, *k);
        let x = cx.dense(0)?;
        let &[rows, width] = x.shape() else { return Err(misfit(&x, n, k)) };
        if width != k {
            return Err(misfit(&x, n, k));
        }
        let bias = cx.opt_tensor(2)?.is_some().then(|| cx.dense(2)).transpose()?;
        let mut out = cx.alloc(DType::Float, &[rows, n])?;
        let team = cx.team();
        self.follower.called(product.soon(self.weight.bytes(), n, k, team.threads()));
        let mut activations = cx.scratch(product.activation_bytes(rows, k));
        let mut scratch = cx.scratch(product.scratch_bytes(rows, k, team.threads()));
        // With many rows the time goes elsewhere than into reading weights.
        if rows == 1 {
            team.announce(self.follower.next());
        }
        let result = product.run(Call {
            activations: product.activations(x.as_slice()?, rows, k, activations.as_mut_slice(), team),
            weight: self.weight.bytes(),
            n,
            alpha: self.alpha,
            bias: bias.as_ref().map_or(Ok(Bias::None), |b| bias_of(b, rows, n))?,
            out: out.elements_mut(),
            scratch: scratch.as_mut_slice(),
            team,
            cancel: cx.cancel(),
        });
        cx.release(activations);
        cx.release(scratch);
        result.map_err(kernel_error)?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

fn bias_of(bias: &Tensor, rows: usize, n: usize) -> Result<Bias<'_>, KernelError> {
    let values = bias.as_slice::<f32>()?;
    match bias.shape() {
        &[len] | &[1, len] if len == n => Ok(Bias::Row(values)),
        &[r, len] if r == rows && len == n => Ok(Bias::Full(values)),
        other => Err(KernelError::Shape {
            what: "the bias has a row of the output, or all of it",
            shapes: vec![Shape::from_slice(other), Shape::from_slice(&[rows, n])],
        }),
    }
}

fn misfit(x: &Tensor, n: usize, k: usize) -> KernelError {
    let shapes = vec![Shape::from_slice(x.shape()), Shape::from_slice(&[n, k])];
    KernelError::Shape { what: "the activations are [m, k] for a weight [n, k]", shapes }
}

pub(crate) fn kernel_error(error: ProductError) -> KernelError {
    match error {
        ProductError::Cancelled(cancelled) => cancelled.into(),
        other => KernelError::Other(other.to_string()),
    }
}
