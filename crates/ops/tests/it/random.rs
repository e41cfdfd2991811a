//! Random numbers: what a seed promises, and the distributions.

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::Tensor;
use heirloom_runtime::{NodeCall, NodeInput};

use crate::registry;
use crate::values::numbers;

fn draw(op: &str, attributes: &[(&str, AttrValue)], input: Option<Tensor>) -> Vec<f64> {
    let attributes: Attributes = attributes.iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
    let fed = input.iter().map(|_| NodeInput::Fed).collect();
    let mut call = NodeCall::new(&registry(), op, 22, attributes, fed, 1).unwrap();
    let first = call.run(input.clone()).unwrap()[0].as_tensor().unwrap().clone();
    let second = call.run(input).unwrap()[0].as_tensor().unwrap().clone();
    assert_eq!(numbers(&first), numbers(&second), "{op}: a seed gives the same numbers in each call");
    numbers(&first)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn uniform_numbers_fill_their_range_and_are_those_of_numpy() {
    let shape = ("shape", AttrValue::Ints(vec![100, 100]));
    let attributes = [
        shape,
        ("seed", AttrValue::Float(3.0)),
        ("low", AttrValue::Float(-1.0)),
        ("high", AttrValue::Float(3.0)),
    ];
    let values = draw("RandomUniform", &attributes, None);
    // np.random.seed(3); np.random.uniform(-1, 3, 3)
    let expected = [1.203_191_6, 1.832_591_3, 0.163_618_96];
    assert!(values.iter().zip(expected).all(|(v, e)| (v - e).abs() < 1e-6), "{:?}", &values[..3]);
    assert!(values.iter().all(|v| (-1.0..=3.0).contains(v)) && (mean(&values) - 1.0).abs() < 0.05);
    let like = Tensor::from_vec(&[2, 2], vec![0.0f64; 4]).unwrap();
    assert_eq!(draw("RandomUniformLike", &[("seed", AttrValue::Float(3.0))], Some(like)).len(), 4);
}

#[test]
fn normal_numbers_have_their_mean_and_deviation() {
    let shape = ("shape", AttrValue::Ints(vec![10_000]));
    let attributes = [
        shape,
        ("seed", AttrValue::Float(1.0)),
        ("mean", AttrValue::Float(2.0)),
        ("scale", AttrValue::Float(0.5)),
    ];
    let values = draw("RandomNormal", &attributes, None);
    let spread = values.iter().map(|v| (v - 2.0).powi(2)).sum::<f64>() / values.len() as f64;
    assert!((mean(&values) - 2.0).abs() < 0.02 && (spread - 0.25).abs() < 0.02, "{} {spread}", mean(&values));
    let like = Tensor::from_vec(&[3], vec![0.0f32; 3]).unwrap();
    assert_eq!(draw("RandomNormalLike", &[("seed", AttrValue::Float(1.0))], Some(like)).len(), 3);
}

#[test]
fn draws_follow_the_probabilities() {
    let p = Tensor::from_vec(&[10_000], vec![0.2f32; 10_000]).unwrap();
    let ones = draw("Bernoulli", &[("seed", AttrValue::Float(5.0))], Some(p));
    assert!(ones.iter().all(|v| *v == 0.0 || *v == 1.0) && (mean(&ones) - 0.2).abs() < 0.02);
    let logits = Tensor::from_vec(&[1, 3], vec![0.1f32.ln(), 0.6f32.ln(), 0.3f32.ln()]).unwrap();
    let attributes = [("seed", AttrValue::Float(5.0)), ("sample_size", AttrValue::Int(10_000))];
    let places = draw("Multinomial", &attributes, Some(logits));
    for (place, expected) in [(0.0, 0.1), (1.0, 0.6), (2.0, 0.3)] {
        let share = places.iter().filter(|v| **v == place).count() as f64 / 10_000.0;
        assert!((share - expected).abs() < 0.02, "{place}: {share}");
    }
}
