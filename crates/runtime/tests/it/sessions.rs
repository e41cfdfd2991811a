//! Binding a model and calling it without state.

use std::sync::Arc;

use heirloom_graph::ModelBuilder;
use heirloom_mem::{Bytes, DType, Tensor};
use heirloom_runtime::{
    CallOptions, Decode, Feeds, Mismatch, NodeFaultKind, Profile, RunError, Session, SessionError,
    SessionOptions,
};
use heirloom_types::{Affine, StructType, TensorType, Value, ValueType};

use crate::models::{accumulator, dims, elements, float_type, floats, ints, model, registry, session};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

// proves: B3
#[test]
fn a_stateless_call_computes_all_outputs_from_its_feeds() {
    let session = session(accumulator());
    let out = session
        .run([("x", floats(&[2], &[1.0, 2.0])), ("s", floats(&[2], &[10.0, 20.0]))], &options())
        .unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [11.0, 22.0]);
    assert_eq!(elements::<f32>(&out["s_next"]), [11.0, 22.0]);
    assert_eq!(out.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["y", "s_next"]);
}

#[test]
fn a_call_gives_only_the_outputs_that_are_wanted() {
    let session = session(accumulator());
    let wanted = CallOptions { outputs: Some(&["y"]), ..options() };
    let out =
        session.run([("x", floats(&[2], &[1.0, 2.0])), ("s", floats(&[2], &[0.0, 0.0]))], &wanted).unwrap();
    assert_eq!(out.len(), 1);
    assert!(out.get("s_next").is_none());
    let wrong = CallOptions { outputs: Some(&["state"]), ..options() };
    let error = session.run([("x", floats(&[2], &[1.0, 2.0]))], &wrong).unwrap_err();
    let RunError::UnknownOutput { name, known } = error else { panic!("{error}") };
    assert_eq!((name, known), ("state".into(), vec!["y".into(), "s_next".into()]));
}

// proves: R2
#[test]
fn missing_and_unknown_feeds_are_all_named() {
    let session = session(accumulator());
    let error = session.run(Feeds::new(), &options()).unwrap_err();
    let RunError::MissingFeeds { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(missing, &["x", "s"]);
    let error = session
        .run([("X", floats(&[2], &[1.0, 2.0])), ("t", floats(&[2], &[1.0, 2.0]))], &options())
        .unwrap_err();
    let RunError::UnknownFeeds { unknown, known } = &error else { panic!("{error}") };
    assert_eq!(
        (&unknown[..], &known[..]),
        (&["X".to_string(), "t".into()][..], &["x".to_string(), "s".into()][..])
    );
    assert_eq!(error.to_string(), "the model has no input `X`, `t`; its inputs are `x`, `s`");
    let x = || floats(&[2], &[1.0, 2.0]);
    let error = session.run([("x", x()), ("s", x()), ("x", x())], &options()).unwrap_err();
    assert!(matches!(&error, RunError::FedTwice { name } if name == "x"), "{error}");
}

#[test]
fn a_feed_of_another_type_or_shape_is_refused_before_anything_runs() {
    let session = session(accumulator());
    let s = floats(&[2], &[0.0, 0.0]);
    let error = session.run([("x", ints(&[2], &[1, 2])), ("s", s.clone())], &options()).unwrap_err();
    let RunError::Input { name, mismatch } = &error else { panic!("{error}") };
    assert_eq!(name, "x");
    assert_eq!(**mismatch, Mismatch::DType { expected: DType::Float, actual: DType::Int64 });
    let error = session.run([("x", floats(&[3], &[1.0, 2.0, 3.0])), ("s", s)], &options()).unwrap_err();
    assert_eq!(error.to_string(), "input `x`: expected shape [2], got [3]");
}

#[test]
fn one_symbol_has_one_extent_in_a_call() {
    let model = model(|g| {
        let ty = float_type(dims(["batch", "n"]));
        let a = g.input("a", &ty).unwrap();
        let b = g.input("b", &ty).unwrap();
        let c = g.node("Add").input(&a).input(&b).output("c").unwrap();
        g.output(&c, &ty).unwrap();
    });
    let session = session(model);
    let out = session
        .run([("a", floats(&[1, 2], &[1.0, 2.0])), ("b", floats(&[1, 2], &[3.0, 4.0]))], &options())
        .unwrap();
    assert_eq!(elements::<f32>(&out["c"]), [4.0, 6.0]);
    let error = session
        .run([("a", floats(&[1, 2], &[1.0, 2.0])), ("b", floats(&[1, 1], &[3.0]))], &options())
        .unwrap_err();
    let RunError::Input { name, mismatch } = &error else { panic!("{error}") };
    assert_eq!(name, "b");
    let Mismatch::Symbol { axis, symbol, expected, actual, other, .. } = &**mismatch else {
        panic!("{mismatch}")
    };
    assert_eq!((*axis, &**symbol, *expected, *actual, &**other), (1, "n", 2, 1, "a"));
}

/// `y = x * w + b`, where `w` and `b` are initializers and `w` is an input too.
fn with_default() -> Arc<heirloom_graph::Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[2]);
        let x = g.input("x", &ty).unwrap();
        let w = g.input("w", &ty).unwrap();
        g.initializer("w", &floats(&[2], &[2.0, 3.0])).unwrap();
        let b = g.initializer("b", &floats(&[2], &[0.5, 0.5])).unwrap();
        let product = g.node("Mul").input(&x).input(&w).auto().unwrap();
        let y = g.node("Add").input(&product).input(&b).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    })
}

