//! The code of one message: its struct, its accessors, and what the merge loop and the writer ask of it.

use super::emit::{CFG, EXTENSION_FIELDS, docs, open_enum};
use super::schema::{Field, Kind, Message};
use std::fmt::Write;

/// Fields that few messages have: they share one box, so that the others stay small.
const COLD: &[(&str, &[&str])] = &[
    (
        "AttributeProto",
        &[
            "doc_string",
            "ref_attr_name",
            "floats",
            "strings",
            "sparse_tensor",
            "tp",
            "tensors",
            "graphs",
            "sparse_tensors",
            "type_protos",
        ],
    ),
    ("NodeProto", &["overload", "doc_string", "metadata_props", "device_configurations"]),
    (
        "TensorProto",
        &[
            "segment",
            "float_data",
            "int32_data",
            "string_data",
            "int64_data",
            "doc_string",
            "external_data",
            "data_location",
            "double_data",
            "uint64_data",
            "metadata_props",
        ],
    ),
    ("ValueInfoProto", &["doc_string", "metadata_props"]),
];

/// Singular bytes that are stored like strings; all others are payloads with a handle of their own.
const LIKE_TEXT: &[(&str, &str)] = &[("AttributeProto", "s")];

/// Singular messages that nearly always come with the one around them: they stand in it, not in a box.
const INLINE: &[(&str, &str)] = &[("TypeProto", "tensor_type"), ("TypeProto.Tensor", "shape")];

/// How a field is stored.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Store {
    Text,
    Texts,
    Payload,
    Number,
    Ints,
    Floats,
    Packed,
    Message,
    Messages,
}

/// What the generator knows of a field.
pub(super) struct Place<'a> {
    pub(super) field: &'a Field,
    /// The name in Rust.
    pub(super) id: String,
    pub(super) store: Store,
    pub(super) is_cold: bool,
    pub(super) is_inline: bool,
    /// `#[cfg(…)]` where the feature brings the field, else nothing.
    pub(super) cfg: &'static str,
}

/// The Rust path of a message or enum, such as `crate::type_proto::Tensor`.
pub(super) fn rust_path(full_name: &str) -> String {
    let mut parts: Vec<&str> = full_name.split('.').collect();
    let name = parts.pop().unwrap_or_default();
    let modules: String = parts.iter().map(|part| format!("{}::", snake(part))).collect();
    format!("crate::{modules}{name}")
}

pub(super) fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, c) in name.char_indices() {
        if c.is_ascii_uppercase() && index > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

pub(super) fn camel(name: &str) -> String {
    let part = |part: &str| part[..1].to_ascii_uppercase() + &part[1..];
    name.split('_').filter(|part| !part.is_empty()).map(part).collect()
}

impl Place<'_> {
    pub(super) fn new<'a>(message: &Message, field: &'a Field, all_extension: bool) -> Place<'a> {
        let store = match (&field.kind, field.repeated) {
            (Kind::String, false) => Store::Text,
            (Kind::String | Kind::Bytes, true) => Store::Texts,
            (Kind::Bytes, false) if LIKE_TEXT.contains(&(&message.name, &field.name)) => Store::Text,
            (Kind::Bytes, false) => Store::Payload,
            (Kind::Message(_), false) => Store::Message,
            (Kind::Message(_), true) => Store::Messages,
            (_, true) if field.packed => Store::Packed,
            (Kind::Int64, true) => Store::Ints,
            (Kind::Float, true) => Store::Floats,
            (_, false) => Store::Number,
            (_, true) => panic!("`{}`: a list of this type is not provided for", field.name),
        };
        let cold = COLD.iter().find(|(name, _)| *name == message.full_name);
        Place {
            field,
            id: if field.name == "type" { "type_".into() } else { field.name.clone() },
            store,
            is_cold: cold.is_some_and(|(_, fields)| fields.contains(&field.name.as_str())),
            is_inline: INLINE.contains(&(&message.full_name, &field.name)),
            cfg: if EXTENSION_FIELDS.contains(&field.number) && !all_extension { CFG } else { "" },
        }
    }

    /// The type of the value, as the accessors show it.
    pub(super) fn value_type(&self) -> String {
        match &self.field.kind {
            Kind::String => "str".into(),
            Kind::Bytes => "[u8]".into(),
            Kind::Int32 => "i32".into(),
            Kind::Int64 => "i64".into(),
            Kind::Uint32 => "u32".into(),
            Kind::Uint64 => "u64".into(),
            Kind::Float => "f32".into(),
            Kind::Double => "f64".into(),
            Kind::Enum(name) | Kind::Message(name) => rust_path(name),
        }
    }

    /// The type of the struct's field.
    fn stored_type(&self) -> String {
        match self.store {
            Store::Text => "Text".into(),
            Store::Texts => "TextList".into(),
            Store::Payload => "Option<Bytes>".into(),
            Store::Number if matches!(self.field.kind, Kind::Enum(_)) => "Option<i32>".into(),
            Store::Number => format!("Option<{}>", self.value_type()),
            Store::Ints => "Ints".into(),
            Store::Floats => "Vec<f32>".into(),
            Store::Packed => format!("Packed<{}>", self.value_type()),
            Store::Message => format!("Option<{}>", self.boxed_type()),
            Store::Messages => format!("Vec<{}>", self.value_type()),
        }
    }

    /// The type of a message where it is stored.
    pub(super) fn boxed_type(&self) -> String {
        if self.is_inline { self.value_type() } else { format!("Box<{}>", self.value_type()) }
    }

    /// A message as it is stored.
    pub(super) fn boxed(&self, value: &str) -> String {
        if self.is_inline { value.into() } else { format!("Box::new({value})") }
    }

    /// A reference to a message out of an option of it.
    pub(super) fn unboxed(&self) -> &'static str {
        if self.is_inline { "it.as_ref()" } else { "it.as_deref()" }
    }

    /// The field, to change; makes the box of rare fields.
    pub(super) fn place(&self) -> String {
        if self.is_cold {
            format!("self.cold.get_or_insert_default().{}", self.id)
        } else {
            format!("self.{}", self.id)
        }
    }

    /// `$read` of the field where it exists, else `$absent`; `it` stands for the field in `$read`.
    pub(super) fn read(&self, read: &str, absent: &str) -> String {
        if self.is_cold {
            let read = read.replace("it", &format!("cold.{}", self.id));
            format!("match self.cold.as_deref() {{ Some(cold) => {read}, None => {absent} }}")
        } else {
            read.replace("it", &format!("self.{}", self.id))
        }
    }

    fn kind_name(&self) -> &'static str {
        match self.field.kind {
            Kind::Int32 | Kind::Enum(_) => "Int32",
            Kind::Int64 => "Int64",
            Kind::Uint32 => "Uint32",
            Kind::Uint64 => "Uint64",
            Kind::Float => "Float",
            _ => panic!("`{}`: a number of this type is not provided for", self.field.name),
        }
    }
}

