//! Views: rows of a buffer, perhaps behind rows that lie elsewhere.

use std::sync::Arc;

use super::buffer::{AppendBuffer, Live};
use super::watermark::Refusal;
use super::{AppendSlot, ClaimError};
use crate::{Bytes, Ledger, RegionId, Storage, Tensor};

/// Rows in sequence, the same in each run: those of earlier segments, then those of a buffer that may be appended to. A view
/// keeps its memory alive, and what it sees never changes.
#[derive(Clone)]
pub struct AppendView {
    prefix: Option<Arc<Prefix>>,
    tail: Live,
    /// Rows behind the buffer's, where some were written over.
    behind: Option<Behind>,
}

/// Segments behind the one that grows, without their first `skip` rows.
#[derive(Clone)]
pub(super) struct Behind {
    parts: Arc<Prefix>,
    skip: usize,
}

impl Behind {
    fn rows(&self) -> usize {
        self.parts.rows - self.skip
    }

    /// Without the first `rows` rows; `None` where nothing is left.
    fn without(&self, rows: usize) -> Option<Behind> {
        (rows < self.rows()).then(|| Behind { parts: self.parts.clone(), skip: self.skip + rows })
    }

    /// Some of the rows, counted from the first that is left.
    fn list(&self, start: usize, end: usize) -> Vec<Part> {
        cut(self.parts.parts.iter(), self.skip + start, self.skip + end)
    }
}

/// The parts that hold rows `start..end` of `parts`.
fn cut<'p>(parts: impl Iterator<Item = &'p Part>, start: usize, end: usize) -> Vec<Part> {
    let mut list = Vec::new();
    let mut at = 0;
    for part in parts {
        let rows = part.rows();
        let (from, to) = (start.clamp(at, at + rows) - at, end.clamp(at, at + rows) - at);
        if from < to {
            list.push(part.part(from, to));
        }
        at += rows;
    }
    list
}

/// Segments before the one that grows.
pub(super) struct Prefix {
    parts: Vec<Part>,
    rows: usize,
}

/// Some rows of each run.
#[derive(Clone)]
enum Part {
    Buffer(Live),
    /// Memory of others: run `i` begins `i * stride` bytes from the first.
    Bytes {
        bytes: Bytes,
        stride: usize,
        rows: usize,
        row_bytes: usize,
    },
}

impl Part {
    fn rows(&self) -> usize {
        match self {
            Part::Buffer(live) => live.len(),
            Part::Bytes { rows, .. } => *rows,
        }
    }

    fn stretches(&self, run: usize) -> [&[u8]; 2] {
        match self {
            Part::Buffer(live) => live.stretches(run),
            Part::Bytes { bytes, stride, rows, row_bytes } => {
                [&bytes[run * stride..run * stride + rows * row_bytes], &[]]
            }
        }
    }

    /// Some of the rows, counted from the first.
    fn part(&self, start: usize, end: usize) -> Part {
        match self {
            Part::Buffer(live) => Part::Buffer(live.part(start, end)),
            Part::Bytes { bytes, stride, row_bytes, .. } => Part::Bytes {
                bytes: bytes.slice(start * row_bytes..),
                stride: *stride,
                rows: end - start,
                row_bytes: *row_bytes,
            },
        }
    }
}

impl AppendView {
    pub(super) fn new(prefix: Option<Arc<Prefix>>, tail: Live) -> AppendView {
        AppendView { prefix, tail, behind: None }
    }

    pub(super) fn with_behind(self, behind: Option<Behind>) -> AppendView {
        AppendView { behind, ..self }
    }

