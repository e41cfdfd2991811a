//! Dense, strided and appendable tensors over shared bytes.

use smallvec::SmallVec;
use zerocopy::FromBytes;

use crate::{AppendView, Bytes, BytesMut, DType, Element, RegionId};

/// Extents of a tensor, outermost first; empty for a scalar.
pub type Shape = SmallVec<[usize; 6]>;

/// The number of elements of a shape; `None` on overflow.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).or_else(|| shape.contains(&0).then_some(0))
}

/// Where a tensor's elements lie.
#[derive(Clone, Debug)]
pub enum Storage {
    /// All elements in row-major order, from the first byte on.
    Dense(Bytes),
    /// Element `[i, j, …]` lies at `i * strides[0] + j * strides[1] + …` elements from the first byte.
    Strided {
        /// From the first to the last element.
        bytes: Bytes,
        /// In elements. Boxed, because few tensors are strided and all are moved about.
        strides: Box<[usize]>,
    },
    /// The rows along `axis` of an append buffer: axes before it are its runs, axes behind it one row.
    Append {
        /// The rows.
        view: AppendView,
        /// The axis that grows.
        axis: usize,
    },
}

/// Why a tensor could not be made or looked at in a certain way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The elements have another type.
    #[error("the tensor holds {actual}, not {expected}")]
    Type {
        /// The type asked for.
        expected: DType,
        /// The tensor's type.
        actual: DType,
    },
    /// The first element's address is no multiple of the element's size.
    #[error("misaligned: the {dtype} elements begin at address {address:#x}; read them byte by byte")]
    Misaligned {
        /// The tensor's type.
        dtype: DType,
        /// Where the elements begin.
        address: usize,
    },
    /// The elements do not lie one behind the other.
    #[error("the {dtype} tensor {shape:?} is not dense in memory")]
    NotDense {
        /// The tensor's type.
        dtype: DType,
        /// The tensor's shape.
        shape: Shape,
    },
    /// The bytes are too few or too many for the shape.
    #[error("a {dtype} tensor {shape:?} takes {expected:?} bytes, not {actual}")]
    Length {
        /// The tensor's type.
        dtype: DType,
        /// The tensor's shape.
        shape: Shape,
        /// The right number; `None` when it overflows or the type has no fixed width.
        expected: Option<usize>,
        /// The number of bytes given.
        actual: usize,
    },
    /// The two shapes have different numbers of elements.
    #[error("{from:?} cannot be reshaped to {to:?}")]
    Reshape {
        /// The tensor's shape.
        from: Shape,
        /// The shape asked for.
        to: Shape,
    },
}

/// A tensor of fixed-width elements: a type, a shape, and a handle on shared, immutable memory.
#[derive(Debug)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    storage: Storage,
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        // `SmallVec::clone` goes element by element.
        Tensor { dtype: self.dtype, shape: Shape::from_slice(&self.shape), storage: self.storage.clone() }
    }
}

impl Tensor {
    /// A dense tensor over `bytes`.
    ///
    /// # Errors
    /// When the bytes are not as many as the shape takes.
    pub fn new(dtype: DType, shape: &[usize], bytes: Bytes) -> Result<Tensor, ViewError> {
        let shape = Shape::from_slice(shape);
        let expected = element_count(&shape).and_then(|n| dtype.payload_bytes(n));
        if expected != Some(bytes.len()) {
            return Err(ViewError::Length { dtype, shape, expected, actual: bytes.len() });
        }
        Ok(Tensor { dtype, shape, storage: Storage::Dense(bytes) })
    }

