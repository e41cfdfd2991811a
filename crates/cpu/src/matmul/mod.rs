//! Products with weights in the bytes of the file: `out[m, n] = alpha * Σ_k x[m, k] * w[n, k] + bias`.
//!
//! One driver for each number of rows serves all formats: a format brings only its unpacking ([`Unpack`]).

#![allow(unsafe_code)]
// Loops over rows index several arrays side by side, and are unrolled.
#![allow(clippy::needless_range_loop)]

mod activations;
mod float;
mod panel;
mod scratch;
mod shares;
mod split;
mod store;
mod vector;

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use heirloom_formats::{Format, Unpack};
use heirloom_mem::DType;
use heirloom_runtime::{CancelToken, Cancelled, Soon, Team};
use heirloom_simd::{Isa, Level, STEP};
use heirloom_types::{Codec, CodecError};

pub use activations::Activations;
pub(crate) use split::{Split, Zeros};
pub use store::Bias;

use self::float::{FloatRows, Floats};
use self::panel::Panels;
use self::shares::{Pieces, Shares};
use self::store::Store;
use self::vector::Vector;
use crate::disjoint::DisjointMut;

/// Up to so many rows of float activations the weights are not decoded into panels.
const FEW_ROWS: usize = 4;

/// Up to so many rows of quantized activations the weights are not unpacked into panels.
const FEW_QUANTIZED: usize = 8;

/// Bytes of weights that a thread takes of its share at a time: between them it looks whether it is to stop, and others
/// whether something is left.
const STEP_BYTES: usize = 32 * 1024;

/// The least bytes of weights that a thread takes of another's share.
const LEAST_BYTES: usize = 4 * 1024;

/// One product.
pub struct Call<'a> {
    /// The activations [rows, k].
    pub activations: Activations<'a>,
    /// The weight [n, k]: whole records, row after row.
    pub weight: &'a [u8],
    /// Rows of the weight.
    pub n: usize,
    /// A factor of all products.
    pub alpha: f32,
    /// What is added.
    pub bias: Bias<'a>,
    /// The output [rows, n].
    pub out: &'a mut [f32],
    /// At least [`Product::scratch_bytes`] bytes.
    pub scratch: &'a mut [u8],
    /// Who computes.
    pub team: &'a dyn Team,
    /// Who may stop it.
    pub cancel: &'a CancelToken,
}

/// Why a product failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProductError {
    /// The call was stopped.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A weight's bytes stand for nothing.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// How weights of one kind are multiplied on this processor. Chosen once; holds no state.
