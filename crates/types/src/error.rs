//! Why a type, a constant or an encoded value is refused, and where the fault lies.

use std::fmt;
use std::num::NonZeroU64;

use heirloom_mem::DType;

/// Why a type, a constant or an encoded value is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A declaration of the catalogue has no identity.
    #[error("a declaration in `struct_types` needs a `type_id`")]
    NoTypeId,
    /// The identity 0.
    #[error("`type_id` 0 is no identity: use a number from 1 on")]
    ZeroTypeId,
    /// Two declarations have the same identity.
    #[error("type id {id} is declared already, by `struct_types[{first}]`: another layout needs another id")]
    DuplicateTypeId {
        /// The identity.
        id: NonZeroU64,
        /// The place of the first declaration with it.
        first: usize,
    },
    /// A declaration is to replace another one under the same identity.
    #[error("type id {id} is declared already and differs in {difference}: another layout needs another id")]
    Redefined {
        /// The identity.
        id: NonZeroU64,
        /// The first difference.
        difference: Box<crate::Difference>,
    },
    /// A reference leads nowhere.
    #[error("type id {id} is not declared in `struct_types`")]
    Unresolved {
        /// The identity referred to.
        id: NonZeroU64,
    },
    /// A reference leads back to where it stands.
    #[error("struct types contain each other: {}", cycle(ids))]
    Cycle {
        /// The identities on the way, the first one again at the end.
        ids: Vec<NonZeroU64>,
    },
    /// A reference carries more than an identity.
    #[error("a reference to type {id} holds the id and nothing else; remove `{field}`")]
    ReferenceWithMore {
        /// The identity referred to.
        id: u64,
        /// The first field that is too much.
        field: &'static str,
    },
    /// An inline declaration has an identity.
    #[error(
        "an inline declaration has no `type_id` ({id} here): declare the type in `struct_types` and refer to it"
    )]
    InlineWithId {
        /// The identity it claims.
        id: u64,
    },
    /// A declaration or layout that says nothing.
    #[error("the struct type has no kind: give it an array, a structure or a bit packing")]
    NoKind,
    /// The category carries a codec or the like.
    #[error("a struct type without a kind stands for any struct and holds no `{field}`")]
    CategoryWithMore {
        /// The first field that is too much.
        field: &'static str,
    },
    /// The category stands where one type must be known.
    #[error(
        "a struct type without a kind stands for any struct: it can only be what a sequence or map holds"
    )]
    CategoryHere,
    /// A catalogue declaration is a reference.
    #[error("a declaration cannot be a reference (to type {id}): declare the layout itself")]
    ReferenceAsDeclaration {
        /// The identity referred to.
        id: u64,
    },
    /// A name is missing.
    #[error("the {what} has no name")]
    EmptyName {
        /// What lacks it.
        what: &'static str,
    },
    /// A name occurs twice.
    #[error("the {what} name `{name}` occurs twice")]
    DuplicateName {
        /// What has it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A field has neither type nor constant.
    #[error("field `{name}` has neither a type nor a constant")]
    NoContent {
        /// The field.
        name: String,
    },
    /// Nothing is repeated, or nothing is there to repeat.
    #[error("the {what} is empty: it needs at least one {element}")]
    Empty {
        /// What is empty.
        what: &'static str,
        /// What it needs.
        element: &'static str,
    },
    /// A bit field of an impossible width.
    #[error("component `{name}` has {width} bits; 1 to 64 are possible")]
    BitWidth {
        /// The component.
        name: String,
        /// The declared width.
        width: u32,
    },
    /// A type that says nothing.
    #[error("the {what} has no type")]
    NoType {
        /// What lacks it.
        what: &'static str,
    },
    /// An element type that does not exist.
    #[error("element type {number} is unknown; ONNX's numbers are 1 to 28")]
    ElementType {
        /// The number.
        number: i32,
    },
    /// A map key that is neither an integer nor a string.
    #[error("a map's keys are integers or STRING, not {key}")]
    MapKey {
        /// The declared key type.
        key: DType,
    },
    /// A negative extent.
    #[error("axis {axis} has the extent {extent}; it must be 0 or more")]
    Extent {
        /// The axis.
        axis: usize,
        /// The extent.
        extent: i64,
    },
    /// Types nest too deeply.
    #[error("types nest more than {limit} deep, references followed")]
    TooDeep {
        /// The limit.
        limit: u32,
    },
    /// A size that does not fit into 64 bits.
    #[error("the size{} in bits exceeds 64-bit arithmetic", at(path))]
    SizeOverflow {
        /// Where; empty for the type itself.
        path: String,
    },
    /// A part of a payload's layout has no fixed size.
    #[error("the type cannot be stored as bytes: {}{what} has no fixed size", subject(path))]
    NotFixedSize {
        /// The part.
        path: String,
        /// What it is.
        what: String,
    },
    /// A payload's layout has no bits.
    #[error("a record of the type has no bits: constants alone cannot be a payload's layout")]
    EmptyRecord,
    /// A payload's layout ends within a byte.
    #[error("a record of {bits} bits is no whole number of bytes: add padding")]
    PartialBytes {
        /// Bits of a record.
        bits: u64,
    },
    /// A field was added to an array or a bit packing.
    #[error("fields belong to a structure, not to an array or a bit packing")]
    NotAStructure,
    /// A tensor's data do not fit its type and shape.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A constant's data are refused.
    #[error("field `{name}`: {error}")]
    Constant {
        /// The field.
        name: String,
        /// What is wrong with the constant.
        error: Box<TensorError>,
    },
    /// An affine layout is wrong.
    #[error(transparent)]
    Affine(#[from] crate::AffineError),
    /// An encoded value without a layout.
    #[error("the encoded value has no layout: give it an affine layout or a struct type")]
    NoLayout,
    /// A logical type that is no tensor.
    #[error("the logical type must be a tensor, not {actual}")]
    LogicalNotTensor {
        /// The declared type.
        actual: String,
    },
    /// A logical type with symbolic or unknown extents, or more elements than memory has places.
    #[error("the logical type must have concrete extents and fit into memory; it is {actual}")]
    LogicalNotConcrete {
        /// The declared type.
        actual: String,
    },
    /// A payload that ends within a record.
    #[error("{payload} bytes are no whole number of records of {record} bytes")]
    PartialRecord {
        /// Bytes of the payload.
        payload: u64,
        /// Bytes of a record.
        record: u64,
    },
    /// A payload of the wrong length.
    #[error("the codes take {expected} bytes, and the payload has {actual}")]
    PayloadLength {
        /// Bytes that the logical type's elements take.
        expected: u64,
        /// Bytes of the payload.
        actual: u64,
    },
    /// The payload cannot be had.
    #[error("the payload: {reason}")]
    Payload {
        /// Why.
        reason: String,
    },
    /// More faults than are worth listing.
    #[error("there are more than {limit} faults; the rest is not listed")]
    More {
        /// How many were listed.
        limit: usize,
    },
}

fn cycle(ids: &[NonZeroU64]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" of `{path}`") }
}

