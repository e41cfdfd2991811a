//! The catalogue: identity, references, faults with their paths, order, scale.

use std::time::{Duration, Instant};

use heirloom_mem::{DType, Tensor};
use heirloom_proto::{FunctionProto, StructTypeProto};
use heirloom_types::{Catalogue, StructType, TypeError, ValueType};

use crate::build::*;

fn int8() -> StructTypeProto {
    structure(vec![field("v", tensor(DType::Int8, &[]))])
}

fn paths(protos: &[StructTypeProto]) -> Vec<String> {
    Catalogue::check(protos, None).into_iter().map(|fault| fault.path).collect()
}

fn only_fault(proto: StructTypeProto) -> (String, TypeError) {
    let mut faults = Catalogue::check(&[proto], None);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let fault = faults.remove(0);
    (fault.path, fault.error)
}

// proves: C1
#[test]
fn identities_are_nonzero_unique_and_there() {
    assert_eq!(only_fault(int8()).1, TypeError::NoTypeId);
    assert_eq!(only_fault(declared(0, int8())).1, TypeError::ZeroTypeId);
    let faults = Catalogue::check(&[declared(7, int8()), declared(8, int8()), declared(7, int8())], None);
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].path, "struct_types[2]");
    assert!(matches!(faults[0].error, TypeError::DuplicateTypeId { first: 0, .. }));
    let unresolved = declared(1, structure(vec![field("f", nested(reference(99)))]));
    let (path, error) = only_fault(unresolved);
    assert_eq!(path, "struct_types[0].structure.field[0].type.struct_type");
    assert!(matches!(error, TypeError::Unresolved { id } if id.get() == 99));
}

// proves: C1
#[test]
fn every_cycle_is_found_and_its_users_are_not_blamed() {
    let user = |id, inner: u64| declared(id, structure(vec![field("f", nested(reference(inner)))]));
    let own = user(1, 1);
    let [a, b, c] = [user(2, 3), user(3, 4), user(4, 2)];
    let innocent = user(5, 2);
    let through_sequence = declared(6, {
        let sequence = ValueType::sequence(ValueType::tensor(DType::Int8, &[])).to_proto();
        let mut sequence = sequence;
        sequence.sequence_type_mut().set_elem_type(nested(reference(6)));
        structure(vec![field("children", sequence)])
    });
    let faults = Catalogue::check(&[own, a, b, c, innocent, through_sequence], None);
    let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "`struct_types[0]`: struct types contain each other: 1 → 1",
            "`struct_types[1]`: struct types contain each other: 2 → 3 → 4 → 2",
            "`struct_types[5]`: struct types contain each other: 6 → 6",
        ]
    );
}

// proves: C2, C4
#[test]
fn order_means_nothing_and_a_type_exists_once() {
    let outer =
        declared(2, structure(vec![field("a", nested(reference(1))), field("b", nested(reference(1)))]));
    let protos = [outer, declared(1, int8())];
    let forward = Catalogue::from_protos(&protos, None).unwrap();
    let [first, second] = protos;
    let backward = Catalogue::from_protos(&[second, first], None).unwrap();
    for id in [1, 2] {
        assert_eq!(forward.get(id), backward.get(id));
    }
    let inner = |catalogue: &Catalogue, name: &str| {
        let field = catalogue.get(2).unwrap().field(name).unwrap().content.clone();
        let heirloom_types::Content::Type(ValueType::Struct(ty)) = field else { panic!() };
        ty
    };
    assert!(std::sync::Arc::ptr_eq(&inner(&forward, "a"), &inner(&forward, "b")));
    assert!(std::sync::Arc::ptr_eq(&inner(&forward, "a"), forward.get(1).unwrap()));
    let names: Vec<u64> = forward.iter().map(|ty| ty.type_id().unwrap().get()).collect();
    assert_eq!(names, [2, 1]);
    assert_eq!((forward.len(), forward.is_empty(), forward.get(0).is_none()), (2, false, true));
}

