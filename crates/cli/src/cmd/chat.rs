//! `heirloom chat`: a conversation over one state.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use heirloom::llm::{Conversation, LanguageModel, Request, StopReason};
use heirloom::text::Message;
use serde_json::json;

use crate::error::CliError;
use crate::llm::{ModelArgs, SamplingArgs, cancel_on_interrupt};
use crate::out;

/// Talk to a model; Ctrl-C stops an answer, Ctrl-D ends the chat
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// What the model is told before the conversation
    #[arg(long)]
    system: Option<String>,
    /// Tokens of an answer at most
    #[arg(long, short = 'n', default_value_t = 1024)]
    max_tokens: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Read messages from standard input, one a line, and print each answer as a JSON line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let sampling = args.sampling.sampling()?;
    let model = args.model.open()?;
    if !model.has_chat_template() {
        return Err(heirloom::llm::LlmError::NoTemplate.into());
    }
    let request = Request { max_tokens: args.max_tokens, sampling, ..Request::default() };
    cancel_on_interrupt(&request.cancel)?;
    let mut chat = Chat {
        model: &model,
        conversation: model.conversation()?,
        messages: args.system.iter().map(|system| Message::new("system", system)).collect(),
        request,
        json: args.json,
    };
    let input = std::io::stdin();
    let asked = input.is_terminal() && !args.json;
    if asked {
        out::note("Ctrl-C stops an answer, Ctrl-D ends the chat.");
    }
    loop {
        if asked {
            out::piece("> ");
        }
        let mut line = String::new();
        match input.lock().read_line(&mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // Ctrl-C at the prompt: nothing is being answered, so the line begins anew.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(source) => return Err(CliError::Io { path: "standard input".into(), source }),
        }
        let message = line.trim();
        // A Ctrl-C at the prompt has nothing to stop.
        chat.request.cancel.reset();
        if !message.is_empty() {
            chat.answer(message)?;
        }
    }
    if asked {
        out::line("");
    }
    Ok(ExitCode::SUCCESS)
}

struct Chat<'m> {
    model: &'m LanguageModel,
    conversation: Conversation,
    messages: Vec<Message>,
    request: Request,
    json: bool,
}

impl Chat<'_> {
    /// Answers one message. The state keeps what it has seen: only what is new of the conversation is fed.
    fn answer(&mut self, message: &str) -> Result<(), CliError> {
        self.messages.push(Message::new("user", message));
        let prompt = self.model.encode_chat(&self.messages)?;
        let fresh = self.conversation.rewind_to(&prompt)?;
        let kept = prompt.len() - fresh.len();
        let mut text = String::new();
        let mut generation = match self.conversation.generate(fresh, &self.request) {
            Ok(generation) => generation,
            Err(error @ heirloom::llm::LlmError::PromptTooLong { .. }) => {
                // The chat goes on without this message.
                self.messages.pop();
                out::note(&format!("heirloom: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        for token in &mut generation {
            let token = token?;
            if !self.json {
                out::piece(&token.text);
            }
            text.push_str(&token.text);
        }
        let rest = generation.finish();
        let report = generation.report();
        if self.json {
            out::json(&json!({
                "answer": text, "stop_reason": report.stop.map(StopReason::name), "prompt_tokens": prompt.len(),
                "tokens_kept": kept, "generated_tokens": report.generated_tokens,
            }));
        } else {
            out::line(&rest);
            if report.stop == Some(StopReason::Cancelled) {
                out::note("(stopped)");
            }
        }
        text.push_str(&rest);
        self.messages.push(Message::new("assistant", text.trim_end()));
        let _ = std::io::stdout().flush();
        Ok(())
    }
}
