//! Conversions between f32 and the floats of 8, 6 and 4 bits.
//!
//! Decoding is a table look-up. Encoding rounds to nearest, ties to even, from f32 in one step. The formats are those
//! of ONNX's `float8`, `float4` and `float6` types (OCP 8-bit floating point and OCP microscaling for most of them).

use heirloom_mem::DType;

/// What encoding gives for numbers beyond the greatest finite one, infinities included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The greatest finite number of the same sign: ONNX's `saturate = 1`.
    Saturate,
    /// Infinity where the type has it, else NaN, else the greatest finite number.
    NonFinite,
}

/// How a type spends the codes that are no ordinary numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// Infinities and NaNs in the highest exponent, as in IEEE 754.
    Ieee,
    /// One NaN per sign, all bits set; no infinity.
    NanOnly,
    /// One NaN in the place of negative zero; no infinity.
    Unsigned0,
    /// Numbers alone.
    Finite,
}

/// A float type with a sign, `exponent_bits`, `mantissa_bits` and gradual underflow.
#[derive(Debug)]
pub struct SmallFloat {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
    values: [f32; 256],
}

const fn small(exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> SmallFloat {
    let mut float = SmallFloat { exponent_bits, mantissa_bits, bias, special, values: [0.0; 256] };
    let mut code = 0;
    while code < 1 << (1 + exponent_bits + mantissa_bits) {
        float.values[code as usize] = float.value(code);
        code += 1;
    }
    float
}

/// FLOAT8E4M3FN.
pub static E4M3FN: SmallFloat = small(4, 3, 7, Special::NanOnly);
/// FLOAT8E4M3FNUZ.
pub static E4M3FNUZ: SmallFloat = small(4, 3, 8, Special::Unsigned0);
/// FLOAT8E5M2.
pub static E5M2: SmallFloat = small(5, 2, 15, Special::Ieee);
/// FLOAT8E5M2FNUZ.
pub static E5M2FNUZ: SmallFloat = small(5, 2, 16, Special::Unsigned0);
/// FLOAT4E2M1.
pub static E2M1: SmallFloat = small(2, 1, 1, Special::Finite);
/// FLOAT6E2M3.
pub static E2M3: SmallFloat = small(2, 3, 1, Special::Finite);
/// FLOAT6E3M2.
pub static E3M2: SmallFloat = small(3, 2, 3, Special::Finite);

const NAN_BITS: u32 = 0x7fc0_0000;

impl SmallFloat {
    /// The small float that `dtype` is; `None` for other types, FLOAT8E8M0 among them: see [`e8m0_to_f32`].
    pub fn of(dtype: DType) -> Option<&'static SmallFloat> {
        Some(match dtype {
            DType::Float8E4M3FN => &E4M3FN,
            DType::Float8E4M3FNUZ => &E4M3FNUZ,
            DType::Float8E5M2 => &E5M2,
            DType::Float8E5M2FNUZ => &E5M2FNUZ,
            DType::Float4E2M1 => &E2M1,
            DType::Float6E2M3 => &E2M3,
            DType::Float6E3M2 => &E3M2,
            _ => return None,
        })
    }

    /// Bits of a code.
    pub const fn width(&self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// The value of each code; those beyond the width are 0.
    pub const fn table(&self) -> &[f32; 256] {
        &self.values
    }

    /// The value of `code`, whose bits beyond the width are ignored. Exact.
    pub const fn decode(&self, code: u8) -> f32 {
        let mask = u8::MAX >> (8 - self.width());
        self.values[(code & mask) as usize]
    }

    const fn sign_bit(&self) -> u32 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The code of the greatest finite number.
    const fn greatest(&self) -> u32 {
        let all = self.sign_bit() - 1;
        match self.special {
            Special::Ieee => all - (1 << self.mantissa_bits),
            Special::NanOnly => all - 1,
            Special::Unsigned0 | Special::Finite => all,
        }
    }

    const fn value(&self, code: u32) -> f32 {
        let sign = (code & self.sign_bit()) << (31 - self.exponent_bits - self.mantissa_bits);
        let magnitude = code & (self.sign_bit() - 1);
        if matches!(self.special, Special::Unsigned0) && code == self.sign_bit() {
            return f32::from_bits(NAN_BITS);
        }
        if magnitude > self.greatest() {
            let infinity = magnitude == self.greatest() + 1 && matches!(self.special, Special::Ieee);
            return f32::from_bits(sign | if infinity { 0x7f80_0000 } else { NAN_BITS });
        }
        let mantissa_mask = (1u32 << self.mantissa_bits) - 1;
        let (mut exponent, mut mantissa) =
            ((magnitude >> self.mantissa_bits) as i32, magnitude & mantissa_mask);
        if exponent == 0 {
            if mantissa == 0 {
                return f32::from_bits(sign);
            }
            // A subnormal code is a normal f32: shift its leading bit to where f32 hides it.
            exponent = 1;
            while mantissa >> self.mantissa_bits == 0 {
                mantissa <<= 1;
                exponent -= 1;
            }
            mantissa &= mantissa_mask;
        }
        let exponent = (exponent - self.bias + 127) as u32;
        f32::from_bits(sign | exponent << 23 | mantissa << (23 - self.mantissa_bits))
    }

    /// The code nearest to `x`, ties to even. NaN becomes NaN; in a type without NaN, a zero of the other sign (as
    /// in the Python package `ml_dtypes`). A zero of a type without negative zero is positive.
    pub fn encode(&self, x: f32, overflow: Overflow) -> u8 {
        let bits = x.to_bits();
        let (sign, magnitude) = (if bits >> 31 == 1 { self.sign_bit() } else { 0 }, bits & 0x7fff_ffff);
        let code = if x.is_nan() {
            self.nan(sign)
        } else {
            let code = self.round(magnitude);
            if code <= self.greatest() {
                if code == 0 && self.special == Special::Unsigned0 { 0 } else { sign | code }
            } else {
                match (overflow, self.special) {
                    (Overflow::Saturate, _) | (_, Special::Finite) => sign | self.greatest(),
                    (_, Special::Ieee) => sign | (self.greatest() + 1),
                    _ => self.nan(sign),
                }
            }
        };
        // The width is at most 8.
        code as u8
    }

    fn nan(&self, sign: u32) -> u32 {
        match self.special {
            // The quiet bit is the mantissa's highest.
            Special::Ieee => sign | (self.greatest() + 1) | 1 << (self.mantissa_bits - 1),
            Special::NanOnly => sign | (self.greatest() + 1),
            Special::Unsigned0 => self.sign_bit(),
            Special::Finite => sign ^ self.sign_bit(),
        }
    }

    /// The code of the f32 with these magnitude bits, as if exponents had no upper end.
    fn round(&self, magnitude: u32) -> u32 {
        // Below the smallest f32 normal everything rounds to 0: no type reaches down there.
        if magnitude < 0x0080_0000 {
            return 0;
        }
        let exponent = (magnitude >> 23) as i32 - 127;
        let mantissa = magnitude & 0x007f_ffff | 0x0080_0000;
        let smallest = 1 - self.bias;
        let below = (smallest - exponent).max(0) as u32;
        let shift = 23 - self.mantissa_bits + below;
        if shift > 24 {
            return 0;
        }
        let (kept, rest, half) = (mantissa >> shift, mantissa & ((1 << shift) - 1), 1u32 << (shift - 1));
        let rounded = kept + u32::from(rest > half || (rest == half && kept & 1 == 1));
        // A carry runs into the exponent, as it should; a subnormal's hidden bit is not there to remove.
        if below > 0 { rounded } else { (((exponent - smallest) as u32) << self.mantissa_bits) + rounded }
    }
}

/// The value of a FLOAT8E8M0 code: 2^(code − 127), NaN for 255. Exact.
pub const fn e8m0_to_f32(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(0x0040_0000),
        255 => f32::from_bits(NAN_BITS),
        _ => f32::from_bits((code as u32) << 23),
    }
}

/// The FLOAT8E8M0 code of the power of two nearest to `x`, ties to the greater one. Positive numbers below the
/// least power give the least. What has no logarithm (0, negative numbers, NaN) gives NaN, 255; what is too great
/// gives the greatest power with [`Overflow::Saturate`], else NaN.
pub fn f32_to_e8m0(x: f32, overflow: Overflow) -> u8 {
    if x.is_nan() || x <= 0.0 {
        return 255;
    }
    // Adding half a mantissa carries into the exponent exactly from 1.5 on; subnormals count as exponent 0, whose
    // step to 2^-126 lies at 1.5 × 2^-127.
    let bits = x.to_bits();
    let code = if bits < 0x0080_0000 { u32::from(bits >= 0x0060_0000) } else { (bits + 0x0040_0000) >> 23 };
    match (u8::try_from(code), overflow) {
        (Ok(code), _) if code < 255 => code,
        (_, Overflow::Saturate) => 254,
        (_, Overflow::NonFinite) => 255,
    }
}
