//! What the Python package `heirloom` is made of beneath its Python files: `heirloom._native`.
//!
//! The classes here are private to the package (but for a few that it gives out: `Tensor`, `Encoded`, `CancelToken`,
//! `Counts`, `Report`); `python/heirloom` wraps them in what people use, with names, defaults and documentation.

mod builder;
mod call;
mod dlpack;
mod encoded;
mod engine;
mod error;
mod foreign;
mod input;
mod inspect;
mod language;
mod model;
mod output;
mod ports;
mod rewrite;
mod session;
mod structs;
mod tensor;
mod tools;
mod view;

/// The extension module.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::builder::{PyBuilder, PyFunctionBuilder};
    #[pymodule_export]
    use crate::call::{PyCancelToken, PyCounts};
    #[pymodule_export]
    use crate::encoded::PyEncoded;
    #[pymodule_export]
    use crate::language::{PyConversation, PyLanguageModel};
    #[pymodule_export]
    use crate::model::PyModel;
    #[pymodule_export]
    use crate::rewrite::{convert, infer, optimize};
    #[pymodule_export]
    use crate::session::{PyReport, PySession, PyState};
    #[pymodule_export]
    use crate::structs::PyStructType;
    #[pymodule_export]
    use crate::tensor::PyTensor;
    #[pymodule_export]
    use crate::tools::{import_gguf, quantize};
}
