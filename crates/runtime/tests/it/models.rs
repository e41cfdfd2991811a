//! Models that several tests use.

use std::path::Path;
use std::sync::Arc;

use heirloom_graph::{GraphBuilder, Model, ModelBuilder};
use heirloom_mem::{DType, Element, Tensor};
use heirloom_runtime::{KernelRegistry, Session, SessionOptions};
use heirloom_types::{Dim, Value, ValueType};

pub(crate) fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_vec(shape, values.to_vec()).unwrap()
}

pub(crate) fn ints(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_vec(shape, values.to_vec()).unwrap()
}

/// The elements of a value in row-major order.
pub(crate) fn elements<T: Element>(value: &Value) -> Vec<T> {
    let tensor = value.as_tensor().unwrap();
    let mut list = Vec::new();
    tensor.for_each_run(|run| {
        let width = size_of::<T>();
        list.extend(run.chunks_exact(width).map(|bytes| T::read_from_bytes(bytes).unwrap()));
    });
    assert_eq!(tensor.dtype(), T::DTYPE);
    list
}

pub(crate) fn shape(value: &Value) -> Vec<usize> {
    value.as_tensor().unwrap().shape().to_vec()
}

pub(crate) fn float_type<const N: usize>(dims: [Dim; N]) -> ValueType {
    ValueType::symbolic(DType::Float, dims)
}

pub(crate) fn dims<const N: usize>(names: [&str; N]) -> [Dim; N] {
    names.map(|name| name.parse::<usize>().map_or_else(|_| Dim::from(name), Dim::from))
}

pub(crate) fn model(build: impl FnOnce(&mut GraphBuilder)) -> Arc<Model> {
    model_with(|model| build(model.graph()))
}

pub(crate) fn model_with(build: impl FnOnce(&mut ModelBuilder)) -> Arc<Model> {
    let mut model = ModelBuilder::new("test");
    model.opset("", 24).unwrap();
    build(&mut model);
    Arc::new(model.build(None::<&Path>).unwrap())
}

pub(crate) fn registry() -> KernelRegistry {
    KernelRegistry::new()
        .with(heirloom_ops::KERNELS.iter().copied())
        .with(crate::test_kernels::ALL.iter().copied())
}

pub(crate) fn session(model: Arc<Model>) -> Session {
    session_with(model, SessionOptions::default())
}

pub(crate) fn session_with(model: Arc<Model>, options: SessionOptions) -> Session {
    Session::new(model, &registry(), options).unwrap()
}

/// ACC: `y = x + s` and `s_next = x + s`, both FLOAT[2]; `s` is retained from `s_next`.
pub(crate) fn accumulator() -> Arc<Model> {
    model(|g| {
        let ty = ValueType::tensor(DType::Float, &[2]);
        let x = g.input("x", &ty).unwrap();
        let s = g.input("s", &ty).unwrap();
        let y = g.node("Add").input(&x).input(&s).output("y").unwrap();
        let next = g.node("Add").input(&x).input(&s).output("s_next").unwrap();
        g.output(&y, &ty).unwrap();
        g.output(&next, &ty).unwrap();
        g.bind(&s, &next).unwrap();
    })
}

/// `layers` layers of attention with 2 heads of 8 over caches; layer outputs are summed into `y`. A table gives the
/// input of layer `n`: row `id.n` of it, so that a wrong id fails after the layers before have appended.
pub(crate) fn decoder(layers: usize, dtype: DType) -> Arc<Model> {
    model(|g| {
        let ids = ValueType::symbolic(DType::Int64, dims(["1", "sequence"]));
        let cache = ValueType::symbolic(dtype, dims(["1", "2", "past", "8"]));
        let present = ValueType::symbolic(dtype, dims(["1", "2", "total", "8"]));
        let out = ValueType::symbolic(dtype, dims(["1", "sequence", "16"]));
        let rows: Vec<f32> = (0..32 * 16).map(|i| ((i * 37 % 101) as f32 - 50.0) / 40.0).collect();
        let table = g.initializer("table", &floats(&[32, 16], &rows)).unwrap();
        let table = g.node("Cast").input(&table).attr("to", i64::from(dtype.onnx())).output("rows").unwrap();
        let mut sum = None;
        for layer in 0..layers {
            let id = g.input(&format!("id.{layer}"), &ids).unwrap();
            let pasts =
                ["key", "value"].map(|what| g.input(&format!("past.{layer}.{what}"), &cache).unwrap());
            let x =
                g.node("Gather").name(&format!("embed.{layer}")).input(&table).input(&id).fresh("x").unwrap();
            let presents = ["key", "value"].map(|what| format!("present.{layer}.{what}"));
            let names = [format!("a.{layer}"), presents[0].clone(), presents[1].clone()];
            let [y, key, value] = g
                .node("Attention")
                .name(&format!("attention.{layer}"))
                .inputs([&x, &x, &x])
                .skip()
                .inputs(&pasts)
                .attr("is_causal", 1)
                .attr("q_num_heads", 2)
                .attr("kv_num_heads", 2)
                .outputs([&*names[0], &names[1], &names[2]])
                .unwrap();
            for (past, present_value) in pasts.iter().zip([&key, &value]) {
                g.output(present_value, &present).unwrap();
                g.bind(past, present_value).unwrap();
            }
            sum = Some(match sum {
                None => y,
                Some(sum) => g.node("Add").input(&sum).input(&y).fresh("sum").unwrap(),
            });
        }
        let y = g.node("Neg").input(sum.unwrap()).output("y").unwrap();
        g.output(&y, &out).unwrap();
    })
}

/// The feeds of one step of [`decoder`]: the same ids for each layer.
pub(crate) fn step(layers: usize, ids: &[i64]) -> Vec<(String, Value)> {
    (0..layers).map(|layer| (format!("id.{layer}"), ints(&[1, ids.len()], ids).into())).collect()
}

/// Feeds by reference.
pub(crate) fn feeds(list: &[(String, Value)]) -> heirloom_runtime::Feeds<'_> {
    list.iter().map(|(name, value)| (&**name, value.clone())).collect()
}

/// Empty caches for [`decoder`].
pub(crate) fn empty(session: &Session) -> Vec<(String, Value)> {
    session.zeros(&[("past", 0)]).unwrap()
}
