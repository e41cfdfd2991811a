//! Float initializers to every format, and back.

use std::path::Path;

use heirloom::formats::FORMATS;
use heirloom::graph::{Initializer, ModelBuilder, OpenOptions, SaveOptions};
use heirloom::mem::{DType, Tensor};
use heirloom::quantize::{Loss, NameFilter, QuantizeError, QuantizeOptions, Target, TargetError};
use heirloom::types::{Layout, ValueType};
use heirloom::{CachePolicy, CallOptions, Engine, EngineOptions, Model};
use heirloom_testkit::folder::TempFolder;
use std::sync::Arc;

use crate::values::{Random, elements};

const K: usize = 64;
const N: usize = 256;

fn engine() -> Engine {
    Engine::new(EngineOptions { threads: Some(2) }).unwrap()
}

/// `y = x · w + b`, `w` [64, 256].
fn linear(weights: Vec<f32>) -> Model {
    let mut model = ModelBuilder::new("linear");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &ValueType::tensor(DType::Float, &[2, K])).unwrap();
    let w = g.initializer("layer.w", &Tensor::from_vec(&[K, N], weights).unwrap()).unwrap();
    let b = g.initializer("layer.b", &Tensor::from_vec(&[N], vec![0.5f32; N]).unwrap()).unwrap();
    let product = g.node("MatMul").input(&x).input(&w).fresh("product").unwrap();
    let y = g.node("Add").input(&product).input(&b).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, &[2, N])).unwrap();
    model.build(None::<&Path>).unwrap()
}

fn options(format: &str) -> QuantizeOptions {
    QuantizeOptions { target: format.parse().unwrap(), names: NameFilter::default() }
}

fn initializer<'m>(model: &'m Model, name: &str) -> &'m Initializer {
    let graph = model.graph();
    graph.initializer(graph.value(name).unwrap()).unwrap()
}

fn dense(model: &Model, name: &str) -> Vec<f32> {
    let Initializer::Tensor(tensor) = initializer(model, name) else { panic!("`{name}` is not dense") };
    elements(tensor)
}

fn run(model: Model) -> Vec<f32> {
    let session = engine().session(Arc::new(model), CachePolicy::default()).unwrap();
    let x = Tensor::from_vec(&[2, K], Random(9).normals(2 * K)).unwrap();
    elements(session.run([("x", x)], &CallOptions::default()).unwrap()["y"].as_tensor().unwrap())
}

fn loss(given: &[f32], got: &[f32]) -> Loss {
    let pairs = given.iter().zip(got).map(|(&a, &b)| f64::from(a) - f64::from(b));
    let mean = |squares: f64| (squares / given.len() as f64).sqrt();
    Loss {
        rmse: mean(pairs.clone().map(|d| d * d).sum()),
        max: pairs.map(f64::abs).fold(0.0, f64::max),
        rms: mean(given.iter().map(|&v| f64::from(v) * f64::from(v)).sum()),
    }
}

/// Quantizes, saves, opens, runs and dequantizes.
fn round_trip(format: &str, worst: f64) -> Model {
    let weights = Random(5).normals(K * N);
    let model = linear(weights.clone());
    let converted = engine().quantize(&model, &options(format)).unwrap();
    let [report] = &converted.tensors[..] else { panic!("{format}: {:?}", converted.skipped) };
    assert_eq!((&*report.name, report.bytes_before), ("layer.w", (K * N * 4) as u64), "{format}");
    assert!(converted.skipped.iter().all(|skipped| skipped.name == "layer.b"));
    let folder = TempFolder::new();
    let path = folder.path().join("q.onnx");
    converted.model.save(&path, &SaveOptions::default()).unwrap();
    let opened = Model::open(&path, &OpenOptions::default()).unwrap();
    assert_eq!(opened.verify(), []);
    let Initializer::Encoded(encoded) = initializer(&opened, "layer.w") else { panic!("{format}") };
    assert!(encoded.payload.len() as u64 <= report.bytes_after && report.bytes_after < report.bytes_before);

    let back = engine().dequantize(&opened, &NameFilter::default()).unwrap();
    assert!(back.tensors[0].decoded_by.is_some() && back.tensors[0].error.is_none());
    let decoded = dense(&back.model, "layer.w");
    let (expected, given) = (loss(&weights, &decoded), report.error.unwrap());
    for (expected, given) in
        [(expected.rmse, given.rmse), (expected.max, given.max), (expected.rms, given.rms)]
    {
        assert!((expected - given).abs() <= 1e-9 * (1.0 + expected), "{format}: {given} for {expected}");
    }
    assert!(expected.rmse <= worst * expected.rms, "{format}: {expected:?}");
    // The encoded model computes what the decoded one does.
    let (encoded, plain) = (run(opened), run(back.model));
    let difference = loss(&plain, &encoded);
    assert!(difference.rmse <= 0.01 * difference.rms, "{format}: {difference:?}");
    converted.model
}

#[test]
fn every_format_of_the_table_encodes_runs_and_decodes_with_the_loss_that_was_reported() {
    for format in FORMATS {
        let worst = if format.name.starts_with("tq") { 0.9 } else { 0.3 };
        round_trip(format.name, worst);
    }
    for format in ["nvfp4", "k_means:16"] {
        round_trip(format, 0.15);
    }
}

