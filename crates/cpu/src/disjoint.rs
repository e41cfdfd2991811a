//! Writing disjoint parts of one slice from several threads.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice whose disjoint parts several tasks may write at once.
pub(crate) struct DisjointMut<'a, T> {
    ptr: *mut T,
    len: usize,
    _slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it hands out parts of a `&mut [T]`, each to one thread at a time (the contract of `part`).
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}
// SAFETY: as for `Sync`.
unsafe impl<T: Send> Send for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    /// Takes the slice for the time of the borrow.
    pub(crate) fn new(slice: &'a mut [T]) -> DisjointMut<'a, T> {
        DisjointMut { ptr: slice.as_mut_ptr(), len: slice.len(), _slice: PhantomData }
    }

    /// The elements of `range`, to write.
    ///
    /// # Safety
    /// No two parts that live at the same time may overlap.
    ///
    /// # Panics
    /// When the range does not lie within the slice.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "a part of the slice");
        // SAFETY: the range lies in the slice, which is borrowed mutably for `'a`; the caller keeps parts apart.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), range.end - range.start) }
    }
}
