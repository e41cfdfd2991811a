//! How a node of an older version is said in a newer one. Versions that only add types, optional inputs or attributes whose
//! absence means what was are not in the table.

use heirloom_graph::{AttrValue, Node, NodeId};
use heirloom_mem::Tensor;
use heirloom_proto::NodeProto;
use heirloom_types::tensor_to_proto;

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use crate::message::{int, string};

/// A row of the table: operators, the version that changed them, and how a node is said in it. `false`: it cannot be.
pub(super) struct Adapter {
    pub(super) ops: &'static [&'static str],
    pub(super) version: i64,
    pub(super) say: fn(&PassCx<'_>, &View<'_>, NodeId, &mut NodeProto, &mut Edits) -> bool,
}

const fn row(
    ops: &'static [&'static str],
    version: i64,
    say: fn(&PassCx<'_>, &View<'_>, NodeId, &mut NodeProto, &mut Edits) -> bool,
) -> Adapter {
    Adapter { ops, version, say }
}

const REDUCTIONS: &[&str] = &[
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
];

/// All changes of meaning or form up to the newest version, oldest first.
pub(super) const ADAPTERS: &[Adapter] = &[
    row(&["BatchNormalization"], 9, |_, view, id, node, _| {
        drop_attribute(node, "spatial");
        int_or(view, id, "spatial", 1) == 1
    }),
    row(&["Upsample", "Scan"], 9, never),
    row(&["Upsample"], 10, never),
    row(&["Slice"], 10, |cx, view, id, node, edits| {
        node.input().len() > 1
            || ["starts", "ends", "axes"].into_iter().enumerate().all(|(at, name)| {
                let is_optional = name == "axes";
                ints_to_input(cx, view, id, node, edits, name, at + 1) || is_optional
            })
    }),
    row(&["TopK"], 10, |cx, view, id, node, edits| {
        let Some(AttrValue::Int(k)) = attribute(view, id, "k") else { return node.input().len() == 2 };
        let k = edits.ints(cx, view, id, "k", &[*k]);
        drop_attribute(node, "k");
        put_input(node, 1, &k);
        true
    }),
    row(&["Clip"], 11, |cx, view, id, node, edits| {
        numbers_to_inputs(cx, view, id, node, edits, &["min", "max"])
    }),
    row(&["Pad"], 11, |cx, view, id, node, edits| {
        if node.input().len() > 1 {
            return true;
        }
        let pads = ints_to_input(cx, view, id, node, edits, "pads", 1);
        let value = match attribute(view, id, "value") {
            None => true,
            Some(AttrValue::Float(value)) if *value == 0.0 => true,
            Some(AttrValue::Float(value)) => {
                number(cx, view, id, edits, "value", *value).is_some_and(|name| put_input(node, 2, &name))
            }
            Some(_) => false,
        };
        drop_attribute(node, "value");
        pads && value
    }),
    row(&["Scatter"], 11, |_, _, _, node, _| {
        node.set_op_type("ScatterElements");
        true
    }),
    row(&["Resize"], 11, |_, view, id, node, _| {
        // What the older version did, in words of the newer one; `roi` is optional from 13 on.
        if node.input().len() != 2 || attribute(view, id, "coordinate_transformation_mode").is_some() {
            return false;
        }
        let scales = String::from(&node.input()[1]);
        node.input_mut().set(1, "");
        put_input(node, 2, &scales);
        node.attribute_mut().push(string("coordinate_transformation_mode", "asymmetric"));
        node.attribute_mut().push(string("nearest_mode", "floor"));
        true
    }),
    row(&["Dropout"], 12, |_, _, _, node, _| {
        // It says how much training drops; inference drops nothing.
        drop_attribute(node, "ratio");
        node.input().len() == 1
    }),
    row(&["Softmax", "LogSoftmax", "Hardmax"], 13, last_axis),
    row(&["Squeeze", "Unsqueeze", "ReduceSum"], 13, axes_to_input),
    row(&["Split"], 13, |cx, view, id, node, edits| {
        if attribute(view, id, "split").is_some() {
            return ints_to_input(cx, view, id, node, edits, "split", 1);
        }
        true
    }),
    row(&["Resize"], 13, |_, view, id, node, _| {
        let mode = attribute(view, id, "coordinate_transformation_mode");
        let sizes = node.input().get(3).is_some_and(|it| !it.is_empty());
        if sizes && node.input().get(2).is_some_and(|it| !it.is_empty()) {
            // Scales that are empty beside sizes were the way to leave them out.
            node.input_mut().set(2, "");
        }
        !matches!(mode, Some(AttrValue::String(mode)) if &**mode == b"tf_half_pixel_for_nn")
    }),
    row(&["BatchNormalization"], 14, |_, view, id, _, _| {
        view.graph.node(id).outputs.iter().skip(1).all(Option::is_none)
    }),
    row(&["RoiAlign"], 16, |_, _, _, node, _| {
        node.attribute_mut().push(string("coordinate_transformation_mode", "output_half_pixel"));
        true
    }),
    row(REDUCTIONS, 18, axes_to_input),
    row(&["Split"], 18, |_, _, _, node, _| {
        let is_given = node.input().get(1).is_some_and(|it| !it.is_empty());
        let has_count = node.attribute().iter().any(|it| it.name() == "num_outputs");
        if !is_given && !has_count {
            let count = node.output().len();
            node.attribute_mut().push(int("num_outputs", i64::try_from(count).unwrap_or(i64::MAX)));
        }
        true
    }),
    row(&["GridSample"], 20, |_, view, id, node, _| {
        let mode = match attribute(view, id, "mode") {
            None => "linear",
            Some(AttrValue::String(mode)) if &**mode == b"bilinear" => "linear",
            Some(AttrValue::String(mode)) if &**mode == b"bicubic" => "cubic",
            Some(AttrValue::String(mode)) if &**mode == b"nearest" => "nearest",
            Some(_) => return false,
        };
        drop_attribute(node, "mode");
        node.attribute_mut().push(string("mode", mode));
        true
    }),
    row(&["DFT"], 20, never),
    row(&["GroupNormalization"], 21, never),
];

