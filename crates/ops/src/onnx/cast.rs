//! [`Cast`](https://onnx.ai/onnx/operators/onnx__Cast.html): each element as another type.
//!
//! Floats to integers are cut off toward zero, out of range they become the nearest number; integers to narrower
//! integers keep their low bits; NaN becomes integer 0.

use std::borrow::Cow;
use std::sync::Arc;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{BuildCx, BuildError, CancelToken, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::floats::{Overflow, SmallFloat, e8m0_to_f32, f32_to_e8m0};
use heirloom_types::{StringTensor, Value, bits};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::cells::strings;
use crate::numbers::{Number, convert};
use crate::{run, spread, text};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Cast",
    versions: (6, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

pub(super) struct Cast {
    pub(super) to: DType,
    pub(super) rounding: Rounding,
}

/// What becomes of numbers that a small float does not hold.
#[derive(Clone, Copy)]
pub(super) struct Rounding {
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

impl Rounding {
    /// As the attributes say.
    pub(super) fn of(cx: &BuildCx<'_>) -> Result<Rounding, BuildError> {
        let attributes = &cx.node.attributes;
        let round = match attributes.opt_string("round_mode")? {
            None | Some(b"up") => Round::Up,
            Some(b"down") => Round::Down,
            Some(b"nearest") => Round::Nearest,
            Some(other) => {
                let known = "up, down and nearest are";
                return Err(unsupported("round_mode", String::from_utf8_lossy(other), known));
            }
        };
        let saturate = attributes.int_or("saturate", 1)? != 0;
        Ok(Rounding { overflow: if saturate { Overflow::Saturate } else { Overflow::NonFinite }, round })
    }
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
    let to = cx.node.attributes.int("to")?;
    let target = i32::try_from(to).ok().and_then(DType::from_onnx);
    let target = target.filter(|to| !matches!(to, DType::Complex64 | DType::Complex128));
    let target = target.ok_or_else(|| unsupported("to", to, "complex numbers are not"))?;
    Ok(Box::new(Cast { to: target, rounding: Rounding::of(cx)? }))
}

impl Kernel for Cast {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if let Some(Value::Strings(strings)) = cx.value(0) {
            let strings = strings.clone();
            return self.parse(cx, &strings);
        }
        if cx.tensor(0)?.dtype() == self.to {
            let same = cx.tensor(0)?.clone();
            cx.set(0, same);
            return Ok(());
        }
        let input = cx.dense(0)?;
        if self.to == DType::String {
            let texts = texts(&input)?;
            cx.set(0, strings(input.shape(), texts));
            return Ok(());
        }
        let mut out = cx.alloc(self.to, input.shape())?;
        let by = (cx.team(), cx.cancel());
        match (input.dtype(), self.to) {
            (DType::Float, DType::Float16) => {
                let from = input.as_slice::<f32>()?;
                spread::pairs(by, out.elements_mut::<f16>(), from, &|out, from| {
                    out.convert_from_f32_slice(from)
                })?;
            }
            (DType::Int32, DType::Float) => {
                spread::pairs(by, out.elements_mut::<f32>(), input.as_slice::<i32>()?, &|out, from| {
                    run::each(out, from, &|v| v as f32);
                })?;
            }
            (DType::Uint8, DType::Float) => {
                spread::pairs(by, out.elements_mut::<f32>(), input.as_slice::<u8>()?, &|out, from| {
                    run::each(out, from, &|v| f32::from(v));
                })?;
            }
            (DType::Int8, DType::Float) => {
                spread::pairs(by, out.elements_mut::<f32>(), input.as_slice::<i8>()?, &|out, from| {
                    run::each(out, from, &|v| f32::from(v));
                })?;
            }
            (DType::Float, DType::BFloat16) => {
                let from = input.as_slice::<f32>()?;
                spread::pairs(by, out.elements_mut::<bf16>(), from, &|out, from| {
                    out.convert_from_f32_slice(from)
                })?;
            }
            (DType::Float16, DType::Float) => {
                let from = input.as_slice::<f16>()?;
                spread::pairs(by, out.elements_mut::<f32>(), from, &|out, from| {
                    from.convert_to_f32_slice(out)
                })?;
            }
            (DType::BFloat16, DType::Float) => {
                let from = input.as_slice::<bf16>()?;
                spread::pairs(by, out.elements_mut::<f32>(), from, &|out, from| {
                    from.convert_to_f32_slice(out)
                })?;
            }
            (from, to) => by_type!(from, [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8], F => {
                let from = input.as_slice::<F>()?;
                by_type!(to, [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8],
                    T => spread::pairs(by, out.elements_mut::<T>(), from, &|out, from| convert::<F, T>(from, out))?,
                    _ => self.encode(by.1, from, out.bytes_mut())?)
            }, _ => {
                let codes = codes(&input);
                match values(from, &codes)? {
                    Values::Integers(from) => self.finish(by.1, &from, to, &mut out)?,
                    Values::Floats(from) => self.finish(by.1, &from, to, &mut out)?,
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

/// Each element as text.
fn texts(input: &Tensor) -> Result<Vec<Box<[u8]>>, KernelError> {
    let bytes = |text: String| text.into_bytes().into_boxed_slice();
    by_type!(input.dtype(), [i64, i32, i16, i8, u64, u32, u16, u8], T => {
        return Ok(input.as_slice::<T>()?.iter().map(|v| bytes(v.to_string())).collect());
    }, _ => {});
    by_type!(input.dtype(), [f32, f64], T => {
        return Ok(input.as_slice::<T>()?.iter().map(|v| bytes(text::shortest(format!("{v:e}")))).collect());
    }, _ => {});
    by_type!(input.dtype(), [f16, bf16], T => {
        return Ok(input.as_slice::<T>()?.iter().map(|&v| bytes(text::of_half(v.to_f32(), |f| T::from_f32(f) == v))).collect());
    }, _ => {});
    match values(input.dtype(), &codes(input))? {
        Values::Integers(list) if input.dtype() == DType::Bool => {
            Ok(list.iter().map(|&v| bytes(if v == 0 { "False".into() } else { "True".into() })).collect())
        }
        Values::Integers(list) => Ok(list.iter().map(|v| bytes(v.to_string())).collect()),
        Values::Floats(list) => Ok(list.iter().map(|v| bytes(text::shortest(format!("{v:e}")))).collect()),
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
    /// Strings as numbers.
    fn parse(&self, cx: &mut RunCx<'_>, strings: &Arc<StringTensor>) -> Result<(), KernelError> {
        if self.to == DType::String {
            cx.set(0, Value::Strings(strings.clone()));
            return Ok(());
        }
        let mut out = cx.alloc(self.to, &strings.shape)?;
        if self.to.is_integer() {
            let numbers =
                strings.elements.iter().map(|text| text::integer(text)).collect::<Result<Vec<i64>, _>>()?;
            self.finish(cx.cancel(), &numbers, self.to, &mut out)?;
        } else {
            let numbers =
                strings.elements.iter().map(|text| text::float(text)).collect::<Result<Vec<f64>, _>>()?;
            self.finish(cx.cancel(), &numbers, self.to, &mut out)?;
        }
        cx.set(0, out.freeze());
        Ok(())
    }

    fn finish<F: Number>(
        &self,
        cancel: &CancelToken,
        from: &[F],
        to: DType,
        out: &mut heirloom_mem::TensorMut,
    ) -> Result<(), KernelError> {
        by_type!(to, [f32, f64, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8],
            T => spread::pieces(cancel, out.elements_mut::<T>(), |at, out| convert::<F, T>(&from[at..], out))?,
            _ => return self.encode(cancel, from, out.bytes_mut()));
        Ok(())
    }

    /// To a type that no Rust type holds.
    fn encode<F: Number>(&self, cancel: &CancelToken, from: &[F], out: &mut [u8]) -> Result<(), KernelError> {
        let code = |v: F| match self.to {
            DType::Bool => u8::from(!v.is_zero()),
            DType::Uint4 | DType::Int4 => v.to_i64() as u8 & 0xf,
            DType::Uint2 | DType::Int2 => v.to_i64() as u8 & 0x3,
            DType::Float8E8M0 => self.power(v.to_f32()),
            to => SmallFloat::of(to).map_or(0, |float| float.encode(v.to_f32(), self.rounding.overflow)),
        };
        match self.to.bit_width() {
            Some(8) => {
                spread::pieces(cancel, out, |at, out| {
                    out.iter_mut().zip(&from[at..]).for_each(|(o, &v)| *o = code(v));
                })?;
            }
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
        let code = match self.rounding.round {
            Round::Up => exponent + u8::from(fraction != 0),
            Round::Down => exponent,
            Round::Nearest if x == 0.0 => 0,
            Round::Nearest => return f32_to_e8m0(x.abs(), self.rounding.overflow),
        };
        match self.rounding.overflow {
            Overflow::Saturate => code.min(254),
            Overflow::NonFinite => code,
        }
    }
}
