//! Reading records by field, index and column.

use heirloom_mem::{DType, Ledger, Tensor};
use heirloom_types::{Leaf, Located, RecordError, Step, StructLayout, StructType, parse_path};

use crate::build::bytes;

fn layout(builder: heirloom_types::StructBuilder) -> StructLayout {
    StructLayout::new(builder.build().unwrap()).unwrap()
}

// proves: L2, L5
#[test]
fn scalars_of_every_type_are_read_at_every_bit_offset() {
    for dtype in DType::ALL {
        let Some(width) = dtype.bit_width() else { continue };
        for before in 1..=8 {
            let after = 8 - (before + width) % 8;
            let layout = layout(
                StructType::structure("").bits("before", &[("x", before)], 1).field("value", dtype).bits(
                    "after",
                    &[("x", after)],
                    1,
                ),
            );
            let mut payload = vec![0xff; layout.record_bytes];
            // A number with a known value: 1, or for a float of exponent and mantissa alone, its code for 1.
            let one: u64 = match dtype {
                DType::Float => 1f32.to_bits().into(),
                DType::Double => 1f64.to_bits(),
                DType::Float16 => half::f16::ONE.to_bits().into(),
                DType::BFloat16 => half::bf16::ONE.to_bits().into(),
                DType::Float8E4M3FN => 0x38,
                DType::Float8E4M3FNUZ => 0x40,
                DType::Float8E5M2 => 0x3c,
                DType::Float8E5M2FNUZ => 0x40,
                DType::Float4E2M1 => 2,
                DType::Float8E8M0 => 127,
                DType::Float6E2M3 => 0x08,
                DType::Float6E3M2 => 0x0c,
                DType::Complex64 => 1f32.to_bits().into(),
                DType::Complex128 => 1f64.to_bits(),
                _ => 1,
            };
            let write = heirloom_types::bits::write;
            write(&mut payload, before.into(), width.min(64), one).unwrap();
            if width == 128 {
                write(&mut payload, u64::from(before) + 64, 64, 0).unwrap();
            }
            let payload = bytes(&payload);
            let record = layout.records(&payload).unwrap().get(0).unwrap();
            let value = record.field("value").unwrap();
            assert_eq!((value.leaf(), value.bit_offset()), (Leaf::Scalar(dtype), before.into()));
            if matches!(dtype, DType::Complex64 | DType::Complex128) {
                assert_eq!(value.as_complex(), Ok((1.0, 0.0)));
                assert!(value.as_f64().is_err());
            } else {
                assert_eq!(value.as_f64(), Ok(1.0), "{dtype} at bit {before}");
                assert!(value.as_complex().is_err());
            }
            assert_eq!(value.as_u64().is_ok(), !dtype.is_float() && value.as_f64().is_ok(), "{dtype}");
            let ones = (1u64 << before) - 1;
            assert_eq!(record.field("before[0].x").unwrap().as_u64(), Ok(ones));
        }
    }
}

#[test]
fn paths_name_fields_and_indices() {
    let inner = StructType::structure("")
        .tensor("t", DType::Int8, &[2, 3])
        .bits("p", &[("lo", 4), ("hi", 4)], 2)
        .build()
        .unwrap();
    let layout = layout(StructType::structure("").nested_array("items", &inner, 2).field("n", DType::Uint16));
    assert_eq!(layout.record_bytes, 18);
    let payload = bytes(&(0..36).collect::<Vec<u8>>());
    let records = layout.records(&payload).unwrap();
    assert_eq!((records.len(), records.record_bytes(), records.is_empty()), (2, 18, false));
    let record = records.get(1).unwrap();
    let read = |path: &str| record.field(path).and_then(|f| f.as_i64());
    assert_eq!(read("items[1].t[1][2]"), Ok(18 + 8 + 5));
    assert_eq!(read("items[0].p[1].hi"), Ok((18 + 7) >> 4));
    assert_eq!(read("items[1].p.lo[0]"), Err(RecordError::NoDimension { path: "items.p.lo".into() }));
    assert_eq!(read("n"), Ok(0x2322));
    // Dimensions that no index took remain, in order.
    let all = record.field("items.t").unwrap();
    assert_eq!(all.shape()[..], [2, 2, 3]);
    let first: Vec<i64> = all.index(1).unwrap().iter().map(|f| f.as_i64().unwrap()).collect();
    assert_eq!(first, [26, 27, 28, 29, 30, 31]);
    assert_eq!(record.field("items.t[1]").unwrap().shape()[..], [2, 3]);
    assert_eq!(read("items.t"), Err(RecordError::Elements { path: String::new(), count: 12 }));
    assert_eq!(read("items[2].t"), Err(RecordError::Index { path: "items".into(), index: 2, count: 2 }));
    assert_eq!(read("missing"), Err(RecordError::NoField { within: String::new(), name: "missing".into() }));
    assert_eq!(read("n.x"), Err(RecordError::NoField { within: "n".into(), name: "x".into() }));
    assert_eq!(read("items"), Err(RecordError::Group { path: "items".into() }));
    for path in ["items[", "items[x]", "a..b", ".a", "a.", "a]b[", "[0]x"] {
        assert!(matches!(parse_path(path), Err(RecordError::Path { .. })) || read(path).is_err(), "{path}");
    }
    assert!(records.get(2).is_none() && records.get(usize::MAX).is_none());
    assert_eq!(records.iter().len(), 2);
    let partial = bytes(&[0; 17]);
    let error = layout.records(&partial).unwrap_err();
    assert_eq!(error, RecordError::Partial { payload: 17, record: 18 });
}

