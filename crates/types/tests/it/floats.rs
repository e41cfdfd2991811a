//! Small floats against `ml_dtypes` (fixtures/floats.py).

use heirloom_mem::DType;
use heirloom_types::floats::{Overflow, SmallFloat, e8m0_to_f32, f32_to_e8m0};

use crate::fixture::Fixture;

#[test]
fn every_code_and_every_rounding_equals_ml_dtypes() {
    let mut fixture = Fixture::new(include_bytes!("../fixtures/floats.bin"));
    let mut types = 0;
    while !fixture.is_at_end() {
        let dtype = DType::from_onnx(i32::from(fixture.u8())).unwrap();
        let small = SmallFloat::of(dtype);
        assert_eq!(small.is_none(), dtype == DType::Float8E8M0);
        let decode = |code| small.map_or_else(|| e8m0_to_f32(code), |small| small.decode(code));
        let count = fixture.usize();
        assert_eq!(count, 1 << dtype.bit_width().unwrap());
        for (code, expected) in fixture.f32s(count).into_iter().enumerate() {
            let actual = decode(code as u8);
            let same = actual.to_bits() == expected.to_bits() || (actual.is_nan() && expected.is_nan());
            assert!(same, "{dtype} code {code:#x} is {expected}, not {actual}");
        }
        let count = fixture.usize();
        let inputs = fixture.f32s(count);
        for (&x, &expected) in inputs.iter().zip(fixture.bytes(count)) {
            let actual = match small {
                Some(small) => small.encode(x, Overflow::NonFinite),
                None => f32_to_e8m0(x, Overflow::NonFinite),
            };
            assert_eq!(actual, expected, "{dtype}: {x:e} ({:#x})", x.to_bits());
        }
        types += 1;
    }
    assert_eq!(types, 8);
}

#[test]
fn saturation_gives_the_greatest_number_for_what_is_beyond_it() {
    for dtype in DType::ALL {
        let Some(small) = SmallFloat::of(dtype) else { continue };
        let values = small.table()[..1 << small.width()].iter();
        let greatest = values.filter(|v| v.is_finite()).fold(0.0, |a: f32, &b| a.max(b));
        for x in [f32::INFINITY, 3e38, greatest * 1.5, greatest] {
            assert_eq!(small.decode(small.encode(x, Overflow::Saturate)), greatest, "{dtype} {x}");
            assert_eq!(small.decode(small.encode(-x, Overflow::Saturate)), -greatest, "{dtype} {x}");
        }
    }
    assert_eq!(e8m0_to_f32(f32_to_e8m0(f32::INFINITY, Overflow::Saturate)), 2f32.powi(127));
}

#[test]
fn encoding_a_decoded_number_gives_its_code_back() {
    for dtype in DType::ALL {
        let Some(small) = SmallFloat::of(dtype) else { continue };
        for code in 0..=u8::MAX >> (8 - small.width()) {
            let value = small.decode(code);
            if !value.is_nan() {
                assert_eq!(small.encode(value, Overflow::NonFinite), code, "{dtype} {value}");
            }
        }
    }
}
