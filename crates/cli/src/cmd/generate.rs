//! `heirloom generate`: a prompt's continuation, token by token, then a report.

use std::process::ExitCode;

use heirloom::CancelToken;
use heirloom::llm::Request;
use serde_json::json;

use crate::error::CliError;
use crate::llm::{ModelArgs, SamplingArgs, cancel_on_interrupt, parse_tokens};
use crate::out;
use crate::report::{Memory, Report};

/// Answer a prompt, printing tokens as they come
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The prompt, written as a user's message where the model has a chat template
    #[arg(long, short, required_unless_present = "tokens")]
    prompt: Option<String>,
    /// Take the prompt as it is, whatever the chat template says
    #[arg(long)]
    raw: bool,
    /// The prompt as token ids, separated by commas
    #[arg(long, conflicts_with_all = ["prompt", "raw"])]
    tokens: Option<String>,
    /// Tokens to generate at most
    #[arg(long, short = 'n', default_value_t = 256)]
    max_tokens: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Go on behind the token that ends the text
    #[arg(long)]
    ignore_eos: bool,
    /// Print each token as a JSON line, and the report as the last one
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let sampling = args.sampling.sampling()?;
    let cancel = CancelToken::new();
    cancel_on_interrupt(&cancel)?;
    let model = args.model.open()?;
    let prompt = match (&args.tokens, &args.prompt) {
        (Some(tokens), _) => parse_tokens(tokens)?,
        (None, Some(text)) if args.raw => model.encode_raw(text)?,
        (None, text) => model.encode_prompt(text.as_deref().unwrap_or(""))?,
    };
    let mut memory = Memory::default();
    memory.sample();
    let request = Request { max_tokens: args.max_tokens, sampling, ignore_end: args.ignore_eos, cancel };
    let mut conversation = model.conversation()?;
    let mut generation = conversation.generate(&prompt, &request)?;
    memory.sample();
    let (mut ids, mut text) = (Vec::with_capacity(args.max_tokens.min(model.context())), String::new());
    for token in &mut generation {
        let token = token?;
        ids.push(token.id);
        text.push_str(&token.text);
        if args.json {
            out::json(&json!({ "token": token.id, "text": &*token.text }));
        } else {
            out::piece(&token.text);
        }
        if ids.len().is_multiple_of(32) {
            memory.sample();
        }
    }
    let rest = generation.finish();
    text.push_str(&rest);
    memory.sample();
    let taken = generation.report();
    let state = conversation.report();
    let report = Report::new(&model, &taken, &state, memory, text, ids);
    if args.json {
        out::json(&json!({ "report": report }));
    } else {
        out::line(&rest);
        out::note(&report.to_string());
    }
    Ok(if taken.stop == Some(heirloom::llm::StopReason::Cancelled) {
        ExitCode::from(130)
    } else {
        ExitCode::SUCCESS
    })
}
