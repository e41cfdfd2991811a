//! One attention call cut into tasks, each a few query rows against a stretch of one head's cache.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use heirloom_mem::{Tensor, ViewError};
use heirloom_runtime::{CancelToken, Team};

use super::block::{BLOCK, Dims, Parts, Rows, Scratch, attend, widen};
use crate::disjoint::DisjointMut;
use crate::lanes::{LaneElement, Lanes};

/// Positions that one task of a split context covers. Fixed, so that results do not depend on the thread count.
const CHUNK: usize = 128;
/// Query rows per task at most.
const ROWS: usize = 48;

/// Extents of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) batch: usize,
    /// New tokens.
    pub(super) tokens: usize,
    pub(super) q_heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_k: usize,
    pub(super) head_v: usize,
    /// Positions in the cache, the new tokens' included.
    pub(super) positions: usize,
    /// Whether queries and results are `[batch, tokens, heads, size]` (else `[batch, heads, tokens, size]`).
    pub(super) tokens_first: bool,
}

impl Shape {
    /// Where the row of a head and a token begins, in rows.
    fn row(&self, batch: usize, head: usize, token: usize) -> usize {
        if self.tokens_first {
            (batch * self.tokens + token) * self.q_heads + head
        } else {
            (batch * self.q_heads + head) * self.tokens + token
        }
    }
}

/// What a query sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// Only positions up to its own.
    pub(super) causal: bool,
    /// At most so many positions before its own.
    pub(super) left: Option<usize>,
    /// Positions that were there before the new tokens.
    pub(super) past: usize,
}

impl Sight {
    fn of(&self, token: usize, positions: usize) -> Range<usize> {
        let own = self.past + token;
        let end = if self.causal { (own + 1).min(positions) } else { positions };
        let start = self.left.map_or(0, |left| own.saturating_sub(left));
        start.min(end)..end
    }
}

pub(super) struct Job<'a, T> {
    pub(super) shape: Shape,
    pub(super) sight: Sight,
    pub(super) scale: f32,
    pub(super) q: &'a [T],
    pub(super) keys: &'a Tensor,
    pub(super) values: &'a Tensor,
    pub(super) cancel: &'a CancelToken,
}

/// How a call is cut into tasks.
pub(super) struct Cut {
    dims: Dims,
    group: usize,
    /// Tokens per task.
    tokens: usize,
    token_blocks: usize,
    chunks: usize,
    chunk: usize,
}

impl Cut {
    fn new(shape: &Shape, lanes: usize) -> Cut {
        let fill = |d: usize| d.div_ceil(lanes) * lanes;
        let dims = Dims {
            head_k: shape.head_k,
            head_v: shape.head_v,
            dk: fill(shape.head_k),
            dv: fill(shape.head_v),
        };
        let group = shape.q_heads / shape.kv_heads;
        let tokens = (ROWS / group).clamp(1, shape.tokens.max(1));
        let token_blocks = shape.tokens.div_ceil(tokens);
        let few = shape.batch * shape.kv_heads * token_blocks < 16;
        let chunk = if few { CHUNK } else { shape.positions.max(1) };
        Cut { dims, group, tokens, token_blocks, chunks: shape.positions.div_ceil(chunk).max(1), chunk }
    }

    fn rows(&self) -> usize {
        self.tokens * self.group
    }

    /// f32 of one thread's workspace: queries, keys, values, scores.
    fn workspace(&self) -> usize {
        self.rows() * (self.dims.dk + BLOCK) + BLOCK * (self.dims.dk + self.dims.dv)
    }

    /// f32 of one task's result: weighted sums, largest scores, sums.
    fn partial(&self) -> usize {
        self.rows() * (self.dims.dv + 2)
    }

    fn tasks(&self, shape: &Shape) -> usize {
        shape.batch * shape.kv_heads * self.token_blocks * self.chunks
    }
}

/// f32 of scratch that a call needs.
pub(super) fn scratch_len(shape: &Shape, lanes: usize, threads: usize) -> usize {
    let cut = Cut::new(shape, lanes);
    threads.min(64) * cut.workspace() + cut.tasks(shape) * cut.partial()
}

