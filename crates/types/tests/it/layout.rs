//! Sizes and places against an oracle in big integers that walks every part.

use heirloom_mem::{Bytes, DType, Ledger};
use heirloom_types::{Content, Kind, Leaf, Located, Step, StructLayout, StructType, TypeError, ValueType};
use num_bigint::BigUint;
use proptest::prelude::*;
use std::sync::Arc;

/// A type as the tests make it up.
#[derive(Clone, Debug)]
enum Made {
    Tensor(DType, Vec<usize>),
    Array(Box<Made>, u64),
    Packing(Vec<u32>, u64),
    Structure(Vec<Made>),
    Constants,
}

fn made() -> impl Strategy<Value = Made> {
    let dtypes: Vec<DType> = DType::ALL.into_iter().filter(|d| d.bit_width().is_some()).collect();
    let extent = prop_oneof![0usize..4, Just(1usize << 20), Just(1 << 40)];
    let count = prop_oneof![1u64..6, Just(1u64 << 30), Just(1 << 58), Just(u64::MAX)];
    let tensor = (proptest::sample::select(dtypes), proptest::collection::vec(extent, 0..3))
        .prop_map(|(dtype, shape)| Made::Tensor(dtype, shape));
    let packing =
        (proptest::collection::vec(1u32..65, 1..4), count.clone()).prop_map(|(w, n)| Made::Packing(w, n));
    prop_oneof![tensor, packing, Just(Made::Constants)].prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            (inner.clone(), count.clone()).prop_map(|(ty, n)| Made::Array(ty.into(), n)),
            proptest::collection::vec(inner, 1..4).prop_map(Made::Structure),
        ]
    })
}

fn value_type(made: &Made) -> Option<ValueType> {
    match made {
        Made::Tensor(dtype, shape) => Some(ValueType::tensor(*dtype, shape)),
        made => struct_type(made).map(ValueType::Struct),
    }
}

fn struct_type(made: &Made) -> Option<Arc<StructType>> {
    let built = match made {
        Made::Tensor(dtype, shape) => StructType::structure("").tensor("t", *dtype, shape),
        Made::Array(element, count) => StructType::array("", value_type(element)?, *count),
        Made::Packing(widths, count) => {
            let names: Vec<String> = (0..widths.len()).map(|i| format!("c{i}")).collect();
            let components: Vec<(&str, u32)> =
                names.iter().map(|n| &**n).zip(widths.iter().copied()).collect();
            StructType::bit_packing("", &components, *count)
        }
        Made::Structure(fields) => {
            let mut builder = StructType::structure("");
            for (i, field) in fields.iter().enumerate() {
                builder = builder.typed(&format!("f{i}"), value_type(field)?);
            }
            builder
        }
        Made::Constants => StructType::structure("").constant("c", heirloom_mem::Tensor::scalar(1i8)),
    };
    match built.build() {
        Ok(ty) => Some(ty),
        Err(fault) => {
            assert!(matches!(fault.error, TypeError::SizeOverflow { .. }), "{fault}");
            None
        }
    }
}

/// The contract's table, in integers without bounds; `None` once any size on the way exceeds 64 bits.
fn oracle(made: &Made) -> Option<BigUint> {
    let bits = match made {
        Made::Tensor(dtype, shape) => {
            shape.iter().fold(BigUint::from(dtype.bit_width().unwrap()), |bits, &d| bits * BigUint::from(d))
        }
        Made::Array(element, count) => oracle(element)? * BigUint::from(*count),
        Made::Packing(widths, count) => {
            widths.iter().map(|&w| BigUint::from(w)).sum::<BigUint>() * BigUint::from(*count)
        }
        Made::Structure(fields) => {
            fields.iter().map(oracle).collect::<Option<Vec<_>>>()?.into_iter().sum::<BigUint>()
        }
        Made::Constants => BigUint::ZERO,
    };
    (bits <= BigUint::from(u64::MAX)).then_some(bits)
}

