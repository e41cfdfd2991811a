//! Attention block by block: one block of one head is decoded at a time, and an online softmax puts the blocks together.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use heirloom_mem::Tensor;
use heirloom_runtime::{CancelToken, KernelError, RunCx};

use super::blocks::Cache;
use super::rows::{Heads, Rows};
use crate::product::{add_scaled, dot};
use crate::real::Real;

/// New tokens that are looked at together.
const NEW: usize = 128;

/// Which tokens a query sees.
pub(super) struct Sight {
    pub(super) past: usize,
    pub(super) total: usize,
    pub(super) causal: bool,
    pub(super) left: Option<usize>,
}

impl Sight {
    fn of(&self, query: usize) -> Range<usize> {
        let place = self.past + query;
        let high = if self.causal { (place + 1).min(self.total) } else { self.total };
        let low = self.left.map_or(0, |left| place.saturating_sub(left));
        low.min(high)..high
    }
}

/// Attends to the cache and the new tokens. Each task is one head of keys: the room it takes is one block of that head, and
/// what its queries have summed up.
pub(super) fn attend<T: Real<Wide = f32>>(
    cx: &mut RunCx<'_>,
    query: &Rows,
    new: &Heads,
    cache: &Cache,
    sight: &Sight,
    (scale, softcap): (f32, f32),
) -> Result<Tensor, KernelError> {
    let (size, out_size) = (query.size, new.values.size);
    let heads = new.keys.heads;
    let group = query.heads / heads;
    let tasks = query.batch * heads;
    let mut out = cx.alloc(T::DTYPE, &query.shape(out_size))?;
    let results: Vec<Mutex<Result<Vec<f32>, KernelError>>> =
        (0..tasks).map(|_| Mutex::new(Ok(Vec::new()))).collect();
    let cancel = cx.cancel();
    let longest = cache.longest().max(NEW.min(new.keys.tokens));
    cx.team().run(tasks, &|task| {
        let (batch, head) = (task / heads, task % heads);
        let run = || -> Result<Vec<f32>, KernelError> {
            let mut sums = Sums::new(group * query.tokens, out_size, longest);
            let mut page = (vec![0.0; longest * size], vec![0.0; longest * out_size]);
            let mut q = vec![0.0; group * query.tokens * size];
            for (row, to) in q.chunks_exact_mut(size.max(1)).enumerate() {
                let from = query.get::<T>(batch, head * group + row / query.tokens, row % query.tokens)?;
                to.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen() * scale);
            }
            let seen = |row: usize| sight.of(row % query.tokens);
            let mut over = |start: usize, length: usize, page: &(Vec<f32>, Vec<f32>)| {
                let (keys, values) = (&page.0[..length * size], &page.1[..length * out_size]);
                sums.add(&q, keys, values, (start, length), softcap, &seen);
            };
            let sees_any = |start: usize, length: usize| {
                (0..query.tokens).any(|token| {
                    let seen = sight.of(token);
                    seen.start < start + length && seen.end > start
                })
            };
            for block in &cache.blocks {
                check(cancel)?;
                if sees_any(block.start, block.length) {
                    let of = (tasks, task);
                    block.keys.read_head::<T>(of, size, &mut page.0[..block.length * size])?;
                    block.values.read_head::<T>(of, out_size, &mut page.1[..block.length * out_size])?;
                    over(block.start, block.length, &page);
                }
            }
            for first in (0..new.keys.tokens).step_by(NEW) {
                check(cancel)?;
                let length = NEW.min(new.keys.tokens - first);
                for at in 0..length {
                    let parts = [(&new.keys, &mut page.0, size), (&new.values, &mut page.1, out_size)];
                    for (rows, to, size) in parts {
                        let from = rows.get::<T>(batch, head, first + at)?;
                        let to = &mut to[at * size..(at + 1) * size];
                        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.widen());
                    }
                }
                over(sight.past + first, length, &page);
            }
            Ok(sums.finish())
        };
        let result = run();
        *results[task].lock().unwrap_or_else(PoisonError::into_inner) = result;
    });
    let to = out.elements_mut::<T>();
    for (task, result) in results.into_iter().enumerate() {
        let sums = result.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        let (batch, head) = (task / heads, task % heads);
        for (row, from) in sums.chunks_exact(out_size.max(1)).enumerate() {
            let at = query.row(batch, head * group + row / query.tokens, row % query.tokens) * out_size;
            to[at..at + out_size].iter_mut().zip(from).for_each(|(to, from)| *to = T::narrow(*from));
        }
    }
    Ok(out.freeze())
}

fn check(cancel: &CancelToken) -> Result<(), KernelError> {
    Ok(cancel.check()?)
}

/// What the queries of one head of keys have summed up.
struct Sums {
    /// `[rows, size]`: the sum of `exp(score - greatest) * value`.
    sums: Vec<f32>,
    /// By row: the greatest score, and the sum of `exp(score - greatest)`.
    greatest: Vec<f32>,
    total: Vec<f32>,
    scores: Vec<f32>,
    size: usize,
}

impl Sums {
    fn new(rows: usize, size: usize, longest: usize) -> Sums {
        Sums {
            sums: vec![0.0; rows * size],
            greatest: vec![f32::NEG_INFINITY; rows],
            total: vec![0.0; rows],
            scores: vec![0.0; longest],
            size,
        }
    }

    /// Takes tokens `start..start + length` into account. `q` holds the rows' queries, scaled.
    fn add(
        &mut self,
        q: &[f32],
        keys: &[f32],
        values: &[f32],
        (start, length): (usize, usize),
        softcap: f32,
        seen: &dyn Fn(usize) -> Range<usize>,
    ) {
        let rows = self.greatest.len();
        let key = keys.len().checked_div(length).unwrap_or(0);
        for row in 0..rows {
            let seen = seen(row);
            let seen = seen.start.clamp(start, start + length) - start
                ..seen.end.clamp(start, start + length) - start;
            if seen.is_empty() {
                continue;
            }
            let query = &q[row * key..(row + 1) * key];
            let mut greatest = self.greatest[row];
            for at in seen.clone() {
                let mut score = dot(query, &keys[at * key..(at + 1) * key]);
                if softcap > 0.0 {
                    score = (score / softcap).tanh() * softcap;
                }
                self.scores[at] = score;
                // A NaN is no score to be the greatest; it comes through in the sums.
                greatest = greatest.max(score);
            }
            let sums = &mut self.sums[row * self.size..(row + 1) * self.size];
            if greatest > self.greatest[row] {
                let factor = (self.greatest[row] - greatest).exp();
                self.total[row] *= factor;
                sums.iter_mut().for_each(|sum| *sum *= factor);
                self.greatest[row] = greatest;
            }
            for at in seen {
                // Of scores that are all minus infinity none weighs anything.
                let share = if self.scores[at] == f32::NEG_INFINITY {
                    0.0
                } else {
                    (self.scores[at] - greatest).exp()
                };
                self.total[row] += share;
                if share != 0.0 {
                    add_scaled(sums, share, &values[at * self.size..(at + 1) * self.size]);
                }
            }
        }
    }

    /// The rows' results; a row that saw nothing gets zeros.
    fn finish(mut self) -> Vec<f32> {
        for (sums, total) in self.sums.chunks_exact_mut(self.size.max(1)).zip(&self.total) {
            if *total != 0.0 {
                sums.iter_mut().for_each(|sum| *sum /= total);
            }
        }
        self.sums
    }
}
