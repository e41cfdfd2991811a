//! Oneofs: how they are stored, the enum through which they are read, and their members' accessors.

use super::emit::docs;
use super::message::{Place, Store, camel, snake};
use super::schema::{Kind, Message};
use std::fmt::Write;

/// The name of the enum that stores a oneof.
pub(super) fn stored_name(it: &Message, oneof: &str) -> String {
    format!("{}{}Store", it.name, camel(oneof))
}

fn stored_type(place: &Place<'_>) -> String {
    match place.store {
        Store::Text => "Text".into(),
        Store::Number => place.value_type(),
        Store::Message => place.boxed_type(),
        _ => panic!("`{}`: a oneof member of this type is not provided for", place.field.name),
    }
}

fn variant(place: &Place<'_>) -> String {
    camel(&place.field.name)
}

/// The enum that stores a oneof.
pub(super) fn stored_enum(out: &mut String, it: &Message, oneof: &str, members: &[&Place<'_>]) {
    _ = writeln!(
        out,
        "#[allow(clippy::enum_variant_names, clippy::large_enum_variant, reason = \"the names of `onnx.proto`\")]\n#[derive(Clone)]\nenum {} {{",
        stored_name(it, oneof)
    );
    for place in members {
        _ = writeln!(out, "{}{}({}),", place.cfg, variant(place), stored_type(place));
    }
    out.push_str("}\n\n");
}

/// The enum through which a oneof is read.
pub(super) fn public_enum(out: &mut String, it: &Message, oneof: &str, members: &[&Place<'_>]) {
    _ = write!(
        out,
        "/// The alternatives of [`{}::{oneof}`](super::{0}::{oneof}).\n\
         #[allow(clippy::enum_variant_names, clippy::large_enum_variant, reason = \"the names of `onnx.proto`\")]\n#[derive(Clone, Copy, Debug, PartialEq)]\n#[non_exhaustive]\npub enum {}<'a> {{\n",
        it.name,
        camel(oneof)
    );
    for place in members {
        docs(out, &place.field.doc);
        _ = writeln!(out, "{}{}({}),", place.cfg, variant(place), shown_type(place, "'a "));
    }
    out.push_str("}\n\n");
}

fn shown_type(place: &Place<'_>, lifetime: &str) -> String {
    match place.store {
        Store::Number => place.value_type(),
        _ => format!("&{lifetime}{}", place.value_type()),
    }
}

fn shown_value(place: &Place<'_>) -> &'static str {
    match place.store {
        Store::Text => "self.core.str(*value)",
        Store::Number => "*value",
        _ => "value",
    }
}

/// The accessors of a oneof and its members.
pub(super) fn accessors(out: &mut String, it: &Message, oneof: &str, members: &[&Place<'_>]) {
    let stored = stored_name(it, oneof);
    let public = format!("{}::{}", snake(&it.name), camel(oneof));
    _ = writeln!(
        out,
        "/// Which alternative of `{oneof}` is present, with its value.\n\
         pub fn {oneof}(&self) -> Option<{public}<'_>> {{\nmatch self.{oneof}.as_ref()? {{"
    );
    for place in members {
        let (cfg, name, value) = (place.cfg, variant(place), shown_value(place));
        _ = writeln!(out, "{cfg}{stored}::{name}(value) => Some({public}::{name}({value})),");
    }
    _ = writeln!(
        out,
        "}}\n}}\n\n/// Removes `{oneof}`.\npub fn clear_{oneof}(&mut self) {{ self.core.touch(); self.{oneof} = None; }}\n"
    );
    for place in members {
        member(out, oneof, &stored, place);
    }
}

fn member(out: &mut String, oneof: &str, stored: &str, place: &Place<'_>) {
    let Place { id, cfg, field, .. } = place;
    let (name, value, shown, variant) = (&field.name, place.value_type(), shown_value(place), variant(place));
    docs(out, &field.doc);
    _ = writeln!(
        out,
        "///\n/// `None` when another alternative of `{oneof}` is present, or none.\n\
         {cfg}pub fn {id}(&self) -> Option<{}> {{\nmatch &self.{oneof} {{\n\
         Some({stored}::{variant}(value)) => Some({shown}),\n_ => None,\n}}\n}}\n",
        shown_type(place, "")
    );
    _ = writeln!(
        out,
        "/// Whether `{name}` is present.\n\
         {cfg}pub fn has_{name}(&self) -> bool {{ matches!(self.{oneof}, Some({stored}::{variant}(_))) }}\n"
    );
    let set = match place.store {
        Store::Text => {
            format!(
                "let text = self.core.new_text(value.as_bytes()); self.{oneof} = Some({stored}::{variant}(text));"
            )
        }
        Store::Number => format!("self.{oneof} = Some({stored}::{variant}(value));"),
        _ => format!("self.{oneof} = Some({stored}::{variant}({}));", place.boxed("value")),
    };
    let argument = if place.store == Store::Text { "&str".into() } else { value.clone() };
    _ = writeln!(
        out,
        "/// Sets `{name}`, and removes another alternative of `{oneof}`.\n\
         {cfg}pub fn set_{name}(&mut self, value: {argument}) {{ self.core.touch(); {set} }}\n"
    );
    if place.store == Store::Message {
        _ = writeln!(
            out,
            "/// `{name}`, to change; an empty one in place of any other alternative of `{oneof}`.\n\
             {cfg}pub fn {name}_mut(&mut self) -> &mut {value} {{ self.core.touch(); self.{name}_place() }}\n\n\
             {cfg}fn {name}_place(&mut self) -> &mut {value} {{\n\
             if !self.has_{name}() {{ self.{oneof} = Some({stored}::{variant}(Default::default())); }}\n\
             match &mut self.{oneof} {{\nSome({stored}::{variant}(value)) => value,\n\
             _ => unreachable!(\"just set\"),\n}}\n}}\n"
        );
    }
}

/// The slot of a member.
pub(super) fn slot(it: &Message, oneof: &str, place: &Place<'_>) -> String {
    let (stored, name, variant) = (stored_name(it, oneof), &place.field.name, variant(place));
    let (empty, slot) = match (place.store, &place.field.kind) {
        (Store::Message, _) => return format!("Slot::Message(self.{name}_place())"),
        (Store::Text, _) => ("Text::ABSENT", "Slot::Text(&mut self.core, value)"),
        (_, Kind::Int64) => ("0", "Slot::Int64Member(value)"),
        (_, Kind::Uint64) => ("0", "Slot::Uint64Member(value)"),
        _ => panic!("`{name}`: a oneof member of this type is not provided for"),
    };
    format!(
        "{{\nif !self.has_{name}() {{ self.{oneof} = Some({stored}::{variant}({empty})); }}\n\
         match &mut self.{oneof} {{\nSome({stored}::{variant}(value)) => {slot},\n_ => Slot::Unknown,\n}}\n}}"
    )
}

/// The value of a member.
pub(super) fn get(it: &Message, oneof: &str, place: &Place<'_>) -> String {
    let (stored, variant) = (stored_name(it, oneof), variant(place));
    let value = match (place.store, &place.field.kind) {
        (Store::Message, _) if place.is_inline => "FieldValue::message(Some(value))",
        (Store::Message, _) => "FieldValue::message(Some(&**value))",
        (Store::Text, _) => "FieldValue::text(&self.core, *value)",
        (_, Kind::Int64) => "FieldValue::int64(Some(*value))",
        _ => "FieldValue::uint64(Some(*value))",
    };
    format!("match &self.{oneof} {{\nSome({stored}::{variant}(value)) => {value},\n_ => None,\n}}")
}
