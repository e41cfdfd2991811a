use heirloom::Tensor;
use heirloom::graph::{ModelBuilder, SaveOptions};
use heirloom::types::ValueType;
use heirloom_mem::DType;

use crate::run::{Folder, heirloom, stderr, stdout};

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
