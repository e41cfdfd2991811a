//! A cache of blocks in different layouts, kept by the model itself: `ai.heirloom.PagedAttention`.

mod flat;
mod given;

use std::sync::Arc;

use heirloom::graph::ModelBuilder;
use heirloom::mem::{DType, Tensor};
use heirloom::types::{Dim, Layout, StructType, Value, ValueType};
use heirloom::{CachePolicy, CallOptions, Engine, EngineOptions, Model, Session, State};

use crate::values::{Random, elements};

const BATCH: usize = 1;

#[derive(Clone, Copy)]
struct Extents {
    q_heads: usize,
    heads: usize,
    size: usize,
}

const SMALL: Extents = Extents { q_heads: 4, heads: 2, size: 64 };

/// What a model asks of its blocks.
struct Wishes {
    block: i64,
    layouts: &'static [&'static str],
    value_layouts: &'static [&'static str],
    tiers: &'static [i64],
    exact_first: i64,
    left: i64,
}

const EXACT: Wishes =
    Wishes { block: 16, layouts: &["exact"], value_layouts: &[], tiers: &[], exact_first: 0, left: -1 };

fn cache_type(heads: usize, size: usize) -> ValueType {
    let rows = || {
        let dims = [Dim::from(BATCH), Dim::from(heads), Dim::Unknown, Dim::from(size)];
        ValueType::symbolic(DType::Float, dims)
    };
    let block = StructType::structure("KVBlock")
        .type_id(80_001)
        .typed("keys", rows())
        .typed("values", rows())
        .field("start", DType::Int64)
        .field("length", DType::Int64)
        .build()
        .unwrap();
    let cache = StructType::structure("Cache")
        .type_id(80_002)
        .typed("blocks", ValueType::sequence(ValueType::Struct(block)))
        .field("length", DType::Int64)
        .build()
        .unwrap();
    ValueType::Struct(cache)
}

fn model(extents: Extents, wishes: &Wishes) -> Arc<Model> {
    let Extents { q_heads, heads, size } = extents;
    let mut model = ModelBuilder::new("paged");
    model.opset("", 24).unwrap();
    model.opset("ai.heirloom", 1).unwrap();
    let g = model.graph();
    let ty = cache_type(heads, size);
    let rows = |heads: usize| {
        let dims = [Dim::from(BATCH), Dim::from(heads), Dim::from("tokens"), Dim::from(size)];
        ValueType::symbolic(DType::Float, dims)
    };
    let q = g.input("q", &rows(q_heads)).unwrap();
    let k = g.input("k", &rows(heads)).unwrap();
    let v = g.input("v", &rows(heads)).unwrap();
    let past = g.input("cache", &ty).unwrap();
    let mut node = g
        .node("PagedAttention")
        .domain("ai.heirloom")
        .inputs([&q, &k, &v, &past])
        .attr("block_size", wishes.block)
        .attr("exact_first", wishes.exact_first)
        .attr("left_window_size", wishes.left)
        .attr("layouts", heirloom::graph::Attr::strings(wishes.layouts))
        .attr("tiers", heirloom::graph::Attr::ints(wishes.tiers.iter().copied()));
    if !wishes.value_layouts.is_empty() {
        node = node.attr("value_layouts", heirloom::graph::Attr::strings(wishes.value_layouts));
    }
    let [y, next] = node.outputs(["y", "next_cache"]).unwrap();
    g.output(&y, &rows(q_heads)).unwrap();
    g.output(&next, &ty).unwrap();
    g.bind(&past, &next).unwrap();
    Arc::new(model.build(None::<&std::path::Path>).unwrap())
}

fn session(extents: Extents, wishes: &Wishes) -> Session {
    let engine = Engine::new(EngineOptions { threads: Some(2) }).unwrap();
    engine.session(model(extents, wishes), CachePolicy::default()).unwrap()
}

fn start(session: &Session) -> State {
    let zeros = session.zeros(&[]).unwrap();
    session
        .make_state(
            zeros.iter().map(|(name, value)| (&**name, value.clone())).collect::<heirloom::Feeds<'_>>(),
        )
        .unwrap()
}

