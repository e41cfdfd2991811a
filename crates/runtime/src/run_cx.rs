//! What a kernel sees while it runs.

use heirloom_mem::{
    AppendSlot, Bytes, BytesMut, DType, Element, Ledger, Pool, Shape, Storage, Tensor, TensorMut,
    element_count,
};
use heirloom_types::Value;

use crate::budget::Budget;
use crate::grow::{self, CachePolicy, Growth};
use crate::plan::Constant;
use crate::{CancelToken, KernelError, Prepared, Team, align};

/// Where a node finds an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRef {
    /// A value of this call.
    Slot(u32),
    /// An initializer.
    Constant(u32),
}

/// One node's call: its inputs, its outputs, and the means to compute.
pub struct RunCx<'a> {
    pub(crate) inputs: &'a [Option<InputRef>],
    /// Bit `i`: the call needs input `i` no more after this node.
    pub(crate) last_use: u64,
    pub(crate) values: &'a mut [Option<Value>],
    pub(crate) constants: &'a [Constant],
    pub(crate) outputs: &'a mut [Option<Value>],
    /// Where the outputs go afterwards; `None` where nobody wants one.
    pub(crate) targets: &'a [Option<u32>],
    pub(crate) pool: &'a mut Pool,
    pub(crate) ledger: &'a Ledger,
    pub(crate) team: &'a dyn Team,
    pub(crate) cancel: &'a CancelToken,
    pub(crate) cache: CachePolicy,
    /// What the call may use, where that is limited.
    pub(crate) budget: Option<&'a Budget>,
}

impl<'a> RunCx<'a> {
    /// The number of inputs, absent ones included.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs, unwanted ones included.
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Input `index`; `None` where it is absent. The elements of constant tensors are aligned.
    pub fn value(&self, index: usize) -> Option<&Value> {
        match self.inputs.get(index).copied().flatten()? {
            InputRef::Slot(slot) => self.values[slot as usize].as_ref(),
            InputRef::Constant(at) => {
                self.constants.get(at as usize).map(|constant| constant.get(self.ledger))
            }
        }
    }

    /// Input `index` as a tensor; `None` where it is absent.
    ///
    /// # Errors
    /// When it is another kind of value.
    pub fn opt_tensor(&self, index: usize) -> Result<Option<&Tensor>, KernelError> {
        match self.value(index) {
            None => Ok(None),
            Some(Value::Tensor(tensor)) => Ok(Some(tensor)),
            Some(other) => Err(KernelError::InputType {
                index,
                expected: "a tensor".into(),
                actual: other.kind().into(),
            }),
        }
    }

    /// Input `index` as a tensor.
    ///
    /// # Errors
    /// When it is absent or another kind of value.
    pub fn tensor(&self, index: usize) -> Result<&Tensor, KernelError> {
        self.opt_tensor(index)?.ok_or(KernelError::MissingInput { index })
    }

    /// The elements of tensor input `index`, dense and in place.
    ///
    /// # Errors
    /// When it is absent, of another type, or not dense.
    pub fn slice<T: Element>(&self, index: usize) -> Result<&[T], KernelError> {
        Ok(self.tensor(index)?.as_slice()?)
    }

    /// Input `index` as a dense tensor whose elements can be read in place: itself where it is one, else a counted
    /// copy.
    ///
    /// # Errors
    /// When it is absent or no tensor.
    pub fn dense(&self, index: usize) -> Result<Tensor, KernelError> {
        Ok(align::dense(self.tensor(index)?, self.ledger))
    }

    /// Input `index`, its handle moved out where this node is the last to use it, else another handle on it.
    pub fn take(&mut self, index: usize) -> Option<Value> {
        if let InputRef::Slot(slot) = self.inputs.get(index).copied().flatten()? {
            let twice = self.inputs.iter().filter(|i| **i == Some(InputRef::Slot(slot))).count() > 1;
            if !twice && index < 64 && self.last_use >> index & 1 == 1 {
                return self.values[slot as usize].take();
            }
        }
        self.value(index).cloned()
    }

    /// The memory of input `index` for the output to be written into, where this node is the last to use it, it is
    /// dense and nobody else holds it.
    pub fn take_unique(&mut self, index: usize) -> Option<TensorMut> {
        let InputRef::Slot(slot) = self.inputs.get(index).copied().flatten()? else { return None };
        let twice = self.inputs.iter().filter(|i| **i == Some(InputRef::Slot(slot))).count() > 1;
        if twice || index >= 64 || self.last_use >> index & 1 == 0 {
            return None;
        }
        let slot = &mut self.values[slot as usize];
        let Some(Value::Tensor(tensor)) = slot.take() else { return None };
        let (dtype, shape) = (tensor.dtype(), Shape::from_slice(tensor.shape()));
        let back = |bytes: Bytes| Tensor::new(dtype, &shape, bytes).expect("the tensor's own bytes");
        match tensor.storage() {
            Storage::Dense(_) => {
                let Storage::Dense(bytes) = tensor.into_storage() else { unreachable!("matched above") };
                match bytes.try_into_unique() {
                    Ok(bytes) => Some(TensorMut::new(dtype, &shape, bytes)),
                    Err(bytes) => {
                        *slot = Some(Value::Tensor(back(bytes)));
                        None
                    }
                }
            }
            _ => {
                *slot = Some(Value::Tensor(tensor));
                None
            }
        }
    }

    /// A new dense tensor to write; its elements hold anything.
    ///
    /// # Errors
    /// When its size overflows or the type has no fixed width.
    pub fn alloc(&mut self, dtype: DType, shape: &[usize]) -> Result<TensorMut, KernelError> {
        let bytes =
            element_count(shape).and_then(|n| dtype.payload_bytes(n)).filter(|&n| n <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| KernelError::Shape {
            what: "a tensor of this shape is too large",
            shapes: vec![Shape::from_slice(shape)],
        })?;
        self.check_memory(bytes)?;
        Ok(TensorMut::new(dtype, shape, self.pool.take(bytes, self.ledger)))
    }

