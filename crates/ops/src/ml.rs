//! The table of ai.onnx.ml's operators. One line and one file each.

use half::f16;
use heirloom_mem::Shape;
use heirloom_runtime::{KernelError, RunCx};

use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::numbers::Number;
use crate::table::operators;

operators! {
    array_feature_extractor,
    binarizer,
    feature_vectorizer,
    imputer,
    label_encoder,
    linear_classifier,
    linear_regressor,
    normalizer,
    one_hot_encoder,
    scaler,
    svm_classifier,
    svm_regressor,
    tree_ensemble,
    tree_ensemble_classifier,
    tree_ensemble_regressor,
    zip_map,
}

/// The numbers of an input of any number type.
pub(crate) fn features(cx: &RunCx<'_>, index: usize) -> Result<(Shape, Vec<f64>), KernelError> {
    let x = cx.dense(index)?;
    let values = by_type!(x.dtype(), [f32, f64, f16, i64, i32, i16, i8, u64, u32, u16, u8],
        T => x.as_slice::<T>()?.iter().map(|v| Number::to_f64(*v)).collect(),
        _ => return Err(wrong_type(cx, index, "numbers")));
    Ok((Shape::from_slice(x.shape()), values))
}

/// The rows of an input [rows, features]; a vector is one row.
pub(crate) fn rows(cx: &RunCx<'_>, index: usize) -> Result<(usize, usize, Vec<f64>), KernelError> {
    let (shape, values) = features(cx, index)?;
    match *shape {
        [width] => Ok((1, width, values)),
        [rows, width] => Ok((rows, width, values)),
        _ => Err(KernelError::Shape { what: "the input is [rows, features]", shapes: vec![shape] }),
    }
}
