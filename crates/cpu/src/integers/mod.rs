//! `MatMulInteger`: products of 8-bit codes. With AVX-512 as integers; at other levels as FLOAT products of at most 256 codes
//! each, which are exact.

#[cfg(target_arch = "x86_64")]
pub(crate) mod dots;
pub(crate) mod floats;
pub(crate) mod quantize;

use heirloom_mem::DType;
use heirloom_ops::MatMulShapes;
use heirloom_runtime::{Kernel, KernelError, KernelSpec, PrepareCx, RunCx};
use heirloom_simd::Isa;
use heirloom_types::Value;

use crate::fallback::Portable;
use crate::lanes;
use floats::FloatCodes;

/// ONNX `MatMulInteger` with one matrix b.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MatMulInteger",
    versions: (10, i64::MAX),
    rank: 10,
    accepts: |cx| {
        cx.plain_inputs() && matches!(cx.constant(1), Some(Value::Tensor(t)) if t.shape().len() == 2)
    },
    build: |cx| {
        let (isa, portable) = (lanes::selected()?, Portable::new(cx)?);
        let way = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(token) => Way::Integers(token, dots::CodePanels::of(1)),
            _ => Way::Floats(FloatCodes::new(isa)),
        };
        Ok(Box::new(MatMulInteger { way, portable }))
    },
};

enum Way {
    #[cfg(target_arch = "x86_64")]
    Integers(heirloom_simd::Avx512, dots::CodePanels),
    Floats(FloatCodes),
}

struct MatMulInteger {
    way: Way,
    portable: Portable,
}

/// One 8-bit code as a number.
pub(crate) fn code(byte: u8, signed: bool) -> f32 {
    if signed { f32::from(byte.cast_signed()) } else { f32::from(byte) }
}

/// One 8-bit code as an integer.
pub(crate) fn integer(byte: u8, signed: bool) -> i32 {
    if signed { i32::from(byte.cast_signed()) } else { i32::from(byte) }
}

/// Codes of a matrix or several, and their zero points: one, or of b one for each column.
#[derive(Clone, Copy)]
struct Codes<'a> {
    bytes: &'a [u8],
    signed: bool,
    zeros: &'a [i32],
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::Uint8 | DType::Int8)
}

/// The zero points of an input: a number, or a vector of `n`; `None` for others.
fn zeros(cx: &RunCx<'_>, index: usize, n: usize) -> Result<Option<Vec<i32>>, KernelError> {
    let Some(tensor) = cx.opt_tensor(index)? else { return Ok(Some(vec![0])) };
    let fits = tensor.len() == 1 || tensor.shape() == [n];
    if !fits || !is_byte(tensor.dtype()) {
        return Ok(None);
    }
    let signed = tensor.dtype() == DType::Int8;
    Ok(tensor.dense_bytes().map(|bytes| bytes.iter().map(|&byte| integer(byte, signed)).collect()))
}

impl Kernel for MatMulInteger {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        let Some(Value::Tensor(b)) = cx.constant(1) else { return };
        let &[k, n] = b.shape() else { return };
        match &mut self.way {
            #[cfg(target_arch = "x86_64")]
            Way::Integers(_, panels) if is_byte(b.dtype()) => panels.claim(cx, 1, k, n),
            #[cfg(target_arch = "x86_64")]
            Way::Integers(..) => {}
            Way::Floats(panels) => panels.prepare(cx, k, n),
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (a, b) = (cx.dense(0)?, cx.dense(1)?);
        if !is_byte(a.dtype()) || !is_byte(b.dtype()) || a.is_empty() || b.is_empty() {
            return self.portable.run(cx);
        }
        let shapes = MatMulShapes::new(a.shape(), b.shape())?;
        let (k, n) = (shapes.k, shapes.n);
        let (Some(a_zeros), Some(b_zeros)) = (zeros(cx, 2, 1)?, zeros(cx, 3, n)?) else {
            return self.portable.run(cx);
        };
        if matches!(self.way, Way::Floats(_)) && b_zeros.len() > 1 {
            return self.portable.run(cx);
        }
        let [left, right] = [(&a, &a_zeros), (&b, &b_zeros)].map(|(tensor, zeros)| Codes {
            bytes: tensor.dense_bytes().unwrap_or(&[]),
            signed: tensor.dtype() == DType::Int8,
            zeros,
        });
        let mut out = cx.alloc(DType::Int32, &shapes.result)?;
        let to = out.elements_mut::<i32>();
        match &self.way {
            #[cfg(target_arch = "x86_64")]
            Way::Integers(token, panels) => {
                let held = panels.get(cx, right.bytes, right.signed, 1, (k, n))?;
                let a = dots::Left::new(left.bytes, left.signed, k);
                let b = held.matrix(0, right.signed, k, n);
                dots::multiply(*token, (&a, left.zeros[0]), (b, right.zeros), to, cx.team(), cx.cancel())?;
            }
            Way::Floats(floats) => floats.multiply(cx, left, right, (k, n), to)?,
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
