//! The values that a caller gives to one call.

use heirloom_mem::{LentTensor, Tensor, lend};
use heirloom_types::Value;
use smallvec::SmallVec;

/// Inputs of one call by name. The handles are moved into the call, payloads stay where they are.
///
/// ```
/// use heirloom_mem::Tensor;
/// use heirloom_runtime::Feeds;
///
/// let feeds = Feeds::new().with("x", Tensor::scalar(1.0f32)).with("length", Tensor::scalar(7i64));
/// assert_eq!(feeds.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Feeds<'a> {
    entries: SmallVec<[(&'a str, Value); 3]>,
    /// Whether some of them are lent for the call.
    pub(crate) lent: bool,
}

impl<'a> Feeds<'a> {
    /// No values.
    pub fn new() -> Feeds<'a> {
        Feeds::default()
    }

    /// These feeds and `value` for the input `name`.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: impl Into<Value>) -> Feeds<'a> {
        self.push(name, value);
        self
    }

    /// Adds `value` for the input `name`.
    pub fn push(&mut self, name: &'a str, value: impl Into<Value>) {
        self.entries.push((name, value.into()));
    }

    /// Calls `f` with these feeds and tensors that are lent for the call.
    pub(crate) fn lending<R>(
        mut self,
        lent: &[(&'a str, LentTensor<'_>)],
        f: impl FnOnce(Feeds<'a>) -> R,
    ) -> R {
        let slices: Vec<&[u8]> = lent.iter().map(|(_, tensor)| tensor.bytes()).collect();
        lend(&slices, |bytes| {
            for ((name, tensor), bytes) in lent.iter().zip(bytes) {
                let checked = Tensor::new(tensor.dtype(), tensor.shape(), bytes);
                self.push(name, checked.expect("the length was checked when it was lent"));
            }
            self.lent = true;
            f(self)
        })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<'a> IntoIterator for Feeds<'a> {
    type Item = (&'a str, Value);
    type IntoIter = smallvec::IntoIter<[(&'a str, Value); 3]>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a, V: Into<Value>> FromIterator<(&'a str, V)> for Feeds<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, V)>>(iter: I) -> Feeds<'a> {
        let entries = iter.into_iter().map(|(name, value)| (name, value.into())).collect();
        Feeds { entries, lent: false }
    }
}

impl<'a, V: Into<Value>, const N: usize> From<[(&'a str, V); N]> for Feeds<'a> {
    fn from(entries: [(&'a str, V); N]) -> Feeds<'a> {
        entries.into_iter().collect()
    }
}
