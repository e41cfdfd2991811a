//! Other forms of the same attention: batches, half floats, flat heads.

use super::*;

/// Attention in 3-D form over `dtype`, softcapped, of 2 batch entries: by blocks, or by past and present.
fn flat_session(dtype: DType, is_paged: bool) -> Session {
    let mut model = ModelBuilder::new("flat");
    model.opset("", 24).unwrap();
    model.opset("ai.heirloom", 1).unwrap();
    let g = model.graph();
    let rows =
        |width: usize| ValueType::symbolic(dtype, [Dim::from(2), Dim::from("tokens"), Dim::from(width)]);
    let inputs = [("q", 4 * 24), ("k", 2 * 24), ("v", 2 * 16)]
        .map(|(name, width)| g.input(name, &rows(width)).unwrap());
    let node = |op: &str| (op.to_owned(), if is_paged { "ai.heirloom" } else { "" });
    let y = if is_paged {
        let cache = StructType::structure("Cache")
            .type_id(80_003)
            .typed("blocks", ValueType::sequence(ValueType::AnyStruct))
            .field("length", DType::Int64)
            .build()
            .unwrap();
        let ty = ValueType::Struct(cache);
        let past = g.input("cache", &ty).unwrap();
        let (op, domain) = node("PagedAttention");
        let paged = g.node(&op).domain(domain).inputs(&inputs).input(&past).attr("block_size", 4);
        let paged =
            paged.attr("q_num_heads", 4).attr("kv_num_heads", 2).attr("softcap", 2.0).attr("scale", 0.3);
        let [y, next] = paged.outputs(["y", "next"]).unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&past, &next).unwrap();
        y
    } else {
        let ty = |size: usize| {
            ValueType::symbolic(dtype, [Dim::from(2), Dim::from(2), Dim::Unknown, Dim::from(size)])
        };
        let past =
            [("past_key", 24), ("past_value", 16)].map(|(name, size)| g.input(name, &ty(size)).unwrap());
        let plain = g.node("Attention").inputs(&inputs).skip().inputs(&past).attr("is_causal", 1);
        let plain =
            plain.attr("q_num_heads", 4).attr("kv_num_heads", 2).attr("softcap", 2.0).attr("scale", 0.3);
        let [y, key, value] = plain.outputs(["y", "present_key", "present_value"]).unwrap();
        for ((past, present), size) in past.iter().zip([&key, &value]).zip([24, 16]) {
            g.output(present, &ty(size)).unwrap();
            g.bind(past, present).unwrap();
        }
        y
    };
    g.output(&y, &rows(4 * 16)).unwrap();
    let engine = Engine::new(EngineOptions { threads: Some(2) }).unwrap();
    let model = Arc::new(model.build(None::<&std::path::Path>).unwrap());
    engine.session(model, CachePolicy::default()).unwrap()
}

fn narrowed(dtype: DType, shape: &[usize], values: &[f32]) -> Tensor {
    match dtype {
        DType::Float16 => Tensor::from_vec(shape, values.iter().map(|&v| half::f16::from_f32(v)).collect()),
        DType::BFloat16 => Tensor::from_vec(shape, values.iter().map(|&v| half::bf16::from_f32(v)).collect()),
        _ => Tensor::from_vec(shape, values.to_vec()),
    }
    .unwrap()
}

fn widened(tensor: &Tensor) -> Vec<f32> {
    match tensor.dtype() {
        DType::Float16 => elements::<half::f16>(tensor).into_iter().map(half::f16::to_f32).collect(),
        DType::BFloat16 => elements::<half::bf16>(tensor).into_iter().map(half::bf16::to_f32).collect(),
        _ => elements(tensor),
    }
}

// proves: G1, K2
#[test]
fn batches_half_floats_and_flat_heads_equal_attention_over_past_and_present() {
    for (dtype, tolerance) in [(DType::Float, 1e-5), (DType::Float16, 2e-3), (DType::BFloat16, 1.6e-2)] {
        let paged = start(&flat_session(dtype, true));
        let session = flat_session(dtype, false);
        let empty = |size: usize| Value::Tensor(narrowed(dtype, &[2, 2, 0, size], &[]));
        let plain = session.make_state([("past_key", empty(24)), ("past_value", empty(16))]).unwrap();
        let mut random = Random(20);
        for count in [6, 1, 1, 3, 9] {
            let mut rows = |name, width: usize| {
                (name, narrowed(dtype, &[2, count, width], &random.normals(2 * count * width)))
            };
            let feeds = [rows("q", 96), rows("k", 48), rows("v", 32)];
            let run = |state: &State| {
                let out = state.run(feeds.clone(), &CallOptions::default()).unwrap();
                widened(out["y"].as_tensor().unwrap())
            };
            for (at, (a, e)) in run(&paged).iter().zip(&run(&plain)).enumerate() {
                assert!(
                    (a - e).abs() <= tolerance,
                    "{dtype}, {count} tokens, element {at}: {a} instead of {e}"
                );
            }
        }
        assert_eq!(blocks(&cache(&paged)).len(), 5);
    }
}