/// Queries, keys and values of some tokens: [heads, tokens, size] each.
struct Tokens {
    count: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

fn tokens(extents: Extents, count: usize, seed: u64) -> Tokens {
    let mut random = Random(seed);
    let mut some = |heads: usize| random.normals(heads * count * extents.size);
    let (q, k, v) = (some(extents.q_heads), some(extents.heads), some(extents.heads));
    Tokens { count, q, k, v }
}

/// Tokens `range` of rows [heads, tokens, size].
fn part(rows: &[f32], tokens: usize, size: usize, range: std::ops::Range<usize>) -> Vec<f32> {
    let heads = rows.chunks_exact(tokens * size);
    heads.flat_map(|head| head[range.start * size..range.end * size].to_vec()).collect()
}

fn feed(state: &State, extents: Extents, tokens: &Tokens, range: std::ops::Range<usize>) -> Vec<f32> {
    let tensor = |rows: &[f32], heads: usize| {
        let rows = part(rows, tokens.count, extents.size, range.clone());
        Tensor::from_vec(&[BATCH, heads, range.len(), extents.size], rows).unwrap()
    };
    let feeds = [
        ("q", tensor(&tokens.q, extents.q_heads)),
        ("k", tensor(&tokens.k, extents.heads)),
        ("v", tensor(&tokens.v, extents.heads)),
    ];
    let out = state.run(feeds, &CallOptions::default()).unwrap();
    elements(out["y"].as_tensor().unwrap())
}

/// Causal attention of the last `queries` tokens over all, by its definition, in f64. `k`, `v`: [heads, total, size].
fn reference(
    extents: Extents,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    total: usize,
    left: Option<usize>,
) -> Vec<f32> {
    let Extents { q_heads, heads, size } = extents;
    let queries = q.len() / q_heads / size;
    let mut out = Vec::new();
    for head in 0..q_heads {
        let kv = head / (q_heads / heads);
        for query in 0..queries {
            let place = total - queries + query;
            let seen = left.map_or(0, |left| place.saturating_sub(left))..place + 1;
            let row = |rows: &[f32], at: usize| -> Vec<f64> {
                let from = (kv * total + at) * size;
                rows[from..from + size].iter().map(|&x| f64::from(x)).collect()
            };
            let q = &q[(head * queries + query) * size..(head * queries + query + 1) * size];
            let scores: Vec<f64> = seen
                .clone()
                .map(|at| {
                    let dot: f64 = row(k, at).iter().zip(q).map(|(k, &q)| k * f64::from(q)).sum();
                    dot / (size as f64).sqrt()
                })
                .collect();
            let greatest = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let shares: Vec<f64> = scores.iter().map(|score| (score - greatest).exp()).collect();
            let total: f64 = shares.iter().sum();
            let mut sums = vec![0.0; size];
            for (share, at) in shares.iter().zip(seen) {
                sums.iter_mut().zip(row(v, at)).for_each(|(sum, v)| *sum += share / total * v);
            }
            out.extend(sums.iter().map(|&sum| sum as f32));
        }
    }
    out
}

fn assert_close(actual: &[f32], expected: &[f32], about: &str) {
    assert_eq!(actual.len(), expected.len(), "{about}");
    let scale = expected.iter().fold(0.0f32, |a, b| a.max(b.abs()));
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        assert!((a - e).abs() <= 1e-5 * scale, "{about}, element {i}: {a} instead of {e}");
    }
}

fn cache(state: &State) -> Value {
    state.values().unwrap().get("cache").unwrap().clone()
}

fn field(value: &Value, name: &str) -> Value {
    let Value::Struct(fields) = value else { panic!("a {}", value.kind()) };
    fields.field(name).unwrap_or_else(|| panic!("a field `{name}`")).clone()
}

fn blocks(cache: &Value) -> Vec<Value> {
    let Value::Sequence(blocks) = field(cache, "blocks") else { panic!() };
    blocks.to_vec()
}

fn number(value: &Value, name: &str) -> i64 {
    field(value, name).as_tensor().unwrap().as_slice::<i64>().unwrap()[0]
}

/// How a part of a block is stored, and its bytes with its scales.
fn stored(value: &Value) -> (String, usize) {
    match value {
        Value::Tensor(tensor) => (tensor.dtype().to_string(), tensor.byte_len()),
        Value::Encoded(value) => match &value.layout {
            Layout::Affine(affine) => {
                (affine.storage.to_string(), value.payload.len() + affine.scale.byte_len())
            }
            Layout::Struct(layout) => (layout.name.to_string(), value.payload.len()),
        },
        other => panic!("a {}", other.kind()),
    }
}

