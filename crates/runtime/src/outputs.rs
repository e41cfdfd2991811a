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
    /// A bit for each of the first 64 values: whether its memory was nobody else's when the call ended.
    pub(crate) exclusive: u64,
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
        let (low, high) = (self.exclusive & ((1 << at.min(63)) - 1), self.exclusive >> 1 >> at.min(63));
        self.exclusive = low | high << at.min(63);
        Some(self.values.remove(at).1)
    }

    /// The values themselves, in the model's order.
    pub fn into_values(self) -> impl ExactSizeIterator<Item = OutputValue> {
        let Outputs { signature, values, exclusive, .. } = self;
        values.into_iter().enumerate().map(move |(at, (index, value))| OutputValue {
            name: signature.outputs[index as usize].name.clone(),
            value,
            is_exclusive: at < 64 && exclusive >> at & 1 == 1,
        })
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

/// One output of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OutputValue {
    /// The output's name.
    pub name: Arc<str>,
    /// Its value.
    pub value: Value,
    /// Whether it is a dense tensor in memory that no state, feed, constant or other output refers to: bindings to
    /// other languages may then let its owner write to it. The session uses the memory again after the value is gone.
    pub is_exclusive: bool,
}

impl std::ops::Index<&str> for Outputs {
    type Output = Value;

    /// # Panics
    /// When there is no such output or it was not wanted; [`Outputs::get`] does not panic.
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or_else(|| panic!("`{name}` is not among the wanted outputs"))
    }
}