proptest! {
    // proves: L1, L4
    #[test]
    fn sizes_equal_those_of_unbounded_integers(made in made()) {
        let expected = oracle(&made);
        let ty = struct_type(&made);
        prop_assert_eq!(ty.as_ref().map(|ty| BigUint::from(ty.bit_size().unwrap())), expected);
        if let Some(ty) = ty {
            let bits = ty.bit_size().unwrap();
            prop_assert_eq!(ty.record_bytes().is_ok(), bits > 0 && bits % 8 == 0);
        }
    }

    // proves: L2, L3
    #[test]
    fn leaves_tile_a_record_without_gaps_or_overlaps(made in small()) {
        let Some(ty) = struct_type(&made) else { return Ok(()) };
        let bits = ty.bit_size().unwrap();
        let mut covered = vec![0u8; usize::try_from(bits).unwrap()];
        let layout = ty.byte_layout(10_000).unwrap();
        prop_assert_eq!(layout.bits, bits);
        for slot in &layout.slots {
            let dims = slot.dims.clone();
            for flat in 0..slot.elements().unwrap() {
                let (mut rest, mut at) = (flat, slot.bit_offset);
                for dim in dims.iter().rev() {
                    at += rest % dim.count * dim.stride;
                    rest /= dim.count;
                }
                for bit in at..at + u64::from(slot.leaf.bit_width()) {
                    covered[usize::try_from(bit).unwrap()] += 1;
                }
            }
            let names: Vec<&str> = slot.path.split('.').filter(|n| !n.is_empty()).collect();
            let Located::Slot(found) = ty.locate_names(&names).unwrap() else { panic!("a leaf") };
            prop_assert_eq!(&found, slot);
        }
        prop_assert!(covered.iter().all(|n| *n == 1), "{covered:?}");
    }
}

proptest! {
    // Two records as one integer: a leaf is what is left after a shift and a mask.
    // proves: L2, L5
    #[test]
    fn fields_read_what_one_big_integer_holds_there(
        made in small(),
        noise in proptest::collection::vec(any::<u8>(), 64),
    ) {
        // Whole bytes, as a record must have.
        let Some(ty) = struct_type(&made) else { return Ok(()) };
        let padding = (8 - ty.bit_size().unwrap() % 8) as u32;
        let root = StructType::structure("").nested("x", &ty).bits("padding", &[("p", padding)], 1);
        let layout = StructLayout::new(root.build().unwrap()).unwrap();
        let payload: Vec<u8> = noise.iter().copied().cycle().take(2 * layout.record_bytes).collect();
        let whole = BigUint::from_bytes_le(&payload);
        let payload = Bytes::from_vec(payload);
        let records = layout.records(&payload).unwrap();
        for slot in layout.declaration.slots(10_000).unwrap() {
            let column = records.column(&slot, &Ledger::default()).unwrap();
            let elements = usize::try_from(slot.elements().unwrap()).unwrap();
            let names: Vec<Step<'_>> = slot.path.split('.').map(Step::Name).collect();
            for (record, flat) in (0..2).flat_map(|record| (0..elements).map(move |flat| (record, flat))) {
                let (mut rest, mut at) = (flat as u64, slot.bit_offset);
                for dim in slot.dims.iter().rev() {
                    at += rest % dim.count * dim.stride;
                    rest /= dim.count;
                }
                let width = slot.leaf.bit_width();
                if width > 64 {
                    continue;
                }
                let shifted = &whole >> (at + record as u64 * layout.record_bytes as u64 * 8);
                let expected = shifted & ((BigUint::from(1u8) << width) - 1u8);
                let view = records.get(record).unwrap().at(&names).unwrap();
                let element = view.iter().nth(flat).unwrap();
                prop_assert_eq!(BigUint::from(element.bits().unwrap()), expected, "{} [{}]", slot.path, flat);
            }
            prop_assert_eq!(column.len(), 2 * elements);
        }
    }
}

/// Types that are small enough to walk bit by bit.
fn small() -> impl Strategy<Value = Made> {
    let dtypes: Vec<DType> = DType::ALL.into_iter().filter(|d| d.bit_width().is_some()).collect();
    let tensor = (proptest::sample::select(dtypes), proptest::collection::vec(0usize..3, 0..3))
        .prop_map(|(dtype, shape)| Made::Tensor(dtype, shape));
    let packing = (proptest::collection::vec(1u32..65, 1..4), 1u64..4).prop_map(|(w, n)| Made::Packing(w, n));
    prop_oneof![tensor, packing, Just(Made::Constants)].prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), 1u64..4).prop_map(|(ty, n)| Made::Array(ty.into(), n)),
            proptest::collection::vec(inner, 1..4).prop_map(Made::Structure),
        ]
    })
}

