//! The schema as the generator sees it, from compiled descriptors.

use crate::outcome::Faults;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::HashMap;
use std::path::Path;

pub(super) type Descriptors = FileDescriptorSet;

/// Parses and checks a `.proto` file.
pub(super) fn compile(path: &Path) -> Result<Descriptors, Faults> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut compiler = protox::Compiler::new([folder])
        .map_err(|error| Faults::one(format!("{}: {error}", path.display())))?;
    compiler.include_source_info(true);
    compiler.open_file(path).map_err(|error| Faults::one(format!("{}: {error:?}", path.display())))?;
    Ok(compiler.file_descriptor_set())
}

/// The descriptors in protobuf's own encoding.
pub(super) fn encode(set: &Descriptors) -> Vec<u8> {
    set.encode_to_vec()
}

/// All of a `.proto` file.
pub(super) struct Schema {
    pub(super) enums: Vec<Enum>,
    pub(super) messages: Vec<Message>,
}

/// An open enum.
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) doc: String,
    /// Name, number, doc.
    pub(super) values: Vec<(String, i32, String)>,
}

/// A message with those inside it.
pub(super) struct Message {
    pub(super) name: String,
    /// Such as `TypeProto.Tensor`.
    pub(super) full_name: String,
    pub(super) doc: String,
    /// By number.
    pub(super) fields: Vec<Field>,
    pub(super) oneofs: Vec<String>,
    pub(super) enums: Vec<Enum>,
    pub(super) nested: Vec<Message>,
}

/// A field.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) number: i32,
    pub(super) doc: String,
    pub(super) repeated: bool,
    pub(super) packed: bool,
    pub(super) oneof: Option<String>,
    pub(super) kind: Kind,
}

/// A field's type; messages and enums by full name.
#[derive(Clone, PartialEq)]
pub(super) enum Kind {
    String,
    Bytes,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Float,
    Double,
    Enum(String),
    Message(String),
}

type Docs = HashMap<Vec<i32>, String>;

impl Schema {
    pub(super) fn new(set: &Descriptors) -> Result<Schema, Faults> {
        let [file] = &set.file[..] else { return Err(Faults::one("one file without imports was expected")) };
        let locations = file.source_code_info.iter().flat_map(|info| &info.location);
        let docs: Docs = locations
            .filter_map(|place| Some((place.path.clone(), place.leading_comments.clone()?)))
            .map(|(path, text)| (path, text.trim().to_owned()))
            .collect();
        let enums = file.enum_type.iter().zip(0..);
        let messages = file.message_type.iter().zip(0..);
        Ok(Schema {
            enums: enums.map(|(it, index)| open_enum(it, &[5, index], &docs)).collect::<Result<_, _>>()?,
            messages: messages
                .map(|(it, index)| message(it, "", &[4, index], &docs))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn doc(docs: &Docs, path: &[i32], name: &str) -> Result<String, Faults> {
    docs.get(path)
        .cloned()
        .ok_or_else(|| Faults::one(format!("`{name}` has no comment in the `.proto` file")))
}

fn path(outer: &[i32], inner: [i32; 2]) -> Vec<i32> {
    outer.iter().copied().chain(inner).collect()
}

fn open_enum(it: &EnumDescriptorProto, at: &[i32], docs: &Docs) -> Result<Enum, Faults> {
    let values = it.value.iter().zip(0..).map(|(value, index)| {
        Ok((value.name().to_owned(), value.number(), doc(docs, &path(at, [2, index]), value.name())?))
    });
    Ok(Enum {
        name: it.name().to_owned(),
        doc: doc(docs, at, it.name())?,
        values: values.collect::<Result<_, Faults>>()?,
    })
}

fn message(it: &DescriptorProto, outer: &str, at: &[i32], docs: &Docs) -> Result<Message, Faults> {
    let full_name = if outer.is_empty() { it.name().to_owned() } else { format!("{outer}.{}", it.name()) };
    let mut fields: Vec<Field> = it
        .field
        .iter()
        .zip(0..)
        .map(|(field_it, index)| field(field_it, it, &path(at, [2, index]), docs))
        .collect::<Result<_, _>>()?;
    let used = |oneof: &String| fields.iter().any(|field| field.oneof.as_ref() == Some(oneof));
    let oneofs = it.oneof_decl.iter().map(|oneof| oneof.name().to_owned()).filter(used).collect();
    fields.sort_by_key(|field| field.number);
    let nested = it.nested_type.iter().zip(0..);
    let enums = it.enum_type.iter().zip(0..);
    Ok(Message {
        name: it.name().to_owned(),
        doc: doc(docs, at, &full_name)?,
        fields,
        oneofs,
        enums: enums
            .map(|(it, index)| open_enum(it, &path(at, [4, index]), docs))
            .collect::<Result<_, _>>()?,
        nested: nested
            .map(|(it, index)| message(it, &full_name, &path(at, [3, index]), docs))
            .collect::<Result<_, _>>()?,
        full_name,
    })
}

fn field(it: &FieldDescriptorProto, of: &DescriptorProto, at: &[i32], docs: &Docs) -> Result<Field, Faults> {
    let type_name = it.type_name().trim_start_matches(".onnx.").to_owned();
    let kind = match it.r#type() {
        Type::String => Kind::String,
        Type::Bytes => Kind::Bytes,
        Type::Int32 => Kind::Int32,
        Type::Int64 => Kind::Int64,
        Type::Uint32 => Kind::Uint32,
        Type::Uint64 => Kind::Uint64,
        Type::Float => Kind::Float,
        Type::Double => Kind::Double,
        Type::Enum => Kind::Enum(type_name),
        Type::Message => Kind::Message(type_name),
        other => return Err(Faults::one(format!("`{}`: the type {other:?} is not provided for", it.name()))),
    };
    let member = it.oneof_index.filter(|_| !it.proto3_optional());
    let oneof = member.and_then(|index| of.oneof_decl.get(usize::try_from(index).ok()?));
    Ok(Field {
        name: it.name().to_owned(),
        number: it.number(),
        doc: doc(docs, at, it.name())?,
        repeated: it.label() == Label::Repeated,
        packed: it.options.as_ref().is_some_and(|options| options.packed()),
        oneof: oneof.map(|oneof| oneof.name().to_owned()),
        kind,
    })
}
