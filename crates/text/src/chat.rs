//! Chat templates: the Jinja source that a model's file carries, rendered as its authors' tools would.

mod json;
mod methods;
mod python;
mod time;

use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};

use crate::TextError;

/// What a template may do before it is stopped: one unit is an instruction or 64 bytes made.
const FUEL: u64 = 10_000_000;

/// Messages to a prompt.
pub trait RenderChat: Send + Sync {
    /// The prompt for `request`.
    ///
    /// # Errors
    /// The template refuses the messages, or fails on them.
    fn render(&self, request: &ChatRequest) -> Result<String, TextError>;
}

/// One message of a chat: a role, a content and whatever else the template looks at.
#[derive(Debug, Clone)]
pub struct Message(Value);

impl Message {
    /// A message of text. The usual roles are `system`, `user`, `assistant` and `tool`.
    pub fn new(role: &str, content: &str) -> Self {
        Self(Value::from_pairs([("role", Value::from(role)), ("content", Value::from(content))]))
    }

    /// The messages of a JSON array of objects, in the form of the common chat interfaces (`role`, `content`,
    /// `tool_calls` …).
    ///
    /// # Errors
    /// Not JSON, or not an array of objects.
    pub fn list_from_json(json: &str) -> Result<Vec<Self>, TextError> {
        let bad = |message: String| TextError::BadJson { what: "messages", message };
        let messages: Vec<Value> = serde_json::from_str(json).map_err(|e| bad(e.to_string()))?;
        match messages.iter().position(|m| m.kind() != ValueKind::Map) {
            Some(index) => Err(bad(format!("element {index} is no object"))),
            None => Ok(messages.into_iter().map(Self).collect()),
        }
    }
}

/// What a template is given.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    messages: Vec<Message>,
    add_generation_prompt: bool,
    now: Option<SystemTime>,
    variables: Vec<(String, Value)>,
}

impl ChatRequest {
    /// A request to continue `messages` with the model's answer.
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, add_generation_prompt: true, ..Self::default() }
    }

    /// Whether the prompt ends where the model's answer begins (default: yes).
    #[must_use]
    pub fn add_generation_prompt(mut self, yes: bool) -> Self {
        self.add_generation_prompt = yes;
        self
    }

    /// The time that `strftime_now` tells, in UTC (default: the system's).
    #[must_use]
    pub fn now(mut self, now: SystemTime) -> Self {
        self.now = Some(now);
        self
    }

    /// The tools that the model may call: a JSON array.
    ///
    /// # Errors
    /// Not JSON.
    pub fn tools_json(self, json: &str) -> Result<Self, TextError> {
        self.variable_json("tools", json).map_err(|e| match e {
            TextError::BadJson { message, .. } => TextError::BadJson { what: "tools", message },
            e => e,
        })
    }

    /// Any other variable of the template (`enable_thinking`, `documents` …) as JSON.
    ///
    /// # Errors
    /// Not JSON.
    pub fn variable_json(mut self, name: &str, json: &str) -> Result<Self, TextError> {
        let value: Value = serde_json::from_str(json)
            .map_err(|e| TextError::BadJson { what: "variables", message: e.to_string() })?;
        self.variables.push((name.to_owned(), value));
        Ok(self)
    }
}

/// The spelling of the special tokens that templates write out.
#[derive(Debug, Clone, Default)]
pub struct TemplateTokens {
    /// `bos_token`.
    pub bos: Option<String>,
    /// `eos_token`.
    pub eos: Option<String>,
    /// `unk_token`.
    pub unknown: Option<String>,
    /// `pad_token`.
    pub padding: Option<String>,
}

/// A parsed template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    tokens: TemplateTokens,
}

const NAME: &str = "chat";

impl ChatTemplate {
    /// Parses `source`.
    ///
    /// # Errors
    /// A syntax error, with its line.
    pub fn new(source: &str, tokens: TemplateTokens) -> Result<Self, TextError> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(template_error)?);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(|_, value, name, args| methods::call(value, name, args));
        environment.set_formatter(|out, _, value| python::write(out, value));
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(Refusal(message)))
        });
        environment.add_filter("tojson", tojson);
        let source = without_generation_blocks(source);
        environment.add_template_owned(NAME, source).map_err(template_error)?;
        Ok(Self { environment, tokens })
    }
}

impl RenderChat for ChatTemplate {
    fn render(&self, request: &ChatRequest) -> Result<String, TextError> {
        let now = request.now.unwrap_or_else(SystemTime::now);
        let strftime = Value::from_function(move |format: &str| time::format(now, format));
        let messages: Value = request.messages.iter().map(|m| m.0.clone()).collect::<Vec<_>>().into();
        let mut context = vec![
            ("messages", messages),
            ("add_generation_prompt", Value::from(request.add_generation_prompt)),
            ("strftime_now", strftime),
        ];
        let tokens = [
            ("bos_token", &self.tokens.bos),
            ("eos_token", &self.tokens.eos),
            ("unk_token", &self.tokens.unknown),
            ("pad_token", &self.tokens.padding),
        ];
        context.extend(tokens.map(|(name, text)| (name, Value::from(text.as_deref().unwrap_or_default()))));
        context.extend(request.variables.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let template = self.environment.get_template(NAME).map_err(template_error)?;
        template.render(Value::from_pairs(context)).map_err(template_error)
    }
}

/// What `raise_exception` was given, carried through minijinja's error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

fn template_error(error: Error) -> TextError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return TextError::TemplateRefused { message: refusal.0.clone() };
        }
        source = cause.source();
    }
    let detail = error.detail().map(|d| format!("{}: {d}", error.kind()));
    TextError::Template { message: detail.unwrap_or_else(|| error.kind().to_string()), line: error.line() }
}

/// `tojson` as Python's `json.dumps(value, ensure_ascii=False, indent=…)` writes it.
fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<Value>>("indent")?,
    };
    let style = json::Style {
        indent: indent.and_then(|i| i.as_usize()).map(|i| i.min(16)),
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    // `separators` names what the style does anyway in the templates that use it.
    let _: Option<Value> = options.get("separators")?;
    options.assert_all_used()?;
    json::to_string(value, &style)
}

/// Training tools mark the model's words with `{% generation %}` blocks, which print what they hold.
fn without_generation_blocks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let Some(length) = rest[at..].find("%}") else { break };
        let tag = &rest[at..at + length + 2];
        out.push_str(&rest[..at]);
        let word = tag[2..tag.len() - 2].trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        match word {
            "generation" => out.push_str(&tag.replace(word, "if true")),
            "endgeneration" => out.push_str(&tag.replace(word, "endif")),
            _ => out.push_str(tag),
        }
        rest = &rest[at + tag.len()..];
    }
    out.push_str(rest);
    out
}
