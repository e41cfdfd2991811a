//! Decoders that come with a file: when they run, what they may give, and what stops them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heirloom::formats::{Attr, Body, Val};
use heirloom::graph::FunctionBuilder;
use heirloom::mem::{Bytes, DType, Ledger, Tensor};
use heirloom::proto::FunctionProto;
use heirloom::runtime::{
    CancelToken, DecodeError, DecodeOptions, DecodeSource, DecodedBy, DecoderLimits, KernelError, decode,
};
use heirloom::types::{EncodedValue, Layout, StructLayout, StructType, TensorType};

use crate::values::{elements, encoded, registry};

/// A type of `id` whose records are 8 signed bytes, with this decoder.
fn bytes8(id: u64, decoder: FunctionProto) -> Arc<StructType> {
    StructType::structure("bytes8")
        .type_id(id)
        .array("codes", DType::Int8, 8)
        .decoder(decoder)
        .build()
        .unwrap()
}

fn body(write: impl FnOnce(&mut Body) -> Val) -> FunctionProto {
    let mut body = Body::new();
    let result = write(&mut body);
    body.finish("test", &result)
}

fn run(value: &Arc<EncodedValue>, limits: DecoderLimits) -> Result<Tensor, DecodeError> {
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    decode(value, &registry(), &options, &Ledger::default()).map(|(tensor, _)| tensor)
}

/// Two records of [`bytes8`].
fn two(decoder: FunctionProto, shape: &[usize]) -> Arc<EncodedValue> {
    encoded("w", &bytes8(990_001, decoder), (0..16).collect(), shape)
}

// proves: D3, E5
#[test]
fn a_decoder_runs_as_an_ordinary_graph_and_its_result_gets_the_logical_shape() {
    let halves = body(|b| {
        let codes = b.float_field(&["codes"]);
        let half = b.float(0.5);
        b.mul(&codes, &half)
    });
    let ledger = Ledger::default();
    let value = two(halves, &[4, 4]);
    let (tensor, by) = decode(&value, &registry(), &DecodeOptions::default(), &ledger).unwrap();
    assert_eq!((by, ledger.counts().decoder_runs), (DecodedBy::File, 1));
    assert_eq!(tensor.shape(), [4, 4]);
    assert_eq!(elements::<f32>(&tensor), (0..16).map(|i| i as f32 / 2.0).collect::<Vec<_>>());
}

// proves: E5
#[test]
fn a_decoder_that_gives_another_type_shape_or_count_is_an_error() {
    let as_is = || body(|b| b.float_field(&["codes"]));
    let limits = DecoderLimits::default();
    let error = run(&two(body(|b| b.field(&["codes"])), &[16]), limits).unwrap_err();
    let DecodeError::DType { expected, actual, .. } = &error else { panic!("{error}") };
    assert_eq!((*expected, *actual), (DType::Float, DType::Int8));
    for logical in [&[15][..], &[17], &[0], &[2, 8, 2]] {
        let error = run(&two(as_is(), logical), limits).unwrap_err();
        let DecodeError::Shape { records, actual, .. } = &error else { panic!("{error}") };
        assert_eq!((*records, &actual[..]), (2, &[2usize, 8][..]));
        assert!(error.to_string().contains("`bytes8` (type id 990001)"), "{error}");
    }
    // As many elements in another shape than [records, elements of a record].
    for shape in [&[16][..], &[4, 4], &[2, 4, 2]] {
        let shape: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
        let reshaped = body(|b| {
            let codes = b.float_field(&["codes"]);
            b.reshape(&codes, &shape)
        });
        let error = run(&two(reshaped, &[16]), limits).unwrap_err();
        assert!(matches!(error, DecodeError::Shape { .. }), "{error}");
    }
}

#[test]
fn a_decoder_of_the_wrong_signature_or_with_unknown_operators_is_refused_before_it_runs() {
    let mut two_inputs = body(|b| b.float_field(&["codes"]));
    two_inputs.input_mut().push("more");
    let mut no_output = body(|b| b.float_field(&["codes"]));
    no_output.output_mut().clear();
    for (decoder, counts) in [(two_inputs, (2, 1)), (no_output, (1, 0))] {
        let error = run(&two(decoder, &[16]), DecoderLimits::default()).unwrap_err();
        let DecodeError::Signature { inputs, outputs, .. } = &error else { panic!("{error}") };
        assert_eq!((*inputs, *outputs), counts);
    }
    let unknown = body(|b| {
        let codes = b.float_field(&["codes"]);
        b.op("Frobnicate", &[&codes], &[])
    });
    let error = run(&two(unknown, &[16]), DecoderLimits::default()).unwrap_err();
    assert!(matches!(error, DecodeError::Bind { .. }), "{error}");
    assert!(error.to_string().contains("Frobnicate"), "{error}");
    let no_field = body(|b| b.float_field(&["kodes"]));
    let error = run(&two(no_field, &[16]), DecoderLimits::default()).unwrap_err();
    assert!(error.to_string().contains("kodes"), "{error}");
}

