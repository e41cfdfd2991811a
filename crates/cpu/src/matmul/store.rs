//! Where products go: `alpha * product + bias`.
#![allow(unsafe_code)]

use crate::disjoint::DisjointMut;

/// What is added to the products.
#[derive(Clone, Copy, Debug)]
pub enum Bias<'a> {
    /// Nothing.
    None,
    /// The same row [n] for all rows.
    Row(&'a [f32]),
    /// A matrix [rows, n].
    Full(&'a [f32]),
}

/// The output [rows, n], of which each task writes columns of its own.
pub(crate) struct Store<'a> {
    out: DisjointMut<'a, f32>,
    n: usize,
    alpha: f32,
    bias: Bias<'a>,
}

impl<'a> Store<'a> {
    /// # Safety
    /// No two tasks may store to the same elements of the output at the same time.
    ///
    /// # Panics
    /// When the lengths of output or bias do not fit.
    pub(crate) unsafe fn new(
        out: &'a mut [f32],
        rows: usize,
        n: usize,
        alpha: f32,
        bias: Bias<'a>,
    ) -> Store<'a> {
        assert_eq!(out.len(), rows * n, "the output is [rows, n]");
        match bias {
            Bias::None => {}
            Bias::Row(b) => assert_eq!(b.len(), n, "the bias is [n]"),
            Bias::Full(b) => assert_eq!(b.len(), rows * n, "the bias is [rows, n]"),
        }
        Store { out: DisjointMut::new(out), n, alpha, bias }
    }

    /// Stores neighbouring products of row `row` from column `column` on.
    #[inline(always)]
    pub(crate) fn few(&self, row: usize, column: usize, products: &[f32]) {
        let at = row * self.n + column;
        // SAFETY: the columns belong to this task: the contract of `new`.
        let out = unsafe { self.out.part(at..at + products.len()) };
        match self.bias {
            Bias::None if self.alpha == 1.0 => {
                for (out, y) in out.iter_mut().zip(products) {
                    *out = *y;
                }
            }
            Bias::None => {
                for (out, y) in out.iter_mut().zip(products) {
                    *out = self.alpha * y;
                }
            }
            Bias::Row(bias) => {
                for ((out, y), b) in out.iter_mut().zip(products).zip(&bias[column..]) {
                    *out = self.alpha * y + b;
                }
            }
            Bias::Full(bias) => {
                for ((out, y), b) in out.iter_mut().zip(products).zip(&bias[at..]) {
                    *out = self.alpha * y + b;
                }
            }
        }
    }
}
