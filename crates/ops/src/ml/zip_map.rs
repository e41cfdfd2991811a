//! [`ZipMap`](https://onnx.ai/onnx/operators/onnx_aionnxml_ZipMap.html): each row of scores as a map from labels.

use std::sync::Arc;

use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{MapKey, Value};

use crate::attributes::{only, unsupported};
use crate::elementwise::wrong_type;
use crate::ml::rows;
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "ZipMap",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct ZipMap {
    keys: Vec<MapKey>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["classlabels_int64s", "classlabels_strings"])?;
    let attributes = &cx.node.attributes;
    let keys: Vec<MapKey> =
        match (attributes.opt_strings("classlabels_strings")?, attributes.opt_ints("classlabels_int64s")?) {
            (Some(list), None) => {
                let key =
                    |text: &[u8]| std::str::from_utf8(text).ok().map(|text| MapKey::String(text.into()));
                let keys = list.iter().map(|text| key(text)).collect::<Option<Vec<_>>>();
                keys.ok_or_else(|| unsupported("classlabels_strings", "bytes", "they are UTF-8"))?
            }
            (None, Some(list)) => list.iter().map(|&key| MapKey::Int(key)).collect(),
            _ => return Err(unsupported("classlabels_strings", "none or both", "one list of labels is")),
        };
    let mut sorted: Vec<&MapKey> = keys.iter().collect();
    sorted.sort();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(unsupported("classlabels_strings", "a label twice", "labels differ"));
    }
    Ok(Box::new(ZipMap { keys }))
}

impl Kernel for ZipMap {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if cx.tensor(0)?.dtype() != DType::Float {
            return Err(wrong_type(cx, 0, "FLOAT"));
        }
        let (count, width, values) = rows(cx, 0)?;
        if width != self.keys.len() {
            return Err(misfit("a row has a score for each label", &[&[count, width], &[self.keys.len()]]));
        }
        let row = |row: &[f64]| -> Value {
            let score = |value: &f64| Value::from(Tensor::scalar(*value as f32));
            let mut pairs: Vec<(MapKey, Value)> =
                self.keys.iter().zip(row).map(|(key, value)| (key.clone(), score(value))).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Map(Arc::new(pairs))
        };
        let maps = values.chunks_exact(width.max(1)).map(row).collect();
        cx.set(0, Value::Sequence(Arc::new(maps)));
        Ok(())
    }
}
