//! Weights that operators dequantize, as affine encoded values over the same codes.

use heirloom_graph::{AttrValue, Initializer, Node, NodeId, ValueId};
use heirloom_mem::{DType, Tensor};
use heirloom_types::{DequantizeLinear, EncodedValue, NBitWeights};

use super::PassCx;
use super::edits::Edits;
use super::view::{View, is_standard};
use crate::message::{int, node};

/// `DequantizeLinear` of constants that only products and look-ups read.
pub(super) fn dequantize(_cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    // A function has no constants but nodes.
    if view.is_function() {
        return edits;
    }
    for (id, node) in view.graph.ordered() {
        let &[Some(out)] = &node.outputs[..] else { continue };
        let is_weight = !view.readers(out).is_empty()
            && !view.named.contains(&out)
            && view.readers(out).iter().all(|reader| takes(view.graph.node(*reader), out));
        if !is_standard(node, "DequantizeLinear") || !is_weight {
            continue;
        }
        let Some(Ok(proto)) = affine(view, node, view.name(out)).map(|it| it.to_proto()) else { continue };
        edits.encoded.push(proto);
        edits.remove_node(id);
    }
    edits
}

/// Whether a node reads a weight where encoded ones are taken.
fn takes(node: &Node, weight: ValueId) -> bool {
    let at = match &*node.op_type {
        "MatMul" | "Gemm" => 1,
        "Gather" => 0,
        _ => return false,
    };
    is_standard(node, &node.op_type)
        && node.bodies().next().is_none()
        && node.inputs.iter().enumerate().all(|(place, value)| (*value == Some(weight)) == (place == at))
}

fn tensor(view: &View<'_>, value: ValueId) -> Option<Tensor> {
    match view.initializer(value)? {
        Initializer::Tensor(tensor) => Some(tensor.clone()),
        _ => None,
    }
}

fn affine(view: &View<'_>, node: &Node, name: &str) -> Option<EncodedValue> {
    let input = |at: usize| node.inputs.get(at).copied().flatten();
    let (codes, scale) = (tensor(view, input(0)?)?, tensor(view, input(1)?)?);
    let zero_point = match input(2) {
        Some(value) => Some(tensor(view, value)?),
        None => None,
    };
    let int = |name, default| node.attributes.int_or(name, default).ok();
    let output = match int("output_dtype", 0)? {
        0 => scale.dtype(),
        number => DType::from_onnx(i32::try_from(number).ok()?)?,
    };
    let dequantize = DequantizeLinear {
        codes: &codes,
        scale: &scale,
        zero_point: zero_point.as_ref(),
        axis: int("axis", 1)?,
        block_size: int("block_size", 0)?,
        output,
    };
    dequantize.to_affine(name).ok()
}

/// `MatMulNBits`: a product with the rows of its weights.
pub(super) fn n_bits(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if view.is_function() || !cx.can(view, 15) {
        return edits;
    }
    for (id, node) in view.graph.ordered() {
        if node.op_type == "MatMulNBits" && node.domain == "com.microsoft" {
            product(cx, view, &mut edits, id);
        }
    }
    edits
}

fn product(cx: &PassCx<'_>, view: &View<'_>, edits: &mut Edits, id: NodeId) -> Option<()> {
    let call = view.graph.node(id);
    let input = |at: usize| call.inputs.get(at).copied().flatten();
    let (x, out) = (input(0)?, call.outputs.first().copied().flatten()?);
    let count = |name: &str| usize::try_from(call.attributes.int(name).ok()?).ok();
    let (rows, columns, block_size) = (count("N")?, count("K")?, count("block_size")?);
    // Permuted rows have no affine form.
    if input(4).is_some() {
        return None;
    }
    let (codes, scales) = (tensor(view, input(1)?)?, tensor(view, input(2)?)?);
    let zero_points = match input(3) {
        Some(value) => Some(tensor(view, value)?),
        None => None,
    };
    let bits = match call.attributes.get("bits") {
        None => 4,
        Some(AttrValue::Int(bits)) => u32::try_from(*bits).ok()?,
        Some(_) => return None,
    };
    let (output, rank) = (view.dtype(x)?, view.rank(x)?);
    let weights = NBitWeights {
        rows,
        columns,
        bits,
        block_size,
        codes: &codes,
        scales: &scales,
        zero_points: zero_points.as_ref(),
        output,
    };
    let base = view.name(out);
    let weight = cx.fresh(view.name(input(1)?), "weight");
    let proto = weights.to_affine(&weight).ok()?.to_proto().ok()?;
    edits.encoded.push(proto);
    let bias = input(5).map(|bias| view.name(bias));
    let gemm = |x: &str, y: &str| {
        let inputs: Vec<&str> = [x, &*weight].into_iter().chain(bias).collect();
        node("Gemm", &call.name, &inputs, &[y], vec![int("transB", 1)])
    };
    let mut nodes = Vec::new();
    if rank == 2 {
        nodes.push(gemm(view.name(x), base));
    } else {
        // The rows of all leading axes, one below the other.
        let flat = edits.ints(cx, view, id, "rows", &[-1, i64::try_from(columns).ok()?]);
        let width = edits.ints(cx, view, id, "columns", &[i64::try_from(rows).ok()?]);
        let [matrix, sums, leading, shape] =
            ["matrix", "products", "leading", "shape"].map(|part| cx.fresh(base, part));
        nodes.push(node("Reshape", "", &[view.name(x), &flat], &[&matrix], Vec::new()));
        nodes.push(gemm(&matrix, &sums));
        nodes.push(node("Shape", "", &[view.name(x)], &[&leading], vec![int("end", -1)]));
        nodes.push(node("Concat", "", &[&leading, &width], &[&shape], vec![int("axis", 0)]));
        nodes.push(node("Reshape", "", &[&sums, &shape], &[base], Vec::new()));
    }
    edits.swap(id, nodes);
    edits.needs(15);
    Some(())
}
