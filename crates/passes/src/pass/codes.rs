//! Codes that are cast and multiplied by their scales: what `DequantizeLinear` says in one node, whose kernels can keep
//! what constants stand for.

use heirloom_graph::{NodeId, ValueId};
use heirloom_mem::{DType, Tensor};
use heirloom_types::tensor_to_proto;

use super::PassCx;
use super::edits::Edits;
use super::fuse::{fused, only, output, pair};
use super::view::{View, is_standard};
use crate::message::{int, node};

/// The version that has `DequantizeLinear` by axis.
const SINCE: i64 = 13;

pub(super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, product) in view.graph.ordered() {
        let found = pair(product)
            .filter(|_| is_standard(product, "Mul"))
            .and_then(|pairs| pairs.into_iter().find_map(|(cast, scale)| codes(view, cast, scale)));
        let (Some(found), Some(out)) = (found, output(view, id)) else { continue };
        let name = cx.fresh(view.name(found.scale), "scale");
        let Ok(scale) = tensor_to_proto(&found.scales, &name) else { continue };
        let attributes = found.axis.map(|axis| int("axis", axis)).into_iter().collect();
        let inputs = [view.name(found.codes), &*name];
        let by = node("DequantizeLinear", &product.name, &inputs, &[out], attributes);
        edits.make(scale);
        fused(&mut edits, id, &[found.cast], vec![by], SINCE);
    }
    edits
}

struct Codes {
    codes: ValueId,
    cast: NodeId,
    scale: ValueId,
    scales: Tensor,
    axis: Option<i64>,
}

/// Constant INT8 codes that are cast to FLOAT, and scales of one axis.
fn codes(view: &View<'_>, value: ValueId, scale: ValueId) -> Option<Codes> {
    let codes = only(view.inner_by(value, "Cast")?)?;
    let (tensor, scales) = (view.constant(codes)?, view.constant(scale)?);
    let floats = view.dtype(value) == Some(DType::Float) && scales.dtype() == DType::Float;
    if !floats || tensor.dtype() != DType::Int8 || scales.shape().len() > tensor.shape().len() {
        return None;
    }
    // As broadcasting aligns them: from the last axis on.
    let skipped = tensor.shape().len() - scales.shape().len();
    let mut axes = scales.shape().iter().enumerate().filter(|(_, extent)| **extent != 1);
    let (axis, count) = match (axes.next(), axes.next()) {
        (None, _) => (None, None),
        (Some((at, &extent)), None) if tensor.shape()[skipped + at] == extent => {
            (Some(skipped + at), Some(extent))
        }
        _ => return None,
    };
    let scales = scales.reshape(count.as_slice()).ok()?;
    let axis = axis.and_then(|axis| i64::try_from(axis).ok());
    Some(Codes { codes, cast: view.graph.producer(value)?, scale, scales, axis })
}
