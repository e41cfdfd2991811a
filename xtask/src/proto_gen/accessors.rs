//! The accessors of a field that stands in no oneof.

use super::emit::docs;
use super::message::{Place, Store};
use super::schema::Kind;
use std::fmt::Write;

/// Emits the accessors of one field.
pub(super) fn emit(out: &mut String, place: &Place<'_>) {
    match place.store {
        Store::Text if place.field.kind == Kind::String => text(out, place),
        Store::Text => bytes(out, place),
        Store::Texts => texts(out, place),
        Store::Payload => payload(out, place),
        Store::Number => number(out, place),
        Store::Ints => list(out, place, "i64", "Ints"),
        Store::Floats => list(out, place, "f32", "Vec<f32>"),
        Store::Messages => list(out, place, &place.value_type(), &format!("Vec<{}>", place.value_type())),
        Store::Packed => packed(out, place),
        Store::Message => message(out, place),
    }
}

/// The names of the accessors of one field, as [`emit`] and `oneof::accessors` give them.
pub(super) fn names(place: &Place<'_>) -> Vec<String> {
    let (id, name) = (place.id.clone(), &place.field.name);
    let with = |prefix: &str, suffix: &str| format!("{prefix}{name}{suffix}");
    let presence = [id.clone(), with("has_", ""), with("set_", "")];
    let more: Vec<String> = match place.store {
        _ if place.field.oneof.is_some() && place.store == Store::Message => vec![with("", "_mut")],
        _ if place.field.oneof.is_some() => Vec::new(),
        Store::Text if place.field.kind == Kind::String => vec![with("clear_", ""), with("", "_bytes")],
        Store::Text => vec![with("clear_", ""), with("", "_shared"), format!("set_{name}_shared")],
        Store::Payload | Store::Number => vec![with("clear_", "")],
        Store::Message => vec![with("clear_", ""), with("", "_mut")],
        Store::Texts | Store::Ints | Store::Floats | Store::Packed | Store::Messages => {
            return vec![id, with("", "_mut")];
        }
    };
    presence.into_iter().chain(more).collect()
}

/// A method with the field's comment and more lines of documentation.
fn method(out: &mut String, place: &Place<'_>, more: &str, code: &str) {
    docs(out, &place.field.doc);
    if !more.is_empty() {
        out.push_str("///\n");
        docs(out, more);
    }
    _ = writeln!(out, "{}{code}\n", place.cfg);
}

/// A method whose name says it all.
fn plain(out: &mut String, place: &Place<'_>, doc: &str, code: &str) {
    docs(out, doc);
    _ = writeln!(out, "{}{code}\n", place.cfg);
}

fn clear(out: &mut String, place: &Place<'_>, absent: &str) {
    let Place { id, field, .. } = place;
    let code = if place.is_cold {
        format!("if let Some(cold) = &mut self.cold {{ cold.{id} = {absent}; }}")
    } else {
        format!("self.{id} = {absent};")
    };
    let name = &field.name;
    plain(
        out,
        place,
        &format!("Removes `{name}`."),
        &format!("pub fn clear_{name}(&mut self) {{ self.core.touch(); {code} }}"),
    );
}

fn has(out: &mut String, place: &Place<'_>, read: &str) {
    let name = &place.field.name;
    let read = place.read(read, "false");
    plain(
        out,
        place,
        &format!("Whether `{name}` is present."),
        &format!("pub fn has_{name}(&self) -> bool {{ {read} }}"),
    );
}

fn text(out: &mut String, place: &Place<'_>) {
    let (id, name, read, at) =
        (&place.id, &place.field.name, place.read("it", "Text::ABSENT"), place.place());
    method(
        out,
        place,
        "Empty when absent; [`NOT_UTF8`](crate::NOT_UTF8) when the bytes are no valid UTF-8.",
        &format!("pub fn {id}(&self) -> &str {{ self.core.str({read}) }}"),
    );
    plain(
        out,
        place,
        &format!("The bytes of `{name}`; empty when absent."),
        &format!("pub fn {name}_bytes(&self) -> &[u8] {{ self.core.text({read}).unwrap_or(&[]) }}"),
    );
    has(out, place, "!it.is_absent()");
    plain(
        out,
        place,
        &format!("Sets `{name}`."),
        &format!(
            "pub fn set_{name}(&mut self, value: &str) {{ self.core.set(&mut {at}, value.as_bytes()); }}"
        ),
    );
    clear(out, place, "Text::ABSENT");
}