fn never(_: &PassCx<'_>, _: &View<'_>, _: NodeId, _: &mut NodeProto, _: &mut Edits) -> bool {
    false
}

fn attribute<'a>(view: &View<'a>, id: NodeId, name: &str) -> Option<&'a AttrValue> {
    let node: &'a Node = view.graph.node(id);
    node.attributes.get(name)
}

fn int_or(view: &View<'_>, id: NodeId, name: &str, default: i64) -> i64 {
    match attribute(view, id, name) {
        None => default,
        Some(AttrValue::Int(value)) => *value,
        Some(_) => i64::MIN,
    }
}

fn drop_attribute(node: &mut NodeProto, name: &str) {
    if let Some(at) = node.attribute().iter().position(|it| it.name() == name) {
        node.attribute_mut().remove(at);
    }
}

/// Makes `name` input `at`; those between are left out.
fn put_input(node: &mut NodeProto, at: usize, name: &str) -> bool {
    while node.input().len() < at {
        node.input_mut().push("");
    }
    if node.input().len() == at {
        node.input_mut().push(name)
    } else {
        node.input_mut().set(at, name)
    }
    true
}

/// An attribute of integers as an input. Without one there is nothing to do, and it is `false`.
fn ints_to_input(
    cx: &PassCx<'_>,
    view: &View<'_>,
    id: NodeId,
    node: &mut NodeProto,
    edits: &mut Edits,
    name: &str,
    at: usize,
) -> bool {
    let Some(AttrValue::Ints(values)) = attribute(view, id, name) else { return false };
    let constant = edits.ints(cx, view, id, name, values);
    drop_attribute(node, name);
    put_input(node, at, &constant)
}

fn axes_to_input(
    cx: &PassCx<'_>,
    view: &View<'_>,
    id: NodeId,
    node: &mut NodeProto,
    edits: &mut Edits,
) -> bool {
    match attribute(view, id, "axes") {
        None => true,
        Some(AttrValue::Ints(_)) => ints_to_input(cx, view, id, node, edits, "axes", 1),
        Some(_) => false,
    }
}

/// Bounds as inputs, of the type of what they bound.
fn numbers_to_inputs(
    cx: &PassCx<'_>,
    view: &View<'_>,
    id: NodeId,
    node: &mut NodeProto,
    edits: &mut Edits,
    names: &[&str],
) -> bool {
    names.iter().enumerate().all(|(at, name)| match attribute(view, id, name) {
        None => true,
        Some(AttrValue::Float(value)) => {
            let made = number(cx, view, id, edits, name, *value);
            drop_attribute(node, name);
            made.is_some_and(|made| put_input(node, at + 1, &made))
        }
        Some(_) => false,
    })
}

/// A scalar of the type of the node's first input, which must be FLOAT for certain.
fn number(
    cx: &PassCx<'_>,
    view: &View<'_>,
    id: NodeId,
    edits: &mut Edits,
    name: &str,
    value: f32,
) -> Option<String> {
    let input = view.graph.node(id).inputs.first().copied().flatten()?;
    if view.dtype(input) != Some(heirloom_mem::DType::Float) {
        return None;
    }
    let made = cx.fresh(&edits.base(view, id), name);
    edits.make(tensor_to_proto(&Tensor::scalar(value), &made).ok()?);
    Some(made)
}

/// From 13 on the axis alone is normalized, before it was all from the axis on: the same where it is the last one.
fn last_axis(_: &PassCx<'_>, view: &View<'_>, id: NodeId, node: &mut NodeProto, _: &mut Edits) -> bool {
    let axis = int_or(view, id, "axis", 1);
    let input = view.graph.node(id).inputs.first().copied().flatten();
    let rank = input.and_then(|input| view.rank(input)).and_then(|rank| i64::try_from(rank).ok());
    if axis != -1 && rank.is_none_or(|rank| axis != rank - 1) {
        return false;
    }
    drop_attribute(node, "axis");
    node.attribute_mut().push(int("axis", -1));
    true
}