// proves: C5
#[test]
fn a_feed_overrides_an_initializer_that_is_an_input_too() {
    let session = session(with_default());
    let x = || ("x", floats(&[2], &[1.0, 1.0]));
    let default = session.run([x()], &options()).unwrap();
    assert_eq!(elements::<f32>(&default["y"]), [2.5, 3.5]);
    for _ in 0..2 {
        let out = session.run([x(), ("w", floats(&[2], &[10.0, 20.0]))], &options()).unwrap();
        assert_eq!(elements::<f32>(&out["y"]), [10.5, 20.5]);
    }
    let again = session.run([x()], &options()).unwrap();
    assert_eq!(elements::<f32>(&again["y"]), [2.5, 3.5]);
    let error = session.run([x(), ("w", floats(&[1], &[1.0]))], &options()).unwrap_err();
    assert!(matches!(&error, RunError::Input { name, .. } if name == "w"), "{error}");
    let error = session.run([x(), ("b", floats(&[2], &[1.0, 1.0]))], &options()).unwrap_err();
    assert!(matches!(&error, RunError::UnknownFeeds { .. }), "{error}");
    let ports: Vec<_> = session.inputs().map(|port| (port.name, port.has_default)).collect();
    assert_eq!(ports, [("x".to_string(), false), ("w".into(), true)]);
}

#[test]
fn all_nodes_without_a_kernel_are_in_one_error() {
    let mut builder = ModelBuilder::new("test");
    builder.opset("", 24).unwrap();
    builder.opset("vendor", 3).unwrap();
    builder.opset("unused", 7).unwrap();
    let g = builder.graph();
    let ty = ValueType::tensor(DType::Float, &[2]);
    let x = g.input("x", &ty).unwrap();
    let a = g.node("Twist").domain("vendor").name("first").input(&x).auto().unwrap();
    let b = g.node("Add").name("fine").input(&a).input(&x).auto().unwrap();
    let c = g.node("Swirl").domain("vendor").name("second").input(&b).output("c").unwrap();
    let d = g.node("Swish").name("beta").input(&c).attr("beta", 2.0f32).output("d").unwrap();
    g.output(&d, &ty).unwrap();
    let model = Arc::new(builder.build(None).unwrap());
    let error = Session::new(model, &registry(), SessionOptions::default()).unwrap_err();
    let SessionError::Nodes(faults) = &error else { panic!("{error}") };
    let named: Vec<_> = faults.iter().map(|f| (&*f.node, &*f.domain, &*f.op, f.opset)).collect();
    assert_eq!(
        named,
        [("first", "vendor", "Twist", 3), ("second", "vendor", "Swirl", 3), ("beta", "", "Swish", 24)]
    );
    assert!(matches!(faults[0].kind, NodeFaultKind::UnknownOperator));
    assert!(matches!(faults[2].kind, NodeFaultKind::Build(_)));
    let text = error.to_string();
    assert!(text.contains("node `second` (vendor.Swirl, version 3)") && text.contains("`beta`"), "{text}");
}

/// A FLOAT[4] constant in records of a type that nothing here knows, added to `x`.
fn unknown_layout() -> Arc<heirloom_graph::Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[4]);
        let record = StructType::structure("mystery").field("code", DType::Uint8).type_id(990_001);
        let record = record.build().unwrap();
        let x = g.input("x", &ty).unwrap();
        let logical = TensorType { dtype: DType::Float, shape: smallvec::smallvec![4] };
        let w = g.encoded("w", &record, Some(&logical), Bytes::from_vec(vec![1u8, 2, 3, 4])).unwrap();
        let y = g.node("Add").name("sum").input(&x).input(&w).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    })
}

