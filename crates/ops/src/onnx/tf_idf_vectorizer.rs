//! [`TfIdfVectorizer`](https://onnx.ai/onnx/operators/onnx__TfIdfVectorizer.html): how often each n-gram of a pool occurs in each
//! row, with up to `max_skip_count` elements left out between its own, weighted on request.

use std::collections::HashMap;
use std::hash::Hash;

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::{only, unsupported};
use crate::integers;
use crate::movement::shape_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "TfIdfVectorizer",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Tf,
    Idf,
    TfIdf,
}

/// Each n-gram of the pool and its number.
enum Pool {
    Integers(HashMap<Vec<i64>, usize>),
    Strings(HashMap<Vec<Box<[u8]>>, usize>),
}

struct TfIdf {
    mode: Mode,
    pool: Pool,
    lengths: std::ops::RangeInclusive<usize>,
    skips: usize,
    /// By n-gram: its place in the result.
    places: Vec<usize>,
    /// By n-gram, for the modes that weight.
    weights: Option<Vec<f32>>,
}

/// The n-grams of a pool: those of length n begin at `counts[n - 1]`.
fn grams<T: Clone + Eq + Hash>(pool: &[T], counts: &[usize]) -> HashMap<Vec<T>, usize> {
    let mut grams = HashMap::new();
    let mut number = 0;
    for (at, &start) in counts.iter().enumerate() {
        let end = counts.get(at + 1).copied().unwrap_or(pool.len()).min(pool.len());
        for gram in pool.get(start..end).unwrap_or_default().chunks_exact(at + 1) {
            grams.insert(Vec::from(gram), number);
            number += 1;
        }
    }
    grams
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &[
            "max_gram_length",
            "max_skip_count",
            "min_gram_length",
            "mode",
            "ngram_counts",
            "ngram_indexes",
            "pool_int64s",
            "pool_strings",
            "weights",
        ],
    )?;
    let attributes = &cx.node.attributes;
    let mode = match attributes.string("mode")? {
        b"TF" => Mode::Tf,
        b"IDF" => Mode::Idf,
        b"TFIDF" => Mode::TfIdf,
        other => return Err(unsupported("mode", String::from_utf8_lossy(other), "TF, IDF and TFIDF are")),
    };
    let size = |name: &str, value: i64| {
        usize::try_from(value).map_err(|_| unsupported(name, value, "it is not negative"))
    };
    let sizes = |name: &str| -> Result<Vec<usize>, BuildError> {
        attributes.ints(name)?.iter().map(|&value| size(name, value)).collect()
    };
    let one = |name: &str| -> Result<usize, BuildError> { size(name, attributes.int(name)?) };
    let (counts, places) = (sizes("ngram_counts")?, sizes("ngram_indexes")?);
    let (pool, count) = match (attributes.opt_ints("pool_int64s")?, attributes.opt_strings("pool_strings")?) {
        (Some(pool), None) => {
            let grams = grams(pool, &counts);
            let count = grams.len();
            (Pool::Integers(grams), count)
        }
        (None, Some(pool)) => {
            let grams = grams(pool, &counts);
            let count = grams.len();
            (Pool::Strings(grams), count)
        }
        _ => return Err(unsupported("pool_int64s", "both pools or none", "there is one pool")),
    };
    if count > places.len() {
        return Err(unsupported("ngram_indexes", places.len(), "there is one for each n-gram of the pool"));
    }
    let weights = attributes.opt_floats("weights")?.filter(|_| mode != Mode::Tf).map(Vec::from);
    if weights.as_ref().is_some_and(|weights| weights.len() < places.len()) {
        return Err(unsupported("weights", "a shorter list", "there is one for each n-gram"));
    }
    Ok(Box::new(TfIdf {
        mode,
        pool,
        lengths: one("min_gram_length")?.max(1)..=one("max_gram_length")?,
        skips: one("max_skip_count")?,
        places,
        weights,
    }))
}

impl TfIdf {
    /// Counts the n-grams of one row.
    fn count<T: Clone + Eq + Hash>(&self, row: &[T], grams: &HashMap<Vec<T>, usize>, counts: &mut [usize]) {
        for length in self.lengths.clone() {
            // A single element leaves nothing out.
            let skips = if length == 1 { 0 } else { self.skips };
            for step in 1..=skips + 1 {
                let Some(last) = row.len().checked_sub((length - 1).saturating_mul(step) + 1) else { break };
                for start in 0..=last {
                    let gram: Vec<T> = row[start..].iter().step_by(step).take(length).cloned().collect();
                    if let Some(&number) = grams.get(&gram) {
                        counts[number] += 1;
                    }
                }
            }
        }
    }

    fn write(&self, counts: &[usize], out: &mut [f32]) {
        for (number, &count) in counts.iter().enumerate() {
            let weight = self.weights.as_ref().map_or(1.0, |weights| weights[number]);
            let times = if self.mode == Mode::Idf { count.min(1) } else { count };
            out[self.places[number]] = times as f32 * weight;
        }
    }
}

impl Kernel for TfIdf {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = shape_of(cx, 0)?;
        let (rows, columns) = match shape[..] {
            [columns] => (1, columns),
            [rows, columns] => (rows, columns),
            _ => return Err(KernelError::Shape { what: "there are rows of elements", shapes: vec![shape] }),
        };
        let width = self.places.iter().max().map_or(0, |last| last + 1);
        let result =
            if shape.len() == 1 { Shape::from_slice(&[width]) } else { Shape::from_slice(&[rows, width]) };
        let mut out = cx.alloc(DType::Float, &result)?;
        let to = out.elements_mut::<f32>();
        to.fill(0.0);
        let mut counts = vec![0; self.places.len()];
        for row in 0..rows {
            counts.fill(0);
            let part = row * columns..(row + 1) * columns;
            match (&self.pool, cx.value(0)) {
                (Pool::Strings(grams), Some(Value::Strings(strings))) => {
                    self.count(&strings.elements[part], grams, &mut counts);
                }
                (Pool::Integers(grams), _) => self.count(&integers::list(cx, 0)?[part], grams, &mut counts),
                (Pool::Strings(_), _) => {
                    return Err(crate::elementwise::wrong_type(cx, 0, "strings, as the pool holds"));
                }
            }
            self.write(&counts, &mut to[row * width..(row + 1) * width]);
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
