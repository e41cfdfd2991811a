//! The report that ends a generation.

use std::fmt;

use heirloom::llm::{GenerationReport, LanguageModel};
use serde::Serialize;

use crate::memory;

/// The largest private memory seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    peak: Option<u64>,
}

impl Memory {
    /// Looks once more.
    pub(crate) fn sample(&mut self) {
        self.peak = self.peak.max(memory::private_bytes());
    }
}

/// What a generation gave and took.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    text: String,
    token_ids: Vec<u32>,
    prompt_tokens: usize,
    generated_tokens: usize,
    prompt_tokens_per_s: Option<f64>,
    generated_tokens_per_s: Option<f64>,
    weights_mapped_bytes: u64,
    weights_private_bytes: u64,
    state_retained_bytes: u64,
    state_reserved_bytes: u64,
    state_copied_bytes: u64,
    state_appended_bytes_per_token: Option<u64>,
    kernel_copied_bytes: u64,
    steady_allocations_per_token: u64,
    scratch_bytes: u64,
    peak_private_bytes: Option<u64>,
    stop_reason: Option<&'static str>,
    isa: &'static str,
    threads: usize,
}

fn rate(count: usize, seconds: f64) -> Option<f64> {
    (count > 0 && seconds > 0.0).then(|| count as f64 / seconds)
}

impl Report {
    pub(crate) fn new(
        model: &LanguageModel,
        taken: &GenerationReport,
        state: &heirloom::runtime::Report,
        memory: Memory,
        text: String,
        token_ids: Vec<u32>,
    ) -> Report {
        Report {
            text,
            token_ids,
            prompt_tokens: taken.prompt_tokens,
            generated_tokens: taken.generated_tokens,
            prompt_tokens_per_s: rate(taken.prompt_tokens, taken.prompt_seconds),
            generated_tokens_per_s: rate(taken.steps, taken.generated_seconds),
            weights_mapped_bytes: model.weights().mapped,
            weights_private_bytes: model.weights().private,
            state_retained_bytes: state.retained_bytes,
            state_reserved_bytes: state.reserved_bytes,
            state_copied_bytes: taken.counts.state_copied_bytes,
            state_appended_bytes_per_token: taken.appended_bytes_per_token,
            kernel_copied_bytes: taken.counts.kernel_copied_bytes,
            steady_allocations_per_token: taken.steady_allocations_per_token,
            scratch_bytes: state.scratch_bytes,
            peak_private_bytes: memory.peak,
            stop_reason: taken.stop.map(|s| s.name()),
            isa: model.engine().isa().name(),
            threads: model.engine().threads(),
        }
    }
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = |rate: Option<f64>| rate.map_or("-".into(), |r| format!("{r:.1} tokens/s"));
        let some = |bytes: Option<u64>| bytes.map_or("-".into(), size);
        writeln!(f)?;
        writeln!(f, "prompt      {} tokens, {}", self.prompt_tokens, speed(self.prompt_tokens_per_s))?;
        writeln!(
            f,
            "generated   {} tokens, {}, stopped: {}",
            self.generated_tokens,
            speed(self.generated_tokens_per_s),
            self.stop_reason.unwrap_or("-")
        )?;
        writeln!(
            f,
            "weights     {} mapped, {} in private memory",
            size(self.weights_mapped_bytes),
            size(self.weights_private_bytes)
        )?;
        writeln!(
            f,
            "state       {} retained, {} copied for it, {} appended per token",
            size(self.state_retained_bytes),
            size(self.state_copied_bytes),
            some(self.state_appended_bytes_per_token)
        )?;
        writeln!(f, "allocations {} per token in steady state", self.steady_allocations_per_token)?;
        writeln!(f, "memory      {} private at most", some(self.peak_private_bytes))?;
        write!(f, "machine     {}, {} threads", self.isa, self.threads)
    }
}
