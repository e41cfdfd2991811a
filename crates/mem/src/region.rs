//! Regions of memory, who owns them, and the shared or unique slices through which they are used.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::ops::{Bound, Deref, RangeBounds};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Ledger;

/// Alignment of the buffers that this crate allocates, in bytes.
pub(crate) const ALIGN: usize = 64;

/// Memory of which so many bytes are taken at once is not filled before it is used.
const LARGE: usize = 1 << 20;

/// Tells one region of this process from every other one, past ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(u64);

impl RegionId {
    pub(crate) fn next() -> RegionId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        RegionId(NEXT.fetch_add(1, Relaxed))
    }
}

/// Where a region's bytes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Allocated by this crate.
    Heap,
    /// A file mapped into memory.
    Mapped,
    /// Another owner's buffer, kept alive by that owner.
    Foreign,
    /// The rows of an append buffer.
    Append,
    /// A buffer that its owner lends for one call: see [`lend`](crate::lend).
    Lent,
}

/// One stretch of memory and what keeps it alive.
pub(crate) struct Region {
    ptr: NonNull<u8>,
    len: usize,
    id: RegionId,
    owner: Owner,
}

enum Owner {
    /// Where the allocation begins, which may be before the region.
    Heap(Layout, NonNull<u8>),
    Empty,
    Mapped {
        _map: memmap2::Mmap,
    },
    Foreign {
        _owner: Box<dyn std::any::Any + Send + Sync>,
    },
    /// Nobody here: [`lend`](crate::lend) sees to it that the region is gone before the slice may be.
    Lent,
}

// SAFETY: the memory is read-only while shared; the owners are `Send + Sync`, and only a unique `Arc` writes.
unsafe impl Send for Region {}
// SAFETY: as for `Send`.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn heap(len: usize, ledger: &Ledger) -> Region {
        let id = RegionId::next();
        if len == 0 {
            return Region { ptr: NonNull::<Aligned>::dangling().cast(), len, id, owner: Owner::Empty };
        }
        // The system's allocator fills what it aligns by itself; large memory of its usual alignment comes from the kernel as
        // zeros, page by page when it is used.
        let large = len >= LARGE && len <= isize::MAX as usize - 2 * ALIGN;
        let (size, align) = if large { (len + ALIGN, 16) } else { (len, ALIGN) };
        let layout = Layout::from_size_align(size, align).expect("a buffer of less than isize::MAX bytes");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        let pad = start.as_ptr().addr().next_multiple_of(ALIGN) - start.as_ptr().addr();
        // SAFETY: only large memory, which has `ALIGN` more bytes than `len`, may begin between two multiples of `ALIGN`.
        let ptr = unsafe { start.add(pad) };
        ledger.allocations(1);
        ledger.allocated_bytes(len);
        Region { ptr, len, id, owner: Owner::Heap(layout, start) }
    }

    /// The slice without an owner. The caller must drop the region before the slice's lifetime ends.
    pub(crate) fn lent(slice: &[u8]) -> Region {
        Region {
            ptr: NonNull::from(slice).cast(),
            len: slice.len(),
            id: RegionId::next(),
            owner: Owner::Lent,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn kind(&self) -> RegionKind {
        match self.owner {
            Owner::Heap(..) | Owner::Empty => RegionKind::Heap,
            Owner::Mapped { .. } => RegionKind::Mapped,
            Owner::Foreign { .. } => RegionKind::Foreign,
            Owner::Lent => RegionKind::Lent,
        }
    }
}

#[repr(align(64))]
struct Aligned;

impl Drop for Region {
    fn drop(&mut self) {
        if let Owner::Heap(layout, start) = self.owner {
            // SAFETY: the memory was allocated in `heap` with this layout and nobody else frees it.
            unsafe { dealloc(start.as_ptr(), layout) }
        }
    }
}

/// Why a file could not be mapped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The file could not be opened, measured or mapped.
    #[error("cannot map `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is a folder, a device or the like.
    #[error("cannot map `{}`: it is no regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
}

