//! Tensors that are lent for one call.

use heirloom_graph::Model;
use heirloom_mem::{Bytes, DType, LentTensor, RegionKind, Tensor, lend};
use heirloom_runtime::{CallOptions, Feeds, Mismatch, RunError, StateError};
use heirloom_types::ValueType;
use std::sync::Arc;

use crate::models::{accumulator, elements, floats, model, session};

fn options() -> CallOptions<'static> {
    CallOptions::default()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

// proves: O3, Z1
#[test]
fn a_lent_tensor_serves_a_call_in_place_at_any_address() {
    let session = session(accumulator());
    let state = session.make_state([("s", floats(&[2], &[0.0, 0.0]))]).unwrap();
    for shift in 0..4 {
        let data = [&vec![0u8; shift][..], &bytes(&[1.0, 2.0])].concat();
        let x = LentTensor::new(DType::Float, &[2], &data[shift..]).unwrap();
        let out = state.run_lent(Feeds::new(), &[("x", x)], &options()).unwrap();
        let step = shift as f32 + 1.0;
        assert_eq!(elements::<f32>(&out["y"]), [step, 2.0 * step]);
        out["y"].for_each_payload(&mut |part| assert_eq!(part.kind, RegionKind::Heap));
    }
    assert_eq!(session.report().counts.state_copied_bytes, 0);
}

/// `same` is the input itself, `parts` holds it, and `y` is computed from it; `s` is retained from `same`.
fn passing(bound: bool) -> Arc<Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[2]);
        let x = g.input("x", &ty).unwrap();
        let s = g.input("s", &ty).unwrap();
        let shape = g.vector("shape", vec![1i64, 2]).unwrap();
        let same = g.node("Identity").input(&x).output("same").unwrap();
        let row = g.node("Reshape").input(&x).input(&shape).output("row").unwrap();
        let y = g.node("Add").input(&x).input(&s).output("y").unwrap();
        g.output(&same, &ty).unwrap();
        g.output(&row, &ValueType::tensor(DType::Float, &[1, 2])).unwrap();
        g.output(&y, &ty).unwrap();
        if bound {
            g.bind(&s, &same).unwrap();
        }
    })
}

// proves: O3
#[test]
fn a_lent_tensor_is_never_an_output_nor_a_view_in_one() {
    let session = session(passing(false));
    let data = bytes(&[1.0, 2.0]);
    let x = || LentTensor::new(DType::Float, &[2], &data).unwrap();
    let s = || [("s", floats(&[2], &[10.0, 10.0]))];
    for wanted in ["same", "row"] {
        let options = CallOptions { outputs: Some(&[wanted]), ..options() };
        let error = session.run_lent(s(), &[("x", x())], &options).unwrap_err();
        assert!(matches!(&error, RunError::Lent { output } if output == wanted), "{error}");
    }
    let options = CallOptions { outputs: Some(&["y"]), ..options() };
    let out = session.run_lent(s(), &[("x", x())], &options).unwrap();
    assert_eq!(elements::<f32>(&out["y"]), [11.0, 12.0]);
    // The same bytes with an owner may be all of that.
    let owned = Tensor::new(DType::Float, &[2], Bytes::from_vec(data.clone())).unwrap();
    session.run([("x", owned), ("s", floats(&[2], &[1.0, 1.0]))], &CallOptions::default()).unwrap();
}

// proves: O3, R3
#[test]
fn a_lent_tensor_is_never_retained_and_the_state_stays() {
    let session = session(passing(true));
    let state = session.make_state([("s", floats(&[2], &[10.0, 20.0]))]).unwrap();
    let data = bytes(&[1.0, 2.0]);
    let before = state.values().unwrap().get("s").unwrap().as_tensor().unwrap().address();
    let x = LentTensor::new(DType::Float, &[2], &data).unwrap();
    let wanted = CallOptions { outputs: Some(&["y"]), ..options() };
    let error = state.run_lent(Feeds::new(), &[("x", x)], &wanted).unwrap_err();
    assert!(matches!(&error, RunError::Lent { output } if output == "same"), "{error}");
    assert_eq!(state.values().unwrap().get("s").unwrap().as_tensor().unwrap().address(), before);
    // Nor does a state begin with one.
    let refused = lend(&[&data], |mut bytes| {
        let lent = Tensor::new(DType::Float, &[2], bytes.remove(0)).unwrap();
        let made = session.make_state([("s", lent.clone())]).map(|_| ()).unwrap_err();
        let reset = state.reset([("s", lent)]).unwrap_err();
        [made, reset]
    });
    for error in refused {
        let StateError::Value { name, mismatch } = &error else { panic!("{error}") };
        assert_eq!((&**name, &**mismatch), ("s", &Mismatch::Lent));
    }
}

#[test]
fn a_lent_tensor_has_exactly_its_bytes_and_an_input() {
    let data = bytes(&[1.0, 2.0]);
    assert!(LentTensor::new(DType::Float, &[3], &data).is_err());
    let session = session(accumulator());
    let x = || LentTensor::new(DType::Float, &[2], &data).unwrap();
    let s = || [("s", floats(&[2], &[0.0, 0.0]))];
    let error = session.run_lent(s(), &[("z", x())], &options()).unwrap_err();
    assert!(matches!(error, RunError::UnknownFeeds { .. }), "{error}");
    let error = session.run_lent(s(), &[("x", x()), ("x", x())], &options()).unwrap_err();
    assert!(matches!(error, RunError::FedTwice { .. }), "{error}");
}

// What the compiler refuses needs no check at run time; the tests above are for the rest.
// proves: O3, O5, Z4
#[test]
fn a_borrow_without_an_owner_cannot_be_kept_or_returned_and_shared_bytes_not_be_written() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
