//! The classes that classifiers name.

use std::sync::Arc;

use heirloom_graph::Attributes;
use heirloom_mem::DType;
use heirloom_runtime::{BuildError, KernelError, RunCx};
use heirloom_types::{StringTensor, Value};

/// Labels of classes: strings or integers.
pub(crate) enum ClassLabels {
    Strings(Vec<Box<[u8]>>),
    Integers(Vec<i64>),
}

impl ClassLabels {
    /// From the attributes `strings` and `integers`, whichever is there.
    pub(crate) fn read(
        attributes: &Attributes,
        strings: &str,
        integers: &str,
    ) -> Result<ClassLabels, BuildError> {
        match attributes.opt_strings(strings)?.filter(|list| !list.is_empty()) {
            Some(list) => Ok(ClassLabels::Strings(Vec::from(list))),
            None => {
                let list = attributes.opt_ints(integers)?.unwrap_or(&[]);
                Ok(ClassLabels::Integers(Vec::from(list)))
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            ClassLabels::Strings(list) => list.len(),
            ClassLabels::Integers(list) => list.len(),
        }
    }

    /// Sets output 0 to the labels of these classes.
    pub(crate) fn set(&self, cx: &mut RunCx<'_>, classes: &[usize]) -> Result<(), KernelError> {
        match self {
            ClassLabels::Strings(list) => {
                let elements = classes.iter().map(|&c| list.get(c).cloned().unwrap_or_default()).collect();
                let shape = [classes.len()].into_iter().collect();
                cx.set(0, Value::Strings(Arc::new(StringTensor { shape, elements })));
            }
            ClassLabels::Integers(list) => {
                let mut out = cx.alloc(DType::Int64, &[classes.len()])?;
                for (o, &class) in out.elements_mut::<i64>().iter_mut().zip(classes) {
                    *o = list.get(class).copied().unwrap_or(class as i64);
                }
                cx.set(0, out.freeze());
            }
        }
        Ok(())
    }
}

/// The class of the greatest score, the first of equal ones.
pub(crate) fn best(scores: &[f64]) -> usize {
    let mut best = 0;
    for (class, &score) in scores.iter().enumerate() {
        if score > scores[best] {
            best = class;
        }
    }
    best
}
