//! What Python's `onnx` package says of files that the builder wrote.

use std::path::Path;
use std::process::Command;

use heirloom_graph::{FunctionBuilder, ModelBuilder};
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_testkit::folder::TempFolder;
use heirloom_types::ValueType;

use crate::support::{accumulator, block, dynamic, python, vector};

/// Runs a script with the path as its argument; what it prints, or `None` where there is no `onnx` package.
fn run(script: &str, path: &Path) -> Option<String> {
    let probe = Command::new(python()).args(["-c", "import onnx"]).output();
    if !probe.as_ref().is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("HEIRLOOM_PYTHON").is_none(),
            "HEIRLOOM_PYTHON has no `onnx` package: {probe:?}"
        );
        eprintln!("skipped: no `onnx` package at `{}` (set HEIRLOOM_PYTHON)", python().display());
        return None;
    }
    let output = Command::new(python()).args(["-c", script]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

// proves: W2, GB2
#[test]
fn onnx_checker_accepts_models_without_extensions() {
    let mut model = ModelBuilder::new("plain");
    model.opset("", 24).unwrap();
    model.metadata("author", "test");
    let mut function = FunctionBuilder::new("local", "Scale");
    function.opset("", 24).unwrap();
    let x = function.input("x").unwrap();
    let two = function.constant("two", Tensor::scalar(2f32)).unwrap();
    let y = function.node("Mul").input(&x).input(&two).output("y").unwrap();
    function.output(&y).unwrap();
    model.function(function.finish().unwrap()).unwrap();
    let g = model.graph();
    let x = g.input("x", &dynamic(&["batch", "width"])).unwrap();
    let flag = g.input("flag", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let w = g.initializer("w", &Tensor::from_vec(&[3, 2], vec![0.5f32; 6]).unwrap()).unwrap();
    let h = g.node("Gemm").input(&x).input(&w).attr("transB", 1).attr("alpha", 0.5).output("h").unwrap();
    let h = g.node("Scale").domain("local").input(&h).output("scaled").unwrap();
    let branches = ["Neg", "Abs"].map(|op| {
        let mut body = g.body(op);
        let out = body.node(op).input(&h).fresh("out").unwrap();
        body.output(&out, &dynamic(&["batch", "three"])).unwrap();
        body.finish()
    });
    let [then, other] = branches;
    let y =
        g.node("If").input(&flag).attr("then_branch", then).attr("else_branch", other).output("y").unwrap();
    g.output(&y, &dynamic(&["batch", "three"])).unwrap();
    let folder = TempFolder::new();
    let path = folder.write("plain.onnx", &model.finish().unwrap().to_bytes());
    let script = "
import sys, onnx
onnx.checker.check_model(sys.argv[1], full_check=True)
m = onnx.load(sys.argv[1])
print(m.ir_version, [n.op_type for n in m.graph.node], m.producer_name, m.metadata_props[0].value)
";
    let Some(printed) = run(script, &path) else { return };
    assert_eq!(printed, "12 ['Gemm', 'Scale', 'If'] heirloom test");
}

// proves: W2, W3
#[test]
fn the_onnx_package_loads_our_extensions_and_gives_them_back() {
    let mut model = accumulator();
    let g = model.graph();
    g.input("blocks", &ValueType::sequence(ValueType::Struct(block()))).unwrap();
    g.encoded("e", &block(), None, Bytes::from_vec(vec![1u8; 36])).unwrap();
    g.output("e", &vector(2)).unwrap();
    let proto = model.finish().unwrap();
    let folder = TempFolder::new();
    let path = folder.write("extended.onnx", &proto.to_bytes());
    let script = "
import sys, onnx
m = onnx.load(sys.argv[1])
onnx.save(m, sys.argv[1] + '.back')
print(len(m.graph.node), m.graph.input[0].name)
";
    let Some(printed) = run(script, &path) else { return };
    assert_eq!(printed, "2 x");
    let back = Bytes::map_file(&folder.path().join("extended.onnx.back")).unwrap();
    let back = heirloom_proto::ModelProto::decode(back).unwrap();
    assert_eq!(back, proto);
    assert_eq!(back.to_bytes(), proto.to_bytes());
}

// proves: GB1, W3
#[test]
fn the_models_of_the_onnx_package_open_without_a_fault_and_save_as_they_were() {
    let script = "
import os, onnx
for folder, _, names in os.walk(os.path.dirname(onnx.__file__)):
    for name in names:
        if name.endswith('.onnx'):
            print(os.path.join(folder, name))
";
    let folder = TempFolder::new();
    let Some(printed) = run(script, folder.path()) else { return };
    let paths: Vec<&str> = printed.lines().collect();
    assert!(paths.len() >= 100, "the package carries {} models", paths.len());
    for path in paths {
        let model = heirloom_graph::Model::open(path, &heirloom_graph::OpenOptions::default()).unwrap();
        assert_eq!(model.verify(), [], "{path}");
        let out = folder.path().join("out.onnx");
        model.save(&out, &heirloom_graph::SaveOptions::default()).unwrap();
        assert!(std::fs::read(out).unwrap() == std::fs::read(path).unwrap(), "{path}");
    }
}
