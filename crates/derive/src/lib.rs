//! `#[derive(NativeRecord)]` of `heirloom-types`: its documentation stands with the trait there.
#![forbid(unsafe_code)]

mod attributes;
mod expand;

use proc_macro::TokenStream;

/// Implements `NativeRecord` for a `#[repr(C)]` struct. Attributes are all named `record`.
///
/// On the struct, in one list:
///
/// | | |
/// |---|---|
/// | `type_id = 2001` | the identity in catalogues; needed |
/// | `name = "Int4Block"` | the declared name; without it the Rust name |
/// | `const step = Tensor::scalar(0.5f32)` | a constant of the format behind all fields, any number of them |
/// | `crate = heirloom::types` | where the crate `heirloom_types` is found |
///
/// On a field:
///
/// | | |
/// |---|---|
/// | `name = "scales"` | the declared name; without it the Rust name |
/// | `array(Int4, 32)` | the declared type: an array of scalars |
/// | `tensor(Float16, [2, 4])` | the declared type: a dense tensor |
/// | `bits(low: 4, high: 4; 16)` | the declared type: 16 groups of bit fields, lowest first |
/// | `ty = EXPRESSION` | the declared type, a `ValueType`; `?` passes a `Fault` on |
/// | `const step = Tensor::scalar(0.5f32)` | a constant before this field, any number of them |
///
/// A field without a declared type has the one of its Rust type: a scalar, an array, or another native record, which is
/// referred to by its identity.
///
/// A struct that the compiler would pad is refused: padding is declared as fields.
#[proc_macro_derive(NativeRecord, attributes(record))]
pub fn native_record(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::native_record(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
