//! Models that the importer writes.

use std::fs;
use std::path::Path;

use heirloom_graph::{Initializer, Model, OpenOptions};
use heirloom_import::ImportError;
use heirloom_import::gguf::{CacheType, Gguf, ImportOptions, architecture_names, import, overlay};
use heirloom_mem::DType;
use heirloom_testkit::folder::TempFolder;

use crate::build::File;
use crate::tiny::{LAYERS, model, whole};

fn open(path: &Path) -> Model {
    Model::open(path, &OpenOptions::default()).unwrap()
}

/// The error of importing a model that is wrong.
fn refused(file: &File) -> ImportError {
    let gguf = file.read().unwrap();
    overlay(&gguf, "model.gguf", CacheType::Float16).unwrap_err()
}

#[test]
fn every_architecture_becomes_a_model_with_caches_that_feed_themselves() {
    for name in architecture_names() {
        let folder = TempFolder::new();
        let gguf = folder.write("tiny.gguf", &whole(name).bytes());
        let path = import(&gguf, &ImportOptions::default()).unwrap();
        assert_eq!(path, folder.path().join("tiny.onnx"));
        let model = open(&path);
        let graph = model.graph();
        let names = |ids: &[heirloom_graph::ValueId]| -> Vec<String> {
            ids.iter().map(|id| graph.value_name(*id).to_owned()).collect()
        };
        let caches = (0..LAYERS).flat_map(|l| ["key", "value"].map(|kv| (l, kv)));
        let mut inputs = vec!["input_ids".to_owned(), "logits_to_keep".to_owned()];
        inputs.extend(caches.clone().map(|(layer, kv)| format!("past_key_values.{layer}.{kv}")));
        assert_eq!(names(graph.inputs()), inputs, "{name}");
        let mut outputs: Vec<String> = caches.map(|(layer, kv)| format!("present.{layer}.{kv}")).collect();
        for (binding, (input, output)) in graph.bindings().iter().zip(inputs[2..].iter().zip(&outputs)) {
            assert_eq!(graph.value_name(binding.input), input);
            assert_eq!(graph.value_name(binding.output), output);
        }
        assert_eq!(graph.bindings().len(), 2 * LAYERS);
        outputs.push("logits".into());
        assert_eq!(names(graph.outputs()), outputs, "{name}");
        let metadata = |key: &str| model.metadata_value(key).map(str::to_owned);
        assert_eq!(metadata("heirloom.architecture").as_deref(), Some(name));
        assert_eq!(metadata("heirloom.context_length").as_deref(), Some("128"));
        // There is no vocabulary in the file.
        assert_eq!(metadata("heirloom.text"), None);
    }
}

