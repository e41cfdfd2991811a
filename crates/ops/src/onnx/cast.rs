//! [`Cast`](https://onnx.ai/onnx/operators/onnx__Cast.html): each element as another type.
//!
//! Floats to integers are cut off toward zero, out of range they become the nearest number; integers to narrower
//! integers keep their low bits; NaN becomes integer 0.

use std::borrow::Cow;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::bits;
use heirloom_types::floats::{Overflow, SmallFloat, e8m0_to_f32, f32_to_e8m0};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::numbers::{Number, convert};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Cast",
    versions: (6, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Cast {
    to: DType,
    overflow: Overflow,
    round: Round,
}

/// How FLOAT8E8M0 rounds.
#[derive(Clone, Copy)]
enum Round {
    Up,
    Down,
    Nearest,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        match cx.opset {
            ..19 => &["to"],
            19..24 => &["to", "saturate"],
            _ => &["to", "saturate", "round_mode"],
        },
    )?;
    let attributes = &cx.node.attributes;
    let to = attributes.int("to")?;
    let target = i32::try_from(to).ok().and_then(DType::from_onnx);
    let target = target.filter(|to| !matches!(to, DType::String | DType::Complex64 | DType::Complex128));
    let round = match attributes.opt_string("round_mode")? {
        None | Some(b"up") => Round::Up,
        Some(b"down") => Round::Down,
        Some(b"nearest") => Round::Nearest,
        Some(other) => {
            return Err(unsupported(
                "round_mode",
                String::from_utf8_lossy(other),
                "up, down and nearest are",
            ));
        }
    };
    Ok(Box::new(Cast {
        to: target.ok_or_else(|| unsupported("to", to, "the types with real numbers or BOOL are"))?,
        overflow: if attributes.int_or("saturate", 1)? != 0 {
            Overflow::Saturate
        } else {
            Overflow::NonFinite
        },
        round,
    }))
}

impl Kernel for Cast {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if cx.tensor(0)?.dtype() == self.to {
            let same = cx.tensor(0)?.clone();
            cx.set(0, same);
            return Ok(());
        }
        let input = cx.dense(0)?;
        let mut out = cx.alloc(self.to, input.shape())?;
        match (input.dtype(), self.to) {
            (DType::Float, DType::Float16) => {
                out.elements_mut::<f16>().convert_from_f32_slice(input.as_slice()?);
            }
            (DType::Float, DType::BFloat16) => {
                out.elements_mut::<bf16>().convert_from_f32_slice(input.as_slice()?);
            }
            (DType::Float16, DType::Float) => {
                input.as_slice::<f16>()?.convert_to_f32_slice(out.elements_mut());
            }
            (DType::BFloat16, DType::Float) => {
                input.as_slice::<bf16>()?.convert_to_f32_slice(out.elements_mut());
            }
            (from, to) => by_type!(from, [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8], F => {
                let from = input.as_slice::<F>()?;
                by_type!(to, [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8],
                    T => convert::<F, T>(from, out.elements_mut()),
                    _ => self.encode(from, out.bytes_mut())?)
            }, _ => {
                let codes = codes(&input);
                match values(from, &codes)? {
                    Values::Integers(from) => self.finish(&from, to, &mut out)?,
                    Values::Floats(from) => self.finish(&from, to, &mut out)?,
                }
            }),
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// One byte for each element of a type of a byte or less.
fn codes(input: &Tensor) -> Cow<'_, [u8]> {
    let bytes = input.dense_bytes().unwrap_or(&[]);
    match input.dtype().bit_width() {
        Some(width) if width < 8 => {
            let mut codes = vec![0; input.len()];
            bits::unpack(bytes, width, 0, &mut codes);
            Cow::Owned(codes)
        }
        _ => Cow::Borrowed(bytes),
    }
}

enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f32>),
}

fn values(dtype: DType, codes: &[u8]) -> Result<Values, KernelError> {
    let integers = |f: fn(u8) -> i64| Ok(Values::Integers(codes.iter().map(|&code| f(code)).collect()));
    match dtype {
        DType::Bool => integers(|code| i64::from(code != 0)),
        DType::Uint4 | DType::Uint2 => integers(i64::from),
        DType::Int4 => integers(|code| bits::sign_extend(u64::from(code), 4)),
        DType::Int2 => integers(|code| bits::sign_extend(u64::from(code), 2)),
        DType::Float8E8M0 => Ok(Values::Floats(codes.iter().map(|&code| e8m0_to_f32(code)).collect())),
        dtype => match SmallFloat::of(dtype) {
            Some(float) => Ok(Values::Floats(codes.iter().map(|&code| float.decode(code)).collect())),
            None => Err(KernelError::InputType {
                index: 0,
                expected: "real numbers or BOOL".into(),
                actual: format!("{dtype} tensor"),
            }),
        },
    }
}

impl Cast {
    fn finish<F: Number>(
        &self,
        from: &[F],
        to: DType,
        out: &mut heirloom_mem::TensorMut,
    ) -> Result<(), KernelError> {
        by_type!(to, [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8],
            T => convert::<F, T>(from, out.elements_mut()),
            _ => return self.encode(from, out.bytes_mut()));
        Ok(())
    }

    /// To a type that no Rust type holds.
    fn encode<F: Number>(&self, from: &[F], out: &mut [u8]) -> Result<(), KernelError> {
        let code = |v: F| match self.to {
            DType::Bool => u8::from(!v.is_zero()),
            DType::Uint4 | DType::Int4 => v.to_i64() as u8 & 0xf,
            DType::Uint2 | DType::Int2 => v.to_i64() as u8 & 0x3,
            DType::Float8E8M0 => self.power(v.to_f32()),
            to => SmallFloat::of(to).map_or(0, |float| float.encode(v.to_f32(), self.overflow)),
        };
        match self.to.bit_width() {
            Some(8) => out.iter_mut().zip(from).for_each(|(o, &v)| *o = code(v)),
            Some(width) => {
                let codes: Vec<u8> = from.iter().map(|&v| code(v)).collect();
                bits::pack(&codes, width, out);
            }
            None => return Err(KernelError::Other(format!("nothing is cast to {}", self.to))),
        }
        Ok(())
    }

    /// The FLOAT8E8M0 code of the magnitude of `x`; 0 gives the least power.
    fn power(&self, x: f32) -> u8 {
        if !x.is_finite() {
            return 255;
        }
        let bits = x.abs().to_bits();
        let (exponent, fraction) = ((bits >> 23) as u8, bits & 0x007f_ffff);
        let code = match self.round {
            Round::Up => exponent + u8::from(fraction != 0),
            Round::Down => exponent,
            Round::Nearest if x == 0.0 => 0,
            Round::Nearest => return f32_to_e8m0(x.abs(), self.overflow),
        };
        match self.overflow {
            Overflow::Saturate => code.min(254),
            Overflow::NonFinite => code,
        }
    }
}
