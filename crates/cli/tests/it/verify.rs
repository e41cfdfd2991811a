use heirloom::graph::{ModelBuilder, SaveOptions};
use heirloom::mem::{Bytes, DType};
use heirloom::proto::ModelProto;
use heirloom::types::{StructType, ValueType};

use crate::run::{Folder, heirloom, stderr, stdout};

/// `y = x`, with a struct type, an encoded constant and a binding.
fn model() -> ModelBuilder {
    let block = StructType::structure("Block").type_id(7).field("scale", DType::Float).build().unwrap();
    let mut model = ModelBuilder::new("passing");
    model.opset("", 24).unwrap();
    let g = model.graph();
    g.encoded("e", &block, None, Bytes::from_vec(vec![0u8; 8])).unwrap();
    let ty = ValueType::tensor(DType::Float, &[2]);
    let x = g.input("x", &ty).unwrap();
    let y = g.node("Identity").input(&x).output("y").unwrap();
    g.output(&y, &ty).unwrap();
    g.bind(&x, &y).unwrap();
    model
}

/// One fault in each of four places.
fn spoil(proto: &mut ModelProto) {
    proto.struct_types_mut()[0].structure_mut().field_mut()[0].set_name("");
    let graph = proto.graph_mut();
    graph.node_mut()[0].input_mut().set(0, "nothing");
    graph.output_mut()[0].type_mut().tensor_type_mut().set_elem_type(99);
    graph.persistent_bindings_mut()[0].set_input_name("past.key");
}

// proves: S5, B2
#[test]
fn every_fault_is_printed_with_its_path_and_as_json() {
    let folder = Folder::new("verify");
    let path = folder.path().join("m.onnx");
    model().build(None).unwrap().save(&path, &SaveOptions::default()).unwrap();
    let verify = |arguments: &[&str]| {
        heirloom(folder.path()).current_dir(folder.path()).arg("verify").args(arguments).output().unwrap()
    };
    let output = verify(&["m.onnx"]);
    assert!(output.status.success());
    assert_eq!(stdout(&output).trim(), "m.onnx: no faults");
    assert_eq!(stdout(&verify(&["m.onnx", "--json"])), "");

    let mut proto = model().finish().unwrap();
    spoil(&mut proto);
    std::fs::write(&path, proto.to_bytes()).unwrap();
    let output = verify(&["m.onnx", "--json"]);
    assert!(!output.status.success());
    assert_eq!(stderr(&output).trim(), "heirloom: `m.onnx` has 4 faults");
    let faults: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<(&str, &str)> =
        faults.iter().map(|f| (f["path"].as_str().unwrap(), f["code"].as_str().unwrap())).collect();
    assert_eq!(
        places,
        [
            ("struct_types[0].structure.field[0]", "type"),
            ("graph.output[0].type.tensor_type.elem_type", "type"),
            ("graph.node[0].input[0]", "undefined"),
            ("graph.persistent_bindings[0]", "binding-input"),
        ]
    );
    let lines = stdout(&verify(&["m.onnx"]));
    assert_eq!(lines.lines().count(), 4);
    assert!(
        lines.lines().zip(&places).all(|(line, (path, _))| line.starts_with(&format!("`{path}`"))),
        "{lines}"
    );
}