fn subject(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}`, a ") }
}

/// Why the data of a `TensorProto` are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The element type does not exist.
    #[error("element type {number} is unknown; ONNX's numbers are 1 to 28")]
    ElementType {
        /// The number.
        number: i32,
    },
    /// The shape has a negative extent or its size overflows.
    #[error("the shape {dims:?} is impossible")]
    Shape {
        /// The extents.
        dims: Vec<i64>,
    },
    /// The data are too few or too many.
    #[error("{dtype}{dims:?} takes {expected} {unit} in `{field}`, which holds {actual}")]
    Length {
        /// The element type.
        dtype: DType,
        /// The extents.
        dims: Vec<i64>,
        /// The field that holds the data.
        field: &'static str,
        /// What is counted.
        unit: &'static str,
        /// How many there must be.
        expected: u64,
        /// How many there are.
        actual: u64,
    },
    /// The data stand in a field that the element type does not use.
    #[error("data of {dtype} cannot stand in `{field}`")]
    Field {
        /// The element type.
        dtype: DType,
        /// The field that holds data.
        field: &'static str,
    },
    /// Data stand in more than one place.
    #[error("the data stand in `{first}` and in `{second}`: one of them is too much")]
    TwoFields {
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// An entry of a typed field does not fit the element type.
    #[error("entry {index} of `{field}` is {value}, which is no {dtype}")]
    Entry {
        /// The element type.
        dtype: DType,
        /// The field that holds the data.
        field: &'static str,
        /// The entry.
        index: usize,
        /// Its value.
        value: i64,
    },
    /// The last byte has bits beyond the last element.
    #[error("the unused high bits of the last byte of {dtype} data must be zero; the byte is {byte:#04x}")]
    UnusedBits {
        /// The element type.
        dtype: DType,
        /// The last byte.
        byte: u8,
    },
    /// The data lie in a file that was not at hand.
    #[error("the data lie in external file `{location}`: {reason}")]
    External {
        /// The file.
        location: String,
        /// Why it could not be used.
        reason: String,
    },
    /// The elements do not lie one behind the other.
    #[error("the elements of a constant must be dense in memory")]
    Gaps,
    /// The tensor is stored in pieces.
    #[error("a tensor stored in segments is not supported")]
    Segment,
    /// A string tensor where elements of fixed width are needed.
    #[error("a STRING tensor has no elements of fixed width")]
    Strings,
}

/// A fault and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The way through the messages, such as `struct_types[2].structure.field[0].type`; may be empty.
    pub path: String,
    /// What is wrong there.
    pub error: TypeError,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "{}", self.error)
        } else {
            write!(f, "`{}`: {}", self.path, self.error)
        }
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<TypeError> for Fault {
    fn from(error: TypeError) -> Fault {
        Fault { path: String::new(), error }
    }
}

/// All faults that were found; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.first().map(|fault| fault as _)
    }
}
