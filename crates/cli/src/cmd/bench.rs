//! `heirloom bench`: how fast a language model reads and writes.

use std::process::ExitCode;
use std::time::Instant;

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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let context = args.prompt_tokens.max(args.depth + args.generate + 1) + 1;
    let model = args.model.open_for(Some(context))?;
    let tokens = |count: usize, from: usize| -> Vec<u32> {
        // Ordinary tokens of every vocabulary, different ones so that no row stays in a cache alone.
        (from..from + count).map(|i| (i * 7919 % 30_000 + 300) as u32).collect()
    };
    // The first calls map pages and make buffers: not what is timed.
    let mut warm = model.conversation()?;
    warm.feed(&tokens(args.prompt_tokens.clamp(2, 32), 0), None)?;
    warm.feed(&tokens(1, 9), None)?;
    let prefill = if args.prompt_tokens > 0 {
        let mut conversation = model.conversation()?;
        let prompt = tokens(args.prompt_tokens, 0);
        let started = Instant::now();
        conversation.feed(&prompt, None)?;
        Some(args.prompt_tokens as f64 / started.elapsed().as_secs_f64())
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
        let started = Instant::now();
        for token in tokens(args.generate, 17) {
            conversation.feed(&[token], None)?;
        }
        Some(args.generate as f64 / started.elapsed().as_secs_f64())
    } else {
        None
    };
    let (isa, threads) = (model.engine().isa().name(), model.engine().threads());
    if args.json {
        out::json(&json!({
            "prefill_tokens_per_s": prefill, "decode_tokens_per_s": decode, "prompt_tokens": args.prompt_tokens,
            "generated_tokens": args.generate, "depth": args.depth, "isa": isa, "threads": threads,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(rate) = prefill {
        out::line(&format!("prompt of {} tokens: {rate:.1} tokens/s", args.prompt_tokens));
    }
    if let Some(rate) = decode {
        out::line(&format!("{} tokens behind {}: {rate:.1} tokens/s", args.generate, args.depth));
    }
    out::line(&format!("{isa}, {threads} threads"));
    Ok(ExitCode::SUCCESS)
}
