//! ONNX files: every message of ONNX and of the value contract, read without copying and written without loss.
//!
//! The messages are generated from `onnx.proto` in this crate's folder. What holds for all of them:
//!
//! * **Nothing is lost.** A message that nobody touched is written as the bytes it was read from. A touched one is
//!   encoded anew: known fields by number, then the fields that this crate does not know, as they were. Presence of
//!   optional fields, enum values without a name and strings that are no UTF-8 survive.
//! * **Nothing is copied.** Strings and payloads are slices of the [`Bytes`](heirloom_mem::Bytes) given to
//!   `decode`, which is a mapped file as a rule ([`load`]). Cloning a message shares them.
//! * **Nothing is run**, and nothing is trusted: lengths are checked before memory is taken, depth and memory are
//!   limited ([`Limits`]), and an error says where it is.
//!
//! Accessors: `x()` reads, `has_x()` tells presence, `set_x()`, `x_mut()` and `clear_x()` change. A oneof has an
//! enum of references (`ty.value()` gives `Option<type_proto::Value<'_>>`) and accessors for each alternative.
#![forbid(unsafe_code)]

mod check;
mod decode;
mod encode;
mod error;
pub mod external;
mod file;
mod generated;
mod inspect;
mod message;
mod packed;
mod payload;
mod text;
mod wire;

pub use check::check_payloads;
pub use decode::Limits;
pub use encode::UnknownField;
pub use error::{DecodeError, Error, Problem};
pub use external::{ExternalError, ExternalLocation, ExternalResolver};
pub use file::{READABLE_BY_ALL, SaveOptions, check_size, load, replace, save};
pub use generated::*;
pub use message::{FieldInfo, FieldKind, Ints, MessageInfo};
pub use packed::{Packed, PackedIter};
pub use payload::Payload;
pub use text::{NOT_UTF8, Strings, StringsMut};
