//! [`SequenceInsert`](https://onnx.ai/onnx/operators/onnx__SequenceInsert.html): one more element before a position, by default
//! at the end.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::attributes::only;
use crate::elementwise::Plain;
use crate::integers;
use crate::sequences::take;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "SequenceInsert",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let at = integers::opt_list(cx, 2)?;
    let element = cx.take(1).ok_or(KernelError::MissingInput { index: 1 })?;
    let mut elements = take(cx, 0)?;
    let high = i64::try_from(elements.len()).unwrap_or(i64::MAX);
    let at = match at.as_deref() {
        None => high,
        Some(&[value]) if (-high..=high).contains(&value) => {
            if value < 0 {
                value + high
            } else {
                value
            }
        }
        Some(&[value]) => return Err(KernelError::Range { what: "a position", value, low: -high, high }),
        Some(list) => {
            return Err(KernelError::Other(format!("a position has one element, not {}", list.len())));
        }
    };
    elements.insert(usize::try_from(at).unwrap_or(0), element);
    cx.set(0, Value::Sequence(elements.into()));
    Ok(())
}