/// Attention of all queries; `out` has the queries' layout with `head_v` for `head_k`. `one` is [`one`] for a level.
///
/// # Errors
/// When the caches' rows are not dense.
pub(super) fn run<T: LaneElement>(
    lanes: usize,
    job: &Job<'_, T>,
    out: &mut [T],
    scratch: &mut [f32],
    team: &dyn Team,
    one: impl Fn(&Job<'_, T>, &Cut, usize, &mut [f32], &mut [f32]) -> Result<(), ViewError> + Sync,
) -> Result<(), ViewError> {
    let shape = &job.shape;
    let cut = Cut::new(shape, lanes);
    let heads = shape.batch * shape.kv_heads;
    let threads = team.threads().min(64);
    let (workspaces, partials) = scratch.split_at_mut(threads * cut.workspace());
    let slots = Slots::new(threads);
    let workspaces = DisjointMut::new(workspaces);
    let parts = DisjointMut::new(&mut *partials);
    let tasks = cut.tasks(shape);
    let failed = AtomicBool::new(false);
    team.run(tasks, &|task| {
        if job.cancel.is_cancelled() {
            return;
        }
        let slot = slots.take();
        // SAFETY: `slot` belongs to this task until it is given back.
        let workspace = unsafe { workspaces.part(slot * cut.workspace()..(slot + 1) * cut.workspace()) };
        // SAFETY: each task has its own stretch.
        let partial = unsafe { parts.part(task * cut.partial()..(task + 1) * cut.partial()) };
        if one(job, &cut, task, workspace, partial).is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        slots.give(slot);
    });
    if failed.into_inner() {
        return Err(ViewError::NotDense {
            dtype: T::DTYPE,
            shape: heirloom_mem::Shape::from_slice(job.keys.shape()),
        });
    }
    let out = DisjointMut::new(out);
    let partials = &*partials;
    team.run(if tasks > 64 { heads * cut.token_blocks } else { 1 }, &|task| {
        let all = if tasks > 64 { task..task + 1 } else { 0..heads * cut.token_blocks };
        for block in all {
            // SAFETY: each block of tokens of a head has output rows of its own.
            unsafe { merge(job, &cut, block, partials, &out) };
        }
    });
    Ok(())
}

/// One task: the rows of a block of tokens of one KV head against one chunk of positions.
#[inline(always)]
pub(super) fn one<S: Lanes, T: LaneElement>(
    s: S,
    job: &Job<'_, T>,
    cut: &Cut,
    task: usize,
    workspace: &mut [f32],
    partial: &mut [f32],
) -> Result<(), ViewError> {
    let shape = &job.shape;
    let (block, chunk) = (task / cut.chunks, task % cut.chunks);
    let (head, tokens) = tokens_of(cut, shape, block);
    let (batch, kv_head) = (head / shape.kv_heads, head % shape.kv_heads);
    let Dims { head_k, dk, dv, .. } = cut.dims;
    let count = tokens.len() * cut.group;
    let (q, rest) = workspace.split_at_mut(cut.rows() * dk);
    let (k, rest) = rest.split_at_mut(BLOCK * dk);
    let (v, scores) = rest.split_at_mut(BLOCK * dv);
    let (acc, rest) = partial.split_at_mut(cut.rows() * dv);
    let (max, sum) = rest.split_at_mut(cut.rows());
    acc.fill(0.0);
    max.fill(f32::NEG_INFINITY);
    sum.fill(0.0);
    for row in 0..count {
        let (token, g) = (tokens.start + row / cut.group, row % cut.group);
        let from = shape.row(batch, kv_head * cut.group + g, token) * head_k;
        let to = &mut q[row * dk..(row + 1) * dk];
        widen(s, &job.q[from..from + head_k], head_k, to, dk);
        to.iter_mut().for_each(|x| *x *= job.scale);
    }
    let keys = Parts::<T>::of(job.keys, shape.batch * shape.kv_heads, head)?;
    let values = Parts::<T>::of(job.values, shape.batch * shape.kv_heads, head)?;
    let first = job.sight.of(tokens.start, shape.positions).start;
    let last = job.sight.of(tokens.end - 1, shape.positions).end;
    let mut rows = Rows { q, acc, max: &mut max[..count], sum: &mut sum[..count] };
    let mut scratch = Scratch { k, v, scores };
    let end = ((chunk + 1) * cut.chunk).min(last);
    let mut at = chunk * cut.chunk;
    // What a cancelled call leaves in its output nobody sees.
    while at < end && !job.cancel.is_cancelled() {
        let n = BLOCK.min(end - at);
        if at + n > first {
            let seen = |row: usize| {
                let seen = job.sight.of(tokens.start + row / cut.group, shape.positions);
                seen.start.clamp(at, at + n) - at..seen.end.clamp(at, at + n) - at
            };
            attend(s, cut.dims, &mut rows, &mut scratch, (&keys, &values), (at, n), seen);
        }
        at += n;
    }
    Ok(())
}

/// The head (of all batches) and the tokens of a block.
fn tokens_of(cut: &Cut, shape: &Shape, block: usize) -> (usize, Range<usize>) {
    let first = block % cut.token_blocks * cut.tokens;
    (block / cut.token_blocks, first..(first + cut.tokens).min(shape.tokens))
}

/// Puts the chunks' results of one block of tokens together and writes its output rows. A row that sees nothing
/// is 0, as ONNX defines it.
///
/// # Safety
/// No other thread writes the block's output rows meanwhile.
unsafe fn merge<T: LaneElement>(
    job: &Job<'_, T>,
    cut: &Cut,
    block: usize,
    partials: &[f32],
    out: &DisjointMut<'_, T>,
) {
    let shape = &job.shape;
    let Dims { head_v, dv, .. } = cut.dims;
    let (head, tokens) = tokens_of(cut, shape, block);
    let (batch, kv_head) = (head / shape.kv_heads, head % shape.kv_heads);
    let rows = cut.rows();
    let chunks = &partials[block * cut.chunks * cut.partial()..(block + 1) * cut.chunks * cut.partial()];
    for row in 0..tokens.len() * cut.group {
        let of = |chunk: &[f32]| (chunk[rows * dv + row], chunk[rows * (dv + 1) + row]);
        let max = chunks.chunks_exact(cut.partial()).map(|c| of(c).0).fold(f32::NEG_INFINITY, f32::max);
        let mut total = 0.0;
        for chunk in chunks.chunks_exact(cut.partial()) {
            let (m, sum) = of(chunk);
            total += if sum > 0.0 { sum * (m - max).exp() } else { sum };
        }
        let (token, g) = (tokens.start + row / cut.group, row % cut.group);
        let to = shape.row(batch, kv_head * cut.group + g, token) * head_v;
        // SAFETY: the row belongs to this block alone (the caller's promise).
        let to = unsafe { out.part(to..to + head_v) };
        let mut sums = [0.0f32; 64];
        for (at, to) in to.chunks_mut(64).enumerate().map(|(i, to)| (i * 64, to)) {
            let sums = &mut sums[..to.len()];
            sums.fill(0.0);
            for chunk in chunks.chunks_exact(cut.partial()) {
                let (m, sum) = of(chunk);
                if sum != 0.0 {
                    let weight = (m - max).exp() / total;
                    let acc = &chunk[row * dv + at..row * dv + at + to.len()];
                    sums.iter_mut().zip(acc).for_each(|(x, a)| *x += a * weight);
                }
            }
            to.iter_mut().zip(sums.iter()).for_each(|(t, x)| *t = T::from_f32(*x));
        }
    }
}

/// Which of at most 64 workspaces are free.
struct Slots(AtomicU64);

impl Slots {
    fn new(count: usize) -> Slots {
        Slots(AtomicU64::new(if count >= 64 { u64::MAX } else { (1 << count) - 1 }))
    }

    /// A free workspace. There is one for each thread, so one is free whenever a thread asks.
    fn take(&self) -> usize {
        loop {
            let free = self.0.load(Ordering::Acquire);
            let slot = free.trailing_zeros();
            if slot < 64
                && self
                    .0
                    .compare_exchange_weak(free, free & !(1 << slot), Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                return slot as usize;
            }
            std::hint::spin_loop();
        }
    }

    fn give(&self, slot: usize) {
        self.0.fetch_or(1 << slot, Ordering::Release);
    }
}
