//! Pools that the standard's suite has no cases of, against their definition.

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::Tensor;
use heirloom_runtime::{NodeCall, NodeInput};

use crate::registry;
use crate::values::numbers;

fn run(op: &str, attributes: Vec<(&str, AttrValue)>, inputs: Vec<Tensor>) -> Tensor {
    let attributes: Attributes =
        attributes.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let fed = vec![NodeInput::Fed; inputs.len()];
    let mut call = NodeCall::new(&registry(), op, 13, attributes, fed, 1).unwrap();
    call.run(inputs).unwrap()[0].as_tensor().unwrap().clone()
}

#[test]
fn the_global_norm_is_that_of_each_channel() {
    let x = Tensor::from_vec(&[1, 2, 2, 1], vec![3.0f32, 4.0, -6.0, 8.0]).unwrap();
    let norms = run("GlobalLpPool", vec![("p", AttrValue::Int(2))], vec![x.clone()]);
    assert_eq!((norms.shape(), numbers(&norms)), (&[1, 2, 1, 1][..], vec![5.0, 10.0]));
    let sums = run("GlobalLpPool", vec![("p", AttrValue::Int(1))], vec![x]);
    assert_eq!(numbers(&sums), [7.0, 14.0]);
}

#[test]
fn the_greatest_of_each_part_of_a_region_is_pooled() {
    let x = Tensor::from_vec(&[1, 1, 4, 4], (0..16u8).map(f32::from).collect()).unwrap();
    let regions = Tensor::from_vec(&[1, 5], vec![0.0f32, 0.0, 0.0, 3.0, 3.0]).unwrap();
    let pooled = run("MaxRoiPool", vec![("pooled_shape", AttrValue::Ints(vec![2, 2]))], vec![x, regions]);
    assert_eq!((pooled.shape(), numbers(&pooled)), (&[1, 1, 2, 2][..], vec![5.0, 7.0, 13.0, 15.0]));
}