// proves: A7
#[test]
fn integers_per_tensor_axis_and_block_use_the_built_in_affine_layout() {
    for (format, worst) in
        [("int8", 0.02), ("uint8", 0.02), ("int4", 0.12), ("uint4", 0.11), ("int2", 0.9), ("uint2", 0.6)]
    {
        let model = round_trip(format, worst);
        let Initializer::Encoded(encoded) = initializer(&model, "layer.w") else { panic!() };
        let Layout::Affine(affine) = &encoded.layout else { panic!("{format} became a struct type") };
        let narrow = !format.ends_with('8');
        assert_eq!((affine.axis, affine.block_size), if narrow { (Some(1), Some(32)) } else { (None, None) });
        assert_eq!(affine.zero_point.is_some(), format.starts_with('u'));
        assert!(model.catalogue().is_empty(), "{format} needs no declaration");
    }
}

// proves: A7
#[test]
fn affine_scales_are_the_least_that_hold_each_group() {
    let model = |values: Vec<f32>| {
        let mut model = ModelBuilder::new("w");
        model.opset("", 24).unwrap();
        let g = model.graph();
        let w = g.initializer("w", &Tensor::from_vec(&[2, 4], values).unwrap()).unwrap();
        let y = g.node("Identity").input(&w).output("y").unwrap();
        g.output(&y, &ValueType::tensor(DType::Float, &[2, 4])).unwrap();
        model.build(None::<&Path>).unwrap()
    };
    let names = NameFilter { include: vec!["w".into()], ..NameFilter::default() };
    let given = vec![127.0, 1.0, 0.0, -3.0, 254.0, 2.0, -2.0, 4.0];
    let encode = |target: Target| {
        let options = QuantizeOptions { target, names: names.clone() };
        let converted = engine().quantize(&model(given.clone()), &options).unwrap();
        let Initializer::Encoded(encoded) = initializer(&converted.model, "w").clone() else { panic!() };
        let Layout::Affine(affine) = encoded.layout.clone() else { panic!() };
        (elements::<f32>(&affine.scale), affine.scale.shape().to_vec(), encoded.payload.to_vec())
    };
    let int8 = || "int8".parse::<Target>().unwrap();
    let (scales, shape, codes) = encode(int8());
    assert_eq!((&scales[..], &shape[..]), (&[2.0][..], &[][..]));
    // Halves go to even: 0.5 to 0, -1.5 to -2.
    assert_eq!(codes, [64u8, 0, 0, 254, 127, 1, 255, 2]);
    let (scales, shape, codes) = encode(int8().along(Some(-2), None).unwrap());
    assert_eq!((&scales[..], &shape[..]), (&[1.0, 2.0][..], &[2][..]));
    assert_eq!(codes, [127u8, 1, 0, 253, 127, 1, 255, 2]);
    let (scales, shape, _) = encode(int8().along(None, Some(3)).unwrap());
    assert_eq!(shape, [2, 2]);
    assert_eq!(scales, [1.0, 3.0 / 128.0, 2.0, 4.0 / 127.0]);
}

#[test]
fn what_cannot_be_encoded_stays_and_says_why() {
    let model = linear(Random(5).normals(K * N));
    let all = |format: &str| {
        let names = NameFilter { include: vec!["*".into()], ..NameFilter::default() };
        QuantizeOptions { names, ..options(format) }
    };
    // Unasked, only what operators take encoded; asked for, everything of whole records.
    let converted = engine().quantize(&model, &options("q8_0")).unwrap();
    assert_eq!(converted.skipped[0].reason, "input 1 of `Add` takes no encoded values");
    let converted = engine().quantize(&model, &all("q8_0")).unwrap();
    assert_eq!((converted.tensors.len(), converted.skipped.len()), (2, 0));

    let mut weights = vec![1.0; K * N];
    weights[70_000 % (K * N)] = f32::NAN;
    let converted = engine().quantize(&linear(weights.clone()), &options("q4_0")).unwrap();
    assert!(converted.tensors.is_empty());
    assert!(converted.skipped[0].reason.contains("NaN"), "{:?}", converted.skipped);
    let kept = dense(&converted.model, "layer.w");
    assert!(kept.iter().zip(&weights).all(|(a, b)| a.to_bits() == b.to_bits()));

    let exclude = NameFilter { exclude: vec!["layer.*".into()], ..NameFilter::default() };
    let nothing = engine().quantize(&model, &QuantizeOptions { names: exclude, ..options("q4_0") });
    assert!(matches!(nothing.unwrap_err(), QuantizeError::Nothing { what: "float", .. }));
    let nothing = engine().dequantize(&model, &NameFilter::default());
    assert!(matches!(nothing.unwrap_err(), QuantizeError::Nothing { what: "encoded", .. }));
}

#[test]
fn a_row_that_is_no_whole_number_of_records_is_named() {
    let mut model = ModelBuilder::new("odd");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let x = g.input("x", &ValueType::tensor(DType::Float, &[1, 4])).unwrap();
    let w = g.initializer("w", &Tensor::from_vec(&[4, 33], vec![1f32; 132]).unwrap()).unwrap();
    let y = g.node("MatMul").input(&x).input(&w).output("y").unwrap();
    g.output(&y, &ValueType::tensor(DType::Float, &[1, 33])).unwrap();
    let converted = engine().quantize(&model.build(None::<&Path>).unwrap(), &options("q4_0")).unwrap();
    let reason = &converted.skipped[0].reason;
    assert_eq!(reason, "its last axis has 33 elements, no multiple of the 32 of a record of q4_0");
}

#[test]
fn texts_that_name_no_target_are_refused_with_what_there_is() {
    let error = "q9_9".parse::<Target>().unwrap_err();
    assert!(error.to_string().contains("q4_k") && error.to_string().contains("int4"), "{error}");
    assert!(matches!("k_means:1".parse::<Target>(), Err(TargetError::Entries { .. })));
    let records = "q4_0".parse::<Target>().unwrap();
    assert!(matches!(records.along(Some(0), None), Err(TargetError::NoAxis { name }) if name == "q4_0"));
}