// proves: L1
#[test]
fn the_size_table_holds_for_each_kind() {
    let bits = |builder: heirloom_types::StructBuilder| builder.build().unwrap().bit_size().unwrap();
    for dtype in DType::ALL {
        let Some(width) = dtype.bit_width() else { continue };
        assert_eq!(bits(StructType::structure("").field("x", dtype)), u64::from(width));
        assert_eq!(bits(StructType::structure("").tensor("x", dtype, &[3, 5])), u64::from(width) * 15);
        assert_eq!(bits(StructType::structure("").array("x", dtype, 7)), u64::from(width) * 7);
    }
    assert_eq!(bits(StructType::bit_packing("", &[("a", 3), ("b", 64)], 5)), 67 * 5);
    let empty = StructType::structure("")
        .tensor("none", DType::Float, &[1 << 40, 0, 1 << 40])
        .field("x", DType::Int8);
    assert_eq!(bits(empty), 8);
}

// proves: L3
#[test]
fn what_has_no_fixed_size_is_named() {
    let inner = StructType::structure("")
        .field("n", DType::Int64)
        .typed("rows", ValueType::symbolic(DType::Float, ["n".into()]))
        .build()
        .unwrap();
    let outer = StructType::structure("").nested_array("blocks", &inner, 3).build().unwrap();
    let error = outer.record_bytes().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the type cannot be stored as bytes: `blocks[].rows`, a tensor FLOAT[n] has no fixed size"
    );
    assert_eq!(outer.locate(&[Step::Name("blocks")]).unwrap_err().to_string(), error.to_string());
    let text = StructType::structure("").field("s", DType::String).build().unwrap();
    assert!(text.record_bytes().unwrap_err().to_string().contains("`s`, a STRING tensor"));
}

#[test]
fn declarations_written_in_rust_are_held_to_the_same_rules() {
    let refused = |builder: heirloom_types::StructBuilder| builder.build().unwrap_err();
    let structure = || StructType::structure("T");
    assert_eq!(refused(structure()).error, TypeError::Empty { what: "structure", element: "field" });
    let fault = refused(structure().field("a", DType::Int8).field("a", DType::Int8));
    assert_eq!(
        (&*fault.path, fault.error),
        ("a", TypeError::DuplicateName { what: "field", name: "a".into() })
    );
    assert_eq!(refused(structure().field("", DType::Int8)).error, TypeError::EmptyName { what: "field" });
    let fault = refused(structure().array("x", DType::Int8, 0).field("y", DType::Int8));
    assert_eq!((&*fault.path, fault.error), ("x", TypeError::Empty { what: "array", element: "element" }));
    assert_eq!(
        refused(structure().bits("p", &[("w", 65)], 1)).error,
        TypeError::BitWidth { name: "w".into(), width: 65 }
    );
    assert_eq!(refused(structure().typed("any", ValueType::AnyStruct)).error, TypeError::CategoryHere);
    assert_eq!(refused(structure().field("a", DType::Int8).type_id(0)).error, TypeError::ZeroTypeId);
    let array = StructType::array("", ValueType::tensor(DType::Int8, &[]), 3);
    assert_eq!(refused(array.field("a", DType::Int8)).error, TypeError::NotAStructure);
    let mut deep = structure().field("a", DType::Int8).build().unwrap();
    let too_deep = loop {
        match StructType::structure("").nested("f", &deep).build() {
            Ok(ty) => deep = ty,
            Err(fault) => break fault,
        }
    };
    assert!(matches!(too_deep.error, TypeError::TooDeep { .. }));
}

#[test]
fn differences_name_the_first_field_that_differs() {
    let inner = |width| StructType::bit_packing("", &[("index", width)], 32).build().unwrap();
    let outer = |width, scale| {
        StructType::structure("").nested("codes", &inner(width)).field("scale", scale).build().unwrap()
    };
    let base = outer(2, DType::Float);
    let show = |other: &StructType| base.difference(other).unwrap().to_string();
    assert_eq!(show(&outer(3, DType::Float)), "`codes`: 32 × bits (index:3) instead of 32 × bits (index:2)");
    assert_eq!(show(&outer(2, DType::Float16)), "`scale`: FLOAT16[] instead of FLOAT[]");
    let fewer = StructType::structure("").nested("codes", &inner(2)).build().unwrap();
    assert_eq!(show(&fewer), "`scale`: no field instead of field `scale`");
    assert_eq!(fewer.difference(&base).unwrap().to_string(), "`scale`: field `scale` instead of no field");
    let Kind::Structure(fields) = base.kind() else { panic!() };
    assert!(matches!(fields[0].content, Content::Type(_)));
    assert_eq!(Leaf::Bits(3).to_string(), "3 bits");
}
