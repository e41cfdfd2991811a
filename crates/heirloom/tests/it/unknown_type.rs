//! U33: a type that the product does not know.

use std::path::Path;
use std::sync::Arc;

use heirloom::formats::Body;
use heirloom::graph::{self, ModelBuilder, OpenOptions};
use heirloom::mem::{Bytes, DType, Tensor};
use heirloom::runtime::{NodeFaultKind, SessionError};
use heirloom::types::{
    Binding, BindingError, Codec, CodecError, CodecRegistry, RegistryError, StructBuilder, StructLayout,
    StructType, TensorType, ValueType,
};
use heirloom::{CallOptions, Decode, Model, Session, SessionOptions};

use crate::values::{elements, registry};

fn mystery(zero: i8) -> StructBuilder {
    StructType::structure("mystery")
        .type_id(990_001)
        .array("codes", DType::Int8, 4)
        .field("scale", DType::Float)
        .constant("zero_point", Tensor::scalar(zero))
}

fn with_decoder(ty: StructBuilder) -> Arc<StructType> {
    let mut body = Body::new();
    let codes = body.float_field(&["codes"]);
    let zero = body.float_field(&["zero_point"]);
    let zero = body.column(&zero);
    let centred = body.sub(&codes, &zero);
    let scale = body.field(&["scale"]);
    let scale = body.column(&scale);
    let values = body.mul(&centred, &scale);
    ty.decoder(body.finish("mystery", &values)).build().unwrap()
}

/// `y = x + w`, `w` of the type in two records.
fn model(ty: &Arc<StructType>, explicit: bool) -> Arc<Model> {
    let mut model = ModelBuilder::new("unknown");
    model.opset("", 24).unwrap();
    model.opset("ai.heirloom", 1).unwrap();
    let g = model.graph();
    let float8 = ValueType::tensor(DType::Float, &[2, 4]);
    let x = g.input("x", &float8).unwrap();
    let logical = TensorType { dtype: DType::Float, shape: [2, 4].into_iter().collect() };
    let records =
        [&[1u8, 2, 3, 0xFF][..], &0.5f32.to_le_bytes(), &[10, 20, 30, 40], &2f32.to_le_bytes()].concat();
    let w = g.encoded("w", ty, Some(&logical), Bytes::from_vec(records)).unwrap();
    let w = if explicit {
        g.node("Decode").domain("ai.heirloom").name("decode").input(&w).fresh("decoded").unwrap()
    } else {
        w
    };
    let y = g.node("Add").name("add").input(&x).input(&w).output("y").unwrap();
    g.output(&y, &float8).unwrap();
    let bytes = model.finish().unwrap().to_bytes();
    Arc::new(Model::from_bytes(bytes, None::<&Path>, &OpenOptions::default()).unwrap())
}

/// Zero point 1: `(code - 1) * scale`.
const DECODED: [f32; 8] = [0.0, 0.5, 1.0, -1.0, 18.0, 38.0, 58.0, 78.0];

fn assert_runs(session: &Session) {
    assert_eq!(session.report().counts.decoder_runs, 0, "a decoder ran before anything was asked for");
    let zeros = || [("x", Tensor::from_vec(&[2, 4], vec![0f32; 8]).unwrap())];
    for _ in 0..3 {
        let out = session.run(zeros(), &CallOptions::default()).unwrap();
        assert_eq!(elements::<f32>(out["y"].as_tensor().unwrap()), DECODED);
        assert_eq!(session.report().counts.decoder_runs, 1, "once for the session");
    }
}

