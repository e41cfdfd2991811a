//! `heirloom bench --states`: what states that decode at the same time take, each on a thread of its own.

use std::time::{Duration, Instant};

use heirloom::llm::LanguageModel;
use heirloom::runtime::RunError;
use heirloom::{CallOptions, Feeds, Profile, State, Tensor};
use serde_json::{Value as Json, json};

use crate::error::CliError;
use crate::{memory, out};

/// What each state does.
pub(super) struct Task {
    /// Tokens in the state before the timed ones.
    pub(super) depth: usize,
    /// Tokens timed.
    pub(super) generate: usize,
}

/// One state's times.
struct Timed {
    calls: Vec<Duration>,
    kernels: Duration,
    decoding: Duration,
}

/// Times `count` states at once.
pub(super) fn measure(model: &LanguageModel, count: usize, task: &Task) -> Result<Json, CliError> {
    let session = model.session();
    let states = (0..count)
        .map(|_| Ok(model.conversation()?.state().fork()?))
        .collect::<Result<Vec<State>, CliError>>()?;
    for (at, state) in states.iter().enumerate() {
        if task.depth > 0 {
            call(state, &tokens(task.depth, at), None).map_err(failed)?;
        }
        // One call outside the clock, so that every timed one finds its buffers.
        call(state, &tokens(1, at + 1), None).map_err(failed)?;
    }
    let before: Vec<_> = states.iter().map(|state| state.report().counts).collect();
    let heap = heirloom::mem::heap_allocations();
    let reads = memory::read_bytes();
    let started = Instant::now();
    let timed = std::thread::scope(|scope| {
        let threads: Vec<_> =
            states.iter().map(|state| scope.spawn(move || decode(state, task.generate))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Result<Vec<_>, _>>()
    })
    .map_err(failed)?;
    let elapsed = started.elapsed();
    let heap = heirloom::mem::heap_allocations() - heap;
    let tokens = (count * task.generate) as f64;
    let per_token = |sum: u64| sum as f64 / tokens;
    let sum = |of: fn(&heirloom::Counts) -> u64| -> f64 {
        let counted = states.iter().zip(&before).map(|(state, before)| state.report().counts - *before);
        per_token(counted.map(|counts| of(&counts)).sum())
    };
    let reports: Vec<_> = states.iter().map(State::report).collect();
    let mut calls: Vec<f64> = timed.iter().flat_map(|t| &t.calls).map(|d| d.as_secs_f64() * 1e3).collect();
    calls.sort_by(f64::total_cmp);
    let at = |share: f64| calls[((calls.len() - 1) as f64 * share) as usize];
    let micros =
        |of: fn(&Timed) -> Duration| timed.iter().map(of).sum::<Duration>().as_secs_f64() * 1e6 / tokens;
    let (whole, kernels, decoding) =
        (micros(|t| t.calls.iter().sum()), micros(|t| t.kernels), micros(|t| t.decoding));
    Ok(json!({
        "states": count,
        "depth": task.depth,
        "tokens_per_state": task.generate,
        "tokens_per_s": tokens / elapsed.as_secs_f64(),
        "latency_ms": { "median": at(0.5), "p90": at(0.9), "max": at(1.0) },
        "per_token_us": {
            "decoding": decoding, "inference": kernels - decoding, "state_management": (whole - kernels).max(0.0),
        },
        "bytes": {
            "state_retained": reports.iter().map(|r| r.retained_bytes).sum::<u64>(),
            "state_reserved": reports.iter().map(|r| r.reserved_bytes).sum::<u64>(),
            "scratch": session.report().scratch_bytes,
            "resident": memory::resident_bytes(),
            "private": memory::private_bytes(),
            "peak_resident": memory::peak_bytes(),
        },
        "per_token": {
            "state_copied_bytes": sum(|c| c.state_copied_bytes),
            "cache_copied_bytes": sum(|c| c.cache_copied_bytes),
            "kernel_copied_bytes": sum(|c| c.kernel_copied_bytes),
            "appended_bytes": sum(|c| c.appended_bytes),
            "buffers_allocated": sum(|c| c.allocations),
            "buffers_reused": sum(|c| c.reuses),
            "heap_allocations": per_token(heap),
            "bytes_read_from_storage": reads.zip(memory::read_bytes()).map(|(a, b)| per_token(b - a)),
        },
    }))
}

/// A table of what [`measure`] gave.
pub(super) fn print(rows: &[Json]) {
    for row in rows {
        let number = |path: &str| row.pointer(path).and_then(Json::as_f64).unwrap_or(f64::NAN);
        let mb = |path: &str| number(path) / 1e6;
        out::line(&format!(
            "{} states: {:.1} tokens/s together, {:.2} ms a call (p90 {:.2})",
            row["states"],
            number("/tokens_per_s"),
            number("/latency_ms/median"),
            number("/latency_ms/p90")
        ));
        out::line(&format!(
            "  of a token: {:.0} µs inference, {:.0} µs decoding, {:.0} µs state management; {:.0} bytes appended, {:.0} copied \
             for state, {:.1} heap allocations",
            number("/per_token_us/inference"),
            number("/per_token_us/decoding"),
            number("/per_token_us/state_management"),
            number("/per_token/appended_bytes"),
            number("/per_token/state_copied_bytes"),
            number("/per_token/heap_allocations")
        ));
        out::line(&format!(
            "  {:.1} MB in states ({:.1} reserved), {:.1} MB scratch, {:.1} MB private, {:.1} MB resident at most",
            mb("/bytes/state_retained"),
            mb("/bytes/state_reserved"),
            mb("/bytes/scratch"),
            mb("/bytes/private"),
            mb("/bytes/peak_resident")
        ));
    }
}

fn decode(state: &State, count: usize) -> Result<Timed, RunError> {
    let profile = Profile::new();
    let mut calls = Vec::with_capacity(count);
    for token in 0..count {
        let ids = tokens(1, token + 17);
        let started = Instant::now();
        call(state, &ids, Some(&profile))?;
        calls.push(started.elapsed());
    }
    // Weights in formats that kernels read are unpacked within the products: that is inference.
    let nodes = profile.nodes();
    let decoding = nodes.iter().filter(|node| node.op == "ai.heirloom.Decode").map(|node| node.time).sum();
    Ok(Timed { calls, kernels: profile.total(), decoding })
}

fn call(state: &State, ids: &[i64], profile: Option<&Profile>) -> Result<(), RunError> {
    let ids = Tensor::from_vec(&[1, ids.len()], Vec::from(ids)).expect("as many as there are");
    let mut feeds = Feeds::new().with("input_ids", ids);
    if state.session().inputs().any(|port| port.name == "logits_to_keep") {
        feeds = feeds.with("logits_to_keep", Tensor::scalar(1i64));
    }
    state.run(feeds, &CallOptions { profile, outputs: Some(&["logits"]), ..CallOptions::default() }).map(drop)
}

fn failed(error: RunError) -> CliError {
    CliError::Message(error.to_string())
}

/// Tokens as the model takes them.
fn tokens(count: usize, from: usize) -> Vec<i64> {
    super::tokens(count, from).into_iter().map(i64::from).collect()
}
