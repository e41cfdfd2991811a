//! The three real models.

use heirloom_import::gguf::{self, Gguf};

fn open(name: &str) -> Gguf {
    Gguf::open(&heirloom_testkit::models::gguf(name)).unwrap()
}

#[test]
fn the_models_are_read_as_the_gguf_package_reads_them() {
    // python -c "from gguf import GGUFReader; r = GGUFReader(M); t = r.tensors; print(len(r.fields) - 3, len(t),
    //   t[-1].name, t[-1].data_offset, sum(int(x.n_bytes) for x in t))"
    let expected = [
        ("smollm2-135m-instruct", 33, 272, "output_norm.weight", 98_360_128, 96_576_768),
        ("qwen2.5-coder-0.5b-instruct", 26, 291, "output_norm.weight", 491_396_480, 485_452_288),
        ("gemma3-270m", 33, 236, "blk.17.post_ffw_norm.weight", 253_110_464, 246_587_904),
    ];
    for (name, values, tensors, last, offset, bytes) in expected {
        let file = open(name);
        assert_eq!(file.keys().count(), values, "{name}");
        assert_eq!(file.tensors().len(), tensors, "{name}");
        let tensor = file.tensors().last().unwrap();
        assert_eq!((tensor.name(), tensor.range().start), (last, offset), "{name}");
        assert_eq!(file.tensors().iter().map(|t| t.range().len()).sum::<usize>(), bytes, "{name}");
    }
}

#[test]
fn a_vocabulary_stays_in_the_mapping() {
    let file = open("qwen2.5-coder-0.5b-instruct");
    let fields = gguf::vocabulary(&file).unwrap();
    assert_eq!((fields.model, fields.pre), ("gpt2", Some("qwen2")));
    assert_eq!((fields.tokens.len(), fields.merges.unwrap().len()), (151_936, 151_387));
    assert_eq!((fields.bos, fields.eos, fields.add_bos), (Some(151_643), Some(151_645), Some(false)));
    assert!(fields.chat_template.unwrap().starts_with("{%- if tools %}"));
    let last = fields.tokens.iter().last().and_then(gguf::Value::as_str);
    assert_eq!(last, Some("[PAD151935]"));
}
