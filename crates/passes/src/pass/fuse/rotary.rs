//! `x cos + rotate(x) sin`, where `rotate` swaps the halves or the neighbours of each head and negates the one: as models
//! write it that compute cosines and sines of `[batch, sequence, pairs]` angles, doubled to the size of a head.

use heirloom_graph::{NodeId, ValueId};

use super::super::PassCx;
use super::super::edits::Edits;
use super::super::view::View;
use super::{fused, only, output, pair};
use crate::message::{int, node};

/// The version that has RotaryEmbedding.
const SINCE: i64 = 23;

pub(in super::super) fn run(cx: &PassCx<'_>, view: &View<'_>) -> Edits {
    let mut edits = Edits::default();
    if !cx.can(view, SINCE) {
        return edits;
    }
    for (id, node) in view.graph.ordered() {
        let found = pair(node).filter(|_| super::is_standard(node, "Add")).and_then(|pairs| {
            pairs.into_iter().find_map(|(straight, turned)| rotation(view, straight, turned))
        });
        if let Some(found) = found {
            replace(cx, view, &mut edits, id, found);
        }
    }
    edits
}

struct Rotation {
    x: ValueId,
    /// Angles whose cosines and sines are taken, `[batch, sequence, pairs]`.
    angles: ValueId,
    interleaved: bool,
    nodes: Vec<NodeId>,
}

fn rotation(view: &View<'_>, straight: ValueId, turned: ValueId) -> Option<Rotation> {
    let (a, b) = (view.inner_by(straight, "Mul")?, view.inner_by(turned, "Mul")?);
    for (x, cos) in pair(a)? {
        let Some((angles, interleaved)) = doubled(view, cos, "Cos") else { continue };
        for (rotated, sin) in pair(b)? {
            if doubled(view, sin, "Sin") != Some((angles, interleaved)) {
                continue;
            }
            let turned_nodes =
                if interleaved { neighbours(view, x, rotated) } else { halves(view, x, rotated) };
            let Some(mut nodes) = turned_nodes else { continue };
            nodes.extend([view.graph.producer(straight)?, view.graph.producer(turned)?]);
            return (view.rank(x) == Some(4)).then_some(Rotation { x, angles, interleaved, nodes });
        }
    }
    None
}

/// The angles of which `value` holds cosines (or sines), each twice, for all heads; and whether the two are neighbours.
fn doubled(view: &View<'_>, value: ValueId, function: &str) -> Option<(ValueId, bool)> {
    let unsqueeze = view.made_by(value, "Unsqueeze")?;
    let axes = match unsqueeze.inputs.get(1).copied().flatten() {
        Some(axes) => view.ints(axes)?,
        None => Vec::from(unsqueeze.attributes.ints("axes").ok()?),
    };
    let taken = view.made_by(unsqueeze.inputs[0]?, function)?;
    let angles = only(taken)?;
    if axes != [1] || view.rank(angles) != Some(3) {
        return None;
    }
    let concat = match view.made_by(angles, "Reshape") {
        Some(reshape) => view.made_by(reshape.inputs[0]?, "Concat")?,
        None => view.made_by(angles, "Concat")?,
    };
    let (&[Some(a), Some(b)], axis) = (&concat.inputs[..], concat.attributes.int_or("axis", 0).ok()?) else {
        return None;
    };
    let interleaved = view.made_by(angles, "Reshape").is_some();
    if !interleaved {
        return (a == b && matches!(axis, -1 | 2)).then_some((a, false));
    }
    // [batch, sequence, pairs] beside itself in a new last axis of two, which the reshape merges with the one before.
    let source = |value: ValueId| {
        let unsqueeze = view.made_by(value, "Unsqueeze").filter(|it| last_axis(view, it, 3))?;
        unsqueeze.inputs[0]
    };
    let (x, y) = (source(a)?, source(b)?);
    let merges = view.rank(x) == Some(3) && matches!(axis, -1 | 3) && doubles_last(view, x, angles);
    (x == y && merges).then_some((x, true))
}

/// Whether `to` has the extents of `from` but for the last one, which is twice as large.
fn doubles_last(view: &View<'_>, from: ValueId, to: ValueId) -> bool {
    let (Some(from), Some(to)) = (view.dims(from), view.dims(to)) else { return false };
    let (Some((a, from)), Some((b, to))) = (from.split_last(), to.split_last()) else { return false };
    let number = |dim: &heirloom_infer::Dim| dim.as_ref().and_then(heirloom_infer::Expr::as_number);
    let closed = |dim: &heirloom_infer::Dim| dim.as_ref().is_some_and(heirloom_infer::Expr::is_closed);
    from == to && from.iter().all(closed) && number(a).is_some_and(|a| number(b) == Some(2 * a))
}