// proves: E6
#[test]
fn an_encoded_constant_without_a_consumer_is_named_with_its_type() {
    let error = Session::new(unknown_layout(), &registry(), SessionOptions::default()).unwrap_err();
    let SessionError::Nodes(faults) = &error else { panic!("{error}") };
    let NodeFaultKind::MissingConsumer { index, value, layout, type_id, op } = &faults[0].kind else {
        panic!("{error}")
    };
    assert_eq!((*index, &**value, &**op, *type_id), (1, "w", "Add", Some(990_001)));
    assert_eq!(layout, "`mystery` (type id 990001)");
    let text = error.to_string();
    assert!(text.contains("`w`") && text.contains("990001") && text.contains("`mystery`"), "{text}");
    // Neither a codec nor a decoder in the file: the option does not help.
    let on_demand = SessionOptions { decode: Decode::OnDemand, ..SessionOptions::default() };
    assert!(Session::new(unknown_layout(), &registry(), on_demand).is_err());
}

#[test]
fn an_affine_constant_is_decoded_on_demand_where_no_kernel_takes_it() {
    let model = model(|g| {
        let ty = ValueType::tensor(DType::Float, &[4]);
        let x = g.input("x", &ty).unwrap();
        let affine = Affine {
            storage: DType::Int4,
            scale: Tensor::scalar(0.5f32),
            zero_point: None,
            axis: None,
            block_size: None,
        };
        let logical = TensorType { dtype: DType::Float, shape: smallvec::smallvec![4] };
        let w = g.affine("w", &affine, &logical, Bytes::from_vec(vec![0x21u8, 0xf8])).unwrap();
        let y = g.node("Add").input(&x).input(&w).output("y").unwrap();
        g.output(&y, &ty).unwrap();
    });
    assert!(Session::new(model.clone(), &registry(), SessionOptions::default()).is_err());
    let on_demand = SessionOptions { decode: Decode::OnDemand, ..SessionOptions::default() };
    let session = Session::new(model, &registry(), on_demand).unwrap();
    for _ in 0..2 {
        let out = session.run([("x", floats(&[4], &[0.0; 4]))], &options()).unwrap();
        assert_eq!(elements::<f32>(&out["y"]), [0.5, 1.0, -4.0, -0.5]);
    }
}

#[test]
fn an_output_may_be_an_input_or_an_initializer() {
    let model = model(|g| {
        let ty = ValueType::tensor(DType::Float, &[1]);
        let x = g.input("x", &ty).unwrap();
        let c = g.initializer("c", &floats(&[1], &[7.0])).unwrap();
        let same = g.node("Identity").input(&x).output("same").unwrap();
        let constant = g.node("Identity").input(&c).output("constant").unwrap();
        g.output(&same, &ty).unwrap();
        g.output(&constant, &ty).unwrap();
        g.output(&x, &ty).unwrap();
    });
    let session = session(model);
    let x = floats(&[1], &[3.0]);
    let out = session.run([("x", x.clone())], &options()).unwrap();
    assert_eq!(out["same"].as_tensor().unwrap().address(), x.address());
    assert_eq!(out["x"].as_tensor().unwrap().address(), x.address());
    assert_eq!(elements::<f32>(&out["constant"]), [7.0]);
}

/// Kilobytes of the mappings of `file` that are in memory, by the system's account.
#[cfg(target_os = "linux")]
fn resident(file: &std::path::Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut ours = false;
    let mut sum = 0;
    for line in maps.lines() {
        let first = line.split_whitespace().next().unwrap_or("");
        if first.contains('-') && !first.ends_with(':') {
            ours = line.ends_with(name);
        } else if ours && first == "Rss:" {
            sum += line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
        }
    }
    sum
}

