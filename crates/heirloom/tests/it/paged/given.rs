//! Caches that the caller brings: blocks in layouts of their own, and blocks that break the contract.

use heirloom::formats::by_name;
use heirloom::mem::Bytes;
use heirloom::types::{Affine, Codec, EncodedValue, StructLayout, StructValue, TensorType};

use super::*;

fn block(keys: Value, values: Value, start: i64, length: i64) -> Value {
    let number = |n: i64| Value::Tensor(Tensor::scalar(n));
    let fields = [("keys", keys), ("values", values), ("start", number(start)), ("length", number(length))];
    Value::Struct(Arc::new(StructValue { fields: fields.map(|(name, value)| (name.into(), value)).into() }))
}

fn cache_of(blocks: Vec<Value>, length: i64) -> Value {
    let fields =
        [("blocks", Value::Sequence(Arc::new(blocks))), ("length", Value::Tensor(Tensor::scalar(length)))];
    Value::Struct(Arc::new(StructValue { fields: fields.map(|(name, value)| (name.into(), value)).into() }))
}

fn dense(rows: &[f32], tokens: usize) -> Value {
    Value::Tensor(Tensor::from_vec(&[1, 2, tokens, 64], rows.to_vec()).unwrap())
}

fn records(name: &str, rows: &[f32], tokens: usize) -> Value {
    let format = by_name(name).unwrap();
    let mut bytes = vec![0; rows.len() / format.elements * format.record_bytes];
    format.encode(rows, &mut bytes).unwrap();
    encoded(Layout::Struct(Arc::new(StructLayout::new(format.declaration().clone()).unwrap())), bytes, tokens)
}

fn encoded(layout: Layout, bytes: Vec<u8>, tokens: usize) -> Value {
    let logical = TensorType { dtype: DType::Float, shape: [1, 2, tokens, 64].into_iter().collect() };
    let payload = Bytes::from_vec(bytes);
    Value::Encoded(Arc::new(EncodedValue { name: String::new(), layout, logical: Some(logical), payload }))
}

fn int8(rows: &[f32], tokens: usize) -> Value {
    let logical = TensorType { dtype: DType::Float, shape: [1, 2, tokens, 64].into_iter().collect() };
    let affine = Affine::fit(rows, &logical, DType::Int8, None, None).unwrap();
    let mut codes = vec![0; rows.len()];
    affine.encode(&logical, rows, &mut codes).unwrap();
    encoded(Layout::Affine(Arc::new(affine)), codes, tokens)
}

// proves: G1, G3
#[test]
fn blocks_that_the_caller_brings_keep_their_layouts_and_only_valid_tokens_count() {
    let session = session(SMALL, &EXACT);
    let mut random = Random(8);
    let mut rows = |tokens: usize| random.normals(2 * tokens * 64);
    let mut nan = rows(8);
    // Behind the 5 valid tokens of each head lies nothing that may be read.
    nan.chunks_mut(8 * 64).for_each(|head| head[5 * 64..].fill(f32::NAN));
    let given = cache_of(
        vec![
            block(dense(&rows(4), 4), records("q4_0", &rows(4), 4), 0, 4),
            block(int8(&rows(16), 16), records("nf4", &rows(16), 16), 4, 10),
            block(dense(&nan, 8), dense(&nan, 8), 14, 5),
            block(records("q8_0", &rows(2), 2), int8(&rows(3), 3), 19, 2),
        ],
        21,
    );
    let state = session.make_state([("cache", given.clone())]).unwrap();
    let new = tokens(SMALL, 3, 9);
    let y = feed(&state, SMALL, &new, 0..3);
    let join = |name: &str, new: &[f32]| {
        let old = whole(&given, name, 2, 64);
        old.chunks(21 * 64).zip(new.chunks(3 * 64)).flat_map(|(a, b)| [a, b].concat()).collect::<Vec<f32>>()
    };
    let expected = reference(SMALL, &new.q, &join("keys", &new.k), &join("values", &new.v), 24, None);
    assert_close(&y, &expected, "blocks of the caller");
    let after = cache(&state);
    assert_eq!(kinds(&after, "keys"), ["FLOAT", "INT8", "FLOAT", "q8_0", "FLOAT"]);
    assert_eq!((number(&after, "length"), number(&blocks(&after)[4], "start")), (24, 21));
    for (old, new) in blocks(&given).iter().zip(&blocks(&after)) {
        assert_eq!(address(&field(old, "keys")), address(&field(new, "keys")));
    }
}

// proves: G3, E6, R3
#[test]
fn blocks_that_break_the_contract_are_refused_and_leave_the_state() {
    let session = session(SMALL, &EXACT);
    let zeros = |tokens: usize| vec![0.0; 2 * tokens * 64];
    let ok = || dense(&zeros(4), 4);
    let unknown = {
        let ty = StructType::structure("Mystery")
            .type_id(990_002)
            .array("codes", DType::Int8, 32)
            .build()
            .unwrap();
        encoded(Layout::Struct(Arc::new(StructLayout::new(ty).unwrap())), vec![0; 512], 4)
    };
    let cases = [
        (vec![block(ok(), ok(), 0, 5)], 5, "block 0 has 5 valid tokens, but keys of 4 and values of 4"),
        (vec![block(ok(), ok(), 1, 4)], 4, "block 0 begins with token 1; the blocks before it hold 0"),
        (vec![block(ok(), ok(), 0, 4)], 7, "the cache has `length` 7, and blocks of 4 tokens"),
        (vec![block(ok(), ok(), 0, -1)], 0, "`length` of block 0 is negative"),
        (
            vec![block(ok(), unknown, 0, 4)],
            4,
            "`values` of block 0: no codec is registered for struct `Mystery` (990002)",
        ),
    ];
    for (blocks, length, expected) in cases {
        let given = cache_of(blocks, length);
        let state = session.make_state([("cache", given)]).unwrap();
        let one = tokens(SMALL, 1, 10);
        let feeds = [("q", &one.q, 4), ("k", &one.k, 2), ("v", &one.v, 2)]
            .map(|(name, rows, heads)| (name, Tensor::from_vec(&[1, heads, 1, 64], rows.clone()).unwrap()));
        let error = state.run(feeds, &CallOptions::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(number(&cache(&state), "length"), length);
    }
    // Another type or geometry is refused when the state is made.
    let half = Value::Tensor(Tensor::from_vec(&[1, 2, 4, 64], vec![half::f16::ZERO; 512]).unwrap());
    let other = Value::Tensor(Tensor::from_vec(&[1, 4, 2, 64], vec![0.0f32; 512]).unwrap());
    for wrong in [half, other] {
        let given = cache_of(vec![block(ok(), wrong, 0, 4)], 4);
        let error = session.make_state([("cache", given)]).unwrap_err().to_string();
        assert!(error.contains("values"), "{error}");
    }
}
