use heirloom::Tensor;
use heirloom::graph::{ModelBuilder, SaveOptions};
use heirloom::types::ValueType;
use heirloom_mem::DType;

use crate::run::{Folder, heirloom, stderr, stdout};

// proves: A7
#[test]
fn a_model_is_quantized_with_its_loss_printed_and_decoded_again() {
    let folder = Folder::new("quantize");
    let path = |name: &str| folder.path().join(name);
    let mut model = ModelBuilder::new("linear");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &ValueType::tensor(DType::Float, &[1, 2])).unwrap();
    let weights: Vec<f32> = (0..64).map(|i| i as f32 - 32.0).collect();
    let w = g.initializer("w", &Tensor::from_vec(&[2, 32], weights).unwrap()).unwrap();
    let y = g.node("MatMul").input(&x).input(&w).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, &[1, 32])).unwrap();
    model.build(None).unwrap().save(path("in.onnx"), &SaveOptions::default()).unwrap();

    let run = |arguments: &[&str]| {
        let mut command = heirloom(folder.path());
        command.current_dir(folder.path()).arg("quantize").args(arguments).output().unwrap()
    };
    let output = run(&["in.onnx", "q.onnx", "--format", "q8_0", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let line: serde_json::Value = serde_json::from_str(stdout(&output).trim()).unwrap();
    assert_eq!((line["name"].as_str(), line["bytes_after"].as_u64()), (Some("w"), Some(2 * 34)));
    let (rmse, max) = (line["rmse"].as_f64().unwrap(), line["max_error"].as_f64().unwrap());
    // Scales 32/127 and 31/127: no element is off by more than half of one, and what the scale itself is rounded by.
    assert!(rmse > 0.0 && rmse < max && max < 0.14, "{line}");

    let output = run(&["q.onnx", "back.onnx", "--format", "f32"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).trim(), "w: FLOAT [2, 32], 68 -> 256 bytes");
    assert!(path("back.onnx").exists());

    let output = run(&["in.onnx", "no.onnx", "--format", "q9_9"]);
    assert!(!output.status.success() && !path("no.onnx").exists());
    assert!(stderr(&output).contains("there is no format `q9_9`"), "{}", stderr(&output));
    let output = run(&["in.onnx", "no.onnx", "--format", "q4_k"]);
    assert!(!output.status.success() && !path("no.onnx").exists());
    assert!(stdout(&output).contains("no multiple of the 256"), "{}", stdout(&output));
}

// proves: A7
#[test]
fn patterns_choose_initializers_and_payloads_can_go_to_a_file() {
    let folder = Folder::new("quantize-some");
    let mut model = ModelBuilder::new("layers");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let ty = ValueType::tensor(DType::Float, &[1, 64]);
    let mut x = g.input("x", &ty).unwrap();
    for (at, name) in ["layer.0.up", "layer.0.down", "layer.1.up", "head"].into_iter().enumerate() {
        let weights: Vec<f32> = (0..64 * 64).map(|i| ((i * (at + 3)) % 17) as f32 - 8.0).collect();
        let w = g.initializer(name, &Tensor::from_vec(&[64, 64], weights).unwrap()).unwrap();
        x = g.node("MatMul").input(&x).input(&w).output(&format!("y{at}")).unwrap();
    }
    g.output(&x, &ty).unwrap();
    model.build(None).unwrap().save(folder.path().join("in.onnx"), &SaveOptions::default()).unwrap();

    let run = |command: &str, arguments: &[&str]| {
        let mut heirloom = heirloom(folder.path());
        let output = heirloom.current_dir(folder.path()).arg(command).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let chosen = ["--include", "layer.*", "--include", "head", "--exclude", "*.1.*", "--json"];
    let lines =
        run("quantize", &[&["in.onnx", "q.onnx", "--format", "int4", "--external"][..], &chosen].concat());
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["layer.0.up", "layer.0.down", "head"]);
    for line in &lines {
        // 4 bits and a FLOAT scale for each 32: numbers from -8 to 8 lose at most half a step of 8 / 7.
        assert_eq!(line["bytes_after"], 64 * 64 / 2 + 64 * 2 * 4);
        let (rmse, max) = (line["rmse"].as_f64().unwrap(), line["max_error"].as_f64().unwrap());
        assert!(rmse > 0.0 && rmse <= max && max <= 4.0 / 7.0 + 1e-6, "{line}");
    }
    let data = folder.path().join("q.onnx.data");
    assert!(data.metadata().unwrap().len() >= 3 * 2048 + 64 * 64 * 4);
    assert_eq!(run("verify", &["q.onnx"]).trim(), "q.onnx: no faults");

    let back = run("quantize", &["q.onnx", "back.onnx", "--format", "f32", "--inline", "--include", "head"]);
    assert_eq!(back.trim(), "head: FLOAT [64, 64], 2560 -> 16384 bytes");
    assert_eq!(run("verify", &["back.onnx"]).trim(), "back.onnx: no faults");
    let inspected: serde_json::Value =
        serde_json::from_str(&run("inspect", &["back.onnx", "--json"])).unwrap();
    let kinds = inspected["constants"].as_array().unwrap();
    let encoded = |name: &str| {
        let constant = kinds.iter().find(|constant| constant["name"] == name).unwrap();
        constant.to_string().contains("INT4")
    };
    assert_eq!(["head", "layer.0.up", "layer.1.up"].map(encoded), [false, true, false]);
}
