//! The working memory of one call, used again by later calls.

use std::sync::{Arc, Mutex, PoisonError};

use heirloom_mem::{Ledger, Pool, Storage};
use heirloom_types::Value;

use crate::plan::Plan;

/// Slots, staged outputs and buffers. Between calls all slots are empty.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub values: Vec<Option<Value>>,
    pub staged: Vec<Option<Value>>,
    pub pool: Pool,
    /// The extent that each symbolic dimension has in this call, and the input that said so first.
    pub symbols: Vec<Option<(usize, u32)>>,
    /// The call's inputs in the signature's order, until they move to their slots.
    pub inputs: Vec<Option<Value>>,
    /// What the calls of this frame did with memory.
    pub ledger: Arc<Ledger>,
}

impl Frame {
    /// Begins a call with `inputs` inputs and `symbols` symbolic dimensions.
    pub(crate) fn reset(&mut self, inputs: usize, symbols: usize) {
        self.symbols.clear();
        self.symbols.resize(symbols, None);
        self.inputs.resize_with(inputs, || None);
        self.pool.reclaim();
    }

    /// Makes room for the values of `plan`.
    pub(crate) fn prepare(&mut self, plan: &Plan) {
        let grow = |list: &mut Vec<Option<Value>>, len: usize| {
            if list.len() < len {
                list.resize_with(len, || None);
            }
        };
        grow(&mut self.values, plan.slots);
        grow(&mut self.staged, plan.outputs);
    }

    /// Empties a slot whose value is needed no more.
    pub(crate) fn free(&mut self, slot: u32) {
        if let Some(value) = self.values[slot as usize].take() {
            self.recycle(value);
        }
    }

    /// Drops a value; its buffer goes back to the pool where nobody else holds it.
    pub(crate) fn recycle(&mut self, value: Value) {
        if let Value::Tensor(tensor) = value
            && let Storage::Dense(bytes) = tensor.into_storage()
            && let Ok(unique) = bytes.try_into_unique()
        {
            self.pool.give(unique.freeze());
        }
    }

    /// Remembers the buffer of a value that the caller gets, to use it again once the caller dropped it.
    pub(crate) fn lend(&mut self, value: &Value) {
        if let Value::Tensor(tensor) = value
            && let Storage::Dense(bytes) = tensor.storage()
        {
            self.pool.give(bytes.clone());
        }
    }

    /// Empties everything that a call left behind.
    pub(crate) fn clear(&mut self) {
        for at in 0..self.values.len() {
            if let Some(value) = self.values[at].take() {
                self.recycle(value);
            }
        }
        self.staged.fill_with(|| None);
        self.inputs.fill_with(|| None);
    }
}

/// The frames of a session that no call uses at present.
#[derive(Debug, Default)]
pub(crate) struct Frames(Mutex<Vec<Frame>>);

impl Frames {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Frame>> {
        // Pushing and popping whole frames cannot leave the list in between.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frame that was used last, or a new one.
    pub(crate) fn take(&self) -> Frame {
        self.list().pop().unwrap_or_default()
    }

    /// Keeps a frame for later calls. All its slots must be empty.
    pub(crate) fn put(&self, frame: Frame) {
        self.list().push(frame);
    }

    /// Bytes of buffers that wait to be used again.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.list().iter().map(|frame| frame.pool.free_bytes()).sum()
    }

    /// Gives all waiting buffers back to the system.
    pub(crate) fn trim(&self) {
        self.list().clear();
    }
}
