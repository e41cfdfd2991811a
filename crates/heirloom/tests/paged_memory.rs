//! What a step over a long paged cache takes: run alone, since it measures the process.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)]

use std::path::Path;
use std::sync::Arc;

use heirloom::graph::{Attr, ModelBuilder};
use heirloom::mem::{CountingAlloc, DType, Tensor, heap_live_bytes, heap_peak_bytes, reset_heap_peak};
use heirloom::types::{StructType, ValueType};
use heirloom::{CachePolicy, CallOptions, Engine, EngineOptions, Feeds, State};

#[global_allocator]
static HEAP: CountingAlloc = CountingAlloc;

const HEADS: usize = 2;
const SIZE: usize = 64;
const BLOCK: usize = 64;
const THREADS: usize = 2;

/// A state of a model that keeps its cache in `layout`.
fn state(layout: &str) -> State {
    let rows = || ValueType::symbolic(DType::Float, [1.into(), HEADS.into(), "tokens".into(), SIZE.into()]);
    let cache = StructType::structure("Cache")
        .type_id(1)
        .typed("blocks", ValueType::sequence(ValueType::AnyStruct))
        .field("length", DType::Int64)
        .build()
        .unwrap();
    let mut model = ModelBuilder::new("paged");
    model.opset("", 24).unwrap();
    model.opset("ai.heirloom", 1).unwrap();
    let g = model.graph();
    let ty = ValueType::Struct(cache);
    let [q, k, v] = ["q", "k", "v"].map(|name| g.input(name, &rows()).unwrap());
    let past = g.input("cache", &ty).unwrap();
    let node = g.node("PagedAttention").domain("ai.heirloom").inputs([&q, &k, &v, &past]);
    let node = node.attr("block_size", BLOCK as i64).attr("layouts", Attr::strings([layout]));
    let [y, next] = node.outputs(["y", "next"]).unwrap();
    g.output(&y, &rows()).unwrap();
    g.output(&next, &ty).unwrap();
    g.bind(&past, &next).unwrap();
    let model = Arc::new(model.build(None::<&Path>).unwrap());
    let engine = Engine::new(EngineOptions { threads: Some(THREADS) }).unwrap();
    let session = engine.session(model, CachePolicy::default()).unwrap();
    let zeros = session.zeros(&[]).unwrap();
    session
        .make_state(zeros.iter().map(|(name, value)| (&**name, value.clone())).collect::<Feeds<'_>>())
        .unwrap()
}

fn feed(state: &State, tokens: usize, seed: usize) {
    let rows = |by: usize| {
        let count = HEADS * tokens * SIZE;
        let values = (0..count).map(|i| ((i * by + seed) % 251) as f32 / 125.0 - 1.0).collect();
        Tensor::from_vec(&[1, HEADS, tokens, SIZE], values).unwrap()
    };
    let out =
        state.run([("q", rows(31)), ("k", rows(57)), ("v", rows(73))], &CallOptions::default()).unwrap();
    assert!(out["y"].as_tensor().unwrap().as_slice::<f32>().unwrap().iter().all(|y| y.is_finite()));
}

// proves: G2
#[test]
fn a_step_takes_one_block_of_room_per_thread_however_long_the_cache_is() {
    let mut peaks = Vec::new();
    for blocks in [8, 64] {
        let state = state("int4");
        for at in 0..blocks {
            feed(&state, BLOCK, at);
        }
        let mut peak = 0;
        // Tokens into a block, to its end: the last one converts it.
        for at in 0..BLOCK {
            let live = heap_live_bytes();
            reset_heap_peak();
            feed(&state, 1, at);
            peak = peak.max(heap_peak_bytes() - live);
        }
        peaks.push(peak);
    }
    let page = (BLOCK * SIZE * 4) as u64;
    // Keys and values of one head of one block for each thread; or, converting, all heads of keys or of values and their
    // codes. What is left is by token and by block: handles, and the list of them.
    let bound = 2 * page * THREADS as u64 + 2 * HEADS as u64 * page;
    assert!(peaks[0] < bound, "{peaks:?}, bound {bound}");
    let handles = 56 * 512;
    assert!(peaks[1] < peaks[0] + handles, "{peaks:?}");
    // The whole cache, decoded, would be 2 MiB.
    assert!(peaks[1] < (64 * BLOCK * HEADS * SIZE * 4 * 2) as u64 / 8, "{peaks:?}");
}
