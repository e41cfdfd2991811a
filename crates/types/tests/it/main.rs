//! Tests of struct types, layouts, records, encoded values and codecs.
#![allow(clippy::disallowed_methods, reason = "tests copy what they like")]

mod affine;
mod affine_cases;
mod build;
mod cases;
mod catalogue;
mod examples_affine;
mod examples_types;
mod fixture;
mod floats;
mod hostile;
mod layout;
mod matching;
mod native;
mod operators;
mod packing;
mod records;
mod round_trip;
mod tensors;