/// The elements that a part of a block stands for, [heads, tokens, size].
fn decoded(value: &Value) -> Vec<f32> {
    match value {
        Value::Tensor(tensor) => {
            let mut all = Vec::new();
            tensor.for_each_run(|run| {
                all.extend(run.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())))
            });
            all
        }
        Value::Encoded(value) => {
            let engine = Engine::new(EngineOptions { threads: Some(1) }).unwrap();
            elements(&engine.decode(value).unwrap().0)
        }
        other => panic!("a {}", other.kind()),
    }
}

/// The valid tokens of all blocks, decoded one by one: [heads, total, size].
fn whole(cache: &Value, name: &str, heads: usize, size: usize) -> Vec<f32> {
    let mut rows = vec![Vec::new(); heads];
    for block in blocks(cache) {
        let valid = usize::try_from(number(&block, "length")).unwrap() * size;
        let all = decoded(&field(&block, name));
        let head = all.len() / heads;
        rows.iter_mut().enumerate().for_each(|(at, row)| row.extend(&all[at * head..at * head + valid]));
    }
    rows.concat()
}

fn address(value: &Value) -> usize {
    match value {
        Value::Tensor(tensor) => tensor.address(),
        Value::Encoded(value) => value.payload.address(),
        other => panic!("a {}", other.kind()),
    }
}

fn kinds(cache: &Value, name: &str) -> Vec<String> {
    blocks(cache).iter().map(|block| stored(&field(block, name)).0).collect()
}

// proves: G1, G2, K2
#[test]
fn exact_blocks_give_what_attention_over_all_tokens_gives() {
    for (left, block) in [(-1, 16), (20, 16), (-1, 5), (3, 1)] {
        let state = start(&session(SMALL, &Wishes { block, left, ..EXACT }));
        let all = tokens(SMALL, 70, 1);
        let mut at = 0;
        for count in [37, 1, 1, 14, 1, 16] {
            let y = feed(&state, SMALL, &all, at..at + count);
            at += count;
            let q = part(&all.q, 70, 64, at - count..at);
            let (k, v) = (part(&all.k, 70, 64, 0..at), part(&all.v, 70, 64, 0..at));
            let expected = reference(SMALL, &q, &k, &v, at, usize::try_from(left).ok());
            assert_close(&y, &expected, &format!("{at} tokens, window {left}, blocks of {block}"));
        }
        let cache = cache(&state);
        assert_eq!(number(&cache, "length"), 70);
        assert_eq!(blocks(&cache).len(), 70usize.div_ceil(usize::try_from(block).unwrap()));
        assert_eq!(whole(&cache, "keys", 2, 64), all.k);
    }
}

// proves: G2, Z1, K1
#[test]
fn a_step_writes_its_own_tokens_and_copies_nothing() {
    let session = session(SMALL, &EXACT);
    let state = start(&session);
    let all = tokens(SMALL, 100, 2);
    feed(&state, SMALL, &all, 0..20);
    let before = state.report().counts;
    for at in 20..100 {
        let block = |cache: &Value| address(&field(blocks(cache).last().unwrap(), "keys"));
        let tail = block(&cache(&state));
        feed(&state, SMALL, &all, at..at + 1);
        // In place, until a block is full.
        assert_eq!(block(&cache(&state)) == tail, at % 16 != 0, "token {at}");
    }
    let counts = state.report().counts;
    assert_eq!(counts.appended_bytes - before.appended_bytes, 80 * 2 * 2 * 64 * 4);
    assert_eq!((counts.state_copied_bytes, counts.cache_copied_bytes), (0, before.cache_copied_bytes));
    // Two buffers for each block that began: tokens 32, 48, 64, 80 and 96.
    assert_eq!(counts.cache_allocations - before.cache_allocations, 10);
}

