//! Padded copies of input planes in which the windows of all output places lie equally far apart, so that registers of
//! places are read as they lie.
//!
//! Each phase of the strides has a plane of its own: with a stride of two, even and odd elements apart. Lines of a plane
//! share their padding: what is behind the end of one is in front of the next. Output place (y, x) is column
//! `y * pitch + x`, the places from the output's width to the pitch being gaps.

use heirloom_ops::window::Axis;

use crate::gemm::{Gaps, PANEL, Scattered};

/// Elements behind the last plane that a tile may read.
pub(super) const SLACK: usize = 4 * PANEL;

const ONE: Axis = Axis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, before: 0, after: 0 };

/// Where everything lies.
pub(super) struct Layout {
    rows: Axis,
    columns: Axis,
    /// From one line to the next.
    pub(super) pitch: usize,
    /// Lines of a phase.
    lines: usize,
    /// Elements of a phase.
    phase: usize,
    /// The phases that taps see, of rows and of columns.
    phases: Vec<(usize, usize)>,
    /// Elements of a channel, all phases.
    pub(super) channel: usize,
    /// Where each tap of a channel begins.
    pub(super) taps: Vec<u32>,
}

impl Layout {
    /// For one or two spatial axes; `None` for others, or where a channel is too large for it.
    pub(super) fn new(axes: &[Axis]) -> Option<Layout> {
        let (rows, columns) = match *axes {
            [columns] => (ONE, columns),
            [rows, columns] => (rows, columns),
            _ => return None,
        };
        let reach = (columns.output - 1) * columns.stride + (columns.kernel - 1) * columns.dilation;
        // A line holds all of the input that is read, and what is read behind it falls on padding in front of the next.
        let held = reach.min(columns.before + columns.input - 1) + 1;
        let held = held.max((reach + 1).saturating_sub(columns.before));
        let pitch = held.div_ceil(columns.stride).max(columns.output);
        let spill = (reach / columns.stride + 1).saturating_sub(pitch);
        let lines = rows.output + (rows.kernel - 1) * rows.dilation / rows.stride;
        let phase = lines.checked_mul(pitch)?.checked_add(spill)?;
        let mut phases = Vec::new();
        let mut taps = Vec::with_capacity(rows.kernel * columns.kernel);
        for ky in 0..rows.kernel {
            for kx in 0..columns.kernel {
                let (y, x) = (ky * rows.dilation, kx * columns.dilation);
                let of = (y % rows.stride, x % columns.stride);
                let place = phases.iter().position(|&p| p == of).unwrap_or_else(|| {
                    phases.push(of);
                    phases.len() - 1
                });
                taps.push(place.checked_mul(phase)? + y / rows.stride * pitch + x / columns.stride);
            }
        }
        // An odd number of cache lines, so that channels do not fall on each other in the caches.
        let lines_of_cache = phases.len().checked_mul(phase)?.div_ceil(PANEL) | 1;
        let channel = lines_of_cache.checked_mul(PANEL)?;
        let taps = taps.into_iter().map(u32::try_from).collect::<Result<_, _>>().ok()?;
        Some(Layout { rows, columns, pitch, lines, phase, phases, channel, taps })
    }

    /// Elements of a channel of the input.
    pub(super) fn input(&self) -> usize {
        self.rows.input * self.columns.input
    }

    /// Columns of the product, gaps included.
    pub(super) fn places(&self) -> usize {
        (self.rows.output - 1) * self.pitch + self.columns.output
    }

    pub(super) fn gaps(&self) -> Gaps {
        Gaps { pitch: self.pitch, width: self.columns.output }
    }

    /// Where the rows of all windows begin, `channels` channels one behind the other.
    pub(super) fn rows(&self, channels: usize) -> Option<Scattered> {
        u32::try_from(channels.checked_mul(self.channel)?).ok()?;
        let of = |channel: usize| self.taps.iter().map(move |&tap| (channel * self.channel) as u32 + tap);
        Some(Scattered::new((0..channels).flat_map(of).collect()))
    }

    /// Lays out one channel.
    pub(super) fn fill(&self, x: &[f32], to: &mut [f32]) {
        let Axis { stride, before, input, .. } = self.columns;
        for (&(py, px), to) in self.phases.iter().zip(to.chunks_mut(self.phase)) {
            let first = before.saturating_sub(px).div_ceil(stride).min(self.pitch);
            let end = (before + input).saturating_sub(px).div_ceil(stride).clamp(first, self.pitch);
            for (line, to) in to.chunks_mut(self.pitch).enumerate() {
                let inside = (line * self.rows.stride + py)
                    .checked_sub(self.rows.before)
                    .filter(|&y| y < self.rows.input && line < self.lines);
                let Some(y) = inside else {
                    to.fill(0.0);
                    continue;
                };
                to[..first].fill(0.0);
                to[end..].fill(0.0);
                if first == end {
                    continue;
                }
                let x = &x[y * input..][..input][first * stride + px - before..];
                let to = &mut to[first..end];
                match stride {
                    1 => to.iter_mut().zip(x).for_each(|(t, &v)| *t = v),
                    2 => every_second(x, to),
                    _ => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(t, &v)| *t = v),
                }
            }
        }
        let rest = self.phases.len() * self.phase;
        to[rest..].fill(0.0);
    }
}

/// Every second element of `x`: whole pairs first, so that they are vectorized.
fn every_second(x: &[f32], to: &mut [f32]) {
    let (pairs, rest) = x.as_chunks::<2>();
    to.iter_mut().zip(pairs).for_each(|(t, pair)| *t = pair[0]);
    if let ([last], Some(to)) = (rest, to.get_mut(pairs.len())) {
        *to = *last;
    }
}
