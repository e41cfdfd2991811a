//! [`EmbedLayerNormalization`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.EmbedLayerNormalization):
//! the sum of word, position and segment embeddings, normalized.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::integers;
use crate::onnx::gather::places;
use crate::reals::{input, misfit, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "EmbedLayerNormalization",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Embed {
    epsilon: f64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["epsilon", "mask_index_type"])?;
    let attributes = &cx.node.attributes;
    match attributes.int_or("mask_index_type", 0)? {
        0 | 1 => {}
        other => return Err(unsupported("mask_index_type", other, "0 and 1 are")),
    }
    Ok(Box::new(Embed { epsilon: f64::from(attributes.float_or("epsilon", 1e-12)?) }))
}

/// An embedding's rows, each `width` wide.
fn table(
    cx: &RunCx<'_>,
    index: usize,
    width: Option<usize>,
) -> Result<(usize, usize, Vec<f64>), KernelError> {
    let (_, shape, values) = input(cx, index)?;
    match *shape {
        [rows, own] if width.is_none_or(|width| width == own) => Ok((rows, own, values)),
        _ => Err(misfit("embeddings are matrices of one width", &[&shape])),
    }
}

impl Kernel for Embed {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let shape = Shape::from_slice(cx.tensor(0)?.shape());
        let &[batch, rows] = &shape[..] else {
            return Err(misfit("the ids are [batch, sequence]", &[&shape]));
        };
        let (words, width, word) = table(cx, 2, None)?;
        let (positions, _, position) = table(cx, 3, Some(width))?;
        let own: Vec<i64> = (0..batch * rows).map(|at| (at % rows.max(1)) as i64).collect();
        let given = integers::opt_list(cx, 8)?;
        let at = match &given {
            None => &own[..],
            Some(list) => &list[..],
        };
        if at.len() != own.len() && at.len() != rows {
            return Err(misfit(
                "positions are those of the sequence, or [batch, sequence]",
                &[&[at.len()], &shape],
            ));
        }
        let word_places = places(&integers::list(cx, 0)?, words)?;
        let position_places = places(at, positions)?;
        let segments = match (integers::opt_list(cx, 1)?, cx.opt_tensor(4)?.is_some()) {
            (Some(ids), true) => {
                let (count, _, values) = table(cx, 4, Some(width))?;
                if ids.len() != own.len() {
                    return Err(misfit("segments are [batch, sequence]", &[&[ids.len()], &shape]));
                }
                Some((places(&ids, count)?, values))
            }
            (None, false) => None,
            _ => return Err(KernelError::Other("segments come with their embedding".into())),
        };
        let (dtype, _, gamma) = input(cx, 5)?;
        let (_, _, beta) = input(cx, 6)?;
        if gamma.len() != width || beta.len() != width {
            return Err(misfit(
                "gamma and beta have an element for each column",
                &[&[gamma.len(), beta.len(), width]],
            ));
        }
        let (mut sums, mut out) = (Vec::new(), Vec::new());
        for (token, &id) in word_places.iter().enumerate() {
            let row =
                |values: &'_ [f64], at: usize| -> Vec<f64> { values[at * width..(at + 1) * width].into() };
            let mut sum = row(&word, id);
            let place = position_places[token % position_places.len()];
            sum.iter_mut().zip(row(&position, place)).for_each(|(s, v)| *s += v);
            if let Some((ids, values)) = &segments {
                sum.iter_mut().zip(row(values, ids[token])).for_each(|(s, v)| *s += v);
            }
            let mean = sum.iter().sum::<f64>() / width as f64;
            let square = sum.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / width as f64;
            let factor = 1.0 / (square + self.epsilon).sqrt();
            out.extend(
                sum.iter().zip(gamma.iter().zip(&beta)).map(|(v, (g, b))| (v - mean) * factor * g + b),
            );
            sums.extend(sum);
        }
        let full = [batch, rows, width];
        for (index, values) in [(0, &out), (2, &sums)] {
            if index < cx.output_count() && cx.wants(index) {
                let value = written(cx, dtype, &full, values)?;
                cx.set(index, value);
            }
        }
        if cx.output_count() > 1 && cx.wants(1) {
            let marks = integers::opt_list(cx, 7)?;
            let mut counts = cx.alloc(DType::Int32, &[batch])?;
            for (b, count) in counts.elements_mut::<i32>().iter_mut().enumerate() {
                let own = marks.as_ref().and_then(|marks| marks.get(b * rows..(b + 1) * rows));
                *count = own.map_or(0, |own| own.iter().filter(|&&mark| mark == 1).count() as i32);
            }
            cx.set(1, counts.freeze());
        }
        Ok(())
    }
}
