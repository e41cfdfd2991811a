//! Constant matrices in panels: prepared where the session keeps such objects, else made for the call.

use heirloom_mem::Bytes;
use heirloom_runtime::{KernelError, KernelLayout, PrepareCx, Prepared, RunCx};

use crate::gemm::{Columns, pack_all, panel_floats};

/// One matrix [k, n] of an input that may be constant, or several one behind the other.
pub(crate) struct Panels {
    input: usize,
    prepared: Option<Prepared>,
}

/// Panels for one call.
pub(crate) enum Held {
    Prepared(Bytes),
    Made(Vec<f32>),
}

impl Held {
    pub(crate) fn floats(&self) -> &[f32] {
        match self {
            Held::Prepared(bytes) => bytes.cast().unwrap_or(&[]),
            Held::Made(floats) => floats,
        }
    }
}

impl Panels {
    pub(crate) fn of(input: usize) -> Panels {
        Panels { input, prepared: None }
    }

    /// Claims panels of `count` matrices [k, n]; `name` says how they follow from the constant.
    pub(crate) fn claim(&mut self, cx: &PrepareCx<'_>, name: &'static str, count: usize, k: usize, n: usize) {
        self.claim_with(cx, name, &[], count, k, n);
    }

    /// The same, where more than the constant decides.
    pub(crate) fn claim_with(
        &mut self,
        cx: &PrepareCx<'_>,
        name: &'static str,
        more: &[u64],
        count: usize,
        k: usize,
        n: usize,
    ) {
        let bytes = count * panel_floats(k, n) * size_of::<f32>();
        let parameters = [count as u64, k as u64, n as u64].into_iter().chain(more.iter().copied()).collect();
        self.prepared = cx.claim(self.input, KernelLayout { name, version: 1, parameters, bytes });
    }

    /// Whether panels were claimed.
    pub(crate) fn claimed(&self) -> bool {
        self.prepared.is_some()
    }

    /// The panels of matrices [k, n], matrix `i` of which is `source(i)`.
    pub(crate) fn get<'s>(
        &self,
        cx: &RunCx<'_>,
        count: usize,
        (k, n): (usize, usize),
        source: impl Fn(usize) -> Box<dyn Columns + 's>,
    ) -> Result<Held, KernelError> {
        let each = panel_floats(k, n);
        let pack = |to: &mut [f32]| {
            for (i, to) in to.chunks_exact_mut(each.max(1)).enumerate().take(count) {
                pack_all(&*source(i), k, n, to);
            }
        };
        if let Some(prepared) = &self.prepared
            && prepared.layout().bytes == count * each * size_of::<f32>()
        {
            let made = cx.prepared(self.input, prepared, |to| {
                let mut floats = vec![0.0; count * each];
                pack(&mut floats);
                for (to, v) in to.chunks_exact_mut(size_of::<f32>()).zip(&floats) {
                    to.iter_mut().zip(v.to_ne_bytes()).for_each(|(t, b)| *t = b);
                }
                Ok(())
            })?;
            if let Some(bytes) = made
                && bytes.cast::<f32>().is_some()
            {
                return Ok(Held::Prepared(bytes));
            }
        }
        let mut floats = vec![0.0; count * each];
        pack(&mut floats);
        Ok(Held::Made(floats))
    }
}
