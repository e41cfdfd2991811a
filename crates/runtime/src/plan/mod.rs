//! What a session executes: steps over numbered slots, with every decision taken that can be taken before a call.
//!
//! [`lower`] turns a graph into [`LBlock`]s over registers (each written once, functions expanded, constants
//! collected, kernels chosen); [`slots`] gives the registers slots by liveness and yields [`Block`]s.

mod choose;
mod constant;
mod control;
mod flex_attention;
pub(crate) mod lower;
mod nested;
mod scope;
mod slots;

pub(crate) use choose::{build, constant_facts};
pub(crate) use constant::Constant;

use std::sync::Arc;

use heirloom_mem::{DType, Shape};
use smallvec::SmallVec;

use crate::{InputRef, Kernel};

/// A value before slots are assigned.
pub(crate) type Reg = u32;

/// What a step reads before slots are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A value of the call.
    Reg(Reg),
    /// A value that is the same in each call.
    Constant(u32),
}

/// A step's or block's body: `B` is [`LBlock`] before slots are assigned, [`Block`] afterwards.
pub(crate) enum Work<B> {
    /// A kernel.
    Kernel(Box<dyn Kernel>),
    /// `If`: input 0 chooses the block.
    If {
        /// Where the condition holds.
        then: B,
        /// Where it does not.
        otherwise: B,
    },
    /// `Loop`: inputs are the trip count, the condition and the carried values.
    Loop {
        /// Parameters: iteration number, condition, carried values; results: condition, carried, stacked.
        body: B,
        /// Carried values.
        carried: usize,
        /// What each stacked result holds when no iteration runs.
        stacked: Vec<StackType>,
    },
    /// `Scan`: inputs are the carried values and the scanned tensors.
    Scan {
        /// Parameters: carried values, one slice of each scanned tensor; results: carried, stacked.
        body: B,
        /// Axes and directions.
        spec: ScanSpec,
        /// What each stacked result holds when no iteration runs.
        stacked: Vec<StackType>,
    },
    /// `SequenceMap`: input 0 is a sequence, others are sequences of its length or whole values.
    SequenceMap {
        /// Parameters: one element of each sequence (or the whole value); results: one element of each output.
        body: B,
    },
}

/// The declared type of one iteration's part of a stacked result; unknown extents count as 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackType {
    pub dtype: Option<DType>,
    pub shape: Shape,
}

/// What `Scan`'s attributes say.
#[derive(Clone, Debug)]
pub(crate) struct ScanSpec {
    /// Version 8: all values have a batch axis in front, and each sample is scanned by itself.
    pub batched: bool,
    /// Carried values.
    pub carried: usize,
    /// Axis of each scanned input; may be negative.
    pub input_axes: SmallVec<[i64; 2]>,
    /// Whether each scanned input is read from its end.
    pub input_reverse: SmallVec<[bool; 2]>,
    /// Axis of each stacked output; may be negative.
    pub output_axes: SmallVec<[i64; 2]>,
    /// Whether each stacked output is written from its end.
    pub output_reverse: SmallVec<[bool; 2]>,
}

impl<B> Work<B> {
    /// The same work with each block replaced.
    pub(crate) fn map<C>(self, mut f: impl FnMut(B) -> C) -> Work<C> {
        match self {
            Work::Kernel(kernel) => Work::Kernel(kernel),
            Work::If { then, otherwise } => Work::If { then: f(then), otherwise: f(otherwise) },
            Work::Loop { body, carried, stacked } => Work::Loop { body: f(body), carried, stacked },
            Work::Scan { body, spec, stacked } => Work::Scan { body: f(body), spec, stacked },
            Work::SequenceMap { body } => Work::SequenceMap { body: f(body) },
        }
    }

    /// The nested blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &B> {
        let (a, b) = match self {
            Work::Kernel(_) => (None, None),
            Work::If { then, otherwise } => (Some(then), Some(otherwise)),
            Work::Loop { body, .. } | Work::Scan { body, .. } | Work::SequenceMap { body } => {
                (Some(body), None)
            }
        };
        a.into_iter().chain(b)
    }
}

/// A node as messages and reports name it.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    /// The node's name, with the names of the calls that led to it: `layer0/mlp/act`.
    pub name: Arc<str>,
    /// The operator, with its domain unless that is ai.onnx.
    pub op: Arc<str>,
}

/// One step before slots are assigned.
pub(crate) struct LStep {
    pub work: Work<LBlock>,
    pub inputs: SmallVec<[Option<Operand>; 4]>,
    pub outputs: SmallVec<[Option<Reg>; 2]>,
    pub label: Label,
}

/// Steps in order before slots are assigned.
#[derive(Default)]
pub(crate) struct LBlock {
    pub params: Vec<Reg>,
    pub steps: Vec<LStep>,
    pub results: Vec<Operand>,
}

/// One step.
pub(crate) struct Step {
    pub work: Work<Block>,
    pub inputs: SmallVec<[Option<InputRef>; 4]>,
    /// Bit `i`: input `i` is needed no more after this step.
    pub last_use: u64,
    /// Slots to empty after the step, before its outputs are stored.
    pub frees: SmallVec<[u32; 4]>,
    /// Where the outputs go; `None` where nobody wants one.
    pub outputs: SmallVec<[Option<u32>; 2]>,
    pub label: Label,
}

/// A result of a block: where it is, and whether it may be moved from there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultRef {
    pub from: InputRef,
    /// The block owns the value and no later result names it.
    pub take: bool,
}

/// Steps in order.
pub(crate) struct Block {
    /// The slot of each parameter; `None` where the block does not use it.
    pub params: Vec<Option<u32>>,
    pub steps: Vec<Step>,
    pub results: Vec<ResultRef>,
}

/// Everything that a call of one graph needs.
pub(crate) struct Plan {
    pub root: Block,
    /// The signature's input that each parameter of `root` is.
    pub inputs: Vec<u32>,
    pub slots: usize,
    /// The largest number of outputs that a step has.
    pub outputs: usize,
    pub constants: Vec<Constant>,
}