// proves: C3
#[test]
fn references_hold_an_id_alone_and_inline_declarations_have_none() {
    let with = |change: fn(&mut StructTypeProto)| {
        let mut inner = reference(1);
        change(&mut inner);
        let faults = Catalogue::check(
            &[declared(1, int8()), declared(2, structure(vec![field("f", nested(inner))]))],
            None,
        );
        assert_eq!(faults.len(), 1);
        faults[0].error.clone()
    };
    let too_much = [
        ("type_id", with(|p| p.set_type_id(1))),
        ("decoder", with(|p| p.set_decoder(FunctionProto::new()))),
        ("encoder", with(|p| p.set_encoder(FunctionProto::new()))),
        ("name", with(|p| p.set_name("n"))),
        ("doc_string", with(|p| p.set_doc_string("d"))),
        (
            "metadata_props",
            with(|p| p.metadata_props_mut().push(heirloom_proto::StringStringEntryProto::new())),
        ),
    ];
    for (field, error) in too_much {
        assert_eq!(error, TypeError::ReferenceWithMore { id: 1, field });
    }
    let (path, error) = only_fault(declared(2, structure(vec![field("f", nested(declared(5, int8())))])));
    assert_eq!(path, "struct_types[0].structure.field[0].type.struct_type");
    assert_eq!(error, TypeError::InlineWithId { id: 5 });
    let (_, error) = only_fault(declared(3, reference(1)));
    assert_eq!(error, TypeError::ReferenceAsDeclaration { id: 1 });
}

// proves: S4
#[test]
fn the_category_stands_in_sequences_and_maps_alone() {
    let category = StructTypeProto::new;
    assert_eq!(only_fault(declared(1, category())).1, TypeError::NoKind);
    let (path, error) = only_fault(declared(1, structure(vec![field("f", nested(category()))])));
    assert_eq!(
        (&*path, error),
        ("struct_types[0].structure.field[0].type.struct_type", TypeError::CategoryHere)
    );
    assert_eq!(only_fault(declared(1, array(nested(category()), 2))).1, TypeError::CategoryHere);
    let types = Catalogue::new();
    let sequence = ValueType::sequence(ValueType::AnyStruct);
    assert_eq!(types.value_type(&sequence.to_proto(), ""), Ok(sequence.clone()));
    let map = ValueType::map(DType::Int64, ValueType::optional(ValueType::AnyStruct));
    assert_eq!(types.value_type(&map.to_proto(), ""), Ok(map));
    assert!(types.value_type(&ValueType::AnyStruct.to_proto(), "").is_err());
    assert_eq!(types.struct_type(&category(), "", None).unwrap_err().0[0].error, TypeError::NoKind);
    let mut with_decoder = category();
    with_decoder.set_decoder(FunctionProto::new());
    let mut proto = sequence.to_proto();
    proto.sequence_type_mut().set_elem_type(nested(with_decoder));
    let fault = &types.value_type(&proto, "input[0].type").unwrap_err().0[0];
    assert_eq!(fault.error, TypeError::CategoryWithMore { field: "decoder" });
    assert_eq!(fault.path, "input[0].type.sequence_type.elem_type.struct_type");
    // In a field, a sequence of any struct is a type without a size.
    let dynamic =
        structure(vec![field("blocks", sequence.to_proto()), field("n", tensor(DType::Int64, &[]))]);
    let types = Catalogue::from_protos(&[declared(1, dynamic)], None).unwrap();
    let error = types.get(1).unwrap().record_bytes().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the type cannot be stored as bytes: `blocks`, a sequence has no fixed size"
    );
}

