//! What a call costs beside its kernels for a model with many retained values: `bench/overhead.py` runs this.
//!
//! usage: state_overhead MODEL.onnx BINDINGS NODES CALLS   writes the model, runs it, and prints microseconds as JSON
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use heirloom::graph::{ModelBuilder, SaveOptions};
use heirloom::types::ValueType;
use heirloom::{CachePolicy, CallOptions, DType, Engine, EngineOptions, Feeds, OpenOptions, Profile, Tensor};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: state_overhead MODEL.onnx BINDINGS NODES CALLS");
    let path = PathBuf::from(next()?);
    let (bindings, nodes, calls): (usize, usize, usize) =
        (next()?.parse()?, next()?.parse()?, next()?.parse()?);
    write(&path, bindings, nodes)?;
    let engine = Engine::new(EngineOptions { threads: Some(1) })?;
    let model = heirloom::Model::open(&path, &OpenOptions::default())?;
    let session = engine.session(model.into(), CachePolicy::default())?;
    let initial = session.zeros(&[])?;
    let state = session.make_state(initial.iter().map(|(n, v)| (&**n, v.clone())).collect::<Feeds<'_>>())?;
    let x = Tensor::from_vec(&[1, 4], vec![1.0f32, 2.0, 3.0, 4.0])?;
    let profile = Profile::new();
    let call = |profile| -> Result<f64, Box<dyn Error>> {
        let options = CallOptions { outputs: Some(&["y"]), profile, ..CallOptions::default() };
        let started = Instant::now();
        state.run([("x", x.clone())], &options)?;
        Ok(started.elapsed().as_secs_f64() * 1e6)
    };
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    for _ in 0..calls / 4 + 2 {
        call(None)?;
    }
    let mut whole = (0..calls).map(|_| call(None)).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..calls {
        call(Some(&profile))?;
    }
    let kernels = profile.total().as_secs_f64() * 1e6 / calls as f64;
    let counts = state.report().counts;
    println!(
        "{{\"call_us\": {:.2}, \"kernels_us\": {kernels:.2}, \"state_copied_bytes\": {}, \"kernel_copied_bytes\": {}}}",
        median(&mut whole),
        counts.state_copied_bytes,
        counts.kernel_copied_bytes
    );
    Ok(())
}

/// `bindings` states FLOAT[1, 4], of which each passes its predecessor's value on, and `nodes` nodes that add `x`.
fn write(path: &Path, bindings: usize, nodes: usize) -> Result<(), Box<dyn Error>> {
    let mut model = ModelBuilder::new("overhead");
    model.opset("", 21)?;
    model.ir_version(10);
    let g = model.graph();
    let ty = ValueType::tensor(DType::Float, &[1, 4]);
    let x = g.input("x", &ty)?;
    let states =
        (0..bindings).map(|at| g.input(&format!("state.{at}"), &ty)).collect::<Result<Vec<_>, _>>()?;
    let mut sum = x.clone();
    for _ in 0..nodes {
        sum = g.node("Add").input(&sum).input(&x).fresh("sum")?;
    }
    let mut last = sum;
    for (at, state) in states.iter().enumerate() {
        let next = g.node("Identity").input(&last).output(&format!("next.{at}"))?;
        g.output(&next, &ty)?;
        g.bind(state, &next)?;
        last = state.clone();
    }
    let y = g.node("Neg").input(&last).output("y")?;
    g.output(&y, &ty)?;
    model.build(None)?.save(path, &SaveOptions::default())?;
    Ok(())
}
