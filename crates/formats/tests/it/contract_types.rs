//! The types that the contract gives as examples, with their decoders.

use std::sync::Arc;

use heirloom_formats::{Body, Val};
use heirloom_mem::DType::{Float, Int4, Int64};
use heirloom_mem::Tensor;
use heirloom_types::{FunctionProto, StructType};

/// 2001: 32 signed codes and a scale.
pub(crate) fn int4_block() -> Arc<StructType> {
    let mut body = Body::new();
    let codes = body.float_field(&["codes"]);
    let scale = body.field(&["scale"]);
    let scale = body.column(&scale);
    let values = body.mul(&codes, &scale);
    StructType::structure("Int4Block")
        .type_id(2001)
        .array("codes", Int4, 32)
        .field("scale", Float)
        .decoder(body.finish("int4_block", &values))
        .build()
        .unwrap()
}

/// One function for stored and for constant parameters: `(code - zero_point) * scale`, the difference in INT64.
fn decode_linear_int4() -> FunctionProto {
    let mut body = Body::new();
    let codes = body.field(&["values"]);
    let codes = body.cast(&codes, Int64);
    let mut parameter = |name| -> Val {
        let field = body.field(&[name]);
        body.column(&field)
    };
    let (zero_point, scale) = (parameter("zero_point"), parameter("scale"));
    let centred = body.sub(&codes, &zero_point);
    let centred = body.cast(&centred, Float);
    let values = body.mul(&centred, &scale);
    body.finish("linear_int4", &values)
}

/// 1003: codes alone; the parameters are constants of the type.
pub(crate) fn linear_int4_fixed() -> Arc<StructType> {
    StructType::structure("LINEAR_INT4_128_FIXED_PARAMETERS")
        .type_id(1003)
        .array("values", Int4, 128)
        .constant("scale", Tensor::scalar(0.25f32))
        .constant("zero_point", Tensor::scalar(-2i64))
        .decoder(decode_linear_int4())
        .build()
        .unwrap()
}

/// 1002: codes and their parameters.
pub(crate) fn linear_int4() -> Arc<StructType> {
    StructType::structure("LINEAR_INT4_128_WITH_PARAMETERS")
        .type_id(1002)
        .array("values", Int4, 128)
        .field("scale", Float)
        .field("zero_point", Int64)
        .decoder(decode_linear_int4())
        .build()
        .unwrap()
}

/// 1101: indices and the codebook.
pub(crate) fn codebook2() -> Arc<StructType> {
    StructType::structure("CODEBOOK2_BLOCK_32")
        .type_id(1101)
        .bits("codes", &[("index", 2)], 32)
        .constant("codebook", Tensor::from_vec(&[4], vec![-1.0f32, -0.25, 0.25, 1.0]).unwrap())
        .build()
        .unwrap()
}

/// 1102: 1101 by reference, and a scale.
pub(crate) fn scaled_codebook2() -> Arc<StructType> {
    let mut body = Body::new();
    let codes = body.field(&["quantized", "codes", "index"]);
    let numbers = body.lookup(&["quantized", "codebook"], &codes);
    let scale = body.field(&["scale"]);
    let scale = body.column(&scale);
    let values = body.mul(&scale, &numbers);
    StructType::structure("SCALED_CODEBOOK2_BLOCK_32")
        .type_id(1102)
        .nested("quantized", &codebook2())
        .field("scale", Float)
        .decoder(body.finish("scaled_codebook2", &values))
        .build()
        .unwrap()
}

/// A type, records of it and the values that they stand for, worked out by hand.
pub(crate) type Example = (Arc<StructType>, Vec<u8>, Vec<f32>);

/// Each type with one record or two.
pub(crate) fn examples() -> Vec<Example> {
    let mut examples = Vec::new();

    // Codes 1, 2, …, 7, -8, -7, …, 0 twice, times 0.5.
    let codes = [0x21, 0x43, 0x65, 0x87, 0xA9, 0xCB, 0xED, 0x0F].repeat(2);
    let one: Vec<f32> =
        (1..=16).map(|i| if i < 8 { i } else { i - 16 }).map(|code| code as f32 * 0.5).collect();
    examples.push((int4_block(), [codes, 0.5f32.to_le_bytes().into()].concat(), one.repeat(2)));

    // Codes -2, 1: (-2 + 2) / 4 and (1 + 2) / 4.
    examples.push((linear_int4_fixed(), vec![0x1E; 64], [0.0, 0.75].repeat(64)));

    // The tail of the contract: scale 0.25, zero point -2; then scale 0.125, zero point 0.
    let tail = [0x00, 0x00, 0x80, 0x3E, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
    let other = [&0.125f32.to_le_bytes()[..], &0i64.to_le_bytes()].concat();
    let records = [&[0x1E; 64][..], &tail, &[0x1E; 64], &other].concat();
    examples.push((linear_int4(), records, [[0.0, 0.75].repeat(64), [-0.25, 0.125].repeat(64)].concat()));

    let record = [&[0xE4; 8][..], &[0x00, 0x00, 0x00, 0x40]].concat();
    examples.push((scaled_codebook2(), record, [-2.0, -0.5, 0.5, 2.0].repeat(8)));
    examples
}
