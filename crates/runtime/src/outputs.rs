//! What a call gives back.

use std::sync::Arc;

use heirloom_mem::Counts;
use heirloom_types::Value;
use smallvec::SmallVec;

use crate::signature::Signature;

/// The wanted outputs of one call, and what the call did with memory. The values are shared views: they stay valid
/// and unchanged whatever becomes of the call's session or state.
#[derive(Clone, Debug)]
pub struct Outputs {
    pub(crate) signature: Arc<Signature>,
    /// Index of the output in the signature, and its value, in the signature's order.
    pub(crate) values: SmallVec<[(u32, Value); 2]>,
    pub(crate) counts: Counts,
}

impl Outputs {
    /// The output named `name`, where it was wanted.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// Takes the output named `name`, where it was wanted.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.iter().position(|(n, _)| n == name)?;
        Some(self.values.remove(at).1)
    }

    /// Names and values in the model's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(index, value)| (&*self.signature.outputs[*index as usize].name, value))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no output was wanted.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// What this call copied, appended, allocated and reused.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl std::ops::Index<&str> for Outputs {
    type Output = Value;

    /// # Panics
    /// When there is no such output or it was not wanted; [`Outputs::get`] does not panic.
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or_else(|| panic!("`{name}` is not among the wanted outputs"))
    }
}
