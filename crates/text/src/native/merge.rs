//! The merge loop that byte-pair encoding and SentencePiece share: of all neighbours that may merge, the best
//! goes first, the leftmost among equals, until none is left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

/// A piece of the text between merges: its byte range, its token (if it is one), and its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) start: u32,
    /// Equal to `start` once the symbol has been merged away.
    pub(crate) end: u32,
    pub(crate) id: Option<u32>,
    previous: u32,
    next: u32,
}

/// Reusable buffers of the loop.
#[derive(Default)]
pub(crate) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Candidate>>,
}

/// A possible merge. The order of the fields is the order of the queue.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    right: u32,
    /// End of the right symbol and its start when the candidate was found: a merge since then changes one of them.
    middle: u32,
    end: u32,
    result: u32,
}

impl Merger {
    /// Forgets the symbols of the last text.
    pub(crate) fn clear(&mut self) {
        self.symbols.clear();
        self.queue.clear();
    }

    /// Appends a symbol, `length` bytes long.
    pub(crate) fn push(&mut self, length: u32, id: Option<u32>) {
        let index = self.symbols.len() as u32;
        let start = self.symbols.last().map_or(0, |s| s.end);
        if let Some(last) = self.symbols.last_mut() {
            last.next = index;
        }
        let previous = index.checked_sub(1).unwrap_or(NONE);
        self.symbols.push(Symbol { start, end: start + length, id, previous, next: NONE });
    }

    /// Merges until nothing can; then visits what is left, in order. `pair` gives the rank (low is better) and the
    /// token for two neighbours, or `None` when they do not merge.
    pub(crate) fn run(
        &mut self,
        pair: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>,
    ) -> impl Iterator<Item = &Symbol> {
        for right in 1..self.symbols.len() as u32 {
            self.consider(right - 1, right, &pair);
        }
        while let Some(Reverse(best)) = self.queue.pop() {
            let (left, right) = (self.symbols[best.left as usize], self.symbols[best.right as usize]);
            let stale = left.next != best.right
                || left.end != best.middle
                || right.end != best.end
                || right.start == right.end;
            if stale || left.start == left.end {
                continue;
            }
            let merged = &mut self.symbols[best.left as usize];
            merged.end = right.end;
            merged.id = Some(best.result);
            merged.next = right.next;
            let previous = merged.previous;
            self.symbols[best.right as usize].end = right.start;
            if right.next != NONE {
                self.symbols[right.next as usize].previous = best.left;
                self.consider(best.left, right.next, &pair);
            }
            if previous != NONE {
                self.consider(previous, best.left, &pair);
            }
        }
        self.symbols.iter().filter(|s| s.start != s.end)
    }

    fn consider(&mut self, left: u32, right: u32, pair: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>) {
        let (l, r) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        if let Some((rank, result)) = pair(l, r) {
            let candidate = Candidate { rank, left, right, middle: l.end, end: r.end, result };
            self.queue.push(Reverse(candidate));
        }
    }
}
