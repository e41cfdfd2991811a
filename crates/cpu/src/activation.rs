//! Activations of FLOAT tensors.
#![allow(unsafe_code)]

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::disjoint::DisjointMut;
use crate::lanes::{self, Lanes, for_level};
use heirloom_simd::Isa;

/// ONNX `Swish` (opset 24 on): `x * sigmoid(alpha * x)`.
pub(crate) const SWISH: KernelSpec = KernelSpec {
    domain: "",
    op: "Swish",
    versions: (24, i64::MAX),
    rank: 10,
    accepts,
    build: |cx| {
        Ok(Box::new(Activation {
            f: swish,
            alpha: cx.node.attributes.float_or("alpha", 1.0)?,
            isa: lanes::selected()?,
        }))
    },
};

/// ONNX `Sigmoid`: `1 / (1 + exp(-x))`.
pub(crate) const SIGMOID: KernelSpec = KernelSpec {
    domain: "",
    op: "Sigmoid",
    versions: (6, i64::MAX),
    rank: 10,
    accepts,
    build: |_: &BuildCx<'_>| -> Result<_, BuildError> {
        Ok(Box::new(Activation { f: sigmoid, alpha: 1.0, isa: lanes::selected()? }))
    },
};

fn accepts(cx: &BuildCx<'_>) -> bool {
    let float = cx.inputs.first().and_then(Option::as_ref).and_then(|f| f.dtype) == Some(DType::Float);
    cx.plain_inputs() && float
}

struct Activation {
    f: fn(Isa, &mut [f32], f32),
    alpha: f32,
    isa: Isa,
}

/// Elements per task.
const PIECE: usize = 8192;

impl Kernel for Activation {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let mut out = match cx.take_unique(0) {
            Some(out) if out.dtype() == DType::Float => out,
            Some(other) => {
                let actual = other.dtype().name().into();
                return Err(KernelError::InputType { index: 0, expected: "FLOAT".into(), actual });
            }
            None => {
                let x = cx.dense(0)?;
                let mut out = cx.alloc(DType::Float, x.shape())?;
                heirloom_mem::copy::into(
                    out.elements_mut::<f32>(),
                    x.as_slice::<f32>()?,
                    heirloom_mem::copy::Purpose::Kernel,
                    cx.ledger(),
                );
                out
            }
        };
        let all = out.elements_mut::<f32>();
        let len = all.len();
        let to = DisjointMut::new(all);
        cx.team().run(len.div_ceil(PIECE), &|task| {
            // SAFETY: each piece is written by one task.
            let piece = unsafe { to.part(task * PIECE..((task + 1) * PIECE).min(len)) };
            (self.f)(self.isa, piece, self.alpha);
        });
        cx.set(0, out.freeze());
        Ok(())
    }
}

for_level! {
    fn swish(s, x: &mut [f32], alpha: f32) {
        let one = s.splat(1.0);
        each(s, x, |v| s.div(v, s.add(one, s.exp(s.mul(v, s.splat(-alpha))))));
    }
}

for_level! {
    fn sigmoid(s, x: &mut [f32], alpha: f32) {
        let one = s.splat(1.0);
        each(s, x, |v| s.div(one, s.add(one, s.exp(s.mul(v, s.splat(-alpha))))));
    }
}

/// Applies `f` to every element; the last few go through a register that is filled up.
#[inline(always)]
fn each<S: Lanes>(s: S, x: &mut [f32], f: impl Fn(S::V) -> S::V) {
    let mut chunks = x.chunks_exact_mut(S::N);
    for chunk in &mut chunks {
        let v = f(s.load(chunk));
        s.store(chunk, v);
    }
    let rest = chunks.into_remainder();
    let mut last = [0.0f32; 16];
    last.iter_mut().zip(&*rest).for_each(|(to, x)| *to = *x);
    let v = f(s.load(&last));
    s.store(&mut last, v);
    rest.iter_mut().zip(last).for_each(|(to, x)| *to = x);
}
