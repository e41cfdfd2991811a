//! What the generated messages and the one merge loop and writer tell one another.

use heirloom_mem::Bytes;
use smallvec::SmallVec;

use crate::packed::PackedList;
use crate::text::{Core, Strings, Text, TextList};
use crate::wire::{FIXED32, FIXED64, LENGTH, VARINT};

/// A list of integers, short ones in place.
pub type Ints = SmallVec<[i64; 2]>;

/// What a message is called and consists of.
#[derive(Debug)]
pub struct MessageInfo {
    /// The name in `onnx.proto`, such as `TypeProto.Tensor`.
    pub name: &'static str,
    /// The fields by number.
    pub fields: &'static [FieldInfo],
}

/// A field of a message.
#[derive(Debug)]
pub struct FieldInfo {
    /// The name in `onnx.proto`.
    pub name: &'static str,
    /// The number.
    pub number: u32,
    /// Whether it is a list.
    pub repeated: bool,
    /// Whether a list of numbers is written packed.
    pub packed: bool,
    /// The oneof it belongs to.
    pub oneof: Option<&'static str>,
    /// The type.
    pub kind: FieldKind,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A signed 32-bit integer.
    Int32,
    /// A signed 64-bit integer.
    Int64,
    /// An unsigned 32-bit integer.
    Uint32,
    /// An unsigned 64-bit integer.
    Uint64,
    /// A 32-bit float.
    Float,
    /// A 64-bit float.
    Double,
    /// An open enum, by name.
    Enum(&'static str),
    /// A message, by name.
    Message(&'static str),
}

impl FieldInfo {
    /// The wire type of one value.
    pub(crate) fn wire_type(&self) -> u32 {
        match self.kind {
            FieldKind::String | FieldKind::Bytes | FieldKind::Message(_) => LENGTH,
            FieldKind::Float => FIXED32,
            FieldKind::Double => FIXED64,
            _ => VARINT,
        }
    }

    /// Whether a tensor or an encoded value may stand in the field, however deep.
    pub(crate) fn may_hold_payload(&self) -> bool {
        const WITHOUT: &[&str] = &[
            "StringStringEntryProto",
            "OperatorSetIdProto",
            "TensorAnnotation",
            "NodeDeviceConfigurationProto",
            "DeviceConfigurationProto",
            "PersistentBindingProto",
            "TensorShapeProto",
        ];
        matches!(self.kind, FieldKind::Message(name) if !WITHOUT.contains(&name))
    }

    fn takes(&self, wire_type: u32) -> bool {
        wire_type == self.wire_type() || (self.repeated && wire_type == LENGTH)
    }
}

impl MessageInfo {
    /// Whether a field with this tag has a place of its own in the message.
    pub(crate) fn knows(&self, tag: u32) -> bool {
        self.fields
            .binary_search_by_key(&(tag >> 3), |field| field.number)
            .is_ok_and(|index| self.fields[index].takes(tag & 7))
    }
}

/// A generated message, to the merge loop and the writer.
pub(crate) trait Message {
    fn as_any(&self) -> &dyn std::any::Any;
    fn info(&self) -> &'static MessageInfo;
    fn core(&self) -> &Core;
    /// The core, and the memory that an empty message may take, in bytes.
    fn core_mut(&mut self) -> (&mut Core, u64);
    /// Where the value of a field with this tag goes; a oneof is switched to it.
    fn slot(&mut self, tag: u32) -> Slot<'_>;
    /// Calls the visitor with each field that is present and not empty, by number.
    fn visit<'a>(&'a self, visitor: Visitor<'_, 'a>);
}

/// What sees the fields of a message.
pub(crate) type Visitor<'v, 'a> = &'v mut dyn FnMut(&'static FieldInfo, FieldValue<'a>);

/// The fields of a message that are present and not empty.
pub(crate) fn fields<'a>(message: &'a dyn Message) -> SmallVec<[(&'static FieldInfo, FieldValue<'a>); 8]> {
    let mut fields = SmallVec::new();
    message.visit(&mut |field, value| fields.push((field, value)));
    fields
}