/// A shared, immutable slice of a region. Cloning and slicing copy a handle, never the bytes.
#[derive(Clone)]
pub struct Bytes {
    region: Arc<Region>,
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: `ptr` points into `region`, which is `Send + Sync` and outlives it.
unsafe impl Send for Bytes {}
// SAFETY: as for `Send`.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// No bytes.
    pub fn empty() -> Bytes {
        static EMPTY: OnceLock<Arc<Region>> = OnceLock::new();
        let region = EMPTY.get_or_init(|| Arc::new(Region::heap(0, &Ledger::default())));
        Bytes::from_region(region.clone(), 0)
    }

    pub(crate) fn from_region(region: Arc<Region>, len: usize) -> Bytes {
        debug_assert!(len <= region.len);
        Bytes { ptr: region.ptr, len, region }
    }

    /// The vector's bytes, in the vector's own allocation.
    pub fn from_vec<T: IntoBytes + Immutable + Send + Sync + 'static>(vec: Vec<T>) -> Bytes {
        struct Owned<T>(Vec<T>);
        impl<T: IntoBytes + Immutable> AsRef<[u8]> for Owned<T> {
            fn as_ref(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }
        Bytes::from_owner(Owned(vec))
    }

    /// Another owner's bytes: they stay where they are, and `owner` lives as long as any slice of them.
    ///
    /// `owner.as_ref()` is called once; the bytes must not move or change while `owner` lives, which holds for
    /// every type whose `AsRef` lends memory that it owns and does not hand out mutably.
    pub fn from_owner<O: AsRef<[u8]> + Send + Sync + 'static>(owner: O) -> Bytes {
        let owner = Box::new(owner);
        let slice: &[u8] = (*owner).as_ref();
        let (ptr, len) = (NonNull::from(slice).cast::<u8>(), slice.len());
        let region = Region { ptr, len, id: RegionId::next(), owner: Owner::Foreign { _owner: owner } };
        Bytes::from_region(Arc::new(region), len)
    }

    /// A whole file, mapped read-only. The file must not be shortened or rewritten in place while it is mapped:
    /// the system then ends the process. Writing a new file and renaming it over this one is safe.
    ///
    /// # Errors
    /// When the path cannot be opened or is no regular file.
    pub fn map_file(path: &Path) -> Result<Bytes, MapError> {
        let io = |source| MapError::Io { path: path.into(), source };
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if !meta.is_file() {
            return Err(MapError::NotAFile { path: path.into() });
        }
        if meta.len() == 0 {
            return Ok(Bytes::empty());
        }
        // SAFETY: the map is read-only and private to this process; that nobody truncates the file meanwhile
        // is the documented assumption above (docs/security.md).
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        let (ptr, len) = (NonNull::from(&map[..]).cast::<u8>(), map.len());
        let region = Region { ptr, len, id: RegionId::next(), owner: Owner::Mapped { _map: map } };
        Ok(Bytes::from_region(Arc::new(region), len))
    }

    /// A part of these bytes, sharing the owner.
    ///
    /// # Panics
    /// When the range does not lie within `0..self.len()`; [`get`](Bytes::get) does not panic.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Bytes {
        self.get(range).expect("a range within the bytes")
    }

    /// A part of these bytes, sharing the owner; `None` when the range does not lie within them.
    pub fn get(&self, range: impl RangeBounds<usize>) -> Option<Bytes> {
        let start = match range.start_bound() {
            Bound::Included(&s) => s,
            Bound::Excluded(&s) => s.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&e) => e.checked_add(1)?,
            Bound::Excluded(&e) => e,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return None;
        }
        // SAFETY: start <= len, so the pointer stays within the region or one past its end.
        let ptr = unsafe { self.ptr.add(start) };
        Some(Bytes { region: self.region.clone(), ptr, len: end - start })
    }

    /// The address of the first byte, to prove that two values share memory.
    pub fn address(&self) -> usize {
        self.ptr.as_ptr().addr()
    }

    /// The region that these bytes lie in.
    pub fn region_id(&self) -> RegionId {
        self.region.id
    }

    /// Whether other handles on the region exist.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.region) > 1
    }

    /// Where the bytes live.
    pub fn kind(&self) -> RegionKind {
        self.region.kind()
    }

    /// Where these bytes begin within their region (for a mapped file: the file offset).
    pub fn region_offset(&self) -> usize {
        self.address() - self.region.ptr.as_ptr().addr()
    }

    /// The bytes as elements, in place. `None` when the address is not aligned for `T` or the length is no
    /// multiple of its size.
    pub fn cast<T: FromBytes + Immutable + KnownLayout>(&self) -> Option<&[T]> {
        <[T]>::ref_from_bytes(self).ok()
    }

    /// Whether this is the only handle on a heap region and sees it from its first byte on: what
    /// [`try_into_unique`](Bytes::try_into_unique) asks for.
    pub fn is_unique(&self) -> bool {
        let heap = matches!(self.region.owner, Owner::Heap(..) | Owner::Empty) && self.ptr == self.region.ptr;
        heap && Arc::strong_count(&self.region) == 1
    }

    /// The same memory for writing, if this is the only handle on a heap region; else the bytes back.
    ///
    /// # Errors
    /// Returns the bytes themselves while they are shared or another owner's.
    pub fn try_into_unique(mut self) -> Result<BytesMut, Bytes> {
        let heap = matches!(self.region.owner, Owner::Heap(..) | Owner::Empty) && self.ptr == self.region.ptr;
        if heap && Arc::get_mut(&mut self.region).is_some() {
            return Ok(BytesMut { len: self.len, region: self.region });
        }
        Err(self)
    }

    pub(crate) fn into_region(self) -> Arc<Region> {
        self.region
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `ptr..ptr+len` lies in the region, which `self.region` keeps alive; while a `Bytes` exists
        // nobody has mutable access (`BytesMut` needs the only handle), and all bytes are initialized.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::empty()
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}
impl Eq for Bytes {}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} bytes, {:?}, region {})", self.len, self.kind(), self.region.id.0)
    }
}

