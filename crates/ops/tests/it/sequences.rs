//! Sequences and optionals move handles, never payloads.

use heirloom_graph::Attributes;
use heirloom_mem::Tensor;
use heirloom_runtime::{KernelError, NodeCall, NodeInput};
use heirloom_types::Value;

use crate::registry;

fn run(op: &str, inputs: &[Option<Value>]) -> Result<Value, KernelError> {
    let kinds = inputs.iter().map(|i| if i.is_some() { NodeInput::Fed } else { NodeInput::Absent }).collect();
    let mut call = NodeCall::new(&registry(), op, 24, Attributes::default(), kinds, 1).unwrap();
    let result = call.run(inputs.iter().flatten().cloned()).map(|mut values| values.remove(0));
    assert_eq!(call.counts().kernel_copied_bytes, 0);
    result
}

fn number(value: f32) -> Value {
    Tensor::scalar(value).into()
}

fn position(at: i64) -> Option<Value> {
    Some(Tensor::scalar(at).into())
}

fn list(values: &[f32]) -> Option<Value> {
    Some(Value::Sequence(values.iter().map(|&v| number(v)).collect::<Vec<_>>().into()))
}

fn read(value: &Value) -> Vec<f32> {
    let Value::Sequence(elements) = value else { panic!("a sequence") };
    elements.iter().map(|e| e.as_tensor().unwrap().as_slice::<f32>().unwrap()[0]).collect()
}

// proves: R7
#[test]
fn elements_are_inserted_erased_and_found_by_position() {
    let insert = |at| run("SequenceInsert", &[list(&[1.0, 2.0]), Some(number(9.0)), at]).map(|v| read(&v));
    assert_eq!(insert(None).unwrap(), [1.0, 2.0, 9.0]);
    assert_eq!(insert(position(0)).unwrap(), [9.0, 1.0, 2.0]);
    assert_eq!(insert(position(-1)).unwrap(), [1.0, 9.0, 2.0]);
    assert!(insert(position(3)).is_err());
    let erase = |at| run("SequenceErase", &[list(&[1.0, 2.0, 3.0]), at]).map(|v| read(&v));
    assert_eq!(erase(None).unwrap(), [1.0, 2.0]);
    assert_eq!(erase(position(-3)).unwrap(), [2.0, 3.0]);
    assert!(erase(position(3)).is_err());
    assert!(run("SequenceErase", &[list(&[]), None]).is_err());
    assert_eq!(read(&run("SequenceConstruct", &[Some(number(4.0)), Some(number(5.0))]).unwrap()), [4.0, 5.0]);
    assert_eq!(read(&run("SequenceEmpty", &[]).unwrap()), [0.0; 0]);
    let length = run("SequenceLength", &[list(&[1.0, 2.0, 3.0])]).unwrap();
    assert_eq!(length.as_tensor().unwrap().as_slice::<i64>().unwrap(), [3]);
}

// proves: R7, Z3
#[test]
fn a_list_that_others_hold_is_left_alone_and_elements_are_shared() {
    let held = list(&[1.0, 2.0]);
    let longer = run("SequenceInsert", &[held.clone(), Some(number(3.0))]).unwrap();
    assert_eq!((read(held.as_ref().unwrap()), read(&longer)), (vec![1.0, 2.0], vec![1.0, 2.0, 3.0]));
    let Some(Value::Sequence(elements)) = &held else { unreachable!() };
    let found = run("SequenceAt", &[held.clone(), position(-1)]).unwrap();
    assert_eq!(found.as_tensor().unwrap().address(), elements[1].as_tensor().unwrap().address());
    let error = run("SequenceAt", &[Some(number(1.0)), position(0)]).unwrap_err();
    assert_eq!(error.to_string(), "input 0 is a tensor, where the operator takes a sequence");
}

// proves: R7
#[test]
fn optionals_hold_a_value_or_none() {
    let has = |value| {
        let out = run("OptionalHasElement", &[value]).unwrap();
        out.as_tensor().unwrap().dense_bytes().unwrap()[0]
    };
    let full = run("Optional", &[Some(number(7.0))]).unwrap();
    let none = run("Optional", &[None]).unwrap();
    assert_eq!(
        (has(Some(full.clone())), has(Some(none.clone())), has(Some(number(1.0))), has(None)),
        (1, 0, 1, 0)
    );
    let element = run("OptionalGetElement", &[Some(full)]).unwrap();
    assert_eq!(element.as_tensor().unwrap().as_slice::<f32>().unwrap(), [7.0]);
    assert!(run("OptionalGetElement", &[Some(none)]).is_err());
}