/// Where a field's value goes.
#[cfg_attr(not(feature = "extensions"), allow(dead_code, reason = "ONNX itself has no such field"))]
pub(crate) enum Slot<'a> {
    Unknown,
    Text(&'a mut Core, &'a mut Text),
    Texts(&'a mut Core, &'a mut TextList),
    Payload(&'a mut Option<Bytes>),
    Int32(&'a mut Option<i32>),
    Int64(&'a mut Option<i64>),
    Uint32(&'a mut Option<u32>),
    Uint64(&'a mut Option<u64>),
    Float(&'a mut Option<f32>),
    /// Members of a oneof.
    Int64Member(&'a mut i64),
    Uint64Member(&'a mut u64),
    Ints(&'a mut Ints),
    Floats(&'a mut Vec<f32>),
    Packed(&'a mut dyn PackedList),
    Message(&'a mut dyn Message),
    Messages(&'a mut dyn MessageList),
}

/// A field's value.
pub(crate) enum FieldValue<'a> {
    Text(&'a [u8]),
    Texts(Strings<'a>),
    Payload(&'a Bytes),
    /// All integers and enums, sign-extended as on the wire.
    Varint(u64),
    Float(f32),
    Ints(&'a [i64]),
    Floats(&'a [f32]),
    Packed(&'a dyn PackedList),
    Message(&'a dyn Message),
    Messages(&'a dyn MessageList),
}

/// A repeated message field.
pub(crate) trait MessageList {
    fn len(&self) -> usize;
    fn is_full(&self) -> bool;
    fn get(&self, index: usize) -> Option<&dyn Message>;
    fn reserve(&mut self, more: usize);
    /// Adds an empty message.
    fn add(&mut self) -> &mut dyn Message;
    fn element_size(&self) -> usize;
}

impl<T: Message + Default> MessageList for Vec<T> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    fn get(&self, index: usize) -> Option<&dyn Message> {
        <[T]>::get(self, index).map(|message| -> &dyn Message { message })
    }

    fn reserve(&mut self, more: usize) {
        if self.is_empty() { self.reserve_exact(more) } else { Vec::reserve(self, more) }
    }

    fn add(&mut self) -> &mut dyn Message {
        self.push(T::default());
        let last = self.len() - 1;
        &mut self[last]
    }

    fn element_size(&self) -> usize {
        size_of::<T>()
    }
}

/// The field values that generated code makes out of what it stores.
#[cfg_attr(not(feature = "extensions"), allow(dead_code, reason = "ONNX itself has no such field"))]
impl<'a> FieldValue<'a> {
    pub(crate) fn text(core: &'a Core, text: Text) -> Option<FieldValue<'a>> {
        core.text(text).map(FieldValue::Text)
    }

    pub(crate) fn texts(core: &'a Core, list: &'a [Text]) -> Option<FieldValue<'a>> {
        if list.is_empty() { None } else { Some(FieldValue::Texts(Strings::new(core, list))) }
    }

    pub(crate) fn int32(value: Option<i32>) -> Option<FieldValue<'a>> {
        value.map(|value| FieldValue::Varint(i64::from(value).cast_unsigned()))
    }

    pub(crate) fn int64(value: Option<i64>) -> Option<FieldValue<'a>> {
        value.map(|value| FieldValue::Varint(value.cast_unsigned()))
    }

    pub(crate) fn uint32(value: Option<u32>) -> Option<FieldValue<'a>> {
        value.map(|value| FieldValue::Varint(u64::from(value)))
    }

    pub(crate) fn uint64(value: Option<u64>) -> Option<FieldValue<'a>> {
        value.map(FieldValue::Varint)
    }

    pub(crate) fn float(value: Option<f32>) -> Option<FieldValue<'a>> {
        value.map(FieldValue::Float)
    }

    pub(crate) fn payload(value: Option<&'a Bytes>) -> Option<FieldValue<'a>> {
        value.map(FieldValue::Payload)
    }

    pub(crate) fn ints(list: &'a [i64]) -> Option<FieldValue<'a>> {
        if list.is_empty() { None } else { Some(FieldValue::Ints(list)) }
    }

    pub(crate) fn floats(list: &'a [f32]) -> Option<FieldValue<'a>> {
        if list.is_empty() { None } else { Some(FieldValue::Floats(list)) }
    }

    pub(crate) fn packed(list: &'a dyn PackedList) -> Option<FieldValue<'a>> {
        if list.is_empty() { None } else { Some(FieldValue::Packed(list)) }
    }

    pub(crate) fn message<T: Message>(message: Option<&'a T>) -> Option<FieldValue<'a>> {
        message.map(|message| FieldValue::Message(message))
    }

    pub(crate) fn messages<T: Message + Default>(list: &'a Vec<T>) -> Option<FieldValue<'a>> {
        if list.is_empty() { None } else { Some(FieldValue::Messages(list)) }
    }
}

/// The methods that all messages share.
macro_rules! message {
    ($type:ty) => {
        impl $type {
            /// An empty message.
            pub fn new() -> Self {
                Self::default()
            }

            /// Reads a message. Payloads and strings stay slices of `bytes`; nothing is copied or run.
            ///
            /// # Errors
            /// When the bytes are no message, are nested too deeply or would take too much memory
            /// (see [`Limits::for_length`](crate::Limits::for_length)).
            pub fn decode(bytes: heirloom_mem::Bytes) -> Result<Self, crate::DecodeError> {
                let limits = crate::Limits::for_length(bytes.len());
                Self::decode_within(bytes, &limits)
            }

            /// Reads a message within limits of the caller's choice.
            ///
            /// # Errors
            /// As [`decode`](Self::decode).
            pub fn decode_within(
                bytes: heirloom_mem::Bytes,
                limits: &crate::Limits,
            ) -> Result<Self, crate::DecodeError> {
                let mut message = Self::default();
                crate::decode::decode(&mut message, bytes, limits)?;
                Ok(message)
            }

            /// The bytes that the encoded message takes.
            pub fn encoded_len(&self) -> u64 {
                crate::encode::encoded_len(self)
            }

            /// Writes the message. What nothing touched since it was read is written as it was; what was touched
            /// has its known fields by number and then its unknown ones.
            ///
            /// # Errors
            /// Those of the writer.
            pub fn encode_to(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
                crate::encode::encode_to(self, to, false)
            }

            /// The encoded message; for one that nothing touched, the bytes that it was read from.
            pub fn to_bytes(&self) -> heirloom_mem::Bytes {
                crate::encode::to_bytes(self, false)
            }

            /// The message encoded anew at every level, with known fields by number and then unknown ones.
            pub fn to_canonical_bytes(&self) -> heirloom_mem::Bytes {
                crate::encode::to_bytes(self, true)
            }

            /// The bytes that the message was read from, while nothing touched it.
            pub fn original(&self) -> Option<&heirloom_mem::Bytes> {
                self.core.original()
            }

            /// The fields of this message (not of those within) that have no accessor here, in order.
            pub fn unknown_fields(&self) -> Vec<crate::UnknownField> {
                crate::encode::unknown_fields(self)
            }

            /// Removes the unknown fields of this message (not of those within).
            pub fn clear_unknown_fields(&mut self) {
                crate::decode::anchor_texts(self);
                self.core.forget_spans();
            }

            /// The first string of this message or those within that is no valid UTF-8: its path.
            pub fn find_invalid_utf8(&self) -> Option<String> {
                crate::inspect::find_invalid_utf8(self)
            }

            /// What the message is called and consists of.
            pub fn info() -> &'static crate::MessageInfo {
                Self::INFO
            }
        }

        /// Equal known and unknown fields, floats by their bits, whatever the encoding looks like.
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                crate::inspect::equal(self, other)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::inspect::debug(self, f)
            }
        }
    };
}
pub(crate) use message;

/// An open enum: an `i32` with names.
macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $number:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub i32);

        impl $name {
            $($(#[$value_doc])* pub const $value: Self = Self($number);)+

            /// Every value that has a name.
            pub const NAMED: &[(&'static str, i32)] = &[$((stringify!($value), $number)),+];

            /// The value's name, if it has one.
            pub fn name(self) -> Option<&'static str> {
                Self::NAMED.iter().find(|(_, number)| *number == self.0).map(|(name, _)| *name)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::inspect::enum_name(self.name(), self.0, f)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                crate::inspect::enum_name(self.name(), self.0, f)
            }
        }

        impl From<i32> for $name {
            fn from(value: i32) -> Self {
                Self(value)
            }
        }

        impl From<$name> for i32 {
            fn from(value: $name) -> i32 {
                value.0
            }
        }
    };
}
pub(crate) use open_enum;