    /// The rows along `axis` of `tensor` where they lie, as a view without room; `None` where a run's rows are not dense,
    /// the runs not equally far apart, or the elements not aligned or no whole bytes.
    pub fn of_tensor(tensor: &Tensor, axis: usize) -> Option<AppendView> {
        let (outer, row_bytes) = AppendBuffer::extents(tensor, axis)?;
        let rows = tensor.shape()[axis];
        let width = tensor.dtype().bit_width()? as usize / 8;
        let (bytes, stride) = match tensor.storage() {
            Storage::Append { view, axis: at } => return (*at == axis).then(|| view.clone()),
            Storage::Dense(bytes) => (bytes, rows * row_bytes),
            Storage::Strided { bytes, strides } => {
                (bytes, run_stride(tensor.shape(), strides, axis)?.checked_mul(width)?)
            }
        };
        let aligned = bytes.address().is_multiple_of(width) && stride.is_multiple_of(width);
        if !aligned && !tensor.is_empty() {
            return None;
        }
        let tail = Live::nothing(AppendBuffer::none(outer, row_bytes));
        if tensor.is_empty() {
            return Some(AppendView::new(None, tail));
        }
        let parts = vec![Part::Bytes { bytes: bytes.clone(), stride, rows, row_bytes }];
        Some(AppendView::new(Some(Arc::new(Prefix { parts, rows })), tail))
    }

    /// The same rows, and room for `capacity` more behind them in a new buffer. No row is copied.
    ///
    /// # Errors
    /// When the capacity is 0 or the size overflows or cannot be had.
    pub fn extended(&self, capacity: usize, ledger: &Ledger) -> Result<AppendView, ClaimError> {
        let buffer = AppendBuffer::allocate(self.outer(), capacity, self.row_bytes(), ledger)?;
        let tail = (self.tail.len() > 0).then(|| Part::Buffer(self.tail.clone()));
        let behind = self.behind.as_ref().map_or(Vec::new(), |behind| behind.list(0, behind.rows()));
        let parts: Vec<Part> = self.parts().cloned().chain(tail).chain(behind).collect();
        let prefix = (!parts.is_empty()).then(|| Arc::new(Prefix { parts, rows: self.len() }));
        Ok(AppendView::new(prefix, Live::nothing(buffer)))
    }