// proves: G1, G2
#[test]
fn u35_old_tokens_in_4_bits_recent_and_first_ones_exact() {
    let wishes = Wishes { layouts: &["exact", "int4"], tiers: &[1], exact_first: 1, ..EXACT };
    let state = start(&session(SMALL, &wishes));
    let all = tokens(SMALL, 82, 3);
    feed(&state, SMALL, &all, 0..60);
    feed(&state, SMALL, &all, 60..64);
    let four = cache(&state);
    assert_eq!(kinds(&four, "keys"), ["FLOAT", "INT4", "INT4", "FLOAT"]);
    let bytes =
        blocks(&four).into_iter().map(|b| stored(&field(&b, "keys")).1 + stored(&field(&b, "values")).1);
    assert_eq!(bytes.sum::<usize>(), 37_888);

    // Each page is read in its own layout; what the newest one lost is not lost yet.
    let mut at = 64;
    for count in [1, 14] {
        let before = cache(&state);
        let y = feed(&state, SMALL, &all, at..at + count);
        at += count;
        let new = |rows: &[f32]| part(rows, 82, 64, at - count..at);
        let join = |name: &str, rows: &[f32]| {
            let (old, new) = (whole(&before, name, 2, 64), new(rows));
            let (old, new) = (old.chunks(old.len() / 2), new.chunks(new.len() / 2));
            old.zip(new).flat_map(|(old, new)| [old, new].concat()).collect::<Vec<f32>>()
        };
        let expected =
            reference(SMALL, &new(&all.q), &join("keys", &all.k), &join("values", &all.v), at, None);
        assert_close(&y, &expected, &format!("{at} tokens"));
    }
    // Page 4 is full with the next token: page 3 becomes INT4, it alone.
    let before = cache(&state);
    assert_eq!(kinds(&before, "keys"), ["FLOAT", "INT4", "INT4", "FLOAT", "FLOAT"]);
    feed(&state, SMALL, &all, 79..80);
    let after = cache(&state);
    assert_eq!(kinds(&after, "values"), ["FLOAT", "INT4", "INT4", "INT4", "FLOAT"]);
    for (page, (old, new)) in blocks(&before).iter().zip(&blocks(&after)).enumerate() {
        for name in ["keys", "values"] {
            let same = address(&field(old, name)) == address(&field(new, name));
            assert_eq!(same, page != 3, "{name} of page {page}");
        }
    }
    // The view that was handed out earlier is as it was.
    let rows = |cache: &Value| decoded(&field(&blocks(cache)[3], "keys"));
    assert_eq!(rows(&before), part(&all.k, 82, 64, 48..64));
    let error = rows(&before).iter().zip(rows(&after)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(error > 0.0 && error < 6.0 / 8.0, "{error}");
}

// proves: G1
#[test]
fn layouts_differ_between_keys_and_values_and_from_tier_to_tier() {
    let wishes = Wishes {
        layouts: &["exact", "int8", "q4_0"],
        value_layouts: &["q8_0", "nf4", "int4"],
        tiers: &[1, 2],
        ..EXACT
    };
    let all = tokens(SMALL, 96, 4);
    let (one, many) = (start(&session(SMALL, &wishes)), start(&session(SMALL, &wishes)));
    for at in 0..96 {
        feed(&one, SMALL, &all, at..at + 1);
    }
    feed(&many, SMALL, &all, 0..96);
    for state in [&one, &many] {
        let cache = cache(state);
        assert_eq!(kinds(&cache, "keys"), ["q4_0", "q4_0", "q4_0", "INT8", "INT8", "FLOAT"]);
        assert_eq!(kinds(&cache, "values"), ["INT4", "INT4", "INT4", "nf4", "nf4", "q8_0"]);
    }
    // INT8 from exact rows is the same, however they came.
    let payload = |state: &State, at: usize| match field(&blocks(&cache(state))[at], "keys") {
        Value::Encoded(value) => value.payload.to_vec(),
        other => panic!("a {}", other.kind()),
    };
    assert_eq!(payload(&one, 3), payload(&many, 3));

    let state = &many;
    let before = cache(state);
    let more = tokens(SMALL, 2, 5);
    let y = feed(state, SMALL, &more, 0..2);
    let join = |name: &str, new: &[f32]| {
        let old = whole(&before, name, 2, 64);
        old.chunks(96 * 64).zip(new.chunks(2 * 64)).flat_map(|(a, b)| [a, b].concat()).collect::<Vec<f32>>()
    };
    let expected = reference(SMALL, &more.q, &join("keys", &more.k), &join("values", &more.v), 98, None);
    assert_close(&y, &expected, "six layouts");
}

// proves: G3
#[test]
fn u37_a_head_size_that_is_no_multiple_of_the_group_runs_and_one_of_records_is_refused_at_once() {
    let wide = Extents { q_heads: 2, heads: 2, size: 80 };
    let wishes = Wishes { layouts: &["int4"], ..EXACT };
    let state = start(&session(wide, &wishes));
    let all = tokens(wide, 33, 6);
    feed(&state, wide, &all, 0..32);
    let before = cache(&state);
    assert_eq!(kinds(&before, "keys"), ["INT4", "INT4"]);
    let Value::Encoded(keys) = field(&blocks(&before)[0], "keys") else { panic!() };
    // 32 + 32 + 16 elements of a head.
    assert_eq!(keys.layout.as_affine().unwrap().scale.shape(), [1, 2, 16, 3]);
    let y = feed(&state, wide, &all, 32..33);
    let join = |name: &str, new: &[f32]| {
        let (old, new) = (whole(&before, name, 2, 80), part(new, 33, 80, 32..33));
        old.chunks(32 * 80).zip(new.chunks(80)).flat_map(|(a, b)| [a, b].concat()).collect::<Vec<f32>>()
    };
    let q = part(&all.q, 33, 80, 32..33);
    assert_close(&y, &reference(wide, &q, &join("keys", &all.k), &join("values", &all.v), 33, None), "80");

    let engine = Engine::new(EngineOptions { threads: Some(1) }).unwrap();
    let odd = Extents { size: 20, ..wide };
    let wishes = Wishes { block: 3, layouts: &["q4_0"], ..EXACT };
    let state = start(&session(odd, &wishes));
    let one = tokens(odd, 3, 7);
    let feeds = [("q", &one.q), ("k", &one.k), ("v", &one.v)]
        .map(|(name, rows)| (name, Tensor::from_vec(&[1, 2, 3, 20], rows.clone()).unwrap()));
    let error = state.run(feeds, &CallOptions::default()).unwrap_err().to_string();
    assert!(error.contains("3 tokens") && error.contains("20 elements") && error.contains("32"), "{error}");
    assert_eq!(number(&cache(&state), "length"), 0);
    drop(engine);
}

// proves: G2, Z4, R4
#[test]
fn forks_share_every_block_and_go_on_apart() {
    let session = session(SMALL, &Wishes { layouts: &["exact", "int8"], tiers: &[0], ..EXACT });
    let state = start(&session);
    let all = tokens(SMALL, 30, 11);
    feed(&state, SMALL, &all, 0..20);
    let fork = state.fork().unwrap();
    let (a, b) = (tokens(SMALL, 10, 12), tokens(SMALL, 10, 13));
    let (mut ys, mut alone) = (Vec::new(), Vec::new());
    for at in 0..10 {
        ys.push((feed(&state, SMALL, &a, at..at + 1), feed(&fork, SMALL, &b, at..at + 1)));
    }
    for new in [&a, &b] {
        let lone = start(&session);
        feed(&lone, SMALL, &all, 0..20);
        alone.push((0..10).map(|at| feed(&lone, SMALL, new, at..at + 1)).collect::<Vec<_>>());
    }
    for (at, (first, second)) in ys.iter().enumerate() {
        assert_eq!((first, second), (&alone[0][at], &alone[1][at]), "step {at}");
    }
    let first = |state: &State| address(&field(&blocks(&cache(state))[0], "keys"));
    assert_eq!(first(&state), first(&fork));
    assert_eq!(state.report().counts.state_copied_bytes + fork.report().counts.state_copied_bytes, 0);
}

// proves: K3, G2
#[test]
fn a_fixed_capacity_refuses_the_token_that_does_not_fit() {
    let engine = Engine::new(EngineOptions { threads: Some(1) }).unwrap();
    let session = engine.session(model(SMALL, &EXACT), CachePolicy::fixed(20)).unwrap();
    let state = start(&session);
    let all = tokens(SMALL, 21, 14);
    feed(&state, SMALL, &all, 0..20);
    let one = tokens(SMALL, 1, 15);
    let feeds = [("q", &one.q, 4), ("k", &one.k, 2), ("v", &one.v, 2)]
        .map(|(name, rows, heads)| (name, Tensor::from_vec(&[1, heads, 1, 64], rows.clone()).unwrap()));
    let error = state.run(feeds, &CallOptions::default()).unwrap_err().to_string();
    assert!(error.contains("holds 20 of 20 rows"), "{error}");
    assert_eq!(number(&cache(&state), "length"), 20);
    assert_eq!(whole(&cache(&state), "keys", 2, 64), part(&all.k, 21, 64, 0..20));
}