// proves: E1
#[test]
fn every_weight_is_the_bytes_of_the_gguf_at_their_place() {
    let folder = TempFolder::new();
    let path = folder.write("tiny.gguf", &whole("qwen2").bytes());
    let before = fs::read(&path).unwrap();
    let model = open(&import(&path, &ImportOptions::default()).unwrap());
    let gguf = Gguf::open(&path).unwrap();
    let graph = model.graph();
    let mut regions = Vec::new();
    for tensor in gguf.tensors() {
        let found = graph.initializers().find(|(id, _)| graph.value_name(*id) == tensor.name());
        let shape: Vec<usize> = tensor.shape().map(|d| d as usize).collect();
        match found.unwrap().1 {
            Initializer::Encoded(value) => {
                assert_eq!(value.payload[..], before[tensor.range()], "{}", tensor.name());
                let logical = value.logical.as_ref().unwrap();
                assert_eq!((logical.dtype, &logical.shape[..]), (DType::Float, &shape[..]));
                regions.push(value.payload.region_id());
            }
            Initializer::Tensor(value) => {
                assert_eq!(value.dense_bytes().unwrap(), &before[tensor.range()], "{}", tensor.name());
                assert_eq!(value.shape(), shape);
                regions.push(value.region_id());
            }
            other => panic!("{}: {other:?}", tensor.name()),
        }
    }
    // One mapping holds them all, and the file is as it was.
    regions.dedup();
    assert_eq!(regions.len(), 1);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn the_caches_have_the_type_that_was_asked_for() {
    let gguf = whole("llama").read().unwrap();
    for (cache, onnx) in [(CacheType::Float16, 10), (CacheType::BFloat16, 16), (CacheType::Float, 1)] {
        let proto = overlay(&gguf, "model.gguf", cache).unwrap();
        let graph = proto.graph().unwrap();
        let casts = graph.node().iter().filter(|n| n.op_type() == "Cast").count();
        // Positions, and the narrow norms of both layers; four more per layer for narrow caches.
        assert_eq!(casts, 1 + LAYERS + if onnx == 1 { 0 } else { 4 * LAYERS });
        assert_eq!(cache.dtype().onnx(), onnx);
    }
}

#[test]
fn a_model_in_a_folder_above_names_the_file_below_it() {
    let folder = TempFolder::new();
    let gguf = folder.write("weights/tiny.gguf", &whole("llama").bytes());
    let output = folder.path().join("model.onnx");
    let options = ImportOptions { output: Some(output.clone()), ..ImportOptions::default() };
    assert_eq!(import(&gguf, &options).unwrap(), output);
    assert!(open(&output).graph().initializers().len() > 10);
}

#[test]
fn a_place_that_cannot_name_the_file_is_refused_and_nothing_is_written() {
    let folder = TempFolder::new();
    let gguf = folder.write("here/tiny.gguf", &whole("llama").bytes());
    folder.write("there/other", b"");
    let before = fs::read(&gguf).unwrap();
    for output in
        [folder.path().join("there/tiny.onnx"), gguf.clone(), folder.path().join("nowhere/tiny.onnx")]
    {
        let options = ImportOptions { output: Some(output.clone()), ..ImportOptions::default() };
        let error = import(&gguf, &options).unwrap_err();
        assert!(matches!(error, ImportError::OutOfReach { .. }), "{error}");
        assert!(error.to_string().contains("tiny.gguf"), "{error}");
        assert!(output == gguf || !output.exists());
    }
    assert_eq!(fs::read(&gguf).unwrap(), before);
}

#[test]
fn an_import_that_fails_leaves_the_old_model_as_it_was() {
    let folder = TempFolder::new();
    let bytes = whole("llama").bytes();
    let gguf = folder.write("tiny.gguf", &bytes[..bytes.len() - 5]);
    let old = folder.write("tiny.onnx", b"the old model");
    let error = import(&gguf, &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, ImportError::Truncated { .. }), "{error}");
    assert!(error.to_string().contains("tiny.gguf") && error.to_string().contains("offset"), "{error}");
    assert_eq!(fs::read(&old).unwrap(), b"the old model");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_gguf_that_was_moved_away_is_named_when_the_model_is_opened() {
    let folder = TempFolder::new();
    let gguf = folder.write("tiny.gguf", &whole("llama").bytes());
    let path = import(&gguf, &ImportOptions::default()).unwrap();
    fs::rename(&gguf, folder.path().join("moved.gguf")).unwrap();
    let error = Model::open(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("tiny.gguf"), "{error}");
    // A shorter file in its place is found out, too.
    folder.write("tiny.gguf", &whole("llama").bytes()[..4096]);
    let error = Model::open(&path, &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("tiny.gguf"), "{error}");
}

#[test]
fn a_damaged_model_is_an_error_and_never_a_panic() {
    let folder = TempFolder::new();
    let gguf = folder.write("tiny.gguf", &whole("llama").bytes());
    let bytes = fs::read(import(&gguf, &ImportOptions::default()).unwrap()).unwrap();
    let damaged = folder.path().join("damaged.onnx");
    let mut refused = 0;
    for cut in (1..bytes.len()).step_by(97) {
        fs::write(&damaged, &bytes[..cut]).unwrap();
        if let Err(error) = Model::open(&damaged, &OpenOptions::default()) {
            assert!(error.to_string().contains("damaged.onnx"), "{error}");
            refused += 1;
        }
        let mut flipped = bytes.clone();
        flipped[cut] ^= 0x55;
        fs::write(&damaged, &flipped).unwrap();
        // Some bytes are names that may be anything: what is asked is that nothing panics.
        drop(Model::open(&damaged, &OpenOptions::default()));
    }
    assert!(refused * 97 > bytes.len() / 2, "{refused}");
}

#[test]
fn what_the_file_lacks_is_named() {
    for key in ["block_count", "context_length", "attention.head_count", "attention.layer_norm_rms_epsilon"] {
        let error = refused(&model("qwen2", |name| name != key));
        let expected =
            format!("`model.gguf` has no metadata `qwen2.{key}`, which architecture `qwen2` needs");
        assert_eq!(error.to_string(), expected);
    }
    for tensor in ["token_embd.weight", "blk.1.ffn_up.weight", "output_norm.weight"] {
        let error = refused(&model("llama", |name| name != tensor)).to_string();
        let expected = format!("`model.gguf` has no tensor `{tensor}`, which architecture `llama` needs");
        assert_eq!(error, expected);
    }
}

#[test]
fn what_the_importer_does_not_know_is_refused_and_not_left_out() {
    let error = refused(&File::new().text("general.architecture", "mamba"));
    assert_eq!(
        error.to_string(),
        "`model.gguf` holds a model of architecture `mamba`; supported are gemma3, llama, qwen2, qwen3"
    );
    let extra = whole("llama").tensor("blk.0.ffn_gate_exps.weight", &[1], 0, &[0; 4]);
    assert!(
        matches!(refused(&extra), ImportError::UnusedTensor { tensor, .. } if tensor.ends_with("exps.weight"))
    );
    let scaled = whole("llama").text("llama.rope.scaling.type", "longrope");
    assert_eq!(
        refused(&scaled).to_string(),
        "`model.gguf`: metadata `llama.rope.scaling.type` asks for `longrope` scaling of rotary embeddings, which is \
         not supported"
    );
    let capped = whole("gemma3").float("gemma3.final_logit_softcapping", 30.0);
    assert!(matches!(refused(&capped), ImportError::Unsupported { .. }));
}

#[test]
fn numbers_that_do_not_fit_are_refused_before_they_are_used() {
    let without = |key: &'static str| model("llama", move |name| name != key);
    for (file, part) in [
        (without("block_count").unsigned("llama.block_count", 0), "metadata `llama.block_count` is 0"),
        (without("block_count").unsigned("llama.block_count", u32::MAX), "a count from 1 to"),
        (without("block_count").unsigned("llama.block_count", 10_000_000), "tensors in the file"),
        (whole("llama").unsigned("llama.attention.key_length", 1 << 20), "elements of a head"),
        (
            without("embedding_length").unsigned("llama.embedding_length", 32),
            "tensor `token_embd.weight` is q8_0",
        ),
        (whole("llama").unsigned("llama.rope.dimension_count", 17), "an even number up to 16"),
        (whole("llama").float("llama.rope.scaling.factor", -1.0), "a positive float"),
    ] {
        let message = refused(&file).to_string();
        assert!(message.contains(part) && message.contains("`model.gguf`"), "{message}");
    }
}