#[derive(Clone)]
pub struct Product {
    isa: Isa,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Unpacked(&'static dyn Unpacked),
    F32,
    F16,
    BF16,
    Format(&'static Format),
    Coded(Arc<dyn Codec>),
}

impl Product {
    /// For weights in records of `format`. At level `portable` they are decoded, and activations stay floats.
    pub fn of_format(isa: Isa, format: &'static Format) -> Product {
        let unpacked = UNPACKED.iter().copied().find(|u| u.format().type_id == format.type_id);
        let kind = match unpacked {
            Some(unpacked) if isa.level() != Level::Portable => Kind::Unpacked(unpacked),
            _ => Kind::Format(format),
        };
        Product { isa, kind }
    }

    /// For dense weights: FLOAT, FLOAT16 and BFLOAT16, little-endian, at any address.
    pub fn of_dtype(isa: Isa, dtype: DType) -> Option<Product> {
        let kind = match dtype {
            DType::Float => Kind::F32,
            DType::Float16 => Kind::F16,
            DType::BFloat16 => Kind::BF16,
            _ => return None,
        };
        Some(Product { isa, kind })
    }

    /// For weights of any codec: rows are decoded a piece at a time.
    pub fn of_codec(isa: Isa, codec: Arc<dyn Codec>) -> Product {
        Product { isa, kind: Kind::Coded(codec) }
    }

    /// The level that it was made for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Whether it takes [`Activations::quantized`], and not [`Activations::floats`].
    pub fn quantizes(&self) -> bool {
        matches!(self.kind, Kind::Unpacked(_))
    }

    /// Elements of a record: `k` must be a multiple of it.
    pub fn elements(&self) -> usize {
        match &self.kind {
            Kind::Unpacked(unpacked) => unpacked.format().elements,
            Kind::F32 | Kind::F16 | Kind::BF16 => 1,
            Kind::Format(format) => format.elements,
            Kind::Coded(codec) => codec.elements(),
        }
    }

    fn float_rows(&self) -> FloatRows<'_> {
        match &self.kind {
            Kind::Unpacked(unpacked) => FloatRows::Coded(unpacked.format()),
            Kind::F32 => FloatRows::F32,
            Kind::F16 => FloatRows::F16,
            Kind::BF16 => FloatRows::BF16,
            Kind::Format(format) => FloatRows::Coded(*format),
            Kind::Coded(codec) => FloatRows::Coded(&**codec),
        }
    }

    /// Bytes of a row of `k` elements.
    pub fn row_bytes(&self, k: usize) -> usize {
        self.float_rows().row_bytes(k)
    }

    /// Scratch bytes that [`Product::run`] needs.
    pub fn scratch_bytes(&self, rows: usize, k: usize, threads: usize) -> usize {
        match self.kind {
            Kind::Unpacked(unpacked) => unpacked.scratch_bytes(self.isa, rows, k, threads),
            _ => float::scratch_bytes(self.float_rows(), rows, k).saturating_mul(threads),
        }
    }

    /// The activations in the form that this product takes; [`Product::activation_bytes`] of scratch.
    ///
    /// # Panics
    /// When `x` has not `rows * k` elements or `scratch` is too small.
    pub fn activations<'a>(
        &self,
        x: &'a [f32],
        rows: usize,
        k: usize,
        scratch: &'a mut [u8],
        team: &dyn Team,
    ) -> Activations<'a> {
        if self.quantizes() {
            Activations::quantized(self.isa, x, rows, k, scratch, team)
        } else {
            Activations::floats(x, rows, k)
        }
    }

    /// Scratch bytes that [`Product::activations`] needs.
    pub fn activation_bytes(&self, rows: usize, k: usize) -> usize {
        if self.quantizes() { Activations::quantized_bytes(rows, k) } else { 0 }
    }

    /// Computes the product. Allocates nothing. After an error the output is partly written.
    ///
    /// # Errors
    /// When it was cancelled, or a codec refuses the weight's bytes.
    ///
    /// # Panics
    /// When lengths do not fit each other, `k` is no whole number of records, the scratch is too small, or the
    /// activations are not in the form that [`Product::quantizes`] tells.
    pub fn run(&self, call: Call<'_>) -> Result<(), ProductError> {
        let k = call.activations.k;
        assert!(k.is_multiple_of(self.elements()), "rows are whole records");
        assert_eq!(call.weight.len(), call.n * self.row_bytes(k), "the weight is [n, k]");
        if call.activations.rows == 0 || call.n == 0 {
            return Ok(());
        }
        match self.kind {
            Kind::Unpacked(unpacked) => {
                assert!(
                    call.activations.steps.len() == call.activations.rows * k.div_ceil(STEP),
                    "the activations are quantized"
                );
                Ok(unpacked.run(self.isa, call)?)
            }
            _ => self.run_float(call),
        }
    }

    fn run_float(&self, call: Call<'_>) -> Result<(), ProductError> {
        let Call { activations, weight, n, alpha, bias, out, scratch, team, cancel } = call;
        let source = self.float_rows();
        let few = activations.rows <= FEW_ROWS;
        let pieces = if few {
            pieces_of_rows(source.row_bytes(activations.k))
        } else {
            equal_pieces(float::ROWS * float::panels_at_once(activations.k))
        };
        let failed: OnceLock<CodecError> = OnceLock::new();
        // SAFETY: the pieces below have columns of their own.
        let store = unsafe { Store::new(out, activations.rows, n, alpha, bias) };
        let per_worker = float::scratch_bytes(source, activations.rows, activations.k);
        let cancelled = || cancel.is_cancelled();
        in_pieces(team, n, pieces, per_worker, scratch, &|rows, scratch| {
            let job =
                Floats { source, weight, rows, activations, store: &store, scratch, cancelled: &cancelled };
            if cancelled() || failed.get().is_some() {
                return;
            }
            if let Err(error) = self.isa.run(job) {
                // Another thread's error may have come first; one is enough.
                let _ = failed.set(error);
            }
        });
        match failed.into_inner() {
            Some(error) => Err(error.into()),
            None => Ok(cancel.check()?),
        }
    }

    /// How a weight [n, k] is read with one row of activations.
    pub(crate) fn soon(&self, weight: &[u8], n: usize, k: usize, threads: usize) -> Soon {
        let row_bytes = self.row_bytes(k);
        let share = Shares::share(n, pieces_of_rows(row_bytes), threads) * row_bytes;
        Soon { address: weight.as_ptr().addr(), bytes: weight.len(), share }
    }

    /// Row `row` of a weight [n, k] as floats.
    ///
    /// # Errors
    /// When a codec refuses the bytes.
    ///
    /// # Panics
    /// When the row lies outside the weight, or `out` is no whole number of records.
    pub fn decode_row(&self, weight: &[u8], row: usize, out: &mut [f32]) -> Result<(), CodecError> {
        let bytes = self.row_bytes(out.len());
        self.float_rows().read(&weight[row * bytes..][..bytes], 0, out)
    }
}

