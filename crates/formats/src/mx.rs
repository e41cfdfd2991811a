//! What the formats of the OCP Microscaling (MX) specification 1.0 share: 32 elements of a small float type `codes`
//! behind one power of two, `scale`; `scale * code`, NaN throughout where the scale is NaN.

use heirloom_mem::DType::{self, Float8E8M0};
use heirloom_types::floats::{Overflow, SmallFloat, e8m0_to_f32};
use heirloom_types::{StructBuilder, bits};

use crate::body::{Body, Val};
use crate::fit::extreme;

/// The elements of a record: the scale, then 32 codes of `float`.
pub(crate) fn decode(float: &SmallFloat, record: &[u8], values: &mut [f32; 32]) {
    let scale = e8m0_to_f32(record[0]);
    let mut codes = [0; 32];
    bits::unpack(&record[1..], float.width(), 0, &mut codes);
    for (value, code) in values.iter_mut().zip(codes) {
        *value = scale * float.decode(code);
    }
}

/// The record for `values`, as section 6.3 of the specification converts: the scale is the largest power of two not
/// above the largest magnitude, divided by the largest power of two that `float` holds; what is then too large becomes
/// the largest number.
pub(crate) fn encode(float: &SmallFloat, values: &[f32; 32], record: &mut [u8]) {
    let largest = float.table().iter().filter(|v| v.is_finite()).fold(0.0f32, |a, &b| a.max(b));
    let exponent_of = |x: f32| (x.to_bits() >> 23) as i32;
    let exponent = (exponent_of(extreme(values).abs()) - (exponent_of(largest) - 127)).max(0) as u8;
    record[0] = exponent;
    let scale = e8m0_to_f32(exponent);
    let codes = values.map(|x| float.encode(x / scale, Overflow::Saturate));
    bits::pack(&codes, float.width(), &mut record[1..]);
}

/// `record` with the two fields, for codes of `dtype`.
pub(crate) fn declare(record: StructBuilder, dtype: DType) -> StructBuilder {
    record.field("scale", Float8E8M0).tensor("codes", dtype, &[32])
}

/// The decoder's nodes.
pub(crate) fn decoder(body: &mut Body) -> Val {
    let codes = body.float_field(&["codes"]);
    let scale = body.float_field(&["scale"]);
    let scale = body.column(&scale);
    body.mul(&scale, &codes)
}