/// Emits a message and the module of what stands inside it.
pub(super) fn emit(out: &mut String, it: &Message, all_extension: bool) {
    let places: Vec<Place<'_>> = it.fields.iter().map(|field| Place::new(it, field, all_extension)).collect();
    structs(out, it, &places);
    info(out, it, &places);
    _ = writeln!(out, "impl {} {{", it.name);
    for place in places.iter().filter(|place| place.field.oneof.is_none()) {
        super::accessors::emit(out, place);
    }
    for oneof in &it.oneofs {
        super::oneof::accessors(out, it, oneof, &members(&places, oneof));
    }
    out.push_str("}\n\n");
    wire(out, it, &places);
    if it.nested.is_empty() && it.enums.is_empty() && it.oneofs.is_empty() {
        return;
    }
    _ = write!(out, "/// What stands inside [`{0}`].\npub mod {1} {{\n", it.name, snake(&it.name));
    if !it.nested.is_empty() || !it.enums.is_empty() {
        let depth = it.full_name.matches('.').count() + 2;
        _ = writeln!(
            out,
            "#[allow(unused_imports, reason = \"each module takes what it needs\")]\nuse {}prelude::*;\n",
            "super::".repeat(depth)
        );
    }
    for oneof in &it.oneofs {
        super::oneof::public_enum(out, it, oneof, &members(&places, oneof));
    }
    for it in &it.enums {
        open_enum(out, it);
    }
    for it in &it.nested {
        emit(out, it, all_extension);
    }
    out.push_str("}\n\n");
}

fn members<'a, 'b>(places: &'b [Place<'a>], oneof: &str) -> Vec<&'b Place<'a>> {
    places.iter().filter(|place| place.field.oneof.as_deref() == Some(oneof)).collect()
}

