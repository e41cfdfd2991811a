//! Quantization formats: declaration, codec, in-file decoder and register-level unpacking, one file each.
//!
//! A format is a struct type ([`Format::declaration`]) that describes the bits of a record, a native codec
//! ([`Format`] is a [`Codec`](heirloom_types::Codec)), and the same computation as a function in the declaration, for
//! those that do not know the format. The two agree to the bit.
//!
//! # Identities
//! The type ids 1,000,000 to 1,999,999 are this crate's. A block format of GGUF has
//! `1,000,000 + 100 * (GGUF's type number) + revision`, others count from 1,100,000; the revision begins with 1 and goes
//! up when the declaration changes in any way that values depend on.
//!
//! Formats whose parameters lie apart from their codes, or whose tables are the value's own, have a type for each shape
//! or table: [`Shaped`]. Where its parameters are few numbers they make the type id, 2^59 or more ([`Shaped::type_id`]);
//! a type with a table is declared inline, or under an identity of the model's.
//!
//! # Adding a format
//! A file with a type that implements [`Block`] and its row `FORMAT`, and one name in the table below; for a family, a
//! file with a type that implements [`Shaped`] and its row `FAMILY`, and one name in the table of `shaped.rs`. The tables
//! enrol them in the conformance tests.
#![forbid(unsafe_code)]

mod block;
mod body;
mod declare;
mod error;
mod fit;
mod format;
mod half_floats;
mod k_scales;
mod mx;
mod shape_of;
mod shaped;
mod small_parameters;
mod table_codes;
mod unpack;

use std::sync::Arc;

use heirloom_types::{Codec, StructLayout};

pub use block::Block;
pub use body::{Attr, Body, Val};
pub use error::FormatError;
pub use format::Format;
pub use shaped::{FAMILIES, Family, Shaped};
pub use unpack::Unpack;

pub use shaped::{codebook, k_means, mat_mul_n_bits, mixed_bits, nvfp4};

macro_rules! formats {
    ($($module:ident,)*) => {
        $(pub mod $module;)*

        /// All formats of fixed-size records.
        pub static FORMATS: &[&Format] = &[$(&$module::FORMAT,)*];
    };
}

formats! {
    bf16,
    f16,
    iq4_nl,
    iq4_xs,
    mxfp4,
    nf4,
    ocp_mxfp4,
    ocp_mxfp6_e2m3,
    ocp_mxfp6_e3m2,
    ocp_mxfp8_e4m3,
    ocp_mxfp8_e5m2,
    q2_k,
    q3_k,
    q4_0,
    q4_1,
    q4_k,
    q5_0,
    q5_1,
    q5_k,
    q6_k,
    q8_0,
    tq1_0,
    tq2_0,
}

/// The format whose identity and declaration `layout` has.
///
/// A layout that uses the identity for something else, or leaves out the decoder, is none of ours.
pub fn recognize(layout: &StructLayout) -> Option<&'static Format> {
    let format = FORMATS.iter().find(|format| Some(format.type_id) == layout.type_id)?;
    (**format.declaration() == *layout.declaration).then_some(format)
}

/// The native codec for `layout`, of whichever format or family: the one lookup for those that only decode.
///
/// The declaration counts, decoder included. Formats of the table have their identity besides ([`recognize`]); types
/// that a [family](Family) makes may have any or none.
pub fn codec(layout: &StructLayout) -> Option<Arc<dyn Codec>> {
    if let Some(format) = recognize(layout) {
        return Some(Arc::new(format));
    }
    FAMILIES.iter().find_map(|family| (family.recognize)(&layout.declaration))
}

/// The format with the number `gguf_type` in GGUF files.
pub fn by_gguf_type(gguf_type: u32) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.gguf_type == Some(gguf_type))
}

/// The format named `name`, in upper or lower case.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.name.eq_ignore_ascii_case(name))
}