    /// A dense tensor that owns `elements`.
    ///
    /// # Errors
    /// When the elements are not as many as the shape takes.
    pub fn from_vec<T: Element>(shape: &[usize], elements: Vec<T>) -> Result<Tensor, ViewError> {
        Tensor::new(T::DTYPE, shape, Bytes::from_vec(elements))
    }

    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor::from_vec(&[], vec![value]).expect("one element")
    }

    /// A tensor whose elements lie `strides` elements apart, in whole-byte types.
    ///
    /// # Errors
    /// When ranks differ or the last element lies outside `bytes`.
    pub fn strided(
        dtype: DType,
        shape: &[usize],
        strides: &[usize],
        bytes: Bytes,
    ) -> Result<Tensor, ViewError> {
        let shape = Shape::from_slice(shape);
        let expected = (|| {
            let width =
                dtype.bit_width().filter(|w| w % 8 == 0 && strides.len() == shape.len())? as usize / 8;
            if element_count(&shape)? == 0 {
                return Some(0);
            }
            let mut last = 0usize;
            for (&d, &s) in shape.iter().zip(strides) {
                last = last.checked_add((d - 1).checked_mul(s)?)?;
            }
            last.checked_add(1)?.checked_mul(width)
        })();
        if expected.is_none_or(|n| n > bytes.len()) {
            return Err(ViewError::Length { dtype, shape, expected, actual: bytes.len() });
        }
        let bytes = bytes.slice(..expected.unwrap_or(0));
        if dense_strides(&shape, strides) {
            return Ok(Tensor { dtype, shape, storage: Storage::Dense(bytes) });
        }
        Ok(Tensor { dtype, shape, storage: Storage::Strided { bytes, strides: strides.into() } })
    }

    /// The rows of `view` as a tensor of shape `before + [view.len()] + row`; `axis` is `before`'s rank.
    ///
    /// # Errors
    /// When `before` has another number of elements than the buffer has runs, or a row another size.
    pub fn from_append(
        dtype: DType,
        before: &[usize],
        row: &[usize],
        view: AppendView,
    ) -> Result<Tensor, ViewError> {
        let mut shape = Shape::from_slice(before);
        shape.push(view.len());
        shape.extend_from_slice(row);
        let row_bytes = element_count(row).filter(|_| dtype.bit_width().is_some_and(|w| w % 8 == 0));
        let row_bytes = row_bytes.and_then(|n| dtype.payload_bytes(n));
        if row_bytes != Some(view.row_bytes()) || element_count(before) != Some(view.outer()) {
            return Err(ViewError::Length { dtype, shape, expected: row_bytes, actual: view.row_bytes() });
        }
        Ok(Tensor { dtype, shape, storage: Storage::Append { view, axis: before.len() } })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        // An extent of 0 makes any others possible, whose product alone would overflow.
        element_count(&self.shape).unwrap_or(0)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the elements take.
    pub fn byte_len(&self) -> usize {
        self.dtype.payload_bytes(self.len()).unwrap_or(0)
    }

    /// Where the elements lie.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The storage alone.
    pub fn into_storage(self) -> Storage {
        self.storage
    }

    /// The append view and its axis, for a tensor that lies in an append buffer.
    pub fn append_view(&self) -> Option<(&AppendView, usize)> {
        match &self.storage {
            Storage::Append { view, axis } => Some((view, *axis)),
            _ => None,
        }
    }

    /// The address of the first element, to prove that two tensors share memory.
    pub fn address(&self) -> usize {
        match &self.storage {
            Storage::Dense(bytes) | Storage::Strided { bytes, .. } => bytes.address(),
            Storage::Append { view, .. } => view.address(),
        }
    }

    /// The region that the elements lie in.
    pub fn region_id(&self) -> RegionId {
        match &self.storage {
            Storage::Dense(bytes) | Storage::Strided { bytes, .. } => bytes.region_id(),
            Storage::Append { view, .. } => view.region_id(),
        }
    }

    /// The bytes of a dense tensor; `None` for one with gaps.
    pub fn dense_bytes(&self) -> Option<&[u8]> {
        match &self.storage {
            Storage::Dense(bytes) => Some(bytes),
            Storage::Strided { .. } => self.is_empty().then_some(&[]),
            Storage::Append { .. } if self.is_empty() => Some(&[]),
            Storage::Append { view, .. } if view.outer() == 1 => view.contiguous(0),
            Storage::Append { .. } => None,
        }
    }

    /// The elements of a dense tensor, in place.
    ///
    /// # Errors
    /// When the type differs, the elements are not dense or not aligned.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], ViewError> {
        self.check_type::<T>()?;
        let bytes = self
            .dense_bytes()
            .ok_or_else(|| ViewError::NotDense { dtype: self.dtype, shape: self.shape.clone() })?;
        self.elements(bytes)
    }

    fn check_type<T: Element>(&self) -> Result<(), ViewError> {
        if self.dtype != T::DTYPE {
            return Err(ViewError::Type { expected: T::DTYPE, actual: self.dtype });
        }
        Ok(())
    }

    fn elements<'a, T: Element>(&self, bytes: &'a [u8]) -> Result<&'a [T], ViewError> {
        if bytes.is_empty() {
            return Ok(&[]);
        }
        <[T]>::ref_from_bytes(bytes)
            .map_err(|_| ViewError::Misaligned { dtype: self.dtype, address: bytes.as_ptr().addr() })
    }

    /// Into how many dense runs the elements fall: `shape[..axis]`'s count for an append view, 1 when dense.
    /// `None` for strided tensors and caches in several segments.
    pub fn run_count(&self) -> Option<usize> {
        match &self.storage {
            Storage::Dense(_) => Some(1),
            Storage::Append { view, .. } => (view.segments_are_one()).then(|| view.outer()),
            Storage::Strided { .. } => None,
        }
    }

    /// Row block `index` of `outer` equal blocks of a dense or append tensor, e.g. the rows of one head of
    /// `[batch, heads, rows, dim]` with `outer = batch * heads`.
    ///
    /// # Errors
    /// When the type differs, or the block's elements are not dense or not aligned.
    ///
    /// # Panics
    /// When `index >= outer`.
    pub fn block<T: Element>(&self, outer: usize, index: usize) -> Result<&[T], ViewError> {
        assert!(index < outer, "a block of the tensor");
        self.check_type::<T>()?;
        let not_dense = || ViewError::NotDense { dtype: self.dtype, shape: self.shape.clone() };
        let bytes = match &self.storage {
            Storage::Append { view, .. } if view.outer() == outer => {
                view.contiguous(index).ok_or_else(not_dense)?
            }
            _ => {
                let all = self.dense_bytes().ok_or_else(not_dense)?;
                let len = all.len() / outer;
                all.get(index * len..(index + 1) * len).ok_or_else(not_dense)?
            }
        };
        self.elements(bytes)
    }

    /// [`block`](Tensor::block) where it may lie in several stretches, as a cache that was forked or has grown does: calls
    /// `f` with each, in order. None is empty.
    ///
    /// # Errors
    /// As [`block`](Tensor::block), but for caches in segments.
    ///
    /// # Panics
    /// When `index >= outer`.
    pub fn block_parts<'a, T: Element>(
        &'a self,
        outer: usize,
        index: usize,
        mut f: impl FnMut(&'a [T]),
    ) -> Result<(), ViewError> {
        match &self.storage {
            Storage::Append { view, .. } if view.outer() == outer => {
                assert!(index < outer, "a block of the tensor");
                self.check_type::<T>()?;
                view.segments(index).try_for_each(|part| self.elements(part).map(&mut f))
            }
            _ => {
                let block = self.block(outer, index)?;
                if !block.is_empty() {
                    f(block);
                }
                Ok(())
            }
        }
    }

    /// Calls `f` with the bytes of each dense run, in row-major order of the elements.
    pub fn for_each_run(&self, mut f: impl FnMut(&[u8])) {
        match &self.storage {
            Storage::Dense(bytes) => f(bytes),
            Storage::Append { view, .. } => {
                (0..view.outer()).for_each(|i| view.segments(i).for_each(&mut f));
            }
            Storage::Strided { bytes, strides } => {
                if !self.is_empty() {
                    let width = self.dtype.bit_width().map_or(1, |w| w as usize / 8);
                    strided_runs(&self.shape, strides, width, 0, bytes, &mut f);
                }
            }
        }
    }

    /// The same elements in another shape, in the same memory.
    ///
    /// # Errors
    /// When the numbers of elements differ, or the elements have gaps that the new shape cannot express.
    pub fn reshape(&self, shape: &[usize]) -> Result<Tensor, ViewError> {
        let to = Shape::from_slice(shape);
        if element_count(&to) != Some(self.len()) {
            return Err(ViewError::Reshape { from: self.shape.clone(), to });
        }
        match &self.storage {
            Storage::Dense(_) => Ok(Tensor { dtype: self.dtype, shape: to, storage: self.storage.clone() }),
            _ if to == self.shape => Ok(self.clone()),
            _ => Err(ViewError::NotDense { dtype: self.dtype, shape: self.shape.clone() }),
        }
    }

    /// Rows `start..end` along the axis of an append view, in the same memory; `None` for other tensors or when there
    /// are no such rows.
    pub fn append_part(&self, start: usize, end: usize) -> Option<Tensor> {
        let Storage::Append { view, axis } = &self.storage else { return None };
        if start > end || end > view.len() {
            return None;
        }
        let mut shape = self.shape.clone();
        shape[*axis] = end - start;
        let storage = Storage::Append { view: view.part(start, end), axis: *axis };
        Some(Tensor { dtype: self.dtype, shape, storage })
    }

    /// The first `rows` rows: [`append_part`](Tensor::append_part) from 0.
    pub fn truncate_append(&self, rows: usize) -> Option<Tensor> {
        self.append_part(0, rows)
    }

    /// The same elements as a cache along `axis`, in the same memory: [`AppendView::of_tensor`].
    pub fn to_append(&self, axis: usize) -> Option<Tensor> {
        let storage = Storage::Append { view: AppendView::of_tensor(self, axis)?, axis };
        Some(Tensor { dtype: self.dtype, shape: self.shape.clone(), storage })
    }
}

