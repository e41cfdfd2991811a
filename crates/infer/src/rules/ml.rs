//! `ai.onnx.ml`.

use heirloom_graph::AttrValue;
use heirloom_mem::DType;
use heirloom_types::ValueType;

use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Fact, TensorFact, Type};

pub(super) const RULES: &[Rule] = &[
    ("ArrayFeatureExtractor", extract),
    ("Binarizer", same),
    ("CategoryMapper", category_mapper),
    ("FeatureVectorizer", feature_vectorizer),
    ("Imputer", same),
    ("LabelEncoder", label_encoder),
    ("LinearClassifier", classifier),
    ("LinearRegressor", regressor),
    ("Normalizer", float),
    ("OneHotEncoder", one_hot),
    ("SVMClassifier", classifier),
    ("SVMRegressor", regressor),
    ("Scaler", float),
    ("TreeEnsemble", tree_ensemble),
    ("TreeEnsembleClassifier", classifier),
    ("TreeEnsembleRegressor", regressor),
    ("ZipMap", zip_map),
];

fn same(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, dtype, dims);
    Ok(())
}

fn float(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    cx.set(0, DType::Float, dims);
    Ok(())
}

/// How many values an attribute holds.
fn length(cx: &Cx<'_>, name: &str) -> Option<usize> {
    match cx.attr(name)? {
        AttrValue::Ints(values) => Some(values.len()),
        AttrValue::Floats(values) => Some(values.len()),
        AttrValue::Strings(values) => Some(values.len()),
        AttrValue::Tensor(tensor) => Some(tensor.len()),
        _ => None,
    }
}

fn label_encoder(cx: &mut Cx<'_>) -> Outcome {
    let dims = cx.tensor(0)?.dims.clone();
    let dtype = match cx.attr("values_tensor") {
        Some(AttrValue::Tensor(tensor)) => Some(tensor.dtype()),
        Some(AttrValue::Strings1(_)) => Some(DType::String),
        _ => {
            let lists = [
                ("values_strings", DType::String),
                ("values_int64s", DType::Int64),
                ("values_floats", DType::Float),
            ];
            let listed = lists.into_iter().find(|(name, _)| cx.attr(name).is_some()).map(|(_, dtype)| dtype);
            // The first version maps between the strings of `classes_strings` and their places.
            listed.or_else(|| match cx.dtype(0).ok()? {
                DType::String => Some(DType::Int64),
                _ => Some(DType::String),
            })
        }
    };
    cx.set(0, dtype.ok_or(Stop::Unknown)?, dims);
    Ok(())
}

fn category_mapper(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    cx.set(0, if dtype == DType::String { DType::Int64 } else { DType::String }, dims);
    Ok(())
}

fn rows(cx: &Cx<'_>) -> Dim {
    match cx.dims(0).ok()? {
        [_] => Some(Expr::number(1)),
        dims => dims.first()?.clone(),
    }
}

fn classifier(cx: &mut Cx<'_>) -> Outcome {
    let names = ["classlabels_strings", "classlabels_int64s", "classlabels_ints"];
    let labels = names.iter().find_map(|name| Some((*name, length(cx, name).filter(|it| *it > 0)?)));
    let dtype =
        if labels.is_some_and(|(name, _)| name.ends_with("strings")) { DType::String } else { DType::Int64 };
    let rows = rows(cx);
    cx.set(0, dtype, Some(vec![rows.clone()]));
    cx.set(1, DType::Float, Some(vec![rows, labels.map(|(_, count)| Expr::from(count))]));
    Ok(())
}

fn regressor(cx: &mut Cx<'_>) -> Outcome {
    let targets = cx.opt_int("n_targets").or_else(|| cx.opt_int("targets")).unwrap_or(1);
    let rows = rows(cx);
    cx.set(0, DType::Float, Some(vec![rows, Some(Expr::number(targets))]));
    Ok(())
}

fn tree_ensemble(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let (rows, targets) = (rows(cx), cx.opt_int("n_targets").map(Expr::number));
    cx.set(0, dtype, Some(vec![rows, targets]));
    Ok(())
}

fn one_hot(cx: &mut Cx<'_>) -> Outcome {
    let categories = length(cx, "cats_int64s").or_else(|| length(cx, "cats_strings")).map(Expr::from);
    let dims = cx.tensor(0)?.dims.clone().map(|mut dims| {
        dims.push(categories);
        dims
    });
    cx.set(0, DType::Float, dims);
    Ok(())
}

fn extract(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let picked = cx.dims(1).ok().and_then(|dims| dims.last()?.clone());
    let dims = dims.map(|mut dims| {
        match dims.last_mut() {
            Some(last) => *last = picked.clone(),
            None => dims.push(picked.clone()),
        }
        if dims.len() == 1 { vec![Some(Expr::number(1)), picked.clone()] } else { dims }
    });
    cx.set(0, dtype, dims);
    Ok(())
}

fn feature_vectorizer(cx: &mut Cx<'_>) -> Outcome {
    let widths = cx
        .opt_ints("inputdimensions")
        .and_then(|it| it.iter().try_fold(0i64, |sum, &width| sum.checked_add(width)));
    let rows = rows(cx);
    cx.set(0, DType::Float, Some(vec![rows, widths.map(Expr::number)]));
    Ok(())
}

fn zip_map(cx: &mut Cx<'_>) -> Outcome {
    let key = if cx.attr("classlabels_strings").is_some() { DType::String } else { DType::Int64 };
    let map = ValueType::map(key, ValueType::tensor(DType::Float, &[]));
    cx.set_fact(0, Fact::of(Type::Sequence(Some(std::sync::Arc::new(Type::Other(map))))));
    Ok(())
}
