//! Struct types and encoded values.

use heirloom_mem::{Bytes, DType};
use heirloom_types::{StructType, TensorType, ValueType};

use crate::support::{builder, float, infer, open, shown};

// proves: GB3
#[test]
fn fields_have_the_types_of_the_declaration() {
    let cache = StructType::structure("Cache")
        .typed("keys", float(&["batch", "past", "64"]))
        .typed("length", ValueType::tensor(DType::Int64, &[]))
        .type_id(7)
        .build()
        .unwrap();
    let mut model = builder();
    model.opset("ai.heirloom", 1).unwrap();
    let g = model.graph();
    let cache = g.input("cache", &ValueType::Struct(cache)).unwrap();
    let keys =
        g.node("Field").domain("ai.heirloom").input(&cache).attr("path", ["keys"]).output("keys").unwrap();
    let length = g
        .node("Field")
        .domain("ai.heirloom")
        .input(&cache)
        .attr("path", ["length"])
        .output("length")
        .unwrap();
    let wrong =
        g.node("Field").domain("ai.heirloom").input(&cache).attr("path", ["values"]).output("wrong").unwrap();
    g.output(&keys, &float(&["batch", "past", "64"])).unwrap();
    g.output(&length, &ValueType::tensor(DType::Int64, &[])).unwrap();
    g.output(&wrong, &float(&["a"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "keys"), "FLOAT[batch, past, 64]");
    assert_eq!(shown(&model, "length"), "INT64[]");
    let conflicts = infer(&model).conflicts().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(conflicts.len(), 1);
    assert!(conflicts[0].contains("there is no field `values`"), "{conflicts:?}");
}

// proves: GB3
#[test]
fn an_encoded_constant_has_a_logical_type_and_a_layout() {
    let block = StructType::structure("Block")
        .field("scale", DType::Float16)
        .array("codes", DType::Uint4, 32)
        .type_id(2001)
        .build()
        .unwrap();
    let mut model = builder();
    let g = model.graph();
    let x = g.input("x", &float(&["n", "32"])).unwrap();
    let logical = TensorType { dtype: DType::Float, shape: [4usize, 32].into_iter().collect() };
    let w = g.encoded("w", &block, Some(&logical), Bytes::from_vec(vec![0u8; 72])).unwrap();
    let y = g.node("Gemm").input(&x).input(&w).attr("transB", 1).output("y").unwrap();
    g.output(&y, &float(&["n", "4"])).unwrap();
    let model = open(model);
    assert_eq!(shown(&model, "w"), "FLOAT[4, 32]");
    assert_eq!(shown(&model, "y"), "FLOAT[n, 4]");
    let context = infer(&model);
    let physical = context.main().fact(model.graph().value("w").unwrap()).physical.clone().unwrap();
    assert_eq!((physical.records, physical.value.payload.len()), (Some(4), 72));
}