    /// Segments with rows, in order.
    fn parts(&self) -> impl Iterator<Item = &Part> + '_ {
        self.prefix.iter().flat_map(|prefix| &prefix.parts)
    }

    fn before(&self) -> usize {
        self.prefix.as_ref().map_or(0, |prefix| prefix.rows)
    }

    /// Rows up to the last of the buffer that grows.
    fn up_to_tail(&self) -> usize {
        self.before() + self.tail.len()
    }

    /// Rows that the view sees.
    pub fn len(&self) -> usize {
        self.up_to_tail() + self.behind.as_ref().map_or(0, Behind::rows)
    }

    /// Whether the view sees no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs.
    pub fn outer(&self) -> usize {
        self.tail.buffer().outer()
    }

    /// Rows that each run can hold, those of earlier segments included.
    pub fn capacity(&self) -> usize {
        self.before() + self.tail.buffer().capacity() + self.behind.as_ref().map_or(0, Behind::rows)
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.tail.buffer().row_bytes()
    }

    /// Bytes of memory behind the view: the rows of earlier segments and the whole buffer that grows.
    pub fn reserved_bytes(&self) -> usize {
        self.outer() * self.capacity() * self.row_bytes()
    }

    /// Segments that hold rows.
    pub fn segment_count(&self) -> usize {
        let behind = self.behind.iter().map(|behind| behind.list(0, behind.rows()).len()).sum::<usize>();
        self.parts().count() + usize::from(self.tail.len() > 0) + behind
    }

    /// Whether each run lies in one stretch.
    pub fn segments_are_one(&self) -> bool {
        self.outer() == 0 || self.contiguous(0).is_some()
    }

    /// The region of the first row, to prove that two values share memory.
    pub fn region_id(&self) -> RegionId {
        match self.first() {
            Some((Part::Buffer(live), _)) => live.buffer().id(),
            Some((Part::Bytes { bytes, .. }, _)) => bytes.region_id(),
            None => self.tail.buffer().id(),
        }
    }

    /// The part that holds the first row and that row's number in it, unless it lies in the buffer that grows.
    fn first(&self) -> Option<(&Part, usize)> {
        if let Some(part) = self.parts().next() {
            return Some((part, 0));
        }
        let behind = self.behind.as_ref().filter(|_| self.tail.len() == 0)?;
        let mut skip = behind.skip;
        for part in &behind.parts.parts {
            if skip < part.rows() {
                return Some((part, skip));
            }
            skip -= part.rows();
        }
        None
    }

    /// The region that grows.
    pub fn tail_region_id(&self) -> RegionId {
        self.tail.buffer().id()
    }

    /// The address of the first row of the first run.
    pub fn address(&self) -> usize {
        match self.first() {
            Some((part, row)) => match without(part.stretches(0), row * self.row_bytes()) {
                [[], second] => second.as_ptr().addr(),
                [first, _] => first.as_ptr().addr(),
            },
            None => self.tail.address(),
        }
    }

    /// The rows of run `run`: one stretch for each segment, two where a ring goes round its end. None is empty.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn segments(&self, run: usize) -> Segments<'_> {
        assert!(run < self.outer(), "a run of the view");
        let parts = self.prefix.as_ref().map_or(&[][..], |prefix| &prefix.parts);
        let behind = self.behind.as_ref().map(|behind| (&*behind.parts, behind.skip * self.row_bytes()));
        Segments { parts: parts.iter(), tail: Some(&self.tail), behind, skip: 0, run, later: None }
    }

    /// The rows of run `run` where they lie in one stretch.
    ///
    /// # Panics
    /// When there is no such run.
    pub fn contiguous(&self, run: usize) -> Option<&[u8]> {
        let mut segments = self.segments(run);
        let first = segments.next().unwrap_or(&[]);
        segments.next().is_none().then_some(first)
    }

    /// A view of rows `start..end` of this one, in the same memory. Rows in front that no view sees any more make room in
    /// a ring.
    ///
    /// # Panics
    /// When this view has no such rows.
    pub fn part(&self, start: usize, end: usize) -> AppendView {
        assert!(start <= end && end <= self.len(), "rows of the view");
        let (before, up_to_tail) = (self.before(), self.up_to_tail());
        if let Some(behind) = self.behind.as_ref().filter(|_| end > up_to_tail) {
            let kept = match end == self.len() && start <= up_to_tail {
                true => Some(behind.clone()),
                false => {
                    let parts = behind.list(start.saturating_sub(up_to_tail), end - up_to_tail);
                    let rows = parts.iter().map(Part::rows).sum();
                    (rows > 0).then(|| Behind { parts: Arc::new(Prefix { parts, rows }), skip: 0 })
                }
            };
            return self.part(start.min(up_to_tail), up_to_tail).with_behind(kept);
        }
        let mut parts = cut(self.parts(), start, end);
        let within = |at: usize| at.clamp(before, up_to_tail) - before;
        // A view that ends in an earlier segment goes on there, if others let it.
        let last = if end < before { parts.pop() } else { None };
        let tail = match last {
            Some(Part::Buffer(live)) => live,
            Some(part @ Part::Bytes { .. }) => {
                parts.push(part);
                Live::nothing(AppendBuffer::none(self.outer(), self.row_bytes()))
            }
            None => self.tail.part(within(start), within(end)),
        };
        let rows = parts.iter().map(Part::rows).sum();
        AppendView::new((rows > 0).then(|| Arc::new(Prefix { parts, rows })), tail)
    }

    /// The right to write `rows` rows over rows `start..` of this view: the result sees the view's rows before and behind
    /// them. Where the new rows cannot stand in the view's own buffer, they go to a new one of `room` rows; rows of the
    /// view are neither copied nor changed.
    ///
    /// # Errors
    /// When the view has no such rows, or there is no memory.
    pub fn claim_over(
        &self,
        start: usize,
        rows: usize,
        room: usize,
        ledger: &Ledger,
    ) -> Result<AppendSlot, ClaimError> {
        let len = self.len();
        let end = start.checked_add(rows).filter(|&end| end <= len);
        let end = end.ok_or(ClaimError::Full { len: start, rows, capacity: len })?;
        let up_to_tail = self.up_to_tail();
        let behind = match &self.behind {
            Some(behind) if end >= up_to_tail => behind.without(end - up_to_tail),
            _ if end == len => None,
            _ => {
                let rest = self.part(end, len);
                let tail = (rest.tail.len() > 0).then(|| Part::Buffer(rest.tail.clone()));
                let last = rest.behind.as_ref().map_or(Vec::new(), |behind| behind.list(0, behind.rows()));
                let parts: Vec<Part> = rest.parts().cloned().chain(tail).chain(last).collect();
                Some(Behind { parts: Arc::new(Prefix { parts, rows: len - end }), skip: 0 })
            }
        };
        let base = self.part(0, start);
        let slot = match base.claim(rows) {
            Ok(slot) => slot,
            Err(_) => base.extended(room.max(rows).max(1), ledger)?.claim(rows)?,
        };
        Ok(slot.with_behind(behind))
    }

    /// A view of the first `len` rows, in the same memory.
    ///
    /// # Panics
    /// When this view sees fewer rows.
    pub fn truncated(&self, len: usize) -> AppendView {
        self.part(0, len)
    }

    /// The right to write `rows` rows behind this view.
    ///
    /// # Errors
    /// [`ClaimError::Taken`] when a longer view is alive, [`ClaimError::Full`] when they do not fit.
    pub fn claim(&self, rows: usize) -> Result<AppendSlot, ClaimError> {
        let len = self.len();
        if self.behind.is_some() {
            return Err(ClaimError::Full { len, rows, capacity: len });
        }
        let claim = self.tail.claim(rows).map_err(|refusal| match refusal {
            Refusal::Taken(longest) => {
                // Counted as this view counts: from its own first row.
                let longest = len + longest.saturating_sub(self.tail.end());
                ClaimError::Taken { len, longest }
            }
            Refusal::Full => ClaimError::Full { len, rows, capacity: self.capacity() },
        })?;
        Ok(AppendSlot::new(self.prefix.clone(), claim))
    }
}

