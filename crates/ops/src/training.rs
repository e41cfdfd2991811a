//! The table of ai.onnx.preview.training's operators. One line and one file each.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{KernelError, RunCx};

use crate::integers::list;
use crate::reals::{input, misfit, written};
use crate::table::operators;

operators! {
    adagrad,
    adam,
    momentum,
}

/// One parameter that is trained: its type and shape, and the parameter, its gradient and its states.
pub(crate) struct Trained {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    pub(crate) values: Vec<Vec<f64>>,
}

/// What an optimizer's inputs say: the learning rate, the count of updates, and the parameters, of which each has
/// `kinds` inputs, all of one kind behind each other.
pub(crate) fn inputs(cx: &RunCx<'_>, kinds: usize) -> Result<(f64, i64, Vec<Trained>), KernelError> {
    let rate = input(cx, 0)?.2.first().copied().unwrap_or(0.0);
    let count = list(cx, 1)?.first().copied().unwrap_or(0);
    let each = (cx.input_count() - 2) / kinds;
    if each * kinds + 2 != cx.input_count() {
        return Err(KernelError::Other(format!(
            "each parameter has {kinds} inputs; {} are given",
            cx.input_count() - 2
        )));
    }
    let mut trained = Vec::with_capacity(each);
    for at in 0..each {
        let (dtype, shape, own) = input(cx, 2 + at)?;
        let mut values = vec![own];
        for kind in 1..kinds {
            let (_, other, list) = input(cx, 2 + kind * each + at)?;
            if other != shape {
                return Err(misfit(
                    "a parameter, its gradient and its states have one shape",
                    &[&shape, &other],
                ));
            }
            values.push(list);
        }
        trained.push(Trained { dtype, shape, values });
    }
    Ok((rate, count, trained))
}

/// Sets the outputs: for each parameter the values `kept` of its list, all of one kind behind each other.
pub(crate) fn finish(cx: &mut RunCx<'_>, trained: &[Trained], kept: &[usize]) -> Result<(), KernelError> {
    for (kind, &which) in kept.iter().enumerate() {
        for (at, one) in trained.iter().enumerate() {
            let out = written(cx, one.dtype, &one.shape, &one.values[which])?;
            cx.set(kind * trained.len() + at, out);
        }
    }
    Ok(())
}
