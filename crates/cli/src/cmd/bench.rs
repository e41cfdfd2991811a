//! `heirloom bench`: how fast a language model reads and writes.

mod roofline;
mod states;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use heirloom::llm::{Conversation, LlmError};
use heirloom::runtime::Profile;
use serde_json::json;

use crate::error::CliError;
use crate::llm::ModelArgs;
use crate::out;

/// Time a prompt of so many tokens, and so many tokens generated behind a depth of others
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens of the prompt to time; 0 times none
    #[arg(long, default_value_t = 512)]
    prompt_tokens: usize,
    /// Tokens to generate; 0 times none
    #[arg(long, default_value_t = 64)]
    generate: usize,
    /// Tokens in the state before the generated ones
    #[arg(long, default_value_t = 0)]
    depth: usize,
    /// Show where the time goes, by operator; slows the timed calls a little
    #[arg(long)]
    profile: bool,
    /// Instead, where a token's and the prompt's time goes, beside what memory and processor could do, measured in turns
    #[arg(long, conflicts_with = "states")]
    roofline: bool,
    /// Instead, so many states at the same time, each on a thread of its own: `1,4,16` are three measurements
    #[arg(long, value_delimiter = ',', value_name = "COUNTS")]
    states: Vec<usize>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The time of one operator's nodes in one phase.
#[derive(serde::Serialize)]
struct Share {
    op: String,
    nodes: usize,
    ms_per_call: f64,
    fraction: f64,
}

/// A phase's time by operator, the most expensive first; what no node accounts for is called `between nodes`.
fn shares(profile: &Profile, calls: usize, wall: Duration) -> Vec<Share> {
    let mut by_op: BTreeMap<String, (usize, Duration)> = BTreeMap::new();
    for node in profile.nodes() {
        let (nodes, time) = by_op.entry(node.op).or_default();
        *nodes += 1;
        *time += node.time;
    }
    by_op.insert("between nodes".into(), (0, wall.saturating_sub(profile.total())));
    let per_call = |time: Duration| time.as_secs_f64() * 1e3 / calls as f64;
    let mut shares: Vec<Share> = by_op
        .into_iter()
        .map(|(op, (nodes, time))| Share {
            op,
            nodes,
            ms_per_call: per_call(time),
            fraction: time.as_secs_f64() / wall.as_secs_f64(),
        })
        .collect();
    shares.sort_by(|a, b| b.ms_per_call.total_cmp(&a.ms_per_call));
    shares
}

fn show(shares: &[Share]) {
    for Share { op, nodes, ms_per_call, fraction } in shares {
        out::line(&format!(
            "  {op:<24}{ms_per_call:>10.3} ms/call{:>7.1} %{nodes:>6} nodes",
            100.0 * fraction
        ));
    }
}

/// One timed phase.
struct Phase {
    /// Tokens per second.
    rate: f64,
    /// Where the time went; empty unless it was asked for.
    shares: Vec<Share>,
}

/// Times `work`, which feeds `tokens` tokens in `calls` calls.
fn timed(
    conversation: &mut Conversation,
    profiled: bool,
    tokens: usize,
    calls: usize,
    work: impl FnOnce(&mut Conversation) -> Result<(), LlmError>,
) -> Result<Phase, LlmError> {
    let profile = profiled.then(|| Arc::new(Profile::new()));
    conversation.set_profile(profile.clone());
    let started = Instant::now();
    work(conversation)?;
    let wall = started.elapsed();
    conversation.set_profile(None);
    let shares = profile.map_or(Vec::new(), |profile| shares(&profile, calls, wall));
    Ok(Phase { rate: tokens as f64 / wall.as_secs_f64(), shares })
}

/// Ordinary tokens of every vocabulary, different ones so that no row stays in a cache alone.
fn tokens(count: usize, from: usize) -> Vec<u32> {
    (from..from + count).map(|i| (i * 7919 % 30_000 + 300) as u32).collect()
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let context = args.prompt_tokens.max(args.depth + args.generate + 1) + 1;
    let model = args.model.open_for(Some(context))?;
    if !args.states.is_empty() {
        let task = states::Task { depth: args.depth, generate: args.generate.max(1) };
        let counts = args.states.iter().filter(|&&count| count > 0);
        let rows =
            counts.map(|&count| states::measure(&model, count, &task)).collect::<Result<Vec<_>, _>>()?;
        match args.json {
            true => out::json(&json!(rows)),
            false => states::print(&rows),
        }
        return Ok(ExitCode::SUCCESS);
    }
    // The first calls map pages and make buffers: not what is timed.
    let mut warm = model.conversation()?;
    warm.feed(&tokens(args.prompt_tokens.clamp(2, 32), 0), None)?;
    warm.feed(&tokens(1, 9), None)?;
    if args.roofline {
        let task =
            roofline::Task { prompt: args.prompt_tokens, depth: args.depth, generate: args.generate.max(1) };
        let all = roofline::measure(&model, &task)?;
        match args.json {
            true => out::json(&all),
            false => roofline::print(&all),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let prefill = if args.prompt_tokens > 0 {
        let mut conversation = model.conversation()?;
        let prompt = tokens(args.prompt_tokens, 0);
        Some(timed(&mut conversation, args.profile, args.prompt_tokens, 1, |conversation| {
            conversation.feed(&prompt, None)?;
            Ok(())
        })?)
    } else {
        None
    };
    let decode = if args.generate > 0 {
        let mut conversation = model.conversation()?;
        if args.depth > 0 {
            conversation.feed(&tokens(args.depth, 0), None)?;
        }
        // One call outside the clock, so that every timed one finds its buffers.
        conversation.feed(&tokens(1, 1), None)?;
        Some(timed(&mut conversation, args.profile, args.generate, args.generate, |conversation| {
            for token in tokens(args.generate, 17) {
                conversation.feed(&[token], None)?;
            }
            Ok(())
        })?)
    } else {
        None
    };
    let (isa, threads) = (model.engine().isa().name(), model.engine().threads());
    if args.json {
        out::json(&json!({
            "prefill_tokens_per_s": prefill.as_ref().map(|phase| phase.rate),
            "decode_tokens_per_s": decode.as_ref().map(|phase| phase.rate),
            "prefill_shares": prefill.as_ref().map(|phase| &phase.shares),
            "decode_shares": decode.as_ref().map(|phase| &phase.shares), "prompt_tokens": args.prompt_tokens,
            "generated_tokens": args.generate, "depth": args.depth, "isa": isa, "threads": threads,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(phase) = prefill {
        out::line(&format!("prompt of {} tokens: {:.1} tokens/s", args.prompt_tokens, phase.rate));
        show(&phase.shares);
    }
    if let Some(phase) = decode {
        out::line(&format!("{} tokens behind {}: {:.1} tokens/s", args.generate, args.depth, phase.rate));
        show(&phase.shares);
    }
    out::line(&format!("{isa}, {threads} threads"));
    Ok(ExitCode::SUCCESS)
}
