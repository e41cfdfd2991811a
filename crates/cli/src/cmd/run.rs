//! `heirloom run`: any model on tensors from files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use heirloom::runtime::{Prepack, PreparedStore, StoreOptions};
use heirloom::{
    CallOptions, Engine, EngineOptions, Feeds, Model, OpenOptions, Outputs, Profile, Session, State, Value,
};
use serde_json::json;

use crate::error::CliError;
use crate::{out, test_data};

/// Run a model on tensors from files, several calls in a row
///
/// The files lie as in the ONNX standard's test data: FOLDER/test_data_set_K/input_J.pb for call K, each with its name.
/// What the model binds as persistent is taken from the first call's files, where they have it, and kept from call to
/// call after that.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// The inputs of each call
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Write the outputs of each call to test_data_set_K/output_J.pb in this folder
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Carry an output to an input of the next call by hand; may be given several times
    #[arg(long, num_args = 2, value_names = ["OUTPUT", "INPUT"], action = clap::ArgAction::Append)]
    carry: Vec<String>,
    /// Carry an output of the first call to an input of all later ones; may be given several times
    #[arg(long, num_args = 2, value_names = ["OUTPUT", "INPUT"], action = clap::ArgAction::Append)]
    carry_first: Vec<String>,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Threads that share a call's work [default: all processors]
    #[arg(long)]
    threads: Option<usize>,
    /// Let one symbol stand for different extents in a call
    #[arg(long)]
    free_symbols: bool,
    /// Keep constants in the arrangements that kernels read fastest
    #[arg(long)]
    prepack: bool,
    /// Time calls for so many seconds after some that are not counted, going round the folder's calls
    #[arg(long, value_name = "SECONDS")]
    time: Option<f64>,
    /// Print where the time of these calls goes
    #[arg(long)]
    profile: bool,
}

/// A session, with the state that its model declares.
enum Runner {
    Session(Session),
    State(Session, Option<State>),
}

impl Runner {
    fn call(
        &mut self,
        feeds: &[(String, Value)],
        carried: &[(String, Value)],
        options: &CallOptions<'_>,
    ) -> Result<Outputs, CliError> {
        let overridden = |name: &str| carried.iter().any(|(input, _)| input == name);
        let all = feeds.iter().filter(|(name, _)| !overridden(name)).chain(carried);
        let message = |e: &dyn std::error::Error| CliError::Message(e.to_string());
        match self {
            Runner::Session(session) => {
                let known: Vec<String> = session.inputs().map(|port| port.name).collect();
                let feeds: Feeds<'_> =
                    all.filter(|(n, _)| known.contains(n)).map(|(n, v)| (n.as_str(), v.clone())).collect();
                session.run(feeds, options).map_err(|e| message(&e))
            }
            Runner::State(session, state) => {
                let kept: Vec<String> = session.state_spec().into_iter().map(|slot| slot.input).collect();
                if state.is_none() {
                    let initial: Feeds<'_> = all
                        .clone()
                        .filter(|(n, _)| kept.contains(n))
                        .map(|(n, v)| (n.as_str(), v.clone()))
                        .collect();
                    *state = Some(session.make_state(initial)?);
                }
                let feeds: Feeds<'_> =
                    all.filter(|(n, _)| !kept.contains(n)).map(|(n, v)| (n.as_str(), v.clone())).collect();
                let state = state.as_ref().expect("made above");
                state.run(feeds, options).map_err(|e| message(&e))
            }
        }
    }

    fn reset(&mut self) {
        if let Runner::State(_, state) = self {
            *state = None;
        }
    }
}

/// Values that are carried by hand.
struct Carried<'a> {
    /// Output, input, and whether only the first call's output counts.
    pairs: Vec<(&'a str, &'a str, bool)>,
    values: Vec<(String, Value)>,
}