fn dense_strides(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    for (&d, &s) in shape.iter().zip(strides).rev() {
        if d != 1 && s != expected {
            return false;
        }
        expected *= d;
    }
    true
}

fn strided_runs(
    shape: &[usize],
    strides: &[usize],
    width: usize,
    offset: usize,
    bytes: &[u8],
    f: &mut impl FnMut(&[u8]),
) {
    if dense_strides(shape, strides) {
        let len = shape.iter().product::<usize>();
        return f(&bytes[offset * width..(offset + len) * width]);
    }
    for i in 0..shape[0] {
        strided_runs(&shape[1..], &strides[1..], width, offset + i * strides[0], bytes, f);
    }
}

/// A dense tensor that is being written; nobody else sees it yet.
#[derive(Debug)]
pub struct TensorMut {
    dtype: DType,
    shape: Shape,
    bytes: BytesMut,
}

impl TensorMut {
    /// A tensor over `bytes`, whatever they hold.
    ///
    /// # Panics
    /// When the bytes are not as many as the shape takes.
    pub fn new(dtype: DType, shape: &[usize], bytes: BytesMut) -> TensorMut {
        let expected = element_count(shape).and_then(|n| dtype.payload_bytes(n));
        assert_eq!(expected, Some(bytes.len()), "bytes for a {dtype} tensor {shape:?}");
        TensorMut { dtype, shape: Shape::from_slice(shape), bytes }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, to write.
    ///
    /// # Panics
    /// When `T` is not the tensor's element type.
    pub fn elements_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(self.dtype, T::DTYPE, "the type the tensor was made with");
        self.bytes.elements_mut()
    }

    /// The payload, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut_slice()
    }

    /// The finished tensor.
    pub fn freeze(self) -> Tensor {
        Tensor { dtype: self.dtype, shape: self.shape, storage: Storage::Dense(self.bytes.freeze()) }
    }
}