/// From the begin of one run to the begin of the next, in elements, where rows are dense and runs equally far apart.
fn run_stride(shape: &[usize], strides: &[usize], axis: usize) -> Option<usize> {
    let mut dense = 1;
    for at in (axis..shape.len()).rev() {
        if shape[at] != 1 && strides[at] != dense {
            return None;
        }
        dense *= shape[at];
    }
    let mut outer = None;
    let mut expected = 0;
    for at in (0..axis).rev().filter(|&at| shape[at] != 1) {
        if *outer.get_or_insert(strides[at]) != strides[at] && strides[at] != expected {
            return None;
        }
        expected = strides[at] * shape[at];
    }
    Some(outer.unwrap_or(dense))
}

/// Without the first `bytes` bytes.
fn without([first, second]: [&[u8]; 2], bytes: usize) -> [&[u8]; 2] {
    let here = bytes.min(first.len());
    [&first[here..], &second[(bytes - here).min(second.len())..]]
}

/// The rows of one run, stretch by stretch.
#[derive(Clone)]
pub struct Segments<'a> {
    parts: std::slice::Iter<'a, Part>,
    tail: Option<&'a Live>,
    /// What follows the tail, and how many bytes of it are left out.
    behind: Option<(&'a Prefix, usize)>,
    /// Bytes to leave out of the next parts.
    skip: usize,
    run: usize,
    /// The second stretch of a ring.
    later: Option<&'a [u8]>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(later) = self.later.take() {
                return Some(later);
            }
            let stretches = match (self.parts.next(), self.tail) {
                (Some(part), _) => part.stretches(self.run),
                (None, Some(tail)) => {
                    self.tail = None;
                    tail.stretches(self.run)
                }
                (None, None) => {
                    let (behind, skip) = self.behind.take()?;
                    (self.parts, self.skip) = (behind.parts.iter(), skip);
                    continue;
                }
            };
            let bytes: usize = stretches.iter().map(|stretch| stretch.len()).sum();
            let [first, second] = without(stretches, self.skip);
            self.skip -= self.skip.min(bytes);
            self.later = Some(second).filter(|s| !s.is_empty());
            if !first.is_empty() {
                return Some(first);
            }
        }
    }
}

impl std::fmt::Debug for AppendView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (outer, len, capacity, row_bytes) = (self.outer(), self.len(), self.capacity(), self.row_bytes());
        write!(f, "AppendView({outer} × {len} of {capacity} rows of {row_bytes} bytes")?;
        match self.segment_count() {
            0 | 1 => write!(f, ")"),
            n => write!(f, " in {n} segments)"),
        }
    }
}