// proves: S5
#[test]
fn all_faults_of_a_declaration_are_found_with_their_paths() {
    let mut no_content = heirloom_proto::struct_type_proto::structure::Field::new();
    no_content.set_name("nothing");
    let mut bad_constant = constant("c", &Tensor::from_vec(&[2], vec![1.0f32, 2.0]).unwrap());
    bad_constant.constant_mut().dims_mut().push(3);
    let mut unknown_type = tensor(DType::Float, &[]);
    unknown_type.tensor_type_mut().set_elem_type(77);
    let mut negative = tensor(DType::Float, &[4]);
    negative.tensor_type_mut().shape_mut().dim_mut()[0].set_dim_value(-4);
    let broken = structure(vec![
        field("", tensor(DType::Float, &[])),
        field("a", tensor(DType::Float, &[])),
        field("a", tensor(DType::Float, &[])),
        no_content,
        bad_constant,
        field("t", unknown_type),
        field("n", negative),
        field("z", nested(array(tensor(DType::Int8, &[]), 0))),
        field("p", nested(packing(&[("w", 0), ("w", 65), ("", 3)], 0))),
        field("m", heirloom_proto::TypeProto::new()),
        field("e", nested(structure(vec![]))),
    ]);
    let at = |rest: &str| format!("struct_types[0].structure.{rest}");
    assert_eq!(
        paths(&[declared(1, broken)]),
        [
            at("field[0]"),
            at("field[2]"),
            at("field[3]"),
            at("field[4].constant"),
            at("field[5].type.tensor_type.elem_type"),
            at("field[6].type.tensor_type.shape.dim[0]"),
            at("field[7].type.struct_type.array.dimension"),
            at("field[8].type.struct_type.bit_packing.dimension"),
            at("field[8].type.struct_type.bit_packing.component[0]"),
            at("field[8].type.struct_type.bit_packing.component[1]"),
            at("field[8].type.struct_type.bit_packing.component[1]"),
            at("field[8].type.struct_type.bit_packing.component[2]"),
            at("field[9].type"),
            at("field[10].type.struct_type.structure"),
        ]
    );
    assert_eq!(
        only_fault(declared(1, packing(&[], 4))).1,
        TypeError::Empty { what: "bit packing", element: "component" }
    );
    let mut map = ValueType::map(DType::Int64, ValueType::AnyStruct).to_proto();
    map.map_type_mut().set_key_type(DType::Float.onnx());
    let (_, error) = only_fault(declared(1, structure(vec![field("m", map)])));
    assert_eq!(error, TypeError::MapKey { key: DType::Float });
    let overflow = array(nested(array(tensor(DType::Int64, &[]), 1 << 40)), 1 << 40);
    assert!(matches!(only_fault(declared(1, overflow)).1, TypeError::SizeOverflow { .. }));
}

// proves: S1, S2
#[test]
fn fields_of_every_kind_nest() {
    let types = [
        ValueType::symbolic(DType::Float, ["batch".into(), heirloom_types::Dim::Unknown, 4.into()]),
        ValueType::unranked(DType::String),
        ValueType::sequence(ValueType::optional(ValueType::tensor(DType::Int8, &[2]))),
        ValueType::map(DType::String, ValueType::sequence(ValueType::AnyStruct)),
        ValueType::Opaque { domain: "d".into(), name: "n".into() },
        ValueType::Sparse(heirloom_types::TensorSpec::concrete(DType::Float, &[3])),
    ];
    let proto =
        structure(types.iter().enumerate().map(|(i, ty)| field(&format!("f{i}"), ty.to_proto())).collect());
    let catalogue = Catalogue::from_protos(&[declared(1, proto)], None).unwrap();
    let ty = catalogue.get(1).unwrap();
    for (field, expected) in ty.fields().iter().zip(&types) {
        let heirloom_types::Content::Type(actual) = &field.content else { panic!() };
        assert_eq!(actual, expected);
    }
    assert_eq!(ty.bit_size(), None);
    assert!(ty.contains_strings());
}

// proves: C6
#[test]
fn a_declared_identity_is_never_redefined() {
    let build = |step: f32, name: &str| {
        StructType::structure(name)
            .type_id(5)
            .array("codes", DType::Uint4, 32)
            .constant("step", Tensor::scalar(step))
            .build()
            .unwrap()
    };
    let mut types = Catalogue::new();
    types.define(&build(1.0, "A")).unwrap();
    // The same meaning under another name is no change.
    types.define(&build(1.0, "B")).unwrap();
    assert_eq!(types.len(), 1);
    let error = types.define(&build(2.0, "A")).unwrap_err();
    assert!(error.to_string().contains("differs in `step`"), "{error}");
    let mut changes = vec![
        StructType::structure("A").type_id(5).array("codes", DType::Uint4, 32),
        StructType::structure("A")
            .type_id(5)
            .array("code", DType::Uint4, 32)
            .constant("step", Tensor::scalar(1.0f32)),
        StructType::structure("A")
            .type_id(5)
            .array("codes", DType::Int4, 32)
            .constant("step", Tensor::scalar(1.0f32)),
        StructType::structure("A").type_id(5).constant("step", Tensor::scalar(1.0f32)).array(
            "codes",
            DType::Uint4,
            32,
        ),
        StructType::array("A", ValueType::tensor(DType::Uint4, &[]), 32).type_id(5),
    ];
    let same = || {
        StructType::structure("A")
            .type_id(5)
            .array("codes", DType::Uint4, 32)
            .constant("step", Tensor::scalar(1.0f32))
    };
    let mut function = FunctionProto::new();
    function.set_name("decode");
    changes.push(same().decoder(function.clone()));
    changes.push(same().encoder(function));
    for change in changes {
        let change = change.build().unwrap();
        assert!(matches!(types.define(&change), Err(TypeError::Redefined { .. })), "{change:?}");
    }
    // Types that come along are declared too, and held to the same rule; then nothing is declared.
    let outer = |inner| StructType::structure("O").type_id(6).nested("inner", &inner).build().unwrap();
    assert!(types.define(&outer(build(3.0, "A"))).is_err());
    assert!(types.get(6).is_none());
    types.define(&outer(build(1.0, "A"))).unwrap();
    let inline = StructType::structure("").field("x", DType::Int8).build().unwrap();
    assert_eq!(types.define(&inline), Err(TypeError::NoTypeId));
    assert_eq!(types.to_protos().len(), 2);
    assert!(Catalogue::from_protos(&types.to_protos(), None).is_ok());
}