impl Carried<'_> {
    fn take(&mut self, outputs: &Outputs) -> Result<(), CliError> {
        for &(output, input, first) in &self.pairs {
            let have = self.values.iter().position(|(name, _)| name == input);
            if first && have.is_some() {
                continue;
            }
            let value = outputs.get(output).cloned();
            let value =
                value.ok_or_else(|| CliError::Message(format!("the model has no output `{output}`")))?;
            match have {
                Some(at) => self.values[at].1 = value,
                None => self.values.push((input.into(), value)),
            }
        }
        Ok(())
    }
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let message = |e: &dyn std::error::Error| CliError::Message(e.to_string());
    let calls = test_data::read_inputs(&args.data)?;
    let engine = Engine::new(EngineOptions { threads: args.threads }).map_err(|e| message(&e))?;
    let started = Instant::now();
    let open = args.external_root.iter().fold(OpenOptions::default(), |open, root| open.external_root(root));
    let model = Arc::new(Model::open(&args.model, &open)?);
    let prepack = match args.prepack {
        true => Prepack::On(Arc::new(PreparedStore::new(StoreOptions::default()).map_err(|e| message(&e))?)),
        false => Prepack::Off,
    };
    let options =
        heirloom::SessionOptions { prepack, free_symbols: args.free_symbols, ..engine.session_options() };
    let session = Session::new(model, engine.registry(), options).map_err(|e| message(&e))?;
    let created = started.elapsed();
    let mut runner = match session.state_spec().is_empty() {
        true => Runner::Session(session),
        false => Runner::State(session, None),
    };
    let pairs = |list: &'_ [String], first| -> Vec<(String, String, bool)> {
        list.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone(), first)).collect()
    };
    let pairs = [pairs(&args.carry, false), pairs(&args.carry_first, true)].concat();
    let pairs = pairs.iter().map(|(o, i, first)| (o.as_str(), i.as_str(), *first)).collect();
    let mut carried = Carried { pairs, values: Vec::new() };
    for (at, feeds) in calls.iter().enumerate() {
        let outputs = runner.call(feeds, &carried.values, &CallOptions::default())?;
        if let Some(folder) = &args.save {
            test_data::write_outputs(folder, at, outputs.iter())?;
        }
        carried.take(&outputs)?;
    }
    let Some(seconds) = args.time else { return Ok(ExitCode::SUCCESS) };
    let profile = Profile::new();
    let options = CallOptions { profile: args.profile.then_some(&profile), ..CallOptions::default() };
    let mut times: Vec<f64> = Vec::new();
    let mut at = 0;
    let began = Instant::now();
    // A fifth of the time warms up.
    while began.elapsed().as_secs_f64() < seconds * 1.2 || times.len() < 3 {
        if at == 0 {
            runner.reset();
            carried.values.clear();
        }
        let options =
            if began.elapsed().as_secs_f64() < seconds * 0.2 { CallOptions::default() } else { options };
        let started = Instant::now();
        let outputs = runner.call(&calls[at], &carried.values, &options)?;
        let time = started.elapsed().as_secs_f64();
        carried.take(&outputs)?;
        if began.elapsed().as_secs_f64() >= seconds * 0.2 {
            times.push(time);
        }
        at = (at + 1) % calls.len();
    }
    times.sort_by(f64::total_cmp);
    out::json(&json!({
        "create_seconds": created.as_secs_f64(),
        "calls": times.len(),
        "median_seconds": times[times.len() / 2],
        "least_seconds": times[0],
        "threads": engine.threads(),
        "isa": engine.isa().name(),
        "prepack": args.prepack,
    }));
    if args.profile {
        let mut by_op: Vec<(String, u64, f64)> = Vec::new();
        for node in profile.nodes() {
            match by_op.iter_mut().find(|(op, ..)| *op == node.op) {
                Some((_, runs, time)) => {
                    *runs += node.runs;
                    *time += node.time.as_secs_f64();
                }
                None => by_op.push((node.op.clone(), node.runs, node.time.as_secs_f64())),
            }
        }
        by_op.sort_by(|a, b| b.2.total_cmp(&a.2));
        let calls = times.len() as f64;
        for (op, runs, time) in by_op {
            let (runs, micros) = (runs as f64 / calls, time / calls * 1e6);
            out::line(&format!("{micros:>10.1} µs a call  {runs:>6.1} runs  {op}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
