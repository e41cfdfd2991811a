//! heirloom-proto as a shared library that exports loading, verifying, saving and every message with its accessors,
//! so that its size says what the wire layer costs.
#![allow(improper_ctypes_definitions)]

mod methods;

use heirloom_proto::{Error, ExternalResolver, ModelProto, SaveOptions, check_payloads, load, save};
use std::path::Path;

/// Loads a model.
#[no_mangle]
pub fn heirloom_proto_load(path: &Path) -> Result<ModelProto, Error> {
    load(path)
}

/// Verifies what the wire layer can: payload rules and UTF-8, and with a resolver that external payloads are there.
#[no_mangle]
pub fn heirloom_proto_verify(
    model: &ModelProto,
    resolver: &ExternalResolver,
) -> Result<Option<String>, Error> {
    check_payloads(model)?;
    for tensor in model.graph().map_or(&[][..], |graph| graph.initializer()) {
        tensor
            .payload_bytes(resolver)
            .map_err(|source| Error::External { name: tensor.name().into(), source })?;
    }
    #[cfg(feature = "extensions")]
    for value in model.graph().map_or(&[][..], |graph| graph.encoded_initializer()) {
        value
            .payload_bytes(resolver)
            .map_err(|source| Error::External { name: value.name().into(), source })?;
    }
    Ok(model.find_invalid_utf8())
}

/// The files of external payloads.
#[no_mangle]
pub fn heirloom_proto_resolver(path: &Path) -> Result<ExternalResolver, heirloom_proto::ExternalError> {
    ExternalResolver::for_model(path)?.with_external_root(path)
}

/// Saves a model.
#[no_mangle]
pub fn heirloom_proto_save(model: &ModelProto, path: &Path, options: &SaveOptions) -> Result<(), Error> {
    save(model, path, options)
}

/// The methods of every message, so that none is left out of the library.
#[no_mangle]
pub fn heirloom_proto_methods() {
    methods::keep();
}