fn bytes(out: &mut String, place: &Place<'_>) {
    let (id, name, read, at) =
        (&place.id, &place.field.name, place.read("it", "Text::ABSENT"), place.place());
    method(
        out,
        place,
        "Empty when absent.",
        &format!("pub fn {id}(&self) -> &[u8] {{ self.core.text({read}).unwrap_or(&[]) }}"),
    );
    plain(
        out,
        place,
        &format!("`{name}` as a handle that shares the file's memory."),
        &format!("pub fn {name}_shared(&self) -> Bytes {{ self.core.shared({read}) }}"),
    );
    has(out, place, "!it.is_absent()");
    plain(
        out,
        place,
        &format!("Sets `{name}` to a copy of short bytes."),
        &format!("pub fn set_{name}(&mut self, value: &[u8]) {{ self.core.set(&mut {at}, value); }}"),
    );
    plain(
        out,
        place,
        &format!("Sets `{name}` to shared bytes."),
        &format!(
            "pub fn set_{name}_shared(&mut self, value: Bytes) {{ self.core.set_shared(&mut {at}, value); }}"
        ),
    );
    clear(out, place, "Text::ABSENT");
}

fn texts(out: &mut String, place: &Place<'_>) {
    let (id, name, at) = (&place.id, &place.field.name, place.place());
    let read = place.read("&it[..]", "&[]");
    method(
        out,
        place,
        "",
        &format!("pub fn {id}(&self) -> Strings<'_> {{ Strings::new(&self.core, {read}) }}"),
    );
    plain(
        out,
        place,
        &format!("`{name}`, to change."),
        &format!(
            "pub fn {name}_mut(&mut self) -> StringsMut<'_> {{ StringsMut::new(&mut self.core, &mut {at}) }}"
        ),
    );
}

fn payload(out: &mut String, place: &Place<'_>) {
    let (id, name, at) = (&place.id, &place.field.name, place.place());
    let read = place.read("it.as_ref()", "None");
    method(
        out,
        place,
        "`None` when absent. The bytes are those of the file, shared.",
        &format!("pub fn {id}(&self) -> Option<&Bytes> {{ {read} }}"),
    );
    has(out, place, "it.is_some()");
    plain(
        out,
        place,
        &format!("Sets `{name}` to shared bytes."),
        &format!("pub fn set_{name}(&mut self, value: Bytes) {{ self.core.touch(); {at} = Some(value); }}"),
    );
    clear(out, place, "None");
}

fn number(out: &mut String, place: &Place<'_>) {
    let (id, name, at, value) = (&place.id, &place.field.name, place.place(), place.value_type());
    let read = place.read("it", "None");
    let (get, set) = match place.field.kind {
        Kind::Enum(_) => (format!("{value}(({read}).unwrap_or(0))"), "value.0"),
        Kind::Float => (format!("({read}).unwrap_or(0.0)"), "value"),
        _ => (format!("({read}).unwrap_or(0)"), "value"),
    };
    let get = if place.is_cold { get } else { get.replace(&format!("({read})"), &read) };
    method(out, place, "Zero when absent.", &format!("pub fn {id}(&self) -> {value} {{ {get} }}"));
    has(out, place, "it.is_some()");
    plain(
        out,
        place,
        &format!("Sets `{name}`."),
        &format!("pub fn set_{name}(&mut self, value: {value}) {{ self.core.touch(); {at} = Some({set}); }}"),
    );
    clear(out, place, "None");
}

fn list(out: &mut String, place: &Place<'_>, element: &str, owner: &str) {
    let (id, name, at) = (&place.id, &place.field.name, place.place());
    let read = place.read("&it", "&[]");
    method(out, place, "", &format!("pub fn {id}(&self) -> &[{element}] {{ {read} }}"));
    plain(
        out,
        place,
        &format!("`{name}`, to change."),
        &format!("pub fn {name}_mut(&mut self) -> &mut {owner} {{ self.core.touch(); &mut {at} }}"),
    );
}

fn packed(out: &mut String, place: &Place<'_>) {
    let (id, name, at, value) = (&place.id, &place.field.name, place.place(), place.value_type());
    let read = place.read("&it", &format!("{value}::empty()"));
    method(out, place, "", &format!("pub fn {id}(&self) -> &Packed<{value}> {{ {read} }}"));
    plain(
        out,
        place,
        &format!("`{name}`, to change: a list in the file is read into memory first."),
        &format!(
            "pub fn {name}_mut(&mut self) -> &mut Vec<{value}> {{ self.core.touch(); {at}.list_mut() }}"
        ),
    );
}

fn message(out: &mut String, place: &Place<'_>) {
    let (id, name, at, value) = (&place.id, &place.field.name, place.place(), place.value_type());
    let read = place.read(place.unboxed(), "None");
    let stored = place.boxed("value");
    method(out, place, "", &format!("pub fn {id}(&self) -> Option<&{value}> {{ {read} }}"));
    has(out, place, "it.is_some()");
    plain(
        out,
        place,
        &format!("`{name}`, to change; an empty one where it was absent."),
        &format!(
            "pub fn {name}_mut(&mut self) -> &mut {value} {{ self.core.touch(); {at}.get_or_insert_default() }}"
        ),
    );
    plain(
        out,
        place,
        &format!("Sets `{name}`."),
        &format!(
            "pub fn set_{name}(&mut self, value: {value}) {{ self.core.touch(); {at} = Some({stored}); }}"
        ),
    );
    clear(out, place, "None");
}
