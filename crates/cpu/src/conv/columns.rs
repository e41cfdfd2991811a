//! Windows of an input as columns.

use heirloom_ops::window::Axis;

use crate::gemm::{Columns, PANEL};

/// The windows of all channels of one group: rows are channels and taps, columns output places.
pub(super) struct Windows<'a> {
    pub(super) x: &'a [f32],
    pub(super) axes: &'a [Axis],
}

/// The longest block of columns.
const LONGEST: usize = 128;

impl Columns for Windows<'_> {
    fn pack(&self, columns: (usize, usize), depth: (usize, usize), to: &mut [f32]) {
        let rows = depth.1 - depth.0;
        let count = columns.1 - columns.0;
        // Longer requests go piece by piece.
        if count > LONGEST {
            let panels = LONGEST / PANEL;
            for (i, to) in to.chunks_mut((panels * rows * PANEL).max(1)).enumerate() {
                let first = columns.0 + i * LONGEST;
                if first < columns.1 {
                    self.pack((first, (first + LONGEST).min(columns.1)), depth, to);
                }
            }
            return;
        }
        let kernel: usize = self.axes.iter().map(|a| a.kernel).product();
        let plane: usize = self.axes.iter().map(|a| a.input).product();
        let mut line = [0.0f32; LONGEST];
        for row in 0..rows {
            let (channel, mut tap) = ((depth.0 + row) / kernel, (depth.0 + row) % kernel);
            let mut offset = [0usize; 8];
            for (at, axis) in self.axes.iter().enumerate().rev() {
                offset[at] = tap % axis.kernel;
                tap /= axis.kernel;
            }
            self.line(&self.x[channel * plane..][..plane], &offset, columns, &mut line);
            for (panel, from) in line[..count.next_multiple_of(PANEL)].chunks_exact(PANEL).enumerate() {
                let at = (panel * rows + row) * PANEL;
                if let (Some(to), Some(from)) =
                    (to[at..].first_chunk_mut::<PANEL>(), from.first_chunk::<PANEL>())
                {
                    *to = *from;
                }
            }
        }
    }
}

impl Windows<'_> {
    /// What one tap of the windows at places `columns` of the output sees of a plane.
    #[inline]
    fn line(&self, x: &[f32], offset: &[usize; 8], columns: (usize, usize), line: &mut [f32; LONGEST]) {
        let Some((last, outer)) = self.axes.split_last() else { return };
        let reach = offset[outer.len()] * last.dilation;
        // Places of the last axis whose element lies in the input.
        let inside_from = last.before.saturating_sub(reach).div_ceil(last.stride).min(last.output);
        let inside_to = (last.input + last.before)
            .saturating_sub(reach)
            .div_ceil(last.stride)
            .clamp(inside_from, last.output);
        let (mut at, mut filled) = (columns.0, 0);
        while at < columns.1 {
            let (row, first) = (at / last.output, at % last.output);
            let count = (last.output - first).min(columns.1 - at);
            let to = &mut line[filled..filled + count];
            (at, filled) = (at + count, filled + count);
            let (mut rest, mut base, mut scale, mut inside) = (row, 0, 1, true);
            for (i, axis) in outer.iter().enumerate().rev() {
                let place = (rest % axis.output) * axis.stride + offset[i] * axis.dilation;
                rest /= axis.output;
                match place.checked_sub(axis.before).filter(|&p| p < axis.input) {
                    Some(place) => base += place * scale,
                    None => inside = false,
                }
                scale *= axis.input;
            }
            let (from, until) =
                (inside_from.clamp(first, first + count), inside_to.clamp(first, first + count));
            if !inside || from >= until {
                to.fill(0.0);
                continue;
            }
            to[..from - first].fill(0.0);
            to[until - first..].fill(0.0);
            let to = &mut to[from - first..until - first];
            let x = &x[base * last.input + from * last.stride + reach - last.before..];
            match last.stride {
                1 => to.iter_mut().zip(x).for_each(|(t, &v)| *t = v),
                2 => to.iter_mut().zip(x.chunks(2)).for_each(|(t, v)| *t = v[0]),
                stride => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(t, &v)| *t = v),
            }
        }
        let end = filled.next_multiple_of(PANEL);
        line[filled..end].fill(0.0);
    }
}