// proves: W5, D3
#[test]
fn u33_a_with_a_decoder_in_the_file_it_loads_without_running_it_and_decodes_on_request() {
    let ty = with_decoder(mystery(1));
    let implicit = model(&ty, false);
    // Opening, verifying and looking cannot run anything; making a session does not.
    assert_eq!(implicit.verify(), []);
    graph::inspect(&implicit).to_string();
    let on_demand = SessionOptions { decode: Decode::OnDemand, ..SessionOptions::default() };
    assert_runs(&Session::new(implicit.clone(), &registry(), on_demand).unwrap());
    // A node that says so is a request too.
    assert_runs(&Session::new(model(&ty, true), &registry(), SessionOptions::default()).unwrap());
    // Nobody asked: refused, and not decoded.
    let error = Session::new(implicit, &registry(), SessionOptions::default()).unwrap_err();
    assert!(error.to_string().contains("MissingConsumer"), "{error}");
}

// proves: E6
#[test]
fn u33_b_without_a_decoder_it_loads_and_its_first_use_names_type_and_value() {
    let ty = mystery(1).build().unwrap();
    let implicit = model(&ty, false);
    assert_eq!(implicit.verify(), []);
    let report = graph::inspect(&implicit).to_string();
    assert!(report.contains("mystery") && report.contains("990001"), "{report}");
    let named = |error: SessionError| {
        let text = error.to_string();
        assert!(["990001", "`mystery`", "`w`"].iter().all(|part| text.contains(part)), "{text}");
        let SessionError::Nodes(mut faults) = error else { panic!("{text}") };
        faults.remove(0).kind
    };
    let kind = named(Session::new(implicit.clone(), &registry(), SessionOptions::default()).unwrap_err());
    assert!(matches!(kind, NodeFaultKind::MissingConsumer { .. }));
    let on_demand = SessionOptions { decode: Decode::OnDemand, ..SessionOptions::default() };
    let kind = named(Session::new(implicit, &registry(), on_demand).unwrap_err());
    assert!(matches!(kind, NodeFaultKind::Decode(_)));
    let kind = named(Session::new(model(&ty, true), &registry(), SessionOptions::default()).unwrap_err());
    assert!(matches!(kind, NodeFaultKind::Decode(_)));
}

#[derive(Debug)]
struct Never;

impl Codec for Never {
    fn elements(&self) -> usize {
        4
    }

    fn record_bytes(&self) -> usize {
        8
    }

    fn decode(&self, _: &[u8], _: &mut [f32]) -> Result<(), CodecError> {
        panic!("a codec of another declaration was run")
    }
}

// proves: D2
#[test]
fn u33_c_a_consumer_that_expects_another_constant_refuses_the_type() {
    let mut codecs = CodecRegistry::new();
    codecs.register(&mystery(0).build().unwrap(), Arc::new(Never)).unwrap();
    let layout = StructLayout::new(mystery(1).build().unwrap()).unwrap();
    let error = codecs.find(&layout).unwrap_err();
    let RegistryError::Declaration { difference, .. } = &error else { panic!("{error}") };
    assert!(difference.to_string().contains("zero_point"), "{error}");
    // The same for views of native types, which know the constant too.
    assert!(matches!(
        Binding::<native::Mystery>::new().unwrap().view(&value_with(1)),
        Err(BindingError::Declaration { id: 990_001, difference }) if difference.path.contains("zero_point")
    ));
    assert_eq!(Binding::<native::Mystery>::new().unwrap().view(&value_with(0)).unwrap().len(), 1);
}

fn value_with(zero: i8) -> heirloom::types::EncodedValue {
    let ty = mystery(zero).build().unwrap();
    let records = [&[1u8, 2, 3, 4][..], &1f32.to_le_bytes()].concat();
    std::sync::Arc::unwrap_or_clone(crate::values::encoded("w", &ty, records, &[4]))
}

mod native {
    use heirloom::mem::Tensor;
    use heirloom::types::NativeRecord;
    use zerocopy::{FromBytes, Immutable, KnownLayout};

    #[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, NativeRecord)]
    #[record(type_id = 990_001, name = "mystery", crate = heirloom::types)]
    #[record(const zero_point = Tensor::scalar(0i8))]
    #[repr(C)]
    pub(super) struct Mystery {
        codes: [i8; 4],
        scale: f32,
    }
}
