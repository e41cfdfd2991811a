//! [`OneHotEncoder`](https://onnx.ai/onnx/operators/onnx_aionnxml_OneHotEncoder.html): for each element a vector with
//! 1 at the place of its category.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::labels::ClassLabels;
use crate::ml::features;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "OneHotEncoder",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct OneHotEncoder {
    categories: ClassLabels,
    /// Whether an element of no category is a vector of zeros, not an error.
    zeros: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["cats_int64s", "cats_strings", "zeros"])?;
    let attributes = &cx.node.attributes;
    let categories = ClassLabels::read(attributes, "cats_strings", "cats_int64s")?;
    Ok(Box::new(OneHotEncoder { categories, zeros: attributes.int_or("zeros", 1)? != 0 }))
}

impl Kernel for OneHotEncoder {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (shape, places): (Shape, Vec<Option<usize>>) = match (&self.categories, cx.value(0)) {
            (ClassLabels::Strings(list), Some(Value::Strings(strings))) => {
                let places = strings.elements.iter().map(|s| list.iter().position(|c| c == s));
                (strings.shape.clone(), places.collect())
            }
            (ClassLabels::Integers(list), _) => {
                let (shape, values) = features(cx, 0)?;
                (shape, values.iter().map(|&v| list.iter().position(|&c| c == v as i64)).collect())
            }
            _ => {
                return Err(KernelError::InputType {
                    index: 0,
                    expected: "strings".into(),
                    actual: "tensor".into(),
                });
            }
        };
        if !self.zeros && places.iter().any(Option::is_none) {
            return Err(KernelError::Other("an element belongs to no category".into()));
        }
        let count = self.categories.len();
        let out_shape: Shape = shape.iter().copied().chain([count]).collect();
        let mut out = cx.alloc(DType::Float, &out_shape)?;
        let to = out.elements_mut::<f32>();
        to.fill(0.0);
        for (at, place) in places.into_iter().enumerate() {
            if let Some(place) = place {
                to[at * count + place] = 1.0;
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
