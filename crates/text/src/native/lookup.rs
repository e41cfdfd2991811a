//! Compact tables: bytes to token id and pairs of tokens to their merge.

use std::collections::HashMap;

use super::hash::Keyed;
use crate::{StringTable, TextError};

const EMPTY: u32 = u32::MAX;

/// The bytes of every token, and the way back.
pub(crate) struct TokenTable {
    texts: StringTable,
    slots: Box<[u32]>,
    hasher: Keyed,
    longest: usize,
}

impl TokenTable {
    /// Indexes `texts`. Where several tokens have the same bytes, the one with the highest `rank` is found, then
    /// the one with the highest id; tokens without bytes or rank are never found.
    pub(crate) fn new(mut texts: StringTable, rank: impl Fn(u32, &[u8]) -> Option<u8>) -> Self {
        texts.shrink();
        let capacity = (texts.len().max(4) * 2).next_power_of_two();
        let mut table = Self {
            longest: texts.iter().map(<[u8]>::len).max().unwrap_or(0),
            slots: vec![EMPTY; capacity].into_boxed_slice(),
            hasher: Keyed::new(),
            texts,
        };
        for id in 0..table.texts.len() as u32 {
            let text = table.text(id).unwrap_or_default();
            let rank_of = |id| rank(id, text);
            if text.is_empty() || rank_of(id).is_none() {
                continue;
            }
            let slot = table.slot(text);
            let found = table.slots[slot];
            if found == EMPTY || rank_of(found) <= rank_of(id) {
                table.slots[slot] = id;
            }
        }
        table
    }

    /// The slot that holds `text`, or the empty one where it belongs.
    fn slot(&self, text: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.bytes(text) as usize & mask;
        loop {
            let id = self.slots[slot];
            if id == EMPTY || self.texts.get(id as usize) == Some(text) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The token with exactly these bytes.
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if text.is_empty() || text.len() > self.longest {
            return None;
        }
        Some(self.slots[self.slot(text)]).filter(|id| *id != EMPTY)
    }

    /// The bytes of token `id`.
    pub(crate) fn text(&self, id: u32) -> Option<&[u8]> {
        self.texts.get(id as usize)
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// For two neighbouring tokens: the rank of their merge (0 is best) and the token they become.
pub(crate) struct MergeTable(HashMap<u64, (u32, u32), Keyed>);

impl MergeTable {
    /// Reads `merges`, each `left right` in the vocabulary's spelling; `bytes_of` turns a spelling into the bytes
    /// that `tokens` is indexed by. A pair that occurs twice keeps its last rank.
    pub(crate) fn new(
        merges: &StringTable,
        tokens: &TokenTable,
        bytes_of: impl Fn(&str, &mut Vec<u8>),
    ) -> Result<Self, TextError> {
        let mut table = HashMap::with_capacity_and_hasher(merges.len(), Keyed::new());
        let mut joined = Vec::new();
        for (index, merge) in merges.iter().enumerate() {
            let bad = |reason| TextError::BadMerge {
                index,
                merge: String::from_utf8_lossy(merge).into_owned(),
                reason,
            };
            let text = std::str::from_utf8(merge).map_err(|_| bad("not UTF-8"))?;
            // A part may begin with a space only in vocabularies that are not byte-level.
            let (left, right) = text
                .char_indices()
                .skip(1)
                .find(|(_, c)| *c == ' ')
                .map(|(at, _)| (&text[..at], &text[at + 1..]))
                .ok_or_else(|| bad("expected two tokens with a space between them"))?;
            joined.clear();
            bytes_of(left, &mut joined);
            let middle = joined.len();
            bytes_of(right, &mut joined);
            let left = tokens.find(&joined[..middle]).ok_or_else(|| bad("the left part is not a token"))?;
            let right = tokens.find(&joined[middle..]).ok_or_else(|| bad("the right part is not a token"))?;
            let both = tokens.find(&joined).ok_or_else(|| bad("the result is not a token"))?;
            table.insert(key(left, right), (index as u32, both));
        }
        Ok(Self(table))
    }

    /// Rank and result of merging `left` with `right`.
    pub(crate) fn get(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        self.0.get(&key(left, right)).copied()
    }
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}