/// The only handle on a heap region: bytes that may be written, then frozen into [`Bytes`] without a copy.
pub struct BytesMut {
    region: Arc<Region>,
    len: usize,
}

impl BytesMut {
    /// `len` zero bytes, 64-byte aligned. Large buffers take no memory before they are touched.
    pub fn zeroed(len: usize, ledger: &Ledger) -> BytesMut {
        BytesMut { region: Arc::new(Region::heap(len, ledger)), len }
    }

    /// `region` must be a heap region of at least `len` bytes with no other handle.
    pub(crate) fn from_unique_region(mut region: Arc<Region>, len: usize) -> BytesMut {
        assert!(
            Arc::get_mut(&mut region).is_some() && len <= region.len,
            "a unique region that is large enough"
        );
        BytesMut { region, len }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: this is the only handle on the region (checked when it was made; it cannot be cloned), the
        // memory is initialized and `len` bytes long at least.
        unsafe { std::slice::from_raw_parts_mut(self.region.ptr.as_ptr(), self.len) }
    }

    /// The bytes as elements, to write.
    ///
    /// # Panics
    /// When the length is no multiple of the element's size; the alignment always fits.
    pub fn elements_mut<T: FromBytes + IntoBytes + KnownLayout>(&mut self) -> &mut [T] {
        <[T]>::mut_from_bytes(self.as_mut_slice()).expect("a whole number of elements in an aligned buffer")
    }

    /// The bytes as elements, to read.
    ///
    /// # Panics
    /// When the length is no multiple of the element's size.
    pub fn elements<T: FromBytes + Immutable + KnownLayout>(&self) -> &[T] {
        // SAFETY: as for `Bytes::deref`; `&self` forbids writes meanwhile.
        let bytes = unsafe { std::slice::from_raw_parts(self.region.ptr.as_ptr(), self.len) };
        <[T]>::ref_from_bytes(bytes).expect("a whole number of elements in an aligned buffer")
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same memory, shared and immutable from now on.
    pub fn freeze(self) -> Bytes {
        Bytes::from_region(self.region, self.len)
    }
}

impl std::fmt::Debug for BytesMut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BytesMut({} bytes, region {})", self.len, self.region.id.0)
    }
}
