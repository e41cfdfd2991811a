//! Tokens that are matched in the text before the algorithm runs.

use std::ops::Range;

/// Control, unknown and user-defined tokens, findable in a text.
pub(crate) struct SpecialTokens {
    /// Sorted by bytes.
    entries: Vec<Entry>,
    /// The lengths that occur, longest first.
    lengths: Vec<usize>,
    /// The entries that begin with each byte.
    by_first: Box<[Range<u32>; 256]>,
}

struct Entry {
    text: Box<[u8]>,
    id: u32,
    /// User-defined tokens are matched in any text, the others only where special tokens are asked for.
    always: bool,
}

/// A piece of a text: a token found in it, or what lies between.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fragment {
    Token(u32),
    Text(Range<usize>),
}

impl SpecialTokens {
    /// Tokens as (bytes, id, matched in any text). Of two with the same bytes the last is kept; bytes that are no
    /// UTF-8 occur in no text.
    pub(crate) fn new(tokens: impl Iterator<Item = (Box<[u8]>, u32, bool)>) -> Self {
        let mut entries: Vec<Entry> = tokens.map(|(text, id, always)| Entry { text, id, always }).collect();
        entries.retain(|e| !e.text.is_empty() && std::str::from_utf8(&e.text).is_ok());
        entries.sort_by(|a, b| a.text.cmp(&b.text).then(b.id.cmp(&a.id)));
        entries.dedup_by(|a, b| a.text == b.text);
        let mut by_first = Box::new([const { 0..0 }; 256]);
        for (index, entry) in (0u32..).zip(&entries) {
            let range = &mut by_first[usize::from(entry.text[0])];
            if range.start == range.end {
                range.start = index;
            }
            range.end = index + 1;
        }
        let mut lengths: Vec<usize> = entries.iter().map(|e| e.text.len()).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths.dedup();
        Self { entries, lengths, by_first }
    }

    /// Cuts `text` into tokens and what lies between them. The longest tokens are taken first wherever they occur,
    /// then shorter ones in what is left, from left to right.
    pub(crate) fn partition(&self, text: &str, parse_special: bool) -> Vec<Fragment> {
        let text = text.as_bytes();
        let mut fragments = Vec::new();
        if !text.is_empty() {
            fragments.push(Fragment::Text(0..text.len()));
        }
        for &length in &self.lengths {
            let mut next = Vec::with_capacity(fragments.len());
            for fragment in fragments {
                let Fragment::Text(mut rest) = fragment else {
                    next.push(fragment);
                    continue;
                };
                while let Some((at, id)) = self.find(text, rest.clone(), length, parse_special) {
                    if rest.start < at {
                        next.push(Fragment::Text(rest.start..at));
                    }
                    next.push(Fragment::Token(id));
                    rest.start = at + length;
                }
                if !rest.is_empty() {
                    next.push(Fragment::Text(rest));
                }
            }
            fragments = next;
        }
        fragments
    }

    /// The first token of `length` bytes that lies in `range` of `text`, and where.
    fn find(&self, text: &[u8], range: Range<usize>, length: usize, special: bool) -> Option<(usize, u32)> {
        let last = range.end.checked_sub(length)?;
        (range.start..=last).find_map(|at| {
            let first = &self.by_first[usize::from(text[at])];
            let entries = &self.entries[first.start as usize..first.end as usize];
            let piece = &text[at..at + length];
            let index = entries.binary_search_by(|e| e.text.as_ref().cmp(piece)).ok()?;
            (entries[index].always || special).then(|| (at, entries[index].id))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(list: &[(&str, bool)]) -> SpecialTokens {
        SpecialTokens::new(
            (0u32..)
                .zip(list)
                .map(|(id, (text, always))| (text.as_bytes().iter().copied().collect(), id, *always)),
        )
    }

    #[test]
    fn the_longest_token_is_taken_first_and_text_between_is_kept() {
        let special =
            tokens(&[("<a>", false), ("<a><b>", false), ("\n", true), ("\n\n", true), ("bc>", true)]);
        let parts = special.partition("x<a><b><a>\n\n\né", true);
        use Fragment::{Text, Token};
        assert_eq!(parts, [Text(0..1), Token(1), Token(0), Token(3), Token(2), Text(13..15)]);
    }

    #[test]
    fn control_tokens_are_text_unless_asked_for() {
        let special = tokens(&[("<a>", false), ("<u>", true)]);
        let parts = special.partition("<a><u>", false);
        assert_eq!(parts, [Fragment::Text(0..3), Fragment::Token(1)]);
        assert_eq!(special.partition("", true), []);
    }
}
