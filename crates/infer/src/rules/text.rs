//! Strings and images.

use heirloom_mem::DType;

use super::{Cx, Outcome, Rule};

pub(super) const RULES: &[Rule] = &[
    ("ImageDecoder", image),
    ("RegexFullMatch", matches),
    ("StringConcat", concat),
    ("StringNormalizer", normalize),
    ("StringSplit", split),
    ("TfIdfVectorizer", count),
];

fn matches(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    cx.set(0, DType::Bool, dims);
    Ok(())
}

fn concat(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.broadcast(&[0, 1])?;
    cx.set(0, DType::String, dims);
    Ok(())
}

/// Stop words are dropped: how many elements stay depends on them.
fn normalize(cx: &mut Cx<'_>) -> Outcome {
    let mut dims = cx.tensor(0)?.dims.clone();
    if cx.attr("stopwords").is_some()
        && let Some(dims) = &mut dims
        && let Some(last) = dims.len().checked_sub(1)
    {
        dims[last] = cx.fresh(0, last);
    }
    cx.set(0, DType::String, dims);
    Ok(())
}

fn split(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    let parts = dims.clone().map(|mut dims| {
        dims.push(cx.fresh(0, dims.len()));
        dims
    });
    cx.set(0, DType::String, parts);
    cx.set(1, DType::Int64, dims);
    Ok(())
}

fn count(cx: &mut Cx<'_>) -> Outcome {
    let indexes = cx.opt_ints("ngram_indexes").and_then(|it| it.iter().max());
    let columns = indexes.and_then(|it| it.checked_add(1)).map(crate::Expr::number);
    let dims = cx.dims(0).ok().map(|dims| {
        let batch = if dims.len() > 1 { dims[0].clone() } else { None };
        if dims.len() > 1 { vec![batch, columns.clone()] } else { vec![columns.clone()] }
    });
    cx.set(0, DType::Float, dims);
    Ok(())
}

fn image(cx: &mut Cx<'_>) -> Outcome {
    let channels = if cx.string("pixel_format") == "Grayscale" { 1 } else { 3 };
    let dims = vec![cx.fresh(0, 0), cx.fresh(0, 1), Some(crate::Expr::number(channels))];
    cx.set(0, DType::Uint8, Some(dims));
    Ok(())
}
