//! What a fast kernel does with inputs that it is not for.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, RunCx};

/// Whether input `index` may be FLOAT: known to be, or not known.
pub(crate) fn may_be_float(cx: &BuildCx<'_>, index: usize) -> bool {
    match cx.inputs.get(index) {
        Some(Some(facts)) => facts.dtype.is_none_or(|dtype| dtype == DType::Float),
        _ => false,
    }
}

/// The portable kernel of a node, for inputs that turn out to be of another type.
pub(crate) struct Portable(Box<dyn Kernel>);

impl Portable {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Result<Portable, BuildError> {
        Ok(Portable(heirloom_ops::portable(cx)?))
    }

    pub(crate) fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        self.0.run(cx)
    }
}

/// Whether inputs `indices`, where they are present, are all FLOAT tensors.
pub(crate) fn are_float(cx: &RunCx<'_>, indices: impl IntoIterator<Item = usize>) -> bool {
    indices.into_iter().all(|i| match cx.value(i) {
        None => true,
        Some(value) => value.as_tensor().is_some_and(|t| t.dtype() == DType::Float),
    })
}