/// A decoder that negates the codes `trips` times before it gives them.
fn looping(trips: i64) -> FunctionProto {
    loop_that(trips, false)
}

/// The same; where it `hoards`, it keeps the codes of each turn.
fn loop_that(trips: i64, hoards: bool) -> FunctionProto {
    let mut function = FunctionBuilder::new("ai.heirloom", "decode_slowly");
    function.opset("", 24).unwrap();
    function.opset("ai.heirloom", 1).unwrap();
    let records = function.input("records").unwrap();
    let codes = function.node("Field").domain("ai.heirloom").input(&records).attr("path", ["codes"]).auto();
    let codes = function.node("Cast").input(codes.unwrap()).attr("to", 1).auto().unwrap();
    let count = function.constant("trips", Tensor::scalar(trips)).unwrap();
    let mut inner = function.body("again");
    let scalar = heirloom::types::ValueType::tensor(DType::Int64, &[]);
    inner.input("at", &scalar).unwrap();
    let go = inner.input("go", &heirloom::types::ValueType::tensor(DType::Bool, &[])).unwrap();
    let so_far = inner.untyped_input("so_far").unwrap();
    let next = inner.node("Neg").input(&so_far).fresh("next").unwrap();
    inner.untyped_output(&go).unwrap();
    inner.untyped_output(&next).unwrap();
    if hoards {
        let kept = inner.node("Neg").input(&next).fresh("kept").unwrap();
        inner.untyped_output(&kept).unwrap();
    }
    let result = function
        .node("Loop")
        .input(&count)
        .skip()
        .input(&codes)
        .attr("body", inner.finish())
        .fresh("result")
        .unwrap();
    function.output(&result).unwrap();
    function.finish().unwrap()
}

// proves: D3
#[test]
fn a_decoder_that_loops_is_stopped_after_so_many_steps_or_so_much_time() {
    let once = run(&two(looping(2), &[16]), DecoderLimits::default()).unwrap();
    assert_eq!(elements::<f32>(&once), (0..16).map(|i| i as f32).collect::<Vec<_>>());
    let value = two(looping(i64::MAX), &[16]);
    let steps = DecoderLimits { steps: 10_000, ..DecoderLimits::default() };
    let error = run(&value, steps).unwrap_err();
    let DecodeError::Node { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(**source, KernelError::TooLarge { limit: 10_000, .. }), "{error}");

    let start = Instant::now();
    let time = Duration::from_millis(50);
    let error = run(&value, DecoderLimits { steps: u64::MAX, time, ..DecoderLimits::default() }).unwrap_err();
    assert!(matches!(error, DecodeError::Time { limit, .. } if limit == time), "{error}");
    assert!((time..Duration::from_secs(5)).contains(&start.elapsed()));
}

// proves: D3
#[test]
fn a_decoder_that_wants_absurd_memory_is_refused_before_it_is_allocated() {
    let limits = DecoderLimits { bytes: 1 << 20, ..DecoderLimits::default() };
    for extent in [1i64 << 20, 1 << 44, i64::MAX] {
        let hungry = body(|b| {
            let one = b.float_field(&["codes"]);
            let zero = b.ints(&[0]);
            let first = b.op("Slice", &[&one, &zero, &zero], &[]);
            let shape = b.ints(&[extent]);
            let huge = b.op("ConstantOfShape", &[&shape], &[]);
            b.op("Concat", &[&first, &huge], &[("axis", Attr::Int(0))])
        });
        let error = run(&two(hungry, &[16]), limits).unwrap_err();
        let DecodeError::Node { op, .. } = &error else { panic!("{error}") };
        assert_eq!(op, "ConstantOfShape", "{error}");
    }
    // Many small ones count together.
    let limits = DecoderLimits { bytes: 64 << 10, ..DecoderLimits::default() };
    run(&two(loop_that(10_000, false), &[16]), limits).unwrap();
    run(&two(loop_that(10, true), &[16]), limits).unwrap();
    let error = run(&two(loop_that(10_000, true), &[16]), limits).unwrap_err();
    let DecodeError::Node { source, .. } = &error else { panic!("{error}") };
    assert!(matches!(**source, KernelError::TooLarge { limit: 65_536, .. }), "{error}");
}

