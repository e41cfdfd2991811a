//! [`NegativeLogLikelihoodLoss`](https://onnx.ai/onnx/operators/onnx__NegativeLogLikelihoodLoss.html): minus the
//! log-probability of the target class, weighted.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::integers::list;
use crate::reals::{input, misfit, opt_input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "NegativeLogLikelihoodLoss",
    versions: (12, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

/// What becomes of the losses of all places.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reduction {
    None,
    Mean,
    Sum,
}

/// The attributes of a loss.
pub(crate) struct Loss {
    reduction: Reduction,
    /// A target that does not count.
    ignored: Option<i64>,
}

impl Loss {
    pub(crate) fn parse(cx: &BuildCx<'_>) -> Result<Loss, BuildError> {
        only(cx, &["ignore_index", "reduction"])?;
        let reduction = match cx.node.attributes.opt_string("reduction")? {
            None | Some(b"mean") => Reduction::Mean,
            Some(b"none") => Reduction::None,
            Some(b"sum") => Reduction::Sum,
            Some(other) => {
                return Err(unsupported(
                    "reduction",
                    String::from_utf8_lossy(other),
                    "none, mean and sum are",
                ));
            }
        };
        Ok(Loss { reduction, ignored: cx.node.attributes.opt_int("ignore_index")? })
    }

    /// The loss from log-probabilities [batch, classes, places…]: its shape and elements.
    pub(crate) fn of(
        &self,
        cx: &RunCx<'_>,
        shape: &[usize],
        log_probabilities: &[f64],
    ) -> Result<(Shape, Vec<f64>), KernelError> {
        let target_shape = Shape::from_slice(cx.tensor(1)?.shape());
        let target = list(cx, 1)?;
        let fault = || {
            misfit(
                "the input is [batch, classes, places…], the target [batch, places…]",
                &[shape, &target_shape],
            )
        };
        let (&[batch, classes, ref places @ ..], [target_batch, target_places @ ..]) =
            (shape, &*target_shape)
        else {
            return Err(fault());
        };
        if batch != *target_batch || places != target_places {
            return Err(fault());
        }
        let weights = match opt_input(cx, 2)? {
            Some((_, shape, weights)) if *shape == [classes] => Some(weights),
            Some((_, shape, _)) => return Err(misfit("there is a weight for each class", &[&shape])),
            None => None,
        };
        let plane: usize = places.iter().product();
        let (mut losses, mut total) = (Vec::with_capacity(target.len()), 0.0);
        let mut watch = cx.cancel().watch();
        for (at, &class) in target.iter().enumerate() {
            watch.pass(1)?;
            if self.ignored == Some(class) {
                losses.push(0.0);
                continue;
            }
            let range =
                KernelError::Range { what: "a target class", value: class, low: 0, high: classes as i64 - 1 };
            let class = usize::try_from(class).ok().filter(|&c| c < classes).ok_or(range)?;
            let weight = weights.as_ref().map_or(1.0, |w| w[class]);
            total += weight;
            losses.push(-weight * log_probabilities[(at / plane * classes + class) * plane + at % plane]);
        }
        Ok(match self.reduction {
            Reduction::None => (target_shape, losses),
            Reduction::Sum => (Shape::new(), vec![losses.iter().sum()]),
            Reduction::Mean => (Shape::new(), vec![losses.iter().sum::<f64>() / total]),
        })
    }
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    Ok(Box::new(NegativeLogLikelihoodLoss(Loss::parse(cx)?)))
}

struct NegativeLogLikelihoodLoss(Loss);

impl Kernel for NegativeLogLikelihoodLoss {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, shape, x) = input(cx, 0)?;
        let (shape, losses) = self.0.of(cx, &shape, &x)?;
        let out = written(cx, dtype, &shape, &losses)?;
        cx.set(0, out);
        Ok(())
    }
}
