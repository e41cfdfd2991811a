//! [`ArrayFeatureExtractor`](https://onnx.ai/onnx/operators/onnx_aionnxml_ArrayFeatureExtractor.html): elements of
//! the last axis by their indices.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::elementwise::{Plain, wrong_type};
use crate::integers::list;
use crate::reals::misfit;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.onnx.ml",
    op: "ArrayFeatureExtractor",
    versions: (1, 5),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &[])?;
    Ok(Box::new(Plain(run)))
}

fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let indices = list(cx, 1)?;
    let Some((&extent, outer)) = x.shape().split_last() else {
        return Err(misfit("the input has an axis", &[x.shape()]));
    };
    let width = x.dtype().bit_width().filter(|w| w % 8 == 0).map_or(0, |w| w as usize / 8);
    if width == 0 {
        return Err(wrong_type(cx, 0, "elements of whole bytes"));
    }
    for &index in &indices {
        if index < 0 || index as usize >= extent {
            return Err(KernelError::Range {
                what: "an index",
                value: index,
                low: 0,
                high: extent as i64 - 1,
            });
        }
    }
    // A vector is one row.
    let mut shape: heirloom_mem::Shape = outer.iter().copied().collect();
    if shape.is_empty() {
        shape.push(1);
    }
    shape.push(indices.len());
    let mut out = cx.alloc(x.dtype(), &shape)?;
    let bytes = x.dense_bytes().unwrap_or(&[]);
    let rows = bytes.chunks_exact((extent * width).max(1));
    let picked = rows.flat_map(|row| indices.iter().map(move |&i| &row[i as usize * width..][..width]));
    crate::movement::fill(cx, out.bytes_mut(), picked)?;
    cx.set(0, out.freeze());
    Ok(())
}