    /// Whether the call may allocate so many more bytes. [`RunCx::alloc`] asks by itself.
    ///
    /// # Errors
    /// When the call's memory is limited and this is too much.
    pub fn check_memory(&self, bytes: usize) -> Result<(), KernelError> {
        self.budget.map_or(Ok(()), |budget| budget.memory(self.ledger, bytes))
    }

    /// Scratch memory, 64-byte aligned, holding anything. Hand it back with [`RunCx::release`].
    pub fn scratch(&mut self, bytes: usize) -> BytesMut {
        self.pool.take(bytes, self.ledger)
    }

    /// Gives scratch memory back.
    pub fn release(&mut self, scratch: BytesMut) {
        self.pool.give(scratch.freeze());
    }

    /// The object that the kernel claimed for constant input `index`. `pack` fills it where it does not exist yet; while
    /// another call makes it this one waits. `None` where the store has no room: compute from the constant. The object
    /// stays as long as the handle.
    ///
    /// # Errors
    /// That of `pack`, or when the call is cancelled meanwhile.
    pub fn prepared(
        &self,
        index: usize,
        prepared: &Prepared,
        pack: impl FnOnce(&mut [u8]) -> Result<(), KernelError>,
    ) -> Result<Option<Bytes>, KernelError> {
        let source = match self.inputs.get(index).copied().flatten() {
            Some(InputRef::Constant(at)) => self.constants.get(at as usize).map(Constant::value),
            _ => None,
        };
        prepared.get(source, self.cancel, self.ledger, pack)
    }

    /// Whether somebody wants output `index`.
    pub fn wants(&self, index: usize) -> bool {
        matches!(self.targets.get(index), Some(Some(_)))
    }

    /// Sets output `index`.
    ///
    /// # Panics
    /// When the node has no such output.
    pub fn set(&mut self, index: usize, value: impl Into<Value>) {
        self.outputs[index] = Some(value.into());
    }

    /// The threads to share work with.
    pub fn team(&self) -> &'a dyn Team {
        self.team
    }

    /// The call's cancel token; long kernels look at it every few milliseconds.
    pub fn cancel(&self) -> &'a CancelToken {
        self.cancel
    }

    /// Where copies are counted.
    pub fn ledger(&self) -> &'a Ledger {
        self.ledger
    }

    /// Room for `rows` rows behind those of input `index` along `axis`, without a copy: in place where the input is the
    /// longest view of an append buffer with room, else in a further segment behind the input's own memory. Write all
    /// runs of the slot, then [`RunCx::commit`]. The kernel that reads the result takes it segment by segment.
    ///
    /// # Errors
    /// When the capacity is fixed and would be exceeded, or a size overflows.
    pub fn append(&mut self, index: usize, axis: usize, rows: usize) -> Result<AppendSlot, KernelError> {
        grow::append(self.tensor(index)?, axis, rows, self.cache, Growth::Segment, self.ledger)
    }

    /// [`append`](RunCx::append) for caches that are read as dense memory: where there is no room, the rows move to a larger
    /// buffer (counted as the copy of a cache), each on average a few times only. A fork shares its rows nevertheless.
    ///
    /// # Errors
    /// As [`append`](RunCx::append).
    pub fn append_dense(
        &mut self,
        index: usize,
        axis: usize,
        rows: usize,
    ) -> Result<AppendSlot, KernelError> {
        grow::append(self.tensor(index)?, axis, rows, self.cache, Growth::Move, self.ledger)
    }

    /// Room for `rows` rows behind those of `past`, a tensor within an input, along `axis`: in place, or in a further segment
    /// where another value has appended to it already. No buffer that is made for it has room for more than `capacity` rows.
    ///
    /// # Errors
    /// When there would be more rows than `capacity`, or a size overflows.
    pub fn append_within(
        &self,
        past: &Tensor,
        axis: usize,
        rows: usize,
        capacity: usize,
    ) -> Result<AppendSlot, KernelError> {
        let policy = CachePolicy { growth: None, reserve: capacity, ..self.cache };
        grow::append(past, axis, rows, policy, Growth::Segment, self.ledger)
    }

    /// The rows that a cache may have in this session; `None` where it may grow.
    pub fn cache_limit(&self) -> Option<usize> {
        if self.cache.growth.is_none() { Some(self.cache.reserve) } else { None }
    }

    /// Room for `rows` rows in place of rows `start..` of input `index` along `axis`, whose extent stays: a cache of the size
    /// that it may have. The input's own rows are neither copied nor changed; where they cannot be shared as they lie, they
    /// are copied once. Write all runs of the slot, then [`RunCx::commit`].
    ///
    /// # Errors
    /// When there are no such rows, or no memory.
    pub fn append_over(
        &mut self,
        index: usize,
        axis: usize,
        start: usize,
        rows: usize,
    ) -> Result<AppendSlot, KernelError> {
        grow::over(self.tensor(index)?, axis, start..start.saturating_add(rows), self.cache, self.ledger)
    }

    /// The tensor `[before…, rows so far, row…]` that sees the rows of `slot` too.
    ///
    /// # Errors
    /// When the extents do not fit the buffer.
    pub fn commit(
        &self,
        slot: AppendSlot,
        dtype: DType,
        before: &[usize],
        row: &[usize],
    ) -> Result<Tensor, KernelError> {
        Ok(Tensor::from_append(dtype, before, row, slot.commit(self.ledger))?)
    }
}
