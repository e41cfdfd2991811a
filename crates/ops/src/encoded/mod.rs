//! Operators on encoded values: portable consumers for every layout with a codec. One line and one file each.

use std::sync::Arc;

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, KernelError, KernelSpec};
use heirloom_types::{Codec, EncodedValue, Layout, Value};

pub(crate) use crate::onnx::NEWEST;

macro_rules! ops {
    ($($name:ident),* $(,)?) => {
        $(mod $name;)*

        /// All portable kernels for encoded values.
        pub(crate) const KERNELS: &[KernelSpec] = &[$($name::SPEC),*];
    };
}

ops! { decode, field, gather, gemm, mat_mul, paged_attention }

/// An encoded constant and what decodes it.
pub(crate) struct Source {
    value: Arc<EncodedValue>,
    /// None for affine codes.
    codec: Option<Arc<dyn Codec>>,
}

impl Source {
    /// Input `index`, where it is an encoded constant of real numbers with a codec.
    pub(crate) fn of(cx: &BuildCx<'_>, index: usize) -> Option<Source> {
        let Some(Value::Encoded(value)) = cx.constant(index) else { return None };
        let logical = value.logical.as_ref()?;
        if !matches!(logical.dtype, DType::Float | DType::Float16 | DType::BFloat16) {
            return None;
        }
        let codec = match &value.layout {
            Layout::Affine(_) => None,
            Layout::Struct(layout) => Some(heirloom_formats::codec(layout)?),
        };
        Some(Source { value: value.clone(), codec })
    }

    /// The logical shape.
    pub(crate) fn shape(&self) -> &[usize] {
        self.value.logical.as_ref().map_or(&[], |ty| &ty.shape)
    }

    /// The logical element type.
    pub(crate) fn dtype(&self) -> DType {
        self.value.logical.as_ref().map_or(DType::Float, |ty| ty.dtype)
    }

    /// Elements `first..first + out.len()` of the flat logical tensor.
    pub(crate) fn read(&self, first: usize, out: &mut [f32]) -> Result<(), KernelError> {
        self.value
            .decode_range(self.codec.as_deref(), first, out)
            .map_err(|e| KernelError::Other(e.to_string()))
    }
}

/// Whether input `index` is the only encoded one, and one that can be decoded here.
pub(crate) fn only_encoded(cx: &BuildCx<'_>, index: usize) -> bool {
    let encoded = |f: &heirloom_runtime::InputFacts| matches!(f.constant, Some(Value::Encoded(_)));
    let others = cx.inputs.iter().enumerate().filter(|(at, _)| *at != index);
    !others.filter_map(|(_, f)| f.as_ref()).any(encoded) && Source::of(cx, index).is_some()
}
