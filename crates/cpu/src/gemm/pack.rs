//! Columns of b in panels: for each panel its 16 columns side by side, row by row.

use super::PANEL;

/// A source of columns.
pub(crate) trait Columns: Sync {
    /// Writes rows `depth` of columns `columns` in panels of 16, each `depth.1 - depth.0` rows long; columns behind the
    /// last one hold anything finite.
    fn pack(&self, columns: (usize, usize), depth: (usize, usize), to: &mut [f32]);
}

/// A matrix [k, n], its rows `stride` apart.
pub(crate) struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) stride: usize,
}

/// Sixteen columns of one row.
#[inline]
pub(crate) fn put(to: &mut [f32], from: &[f32]) {
    match (to.first_chunk_mut::<PANEL>(), from.first_chunk::<PANEL>()) {
        (Some(to), Some(from)) => *to = *from,
        (Some(to), None) => {
            to.fill(0.0);
            to.iter_mut().zip(from).for_each(|(t, &v)| *t = v);
        }
        _ => {}
    }
}

impl Columns for Matrix<'_> {
    fn pack(&self, columns: (usize, usize), depth: (usize, usize), to: &mut [f32]) {
        let rows = depth.1 - depth.0;
        for (panel, to) in to.chunks_exact_mut((rows * PANEL).max(1)).enumerate() {
            let first = columns.0 + panel * PANEL;
            if first >= columns.1 {
                break;
            }
            let count = (columns.1 - first).min(PANEL);
            for (row, to) in to.chunks_exact_mut(PANEL).enumerate() {
                put(to, &self.data[(depth.0 + row) * self.stride + first..][..count]);
            }
        }
    }
}

/// A matrix whose transpose, [n, k], lies in memory with rows `stride` apart.
pub(crate) struct Transposed<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) stride: usize,
}

impl Columns for Transposed<'_> {
    fn pack(&self, columns: (usize, usize), depth: (usize, usize), to: &mut [f32]) {
        let rows = depth.1 - depth.0;
        for (panel, to) in to.chunks_exact_mut((rows * PANEL).max(1)).enumerate() {
            let first = columns.0 + panel * PANEL;
            if first >= columns.1 {
                break;
            }
            for lane in 0..PANEL {
                let column = (first + lane).min(columns.1 - 1);
                let from = &self.data[column * self.stride + depth.0..][..rows];
                for (to, &v) in to[lane..].iter_mut().step_by(PANEL).zip(from) {
                    *to = v;
                }
            }
        }
    }
}

/// Floats of all panels of a matrix [k, n].
pub(crate) fn panel_floats(k: usize, n: usize) -> usize {
    n.div_ceil(PANEL) * PANEL * k
}

/// Puts a whole matrix [k, n] into panels.
pub(crate) fn pack_all(source: &dyn Columns, k: usize, n: usize, to: &mut [f32]) {
    source.pack((0, n), (0, k), to);
}
