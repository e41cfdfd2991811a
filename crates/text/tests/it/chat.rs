//! Chat templates against Python's Jinja (`tests/record_chat.py`).

use std::time::{Duration, UNIX_EPOCH};

use heirloom_text::{ChatRequest, ChatTemplate, Message, RenderChat, TemplateTokens, TextError};
use serde::Deserialize;

use crate::models;

#[derive(Deserialize)]
struct Record {
    now: u64,
    inputs: Vec<Input>,
    cases: Vec<Case>,
    refusal: Refusal,
    models: Vec<Prompt>,
}

#[derive(Deserialize)]
struct Input {
    messages: String,
    tools: Option<String>,
    add_generation_prompt: bool,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    input: usize,
    prompt: String,
}

#[derive(Deserialize)]
struct Refusal {
    template: String,
    message: String,
}

#[derive(Deserialize)]
struct Prompt {
    input: usize,
    length: usize,
    checksum: String,
}

fn record() -> Record {
    serde_json::from_str(include_str!("../fixtures/chat.json")).unwrap()
}

impl Record {
    fn render(&self, template: &str, input: usize) -> Result<String, TextError> {
        let tokens =
            TemplateTokens { bos: Some("<s>".into()), eos: Some("</s>".into()), ..TemplateTokens::default() };
        let input = &self.inputs[input];
        let mut request = ChatRequest::new(Message::list_from_json(&input.messages)?)
            .add_generation_prompt(input.add_generation_prompt)
            .now(UNIX_EPOCH + Duration::from_secs(self.now));
        if let Some(tools) = &input.tools {
            request = request.tools_json(tools)?;
        }
        ChatTemplate::new(template, tokens)?.render(&request)
    }
}

#[test]
fn templates_give_what_python_s_jinja_gives() {
    let record = record();
    let mut wrong = Vec::new();
    for case in &record.cases {
        match record.render(&case.template, case.input) {
            Ok(prompt) if prompt == case.prompt => {}
            other => wrong.push(format!("{:?}\n  gives {other:?}\n  not   {:?}", case.template, case.prompt)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), record.cases.len(), wrong.join("\n"));
    assert!(record.cases.len() > 40);
}

#[test]
fn the_models_templates_give_what_python_s_jinja_gives() {
    let record = record();
    let names = ["smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct"];
    let expected = record.models.chunks(record.inputs.len());
    for (name, prompts) in names.into_iter().zip(expected) {
        let template = models::vocabulary(name).chat_template.unwrap();
        for prompt in prompts {
            let text = record.render(&template, prompt.input).unwrap();
            let sum = text.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            let found = (text.len(), format!("{sum:016x}"));
            assert_eq!(found, (prompt.length, prompt.checksum.clone()), "{name}: {text}");
        }
    }
}

#[test]
fn a_template_that_refuses_the_messages_is_quoted() {
    let record = record();
    let error = record.render(&record.refusal.template, 0).unwrap_err();
    assert!(matches!(&error, TextError::TemplateRefused { message } if *message == record.refusal.message));
    assert_eq!(error.to_string(), "the chat template refuses these messages: no system messages: Be brief.");
}

#[test]
fn faults_of_a_template_name_its_line() {
    let tokens = TemplateTokens::default;
    let syntax = ChatTemplate::new("a\n{% if %}", tokens()).err().unwrap();
    assert!(matches!(syntax, TextError::Template { line: Some(2), .. }), "{syntax}");
    let request = ChatRequest::new(vec![Message::new("user", "Hi")]);
    let render = |source: &str| ChatTemplate::new(source, tokens()).unwrap().render(&request);
    let method = render("\n\n{{ messages[0].content.frobnicate() }}").unwrap_err();
    assert!(matches!(&method, TextError::Template { line: Some(3), .. }), "{method}");
    assert!(method.to_string().contains("frobnicate"), "{method}");
    assert!(matches!(render("{{ none.x.y }}"), Err(TextError::Template { .. })));
}

#[test]
fn a_template_that_does_not_end_is_stopped() {
    let request = ChatRequest::new(Vec::new());
    for source in [
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "{% set n = namespace(s='x') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    ] {
        let error = ChatTemplate::new(source, TemplateTokens::default()).unwrap().render(&request);
        assert!(matches!(error, Err(TextError::Template { .. })), "{source}");
    }
}

#[test]
fn messages_and_tools_that_are_no_json_are_refused_by_name() {
    let list = |json| Message::list_from_json(json).unwrap_err().to_string();
    assert!(list("[{").starts_with("messages is not valid JSON: "));
    assert_eq!(list("[{}, 1]"), "messages is not valid JSON: element 1 is no object");
    let tools = ChatRequest::new(Vec::new()).tools_json("nope").unwrap_err().to_string();
    assert!(tools.starts_with("tools is not valid JSON: "), "{tools}");
}
