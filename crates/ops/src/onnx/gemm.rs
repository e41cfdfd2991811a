//! [`Gemm`](https://onnx.ai/onnx/operators/onnx__Gemm.html): `alpha * A' * B' + beta * C`, A and B transposed on request, C
//! broadcast to the result.

use half::{bf16, f16};
use heirloom_graph::Attributes;
use heirloom_mem::{Element, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::broadcast::{self, Walk};
use crate::by_type::by_type;
use crate::elementwise::{common_type, wrong_type};
use crate::numbers::{Number, convert};
use crate::product::{Ring, product};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Gemm",
    versions: (1, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

pub(crate) struct Gemm {
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
}

impl Gemm {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Result<Gemm, BuildError> {
        let known: &[&str] = &["alpha", "beta", "transA", "transB", "broadcast"];
        // From version 7 on C is always broadcast.
        only(cx, if cx.opset < 7 { known } else { &known[..4] })?;
        Gemm::parse(&cx.node.attributes)
    }

    /// The attributes that every operator of this kind has.
    pub(crate) fn parse(attributes: &Attributes) -> Result<Gemm, BuildError> {
        Ok(Gemm {
            alpha: attributes.float_or("alpha", 1.0)?,
            beta: attributes.float_or("beta", 1.0)?,
            trans_a: attributes.int_or("transA", 0)? != 0,
            trans_b: attributes.int_or("transB", 0)? != 0,
        })
    }

    /// m, n and k of the product, if the shapes fit.
    pub(crate) fn extents(&self, a: &[usize], b: &[usize]) -> Result<(usize, usize, usize), KernelError> {
        let matrix = |shape: &[usize], transposed: bool| match *shape {
            [rows, columns] if transposed => Some((columns, rows)),
            [rows, columns] => Some((rows, columns)),
            _ => None,
        };
        match (matrix(a, self.trans_a), matrix(b, self.trans_b)) {
            (Some((m, k)), Some((rows, n))) if rows == k => Ok((m, n, k)),
            _ => Err(KernelError::Shape {
                what: "A and B are matrices with one extent in common",
                shapes: vec![Shape::from_slice(a), Shape::from_slice(b)],
            }),
        }
    }
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(Gemm::new(cx)?))
}

impl Kernel for Gemm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let dtype = common_type(cx, if cx.value(2).is_some() { 3 } else { 2 })?;
        by_type!(dtype, [f32, f16, bf16], T => return gemm::<T, f32>(cx, self), _ => {});
        by_type!(dtype, [f64, i32, i64, u32, u64], T => gemm::<T, T>(cx, self),
            _ => Err(wrong_type(cx, 0, "FLOAT, FLOAT16, BFLOAT16, DOUBLE or integers of 32 or 64 bits")))
    }
}

/// Computes in `W`.
fn gemm<T: Number, W: Number + Ring>(cx: &mut RunCx<'_>, node: &Gemm) -> Result<(), KernelError> {
    let (a, b) = (cx.dense(0)?, cx.dense(1)?);
    let (m, n, k) = node.extents(a.shape(), b.shape())?;
    let a = wide::<T, W>(&a, node.trans_a.then_some((k, m)))?;
    let b = wide::<T, W>(&b, None)?;
    let mut sums = vec![W::default(); m * n];
    product(&mut sums, &a, &b, (n, k), node.trans_b, cx.cancel())?;
    finish(cx, node, &[m, n], sums).and_then(|sums| {
        let mut out = cx.alloc(T::DTYPE, &[m, n])?;
        convert(&sums, out.elements_mut::<T>());
        cx.set(0, out.freeze());
        Ok(())
    })
}

/// `alpha * sums + beta * C`.
pub(crate) fn finish<W: Number + Ring>(
    cx: &RunCx<'_>,
    node: &Gemm,
    shape: &[usize],
    mut sums: Vec<W>,
) -> Result<Vec<W>, KernelError> {
    if node.alpha != 1.0 {
        sums.iter_mut().for_each(|sum| *sum = scaled(*sum, node.alpha));
    }
    if cx.value(2).is_none() || node.beta == 0.0 {
        return Ok(sums);
    }
    let c = cx.dense(2)?;
    if *broadcast::shape(&[shape, c.shape()])? != *shape {
        return Err(KernelError::Shape {
            what: "C is broadcast to the product",
            shapes: vec![Shape::from_slice(shape), Shape::from_slice(c.shape())],
        });
    }
    let values = by_type!(c.dtype(), [f32, f16, bf16, f64, i32, i64, u32, u64],
        C => wide::<C, W>(&c, None)?, _ => return Err(wrong_type(cx, 2, "numbers")));
    let walk = Walk::new(shape, [c.shape()]);
    walk.pieces(&mut cx.cancel().watch(), |at, [from], run| {
        for (i, sum) in sums[at..at + run].iter_mut().enumerate() {
            let c = values[from + i * walk.step[0]];
            *sum = sum.plus(if node.beta == 1.0 { c } else { scaled(c, node.beta) });
        }
    })?;
    Ok(sums)
}

/// A product with a FLOAT factor; integers are cut off toward zero.
fn scaled<W: Number>(value: W, factor: f32) -> W {
    match W::THROUGH {
        crate::numbers::Through::F32 => W::from_f32(value.to_f32() * factor),
        _ => W::from_f64(value.to_f64() * f64::from(factor)),
    }
}

/// The elements as `W`; of a [rows, columns] matrix, transposed.
fn wide<T: Element + Number, W: Number>(
    tensor: &Tensor,
    transposed: Option<(usize, usize)>,
) -> Result<Vec<W>, KernelError> {
    let from = tensor.as_slice::<T>()?;
    let mut to = vec![W::default(); from.len()];
    convert(from, &mut to);
    let Some((rows, columns)) = transposed else { return Ok(to) };
    Ok((0..columns)
        .flat_map(|column| (0..rows).map(move |row| (row, column)))
        .map(|(r, c)| to[r * columns + c])
        .collect())
}