fn structs(out: &mut String, it: &Message, places: &[Place<'_>]) {
    let stored = |out: &mut String, is_cold: bool| {
        for place in places.iter().filter(|place| place.is_cold == is_cold && place.field.oneof.is_none()) {
            _ = writeln!(out, "{}{}: {},", place.cfg, place.id, place.stored_type());
        }
    };
    docs(out, &it.doc);
    _ = writeln!(out, "#[derive(Clone, Default)]\npub struct {} {{\ncore: Core,", it.name);
    stored(out, false);
    for oneof in &it.oneofs {
        _ = writeln!(out, "{oneof}: Option<{}>,", super::oneof::stored_name(it, oneof));
    }
    let has_cold = places.iter().any(|place| place.is_cold);
    if has_cold {
        _ = writeln!(out, "cold: Option<Box<{}Cold>>,", it.name);
    }
    out.push_str("}\n\n");
    if has_cold {
        _ = writeln!(out, "#[derive(Clone, Default)]\nstruct {}Cold {{", it.name);
        stored(out, true);
        out.push_str("}\n\n");
    }
    for oneof in &it.oneofs {
        super::oneof::stored_enum(out, it, oneof, &members(places, oneof));
    }
    _ = writeln!(out, "message!({});\n", it.name);
}

fn info(out: &mut String, it: &Message, places: &[Place<'_>]) {
    _ = write!(
        out,
        "impl {} {{\nconst INFO: &'static MessageInfo = &MessageInfo {{ name: \"{}\", fields: &[\n",
        it.name, it.full_name
    );
    for place in places {
        let field = place.field;
        let kind = match &field.kind {
            Kind::String => "String".into(),
            Kind::Bytes => "Bytes".into(),
            Kind::Int32 => "Int32".into(),
            Kind::Int64 => "Int64".into(),
            Kind::Uint32 => "Uint32".into(),
            Kind::Uint64 => "Uint64".into(),
            Kind::Float => "Float".into(),
            Kind::Double => "Double".into(),
            Kind::Enum(name) => format!("Enum(\"{name}\")"),
            Kind::Message(name) => format!("Message(\"{name}\")"),
        };
        _ = writeln!(
            out,
            "{}FieldInfo {{ name: \"{}\", number: {}, repeated: {}, packed: {}, oneof: {:?}, kind: FieldKind::{kind} }},",
            place.cfg, field.name, field.number, field.repeated, field.packed, field.oneof,
        );
    }
    out.push_str("] };\n}\n\n");
}

/// `impl Message`: slots and values by field.
fn wire(out: &mut String, it: &Message, places: &[Place<'_>]) {
    let cold = if places.iter().any(|place| place.is_cold) {
        format!(" + size_of::<{}Cold>()", it.name)
    } else {
        String::new()
    };
    _ = write!(
        out,
        "impl Message for {name} {{\n\
         fn as_any(&self) -> &dyn std::any::Any {{ self }}\n\
         fn info(&self) -> &'static MessageInfo {{ Self::INFO }}\n\
         fn core(&self) -> &Core {{ &self.core }}\n\
         fn core_mut(&mut self) -> (&mut Core, u64) {{\n\
         (&mut self.core, crate::wire::wide(size_of::<Self>(){cold}))\n}}\n\
         fn slot(&mut self, tag: u32) -> Slot<'_> {{\nmatch tag {{\n",
        name = it.name
    );
    for place in places {
        let slot = match (&place.field.oneof, place.store) {
            (Some(oneof), _) => super::oneof::slot(it, oneof, place),
            (None, Store::Text) => format!("Slot::Text(&mut self.core, &mut {})", place.place()),
            (None, Store::Texts) => format!("Slot::Texts(&mut self.core, &mut {})", place.place()),
            (None, Store::Payload) => format!("Slot::Payload(&mut {})", place.place()),
            (None, Store::Number) => format!("Slot::{}(&mut {})", place.kind_name(), place.place()),
            (None, Store::Ints) => format!("Slot::Ints(&mut {})", place.place()),
            (None, Store::Floats) => format!("Slot::Floats(&mut {})", place.place()),
            (None, Store::Packed) => format!("Slot::Packed(&mut {})", place.place()),
            (None, Store::Message) => {
                let stars = if place.is_inline { "*" } else { "**" };
                format!("Slot::Message(&mut {stars}{}.get_or_insert_default())", place.place())
            }
            (None, Store::Messages) => format!("Slot::Messages(&mut {})", place.place()),
        };
        let wire_type = match place.field.kind {
            Kind::String | Kind::Bytes | Kind::Message(_) => 2,
            Kind::Float => 5,
            Kind::Double => 1,
            _ => 0,
        };
        let tag = place.field.number << 3 | wire_type;
        let tags = if place.field.repeated && wire_type != 2 {
            format!("{tag} | {}", place.field.number << 3 | 2)
        } else {
            tag.to_string()
        };
        _ = writeln!(out, "{}{tags} => {slot},", place.cfg);
    }
    out.push_str(
        "_ => Slot::Unknown,\n}\n}\nfn visit<'a>(&'a self, visitor: Visitor<'_, 'a>) {\nlet fields = Self::INFO.fields;\n",
    );
    for (index, place) in places.iter().enumerate() {
        let get = match (&place.field.oneof, place.store) {
            (Some(oneof), _) => super::oneof::get(it, oneof, place),
            (None, Store::Text) => place.read("FieldValue::text(&self.core, it)", "None"),
            (None, Store::Texts) => place.read("FieldValue::texts(&self.core, &it)", "None"),
            (None, Store::Payload) => place.read("FieldValue::payload(it.as_ref())", "None"),
            (None, Store::Number) => {
                place.read(&format!("FieldValue::{}(it)", place.kind_name().to_ascii_lowercase()), "None")
            }
            (None, Store::Ints) => place.read("FieldValue::ints(&it)", "None"),
            (None, Store::Floats) => place.read("FieldValue::floats(&it)", "None"),
            (None, Store::Packed) => place.read("FieldValue::packed(&it)", "None"),
            (None, Store::Message) => {
                place.read(&format!("FieldValue::message({})", place.unboxed()), "None")
            }
            (None, Store::Messages) => place.read("FieldValue::messages(&it)", "None"),
        };
        _ = writeln!(out, "{}if let Some(value) = {get} {{ visitor(&fields[{index}], value); }}", place.cfg);
    }
    out.push_str("}\n}\n\n");
}