/// Whether `Unsqueeze` adds an axis at the end of a value of a rank.
fn last_axis(view: &View<'_>, unsqueeze: &heirloom_graph::Node, rank: i64) -> bool {
    let axes = match unsqueeze.inputs.get(1).copied().flatten() {
        Some(axes) => view.ints(axes),
        None => unsqueeze.attributes.ints("axes").ok().map(Vec::from),
    };
    axes.is_some_and(|axes| axes == [-1] || axes == [rank])
}

/// `concat(-x[half..], x[..half])`
fn halves(view: &View<'_>, x: ValueId, rotated: ValueId) -> Option<Vec<NodeId>> {
    let size = view.last_extent(x)?;
    let concat = view.inner_by(rotated, "Concat")?;
    let (&[Some(a), Some(b)], true) =
        (&concat.inputs[..], matches!(concat.attributes.int_or("axis", 0), Ok(-1 | 3)))
    else {
        return None;
    };
    let upper = only(view.inner_by(a, "Neg")?)?;
    let fits =
        part(view, x, upper) == Some((size / 2, size, 1)) && part(view, x, b) == Some((0, size / 2, 1));
    let all = [rotated, a, upper, b].map(|value| view.graph.producer(value));
    fits.then(|| all.into_iter().collect())?
}

/// `reshape(concat(unsqueeze(-x[1::2]), unsqueeze(x[0::2])))`
fn neighbours(view: &View<'_>, x: ValueId, rotated: ValueId) -> Option<Vec<NodeId>> {
    let size = view.last_extent(x)?;
    let stack = view.inner_by(rotated, "Reshape")?.inputs[0]?;
    let concat = view.inner_by(stack, "Concat")?;
    let (&[Some(a), Some(b)], true) =
        (&concat.inputs[..], matches!(concat.attributes.int_or("axis", 0), Ok(-1 | 4)))
    else {
        return None;
    };
    let inside = |value: ValueId| {
        let unsqueeze = view.inner_by(value, "Unsqueeze").filter(|it| last_axis(view, it, 4))?;
        unsqueeze.inputs[0]
    };
    let (negated, even) = (inside(a)?, inside(b)?);
    let odd = only(view.inner_by(negated, "Neg")?)?;
    let fits = part(view, x, odd) == Some((1, size, 2))
        && part(view, x, even) == Some((0, size, 2))
        && view.dims(rotated) == view.dims(x);
    let all = [rotated, stack, a, b, negated, odd, even].map(|value| view.graph.producer(value));
    fits.then(|| all.into_iter().collect())?
}

/// Start, end and step along the last of four axes that a slice of `x` takes, which nothing else sees.
fn part(view: &View<'_>, x: ValueId, value: ValueId) -> Option<(i64, i64, i64)> {
    let slice = view.inner_by(value, "Slice")?;
    let size = view.last_extent(x)?;
    let input = |at: usize| slice.inputs.get(at).copied().flatten();
    let one = |at: usize| match view.ints(input(at)?)?[..] {
        [value] => Some(value),
        _ => None,
    };
    let step = if input(4).is_some() { one(4)? } else { 1 };
    let bound = |value: i64| if value < 0 { value + size } else { value.min(size) };
    let fits = input(0) == Some(x) && matches!(one(3)?, -1 | 3);
    fits.then_some((bound(one(1)?), bound(one(2)?), step))
}

fn replace(cx: &PassCx<'_>, view: &View<'_>, edits: &mut Edits, id: NodeId, found: Rotation) {
    let Some(out) = output(view, id) else { return };
    let name = &view.graph.node(id).name;
    let (cos, sin) = (cx.fresh(out, "cos"), cx.fresh(out, "sin"));
    let angles = view.name(found.angles);
    let mut attributes = Vec::new();
    if found.interleaved {
        attributes.push(int("interleaved", 1));
    }
    let by = vec![
        node("Cos", "", &[angles], &[&cos], Vec::new()),
        node("Sin", "", &[angles], &[&sin], Vec::new()),
        node("RotaryEmbedding", name, &[view.name(found.x), &cos, &sin], &[out], attributes),
    ];
    fused(edits, id, &found.nodes, by, SINCE);
}