// proves: W5, R5
#[cfg(target_os = "linux")]
#[test]
fn binding_and_making_a_state_read_no_payload() {
    let folder = std::env::temp_dir().join(format!("heirloom-bind-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (rows, file) = (64 << 20, folder.join("weights.bin"));
    std::fs::File::create(&file).unwrap().set_len(rows as u64 * 4).unwrap();
    let mut builder = ModelBuilder::new("test");
    builder.opset("", 24).unwrap();
    let g = builder.graph();
    let place = heirloom_proto::ExternalLocation::new("weights.bin", 0, rows as u64 * 4).unwrap();
    let ty = TensorType { dtype: DType::Float, shape: smallvec::smallvec![rows] };
    let table = g.external_initializer("table", &ty, &place).unwrap();
    let id = g.input("id", &ValueType::tensor(DType::Int64, &[1])).unwrap();
    let s = g.input("s", &ValueType::tensor(DType::Float, &[1])).unwrap();
    let row = g.node("Gather").input(&table).input(&id).auto().unwrap();
    let next = g.node("Add").input(&row).input(&s).output("next").unwrap();
    g.output(&next, &ValueType::tensor(DType::Float, &[1])).unwrap();
    g.bind(&s, &next).unwrap();
    let model = Arc::new(builder.build(Some(&folder)).unwrap());
    let session = session(model);
    let state = session.make_state([("s", floats(&[1], &[5.0]))]).unwrap();
    assert_eq!(resident(&file), 0);
    let out = state.run([("id", ints(&[1], &[7]))], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["next"]), [5.0]);
    // What was read is a neighbourhood of one element.
    assert!((1..=4096).contains(&resident(&file)), "{} kB", resident(&file));
    assert_eq!(state.report().counts.state_copied_bytes, 0);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_failed_node_is_named() {
    let model = model(|g| {
        let ids = ValueType::symbolic(DType::Int64, dims(["n"]));
        let id = g.input("id", &ids).unwrap();
        let table = g.initializer("table", &floats(&[3], &[1.0, 2.0, 3.0])).unwrap();
        let y = g.node("Gather").name("look up").input(&table).input(&id).output("y").unwrap();
        g.output(&y, &float_type(dims(["n"]))).unwrap();
    });
    let session = session(model);
    let error = session.run([("id", ints(&[1], &[3]))], &options()).unwrap_err();
    assert_eq!(error.to_string(), "node `look up` (Gather): an index: 3 lies outside -3..=2");
    let out = session.run([("id", ints(&[2], &[-1, 0]))], &options()).unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [3.0, 1.0]);
}

#[test]
fn a_profile_counts_each_node() {
    let session = session(accumulator());
    let profile = Profile::new();
    let options = CallOptions { profile: Some(&profile), ..options() };
    for _ in 0..3 {
        session.run([("x", floats(&[2], &[1.0, 2.0])), ("s", floats(&[2], &[0.0, 0.0]))], &options).unwrap();
    }
    let nodes = profile.nodes();
    let mut names: Vec<_> = nodes.iter().map(|n| (&*n.name, &*n.op, n.runs)).collect();
    names.sort_unstable();
    assert_eq!(names, [("s_next", "Add", 3), ("y", "Add", 3)]);
}

#[test]
fn a_cancelled_call_says_so() {
    let session = session(accumulator());
    let token = heirloom_runtime::CancelToken::new();
    token.cancel();
    let feeds = [("x", floats(&[2], &[1.0, 2.0])), ("s", floats(&[2], &[0.0, 0.0]))];
    let error = session.run(feeds, &CallOptions { cancel: Some(&token), ..options() }).unwrap_err();
    assert!(matches!(error, RunError::Cancelled { .. }), "{error}");
}

#[test]
fn sequences_and_optionals_are_checked_deeply() {
    let model = model(|g| {
        let element = float_type(dims(["2"]));
        let ty = ValueType::sequence(element.clone());
        let list = g.input("list", &ty).unwrap();
        let same = g.node("Identity").input(&list).output("same").unwrap();
        g.output(&same, &ty).unwrap();
    });
    let session = session(model);
    let list = |values: Vec<Tensor>| Value::Sequence(Arc::new(values.into_iter().map(Value::from).collect()));
    let out = session.run([("list", list(vec![floats(&[2], &[1.0, 2.0])]))], &options()).unwrap();
    assert_eq!(out["same"].kind(), "sequence");
    let wrong = list(vec![floats(&[2], &[1.0, 2.0]), floats(&[3], &[0.0; 3])]);
    let error = session.run([("list", wrong)], &options()).unwrap_err();
    assert_eq!(error.to_string(), "input `list`: at `1`: expected shape [2], got [3]");
    let error = session.run([("list", floats(&[2], &[1.0, 2.0]))], &options()).unwrap_err();
    assert_eq!(error.to_string(), "input `list`: expected a sequence, got a tensor");
}
