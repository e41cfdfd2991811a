//! Struct types: declarations with their references resolved, and what follows from them.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_mem::{DType, Tensor};
use heirloom_proto::StructTypeProto;

use crate::size::{self, Facts, Size};
use crate::{FunctionProto, StringTensor, StructBuilder, TypeError, ValueType};

/// How deep types may nest, references followed.
pub const MAX_DEPTH: u32 = 128;

/// A declared struct type. Immutable; nested types are shared, so that a type that is used twice exists once.
///
/// Equality (`==`) is of identity and content: the same type id, and no [difference](StructType::difference).
/// Names of declarations, doc strings and annotations say nothing about values and do not count.
#[derive(Clone)]
pub struct StructType {
    pub(crate) name: Arc<str>,
    pub(crate) type_id: Option<NonZeroU64>,
    pub(crate) kind: Kind,
    pub(crate) decoder: Option<Arc<FunctionProto>>,
    pub(crate) encoder: Option<Arc<FunctionProto>>,
    pub(crate) facts: Facts,
    /// The message that the type was read from, with its doc strings, annotations and unknown fields.
    pub(crate) source: Option<Arc<StructTypeProto>>,
}

/// What a struct type consists of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// `count` elements of one type, without gaps.
    Array {
        /// The elements' type.
        element: ValueType,
        /// How many; at least 1.
        count: u64,
    },
    /// Fields in order, without gaps.
    Structure(Vec<Field>),
    /// `count` groups of unsigned bit fields, each group's components in order from the lowest bit up.
    BitPacking {
        /// The components of one group.
        components: Vec<Component>,
        /// How many groups; at least 1.
        count: u64,
    },
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name; not empty, unique within its structure.
    pub name: Arc<str>,
    /// What it holds.
    pub content: Content,
}

/// What a field holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// A value that each instance has of its own.
    Type(ValueType),
    /// A constant of the format; no instance stores it.
    Constant(Constant),
}

/// The value of a constant field.
#[derive(Clone, Debug)]
pub enum Constant {
    /// Elements of fixed width, dense.
    Tensor(Tensor),
    /// Strings.
    Strings(Arc<StringTensor>),
}

impl Constant {
    /// The tensor, unless it is one of strings.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Constant::Tensor(tensor) => Some(tensor),
            Constant::Strings(_) => None,
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Constant::Tensor(tensor) => tensor.dtype(),
            Constant::Strings(_) => DType::String,
        }
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        match self {
            Constant::Tensor(tensor) => tensor.shape(),
            Constant::Strings(strings) => &strings.shape,
        }
    }
}

/// One bit field of a bit packing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// The name; not empty, unique within its packing.
    pub name: Arc<str>,
    /// The width in bits, 1 to 64.
    pub bit_width: u32,
}

impl StructType {
    /// Begins the declaration of a structure.
    pub fn structure(name: &str) -> StructBuilder {
        StructBuilder::structure(name)
    }

    /// Begins the declaration of `count` elements of `element`.
    pub fn array(name: &str, element: ValueType, count: u64) -> StructBuilder {
        StructBuilder::array_of(name, element, count)
    }

    /// Begins the declaration of `count` groups of unsigned bit fields, each a name and a width.
    pub fn bit_packing(name: &str, components: &[(&str, u32)], count: u64) -> StructBuilder {
        StructBuilder::bit_packing(name, components, count)
    }

    /// The declared name, for messages; may be empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identity in the model's catalogue; `None` for inline declarations.
    pub fn type_id(&self) -> Option<NonZeroU64> {
        self.type_id
    }

    /// What the type consists of.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The fields, where the type is a structure; else none.
    pub fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Structure(fields) => fields,
            _ => &[],
        }
    }

    /// The field named `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields().iter().find(|field| &*field.name == name)
    }

    /// The constant field named `name`.
    pub fn constant(&self, name: &str) -> Option<&Constant> {
        match &self.field(name)?.content {
            Content::Constant(constant) => Some(constant),
            Content::Type(_) => None,
        }
    }

    /// Computes the logical value from the records, where the declaration brings it.
    pub fn decoder(&self) -> Option<&Arc<FunctionProto>> {
        self.decoder.as_ref()
    }

    /// Computes the records from the logical value, where the declaration brings it.
    pub fn encoder(&self) -> Option<&Arc<FunctionProto>> {
        self.encoder.as_ref()
    }

    /// Bits of one instance as bytes store it; `None` where the type has no fixed size.
    pub fn bit_size(&self) -> Option<u64> {
        match &self.facts.size {
            Size::Fixed(bits) => Some(*bits),
            Size::Dynamic(_) => None,
        }
    }

    /// Bytes of one record.
    ///
    /// # Errors
    /// When the type cannot be a payload's layout: a field has no fixed size, or the size is 0 or no whole number
    /// of bytes.
    pub fn record_bytes(&self) -> Result<usize, TypeError> {
        match &self.facts.size {
            Size::Dynamic(reason) => {
                Err(TypeError::NotFixedSize { path: reason.path.clone(), what: reason.what.clone() })
            }
            Size::Fixed(0) => Err(TypeError::EmptyRecord),
            Size::Fixed(bits) if bits % 8 != 0 => Err(TypeError::PartialBytes { bits: *bits }),
            Size::Fixed(bits) => {
                usize::try_from(bits / 8).map_err(|_| TypeError::SizeOverflow { path: String::new() })
            }
        }
    }

    /// Whether the type holds strings anywhere: fields, constants, nested types, through references too.
    pub fn contains_strings(&self) -> bool {
        self.facts.strings
    }

    pub(crate) fn assemble(
        name: Arc<str>,
        type_id: Option<NonZeroU64>,
        kind: Kind,
        decoder: Option<Arc<FunctionProto>>,
        encoder: Option<Arc<FunctionProto>>,
    ) -> Result<StructType, TypeError> {
        let facts = size::facts_of(&kind)?;
        Ok(StructType { name, type_id, kind, decoder, encoder, facts, source: None })
    }
}

impl PartialEq for StructType {
    fn eq(&self, other: &StructType) -> bool {
        self.type_id == other.type_id && self.difference(other).is_none()
    }
}

impl fmt::Display for StructType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.type_id, &*self.name) {
            (Some(id), "") => write!(f, "struct {id}"),
            (Some(id), name) => write!(f, "struct `{name}` ({id})"),
            (None, "") => f.write_str("inline struct"),
            (None, name) => write!(f, "inline struct `{name}`"),
        }
    }
}

/// Shows nested declared types by name alone: a printed diamond would be as long as its unfolding.
impl fmt::Debug for StructType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} {{ ")?;
        match &self.kind {
            Kind::Array { element, count } => write!(f, "{count} × {element}")?,
            Kind::BitPacking { components, count } => {
                write!(f, "{count} × (")?;
                components.iter().try_for_each(|c| write!(f, " {}:{}", c.name, c.bit_width))?;
                f.write_str(" )")?;
            }
            Kind::Structure(fields) => {
                for field in fields {
                    match &field.content {
                        Content::Type(ty) => write!(f, "{}: {ty}; ", field.name)?,
                        Content::Constant(c) => {
                            write!(f, "{}: constant {}{:?}; ", field.name, c.dtype(), c.shape())?;
                        }
                    }
                }
            }
        }
        f.write_str("}")
    }
}