impl std::fmt::Debug for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind: &dyn std::fmt::Debug = match &self.kind {
            Kind::Unpacked(unpacked) => unpacked.format(),
            Kind::F32 => &DType::Float,
            Kind::F16 => &DType::Float16,
            Kind::BF16 => &DType::BFloat16,
            Kind::Format(format) => *format,
            Kind::Coded(codec) => codec,
        };
        write!(f, "product with {kind:?} at level {}", self.isa.level())
    }
}

/// Pieces of rows of weights with few activations.
fn pieces_of_rows(row_bytes: usize) -> Pieces {
    let rows = |bytes: usize| (bytes / row_bytes.max(1)).max(1).next_multiple_of(4);
    Pieces { step: rows(STEP_BYTES), least: rows(LEAST_BYTES) }
}

fn equal_pieces(rows: usize) -> Pieces {
    Pieces { step: rows, least: rows }
}

/// Calls `work` with ranges of the `n` rows, each with scratch of its own of `per_worker` bytes, until all are done.
fn in_pieces(
    team: &dyn Team,
    n: usize,
    pieces: Pieces,
    per_worker: usize,
    scratch: &mut [u8],
    work: &(dyn Fn(Range<usize>, &mut [u8]) + Sync),
) {
    let shares = Shares::new(n, pieces, team.threads());
    let parts = DisjointMut::new(scratch);
    team.run(shares.workers(), &|worker| {
        // SAFETY: each worker has scratch of its own.
        let scratch = unsafe { parts.part(worker * per_worker..(worker + 1) * per_worker) };
        while let Some(rows) = shares.next(worker) {
            work(rows, scratch);
        }
    });
}

/// How weights of one format are multiplied with quantized activations.
trait Unpacked: Send + Sync {
    fn format(&self) -> &'static Format;
    fn scratch_bytes(&self, isa: Isa, rows: usize, k: usize, threads: usize) -> usize;
    fn run(&self, isa: Isa, call: Call<'_>) -> Result<(), Cancelled>;
}

struct Generic<U>(PhantomData<U>);

macro_rules! unpacked {
    ($($format:ty,)*) => {
        static UNPACKED: &[&dyn Unpacked] = &[$(&Generic::<$format>(PhantomData),)*];
    };
}
heirloom_formats::for_each_unpack!(unpacked);

impl<U: Unpack> Unpacked for Generic<U> {
    fn format(&self) -> &'static Format {
        U::format()
    }

    fn scratch_bytes(&self, isa: Isa, rows: usize, k: usize, threads: usize) -> usize {
        if rows <= FEW_QUANTIZED {
            0
        } else {
            panel::scratch_bytes::<U>(k, narrow(isa)).saturating_mul(threads)
        }
    }

    fn run(&self, isa: Isa, call: Call<'_>) -> Result<(), Cancelled> {
        let Call { activations, weight, n, alpha, bias, out, scratch, team, cancel } = call;
        // SAFETY: the pieces below have columns of their own.
        let store = unsafe { Store::new(out, activations.rows, n, alpha, bias) };
        let cancelled = || cancel.is_cancelled();
        if activations.rows <= FEW_QUANTIZED {
            let pieces = pieces_of_rows(weight.len() / n);
            in_pieces(team, n, pieces, 0, &mut [], &|rows, _| {
                if !cancelled() {
                    isa.run(Vector::<U> { weight, rows, activations, store: &store, format: PhantomData });
                }
            });
        } else {
            let k = activations.k;
            let panels = n.div_ceil(panel::ROWS * 2 * team.threads());
            let at_once = panel::ROWS * panel::panels_at_once::<U>(k, narrow(isa)).min(panels);
            let per_worker = panel::scratch_bytes::<U>(k, narrow(isa));
            in_pieces(team, n, equal_pieces(at_once), per_worker, scratch, &|rows, scratch| {
                if !cancelled() {
                    isa.run(Panels::<U> {
                        weight,
                        rows,
                        activations,
                        store: &store,
                        scratch,
                        cancelled: &cancelled,
                        format: PhantomData,
                    });
                }
            });
        }
        cancel.check()
    }
}

fn narrow(isa: Isa) -> bool {
    isa.level() == Level::Avx2
}
