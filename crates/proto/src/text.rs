//! Strings of messages: eight bytes each, in place in the message's span or in a table beside it.

use heirloom_mem::Bytes;
use smallvec::SmallVec;

use crate::wire::wide;

/// What a string reads as that is no valid UTF-8. The bytes themselves are kept and written again.
pub const NOT_UTF8: &str = "\u{fffd}";

/// A string field: absent, a range of the span, or an entry of [`Core`]'s table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    at: u32,
    length: u32,
}

const OWNED: u32 = u32::MAX;

impl Text {
    pub(crate) const ABSENT: Text = Text { at: OWNED, length: OWNED };

    pub(crate) fn is_absent(self) -> bool {
        self == Text::ABSENT
    }

    fn owned_index(self) -> Option<usize> {
        if self.length == OWNED && self.at != OWNED { usize::try_from(self.at).ok() } else { None }
    }
}

impl Default for Text {
    fn default() -> Text {
        Text::ABSENT
    }
}

pub(crate) type TextList = SmallVec<[Text; 2]>;

/// A string that does not lie in the span, or too far in it.
#[derive(Clone)]
enum Owned {
    Heap(Box<[u8]>),
    Shared(Bytes),
}

impl Owned {
    fn bytes(&self) -> &[u8] {
        match self {
            Owned::Heap(bytes) => bytes,
            Owned::Shared(bytes) => bytes,
        }
    }
}

/// What every message has beside its fields.
#[derive(Clone, Default)]
pub(crate) struct Core {
    /// The bytes that it was decoded from.
    pub(crate) span: Option<Bytes>,
    extra: Option<Box<Extra>>,
}

#[derive(Clone, Default)]
struct Extra {
    touched: bool,
    /// Whether the spans hold unknown fields.
    has_unknown: bool,
    owned: Vec<Owned>,
    /// Spans of earlier occurrences that were merged into this message; their unknown fields count.
    earlier: Vec<Bytes>,
}

impl Core {
    /// Marks the message as no longer equal to its span.
    #[inline(never)]
    pub(crate) fn touch(&mut self) {
        self.extra.get_or_insert_default().touched = true;
    }

    /// Whether the message must be encoded anew.
    pub(crate) fn is_touched(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.touched)
    }

    /// The bytes that stand for the message as it is, while nothing changed it.
    pub(crate) fn original(&self) -> Option<&Bytes> {
        if self.is_touched() { None } else { self.span.as_ref() }
    }

    /// Notes that the span holds unknown fields.
    #[cold]
    pub(crate) fn note_unknown(&mut self) {
        self.extra.get_or_insert_default().has_unknown = true;
    }

    /// All spans, in order.
    pub(crate) fn spans(&self) -> impl Iterator<Item = &Bytes> {
        let earlier = self.extra.as_ref().map_or(&[][..], |extra| &extra.earlier);
        earlier.iter().chain(self.span.as_ref())
    }

    /// All spans in order, if they hold unknown fields.
    pub(crate) fn spans_with_unknown(&self) -> impl Iterator<Item = &Bytes> {
        let has_unknown = self.extra.as_ref().is_some_and(|extra| extra.has_unknown);
        has_unknown.then(|| self.spans()).into_iter().flatten()
    }

    /// Forgets the unknown fields. In-place strings must have been anchored.
    pub(crate) fn forget_spans(&mut self) {
        self.touch();
        self.span = None;
        if let Some(extra) = &mut self.extra {
            extra.earlier.clear();
            extra.has_unknown = false;
        }
    }

    /// Makes room for another span: this one becomes an earlier one. In-place strings must have been anchored.
    pub(crate) fn retire_span(&mut self) {
        let span = self.span.take();
        let extra = self.extra.get_or_insert_default();
        extra.touched = true;
        extra.earlier.extend(span);
    }

    pub(crate) fn text(&self, text: Text) -> Option<&[u8]> {
        if text.is_absent() {
            return None;
        }
        if let Some(index) = text.owned_index() {
            return Some(self.extra.as_ref()?.owned.get(index)?.bytes());
        }
        let start = usize::try_from(text.at).ok()?;
        self.span.as_deref()?.get(start..start.checked_add(usize::try_from(text.length).ok()?)?)
    }

    pub(crate) fn str(&self, text: Text) -> &str {
        self.text(text).map_or("", readable)
    }

    /// The string's bytes as a handle that shares memory where that is possible.
    pub(crate) fn shared(&self, text: Text) -> Bytes {
        match text.owned_index() {
            Some(index) => match self.extra.as_ref().and_then(|extra| extra.owned.get(index)) {
                Some(Owned::Shared(bytes)) => bytes.clone(),
                Some(Owned::Heap(bytes)) => Bytes::from_vec(Vec::from(&**bytes)),
                None => Bytes::empty(),
            },
            None => self.in_place(text).unwrap_or_default(),
        }
    }

    fn in_place(&self, text: Text) -> Option<Bytes> {
        if text.is_absent() || text.owned_index().is_some() {
            return None;
        }
        let start = usize::try_from(text.at).ok()?;
        let span = self.span.as_ref()?;
        span.get(start..start.checked_add(usize::try_from(text.length).ok()?)?)
            .map(|_| span.slice(start..start + usize::try_from(text.length).unwrap_or(0)))
    }

    /// A string that was found in `span`, which is about to become this message's span.
    #[inline]
    pub(crate) fn found(&mut self, span: &Bytes, range: std::ops::Range<usize>) -> Text {
        match (u32::try_from(range.start), u32::try_from(range.len())) {
            (Ok(at), Ok(length)) if length != OWNED => Text { at, length },
            _ => self.own(Owned::Shared(span.slice(range))),
        }
    }

    #[inline(never)]
    fn own(&mut self, owned: Owned) -> Text {
        let table = &mut self.extra.get_or_insert_default().owned;
        let at = u32::try_from(table.len()).unwrap_or(OWNED);
        assert!(at != OWNED, "a message holds fewer than 2^32 - 1 strings");
        table.push(owned);
        Text { at, length: OWNED }
    }

    fn replace(&mut self, text: &mut Text, owned: Owned) {
        self.touch();
        if let (Some(index), Some(extra)) = (text.owned_index(), &mut self.extra)
            && let Some(entry) = extra.owned.get_mut(index)
        {
            *entry = owned;
            return;
        }
        *text = self.own(owned);
    }

    #[inline(never)]
    pub(crate) fn set(&mut self, text: &mut Text, value: &[u8]) {
        self.replace(text, Owned::Heap(Box::from(value)));
    }

    #[inline(never)]
    pub(crate) fn set_shared(&mut self, text: &mut Text, value: Bytes) {
        self.replace(text, Owned::Shared(value));
    }

    #[inline(never)]
    pub(crate) fn new_text(&mut self, value: &[u8]) -> Text {
        self.touch();
        self.own(Owned::Heap(Box::from(value)))
    }

    /// Makes an in-place string independent of the span.
    pub(crate) fn anchor(&mut self, text: &mut Text) {
        if let Some(bytes) = self.in_place(*text) {
            *text = self.own(Owned::Shared(bytes));
        }
    }
}

