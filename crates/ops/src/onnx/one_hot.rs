//! [`OneHot`](https://onnx.ai/onnx/operators/onnx__OneHot.html): a new axis of `depth` elements, which has the value for "on" at
//! each index and the one for "off" elsewhere; an index outside is nowhere.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx, Watch, normalize_axis};

use crate::attributes::only;
use crate::by_type::by_number;
use crate::cells::{Moves, moved};
use crate::elementwise::wrong_type;
use crate::numbers::Number;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "OneHot",
    versions: (9, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct OneHot {
    axis: i64,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["axis"])?;
    Ok(Box::new(OneHot { axis: cx.node.attributes.int_or("axis", -1)? }))
}

/// Numbers of any type as integers.
fn integers(cx: &RunCx<'_>, index: usize) -> Result<Vec<i64>, KernelError> {
    let tensor = cx.dense(index)?;
    by_number!(tensor.dtype(), T => Ok(tensor.as_slice::<T>()?.iter().map(|&v| Number::to_i64(v)).collect()),
        _ => Err(wrong_type(cx, index, "numbers")))
}

impl Kernel for OneHot {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let mut shape = Shape::from_slice(cx.tensor(0)?.shape());
        let axis = normalize_axis(self.axis, shape.len() + 1)?;
        let [depth] = integers(cx, 1)?[..] else {
            return Err(KernelError::Other("the depth has one element".into()));
        };
        let places = integers(cx, 0)?
            .into_iter()
            .map(|index| if index < 0 { index.saturating_add(depth) } else { index })
            .map(|index| usize::try_from(index).ok().filter(|_| index < depth))
            .collect();
        let depth = crate::integers::extent("the depth", depth)?;
        let inner: usize = shape[axis..].iter().product();
        shape.insert(axis, depth);
        let value = moved(cx, &[2], &shape, &Hot { places, depth, inner })?;
        cx.set(0, value);
        Ok(())
    }
}

struct Hot {
    places: Vec<Option<usize>>,
    depth: usize,
    inner: usize,
}

impl Moves for Hot {
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError> {
        let [off, on] = inputs[0] else {
            return Err(KernelError::Other(format!("there are two values, not {}", inputs[0].len())));
        };
        for out in out.chunks_mut(Watch::PIECE) {
            watch.pass(out.len())?;
            out.fill(off.clone());
        }
        for (at, place) in self.places.iter().enumerate() {
            watch.pass(1)?;
            if let Some(place) = place {
                out[(at / self.inner * self.depth + place) * self.inner + at % self.inner] = on.clone();
            }
        }
        Ok(())
    }
}