#[test]
fn a_decoder_stops_when_its_caller_cancels() {
    let options = DecodeOptions {
        cancel: CancelToken::new(),
        limits: DecoderLimits { steps: u64::MAX, ..DecoderLimits::default() },
        ..DecodeOptions::default()
    };
    let value = two(looping(i64::MAX), &[16]);
    let token = options.cancel.clone();
    let stopped = std::thread::scope(|scope| {
        let call = scope.spawn(|| decode(&value, &registry(), &options, &Ledger::default()));
        std::thread::sleep(Duration::from_millis(20));
        token.cancel();
        call.join().unwrap()
    });
    assert!(matches!(stopped, Err(DecodeError::Cancelled { .. })));
}

// proves: D1
#[test]
fn only_the_decoder_of_the_root_is_invoked() {
    // The decoder of 1101 would never end; 1102 holds it by reference.
    let inner = StructType::structure("CODEBOOK2_BLOCK_32")
        .type_id(1101)
        .bits("codes", &[("index", 2)], 32)
        .constant("codebook", Tensor::from_vec(&[4], vec![-1.0f32, -0.25, 0.25, 1.0]).unwrap())
        .decoder(looping(i64::MAX))
        .build()
        .unwrap();
    let decoder = body(|b| {
        let codes = b.field(&["quantized", "codes", "index"]);
        let numbers = b.lookup(&["quantized", "codebook"], &codes);
        let scale = b.field(&["scale"]);
        let scale = b.column(&scale);
        b.mul(&scale, &numbers)
    });
    let outer = |decoder: Option<FunctionProto>| {
        let ty = StructType::structure("SCALED")
            .type_id(1102)
            .nested("quantized", &inner)
            .field("scale", DType::Float);
        decoder.into_iter().fold(ty, |ty, decoder| ty.decoder(decoder)).build().unwrap()
    };
    let record = [&[0xE4; 8][..], &[0x00, 0x00, 0x00, 0x40]].concat();
    let ledger = Ledger::default();
    let value = encoded("w", &outer(Some(decoder)), record.clone(), &[32]);
    let (tensor, _) = decode(&value, &registry(), &DecodeOptions::default(), &ledger).unwrap();
    assert_eq!(elements::<f32>(&tensor), [-2.0, -0.5, 0.5, 2.0].repeat(8));
    assert_eq!(ledger.counts().decoder_runs, 1);
    // Without one of its own the root has none.
    let value = encoded("w", &outer(None), record, &[32]);
    let error = run(&value, DecoderLimits::default()).unwrap_err();
    assert!(matches!(error, DecodeError::Undecodable { .. }), "{error}");
}

#[test]
fn a_decoder_cannot_call_for_its_own_input_to_be_decoded() {
    let circular = body(|b| {
        let codes = b.float_field(&["codes"]);
        b.mul(&codes, &codes)
    });
    let mut circular = circular;
    let node = &mut circular.node_mut()[0];
    node.set_op_type("Decode");
    node.attribute_mut().clear();
    let error = run(&two(circular, &[16]), DecoderLimits::default()).unwrap_err();
    assert!(matches!(error, DecodeError::Bind { .. }), "{error}");
}

// proves: E5
#[test]
fn a_value_without_tensor_meaning_is_not_decoded() {
    let ty = bytes8(990_001, body(|b| b.float_field(&["codes"])));
    let value = Arc::new(EncodedValue {
        name: "opaque".into(),
        layout: Layout::Struct(Arc::new(StructLayout::new(ty).unwrap())),
        logical: None,
        payload: Bytes::from_vec(vec![0u8; 8]),
    });
    let error = run(&value, DecoderLimits::default()).unwrap_err();
    assert!(matches!(error, DecodeError::NoLogicalType { .. }), "{error}");
}

#[test]
fn registered_codecs_alone_can_be_asked_for() {
    let value = two(body(|b| b.float_field(&["codes"])), &[16]);
    let options = DecodeOptions { source: DecodeSource::Codec, ..DecodeOptions::default() };
    let ledger = Ledger::default();
    let error = decode(&value, &registry(), &options, &ledger).unwrap_err();
    assert!(matches!(error, DecodeError::NoCodec { .. }), "{error}");
    assert_eq!(ledger.counts().decoder_runs, 0);
    let logical = TensorType { dtype: DType::Float, shape: [16].into_iter().collect() };
    assert_eq!(value.logical.as_ref(), Some(&logical));
}