// proves: L1
#[test]
fn a_catalogue_of_100_000_types_is_read_in_one_pass() {
    let protos: Vec<StructTypeProto> = (1..=100_000u64)
        .map(|id| {
            // Each type uses up to two that stand anywhere, never more than 16 deep.
            let mut fields = vec![field("v", tensor(DType::Int8, &[]))];
            if id % 16 != 0 {
                fields.push(field("l", nested(reference(id / 16 * 16 + 16))));
            }
            declared(id, structure(fields))
        })
        .map(|mut proto| {
            proto.set_name("T");
            proto
        })
        .filter(|proto| proto.type_id() <= 100_000)
        .collect();
    let start = Instant::now();
    let types = Catalogue::from_protos(&protos, None).unwrap();
    assert_eq!(types.len(), 100_000);
    assert_eq!(types.get(99_999).unwrap().bit_size(), Some(16));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn faults_without_number_are_listed_up_to_a_limit() {
    let fields = (0..20_000).map(|_| field("", tensor(DType::Int8, &[]))).collect();
    let faults = Catalogue::check(&[declared(1, structure(fields))], None);
    assert_eq!(faults.len(), 10_001);
    assert!(matches!(faults.last().unwrap().error, TypeError::More { limit: 10_000 }));
}

// proves: S5
#[test]
fn nesting_has_a_limit_in_messages_too() {
    let mut ty = tensor(DType::Float, &[]);
    for _ in 0..5000 {
        let mut outer = heirloom_proto::TypeProto::new();
        outer.sequence_type_mut().set_elem_type(ty);
        ty = outer;
    }
    let faults = Catalogue::new().check_type(&ty, "input[0].type");
    assert_eq!(faults.len(), 1);
    assert!(matches!(faults[0].error, TypeError::TooDeep { .. }));
}

// proves: S5
#[test]
fn types_of_graph_values_are_checked_with_the_path_they_stand_at() {
    let types = Catalogue::new();
    let faults = types.check_type(&nested(reference(3)), "graph.input[0].type");
    assert_eq!(
        faults[0].to_string(),
        "`graph.input[0].type.struct_type`: type id 3 is not declared in `struct_types`"
    );
    assert_eq!(
        types.check_type(&heirloom_proto::TypeProto::new(), "t")[0].error,
        TypeError::NoType { what: "value" }
    );
    // A reference to a declaration that is faulty itself is reported there alone.
    let (types, faults) = Catalogue::read(&[declared(4, structure(vec![]))], None);
    assert_eq!(faults.len(), 1);
    assert_eq!(types.check_type(&nested(reference(4)), "t"), []);
    assert!(types.value_type(&nested(reference(4)), "t").is_err());
    // Exporters write -1 for an extent that they do not know.
    let mut proto = tensor(DType::Float, &[1, 2]);
    proto.tensor_type_mut().shape_mut().dim_mut()[0].set_dim_value(-1);
    let expected = ValueType::symbolic(DType::Float, [heirloom_types::Dim::Unknown, 2.into()]);
    assert_eq!(types.value_type(&proto, ""), Ok(expected));
}