#[test]
fn names_with_dots_and_brackets_are_reached_by_steps() {
    let layout = layout(StructType::structure("").field("a.b[0]", DType::Uint8));
    let payload = bytes(&[7]);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    assert!(record.field("a.b[0]").is_err());
    assert_eq!(record.at(&[Step::Name("a.b[0]")]).unwrap().as_u64(), Ok(7));
}

#[test]
fn constants_are_read_like_fields() {
    let table = Tensor::from_vec(&[2, 2], vec![1i16, 2, 3, -4]).unwrap();
    let layout = layout(StructType::structure("").constant("table", table).field("x", DType::Uint8));
    let payload = bytes(&[1]);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    assert_eq!(record.field("table[1][1]").unwrap().as_i64(), Ok(-4));
    assert_eq!(record.field("table").unwrap().shape()[..], [2, 2]);
    assert!(record.field("table[2]").is_err());
    assert!(matches!(layout.declaration.locate_names(&["table"]), Ok(Located::Constant(_))));
}

#[test]
fn numbers_that_do_not_fit_are_errors() {
    let layout = layout(StructType::structure("").field("u", DType::Uint64).field("i", DType::Int8));
    let payload = bytes(&[0xff; 9]);
    let record = layout.records(&payload).unwrap().get(0).unwrap();
    assert_eq!(record.field("u").unwrap().as_u64(), Ok(u64::MAX));
    assert!(matches!(record.field("u").unwrap().as_i64(), Err(RecordError::TooLarge { .. })));
    assert!(matches!(record.field("i").unwrap().as_u64(), Err(RecordError::TooLarge { .. })));
    assert_eq!(record.field("i").unwrap().bits(), Ok(0xff));
}

// proves: D1
#[test]
fn columns_widen_codes_and_keep_every_enclosing_dimension() {
    let inner = StructType::structure("")
        .array("i4", DType::Int4, 2)
        .bits("p", &[("a", 3), ("b", 13)], 1)
        .field("f4", DType::Float4E2M1)
        .bits("pad", &[("z", 4)], 1)
        .build()
        .unwrap();
    let layout = layout(
        StructType::structure("")
            .nested_array("items", &inner, 2)
            .field("h", DType::Float16)
            .field("c", DType::Complex128),
    );
    let item = |first: u8, packed: u16, last: u8| {
        let p = packed.to_le_bytes();
        [first, p[0], p[1], last]
    };
    let mut payload = Vec::new();
    payload.extend(item(0x8f, 5 | 4097 << 3, 0x02));
    payload.extend(item(0x71, 2 | 1 << 3, 0x0a));
    payload.extend(half::f16::from_f32(1.5).to_le_bytes());
    payload.extend(2.5f64.to_le_bytes());
    payload.extend((-1f64).to_le_bytes());
    let payload = bytes(&payload.repeat(3));
    let records = layout.records(&payload).unwrap();
    let ledger = Ledger::default();
    let column = |names: &[&str]| {
        let Located::Slot(slot) = layout.declaration.locate_names(names).unwrap() else { panic!("a slot") };
        records.column(&slot, &ledger).unwrap()
    };
    let codes = column(&["items", "i4"]);
    assert_eq!((codes.dtype(), codes.shape()), (DType::Int8, &[3, 2, 2][..]));
    assert_eq!(codes.as_slice::<i8>().unwrap(), [-1, -8, 1, 7].repeat(3));
    let narrow = column(&["items", "p", "a"]);
    assert_eq!((narrow.dtype(), narrow.shape()), (DType::Uint8, &[3, 2, 1][..]));
    assert_eq!(narrow.as_slice::<u8>().unwrap(), [5, 2].repeat(3));
    assert_eq!(column(&["items", "p", "b"]).as_slice::<u16>().unwrap(), [4097, 1].repeat(3));
    let small = column(&["items", "f4"]);
    assert_eq!((small.dtype(), small.shape()), (DType::Float4E2M1, &[3, 2][..]));
    assert_eq!(small.dense_bytes().unwrap(), [0xa2, 0xa2, 0xa2]);
    assert_eq!(column(&["h"]).as_slice::<half::f16>().unwrap(), [half::f16::from_f32(1.5); 3]);
    assert_eq!(column(&["c"]).dense_bytes().unwrap()[..8], 2.5f64.to_le_bytes());
    assert_eq!(column(&["c"]).dense_bytes().unwrap()[8..16], (-1f64).to_le_bytes());
    let none = bytes(&[]);
    let empty = layout.records(&none).unwrap();
    let Located::Slot(slot) = layout.declaration.locate_names(&["items", "i4"]).unwrap() else {
        panic!("a slot")
    };
    assert_eq!(empty.column(&slot, &ledger).unwrap().shape(), [0, 2, 2]);
}