fn readable(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or(NOT_UTF8)
}

/// A repeated string field.
///
/// A string that is no valid UTF-8 reads as [`NOT_UTF8`]; [`bytes`](Strings::bytes) gives its bytes.
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    core: &'a Core,
    list: &'a [Text],
}

impl<'a> Strings<'a> {
    pub(crate) fn new(core: &'a Core, list: &'a [Text]) -> Strings<'a> {
        Strings { core, list }
    }

    /// How many.
    pub fn len(self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.list.is_empty()
    }

    /// One string; `None` behind the last.
    pub fn get(self, index: usize) -> Option<&'a str> {
        self.bytes(index).map(readable)
    }

    /// The bytes of one string; `None` behind the last.
    pub fn bytes(self, index: usize) -> Option<&'a [u8]> {
        let text = *self.list.get(index)?;
        Some(self.core.text(text).unwrap_or(&[]))
    }

    /// The bytes of one string as a handle that shares the file's memory; `None` behind the last.
    pub fn shared(self, index: usize) -> Option<Bytes> {
        self.list.get(index).map(|text| self.core.shared(*text))
    }

    /// All strings in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a str> + DoubleEndedIterator + Clone {
        let Strings { core, list } = self;
        list.iter().map(move |text| core.str(*text))
    }

    /// The bytes of all strings in order.
    pub fn iter_bytes(self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone {
        let Strings { core, list } = self;
        list.iter().map(move |text| core.text(*text).unwrap_or(&[]))
    }

    /// Whether one of the strings is `value`.
    pub fn contains(self, value: &str) -> bool {
        self.iter_bytes().any(|bytes| bytes == value.as_bytes())
    }

    /// The bytes of all strings together.
    pub(crate) fn total_bytes(self) -> u64 {
        self.iter_bytes().map(|bytes| wide(bytes.len())).sum()
    }
}

impl std::ops::Index<usize> for Strings<'_> {
    type Output = str;
    /// One string.
    ///
    /// # Panics
    /// When there is no such string; [`get`](Strings::get) does not panic.
    fn index(&self, index: usize) -> &str {
        self.get(index).expect("an index below the number of strings")
    }
}

impl std::fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Strings<'_> {
    fn eq(&self, other: &Strings<'_>) -> bool {
        self.iter_bytes().eq(other.iter_bytes())
    }
}

impl<T: AsRef<str>> PartialEq<[T]> for Strings<'_> {
    fn eq(&self, other: &[T]) -> bool {
        self.iter_bytes().eq(other.iter().map(|text| text.as_ref().as_bytes()))
    }
}

impl<T: AsRef<str>, const N: usize> PartialEq<[T; N]> for Strings<'_> {
    fn eq(&self, other: &[T; N]) -> bool {
        *self == other[..]
    }
}

/// A repeated string field, to change.
pub struct StringsMut<'a> {
    core: &'a mut Core,
    list: &'a mut TextList,
}

impl<'a> StringsMut<'a> {
    pub(crate) fn new(core: &'a mut Core, list: &'a mut TextList) -> StringsMut<'a> {
        core.touch();
        StringsMut { core, list }
    }

    /// The strings as they are.
    pub fn get(&self) -> Strings<'_> {
        Strings { core: self.core, list: self.list }
    }

    /// Adds a string at the end.
    pub fn push(&mut self, value: impl AsRef<[u8]>) {
        let text = self.core.new_text(value.as_ref());
        self.list.push(text);
    }

    /// Replaces one string.
    ///
    /// # Panics
    /// When there is no such string.
    pub fn set(&mut self, index: usize, value: impl AsRef<[u8]>) {
        self.core.set(&mut self.list[index], value.as_ref());
    }

    /// Inserts a string before the one at `index`.
    ///
    /// # Panics
    /// When `index` is greater than the number of strings.
    pub fn insert(&mut self, index: usize, value: impl AsRef<[u8]>) {
        let text = self.core.new_text(value.as_ref());
        self.list.insert(index, text);
    }

    /// Removes one string.
    ///
    /// # Panics
    /// When there is no such string.
    pub fn remove(&mut self, index: usize) {
        self.list.remove(index);
    }

    /// Keeps the first `length` strings.
    pub fn truncate(&mut self, length: usize) {
        self.list.truncate(length);
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.list.clear();
    }
}

impl<T: AsRef<[u8]>> Extend<T> for StringsMut<'_> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}
