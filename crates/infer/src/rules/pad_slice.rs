//! Operators that cut or widen axes.

use super::gather::from_the_front;
use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, Elem, Fact, TensorFact};

pub(super) const RULES: &[Rule] = &[("CenterCropPad", center_crop_pad), ("Pad", pad), ("Slice", slice)];

/// The parameters of a slice: values where they are known.
struct Bounds {
    starts: Vec<Dim>,
    ends: Vec<Dim>,
    axes: Vec<usize>,
    steps: Vec<Dim>,
}

fn bounds(cx: &Cx<'_>, rank: usize) -> Result<Option<Bounds>, Stop> {
    let numbers = |values: &[i64]| values.iter().map(|&it| Some(Expr::number(it))).collect::<Vec<Dim>>();
    let (starts, ends) = match (cx.opt_ints("starts"), cx.opt_ints("ends")) {
        (Some(starts), Some(ends)) => (Some(numbers(starts)), Some(numbers(ends))),
        _ => (cx.ints(1), cx.ints(2)),
    };
    let axes = match cx.attr_or_input("axes", 3) {
        Ok(axes) => axes,
        Err(_) => return Ok(None),
    };
    let Some(count) = starts.as_ref().or(ends.as_ref()).map(Vec::len).or(axes.as_ref().map(Vec::len)) else {
        return Ok(None);
    };
    let fill =
        |list: Option<Vec<Dim>>| list.filter(|it| it.len() == count).unwrap_or_else(|| vec![None; count]);
    let axes = match axes {
        Some(axes) => cx.axes(&axes, rank)?,
        None => (0..count.min(rank)).collect(),
    };
    let steps = if cx.has(4) { fill(cx.ints(4)) } else { vec![Some(Expr::number(1)); count] };
    Ok(Some(Bounds { starts: fill(starts), ends: fill(ends), axes, steps }))
}

fn slice(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let Some(mut dims) = dims else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let Some(bounds) = bounds(cx, dims.len())? else {
        let unknown = vec![None; dims.len()];
        cx.set(0, dtype, Some(unknown));
        return Ok(());
    };
    let mut elems = if dims.len() == 1 { cx.elems(0).map(Vec::from) } else { None };
    for (at, &axis) in bounds.axes.iter().enumerate() {
        let get = |list: &[Dim]| list.get(at).cloned().flatten();
        let (start, end, step) = (get(&bounds.starts), get(&bounds.ends), get(&bounds.steps));
        elems = elems.and_then(|elems| cut(&elems, start.as_ref()?, end.as_ref()?, step.as_ref()?));
        let extent = dims[axis].take();
        dims[axis] = sliced(extent, start, end, step).or_else(|| cx.fresh(0, axis));
    }
    cx.set_fact(0, Fact::tensor(dtype, Some(dims)).with_elems(elems));
    Ok(())
}

/// Ends that mean "to the end".
const FAR: i64 = 1 << 30;

fn sliced(extent: Dim, start: Dim, end: Dim, step: Dim) -> Dim {
    let (start, end, step) = (start?, end?, step?.as_number()?);
    if step == 0 {
        return None;
    }
    let zero = Expr::number(0);
    let extent = extent?;
    if step < 0 {
        let (Some(first), Some(last)) = (start.as_number(), end.as_number()) else { return None };
        // From the last to the first.
        if (first == -1 || first >= FAR) && last < -FAR {
            return extent.ceil_div(&Expr::number(step.checked_neg()?));
        }
        let extent = extent.as_number()?;
        let place = |at: i64| if at < 0 { at.saturating_add(extent) } else { at };
        let (first, last) = (place(first).clamp(0, extent - 1), place(last).clamp(-1, extent - 1));
        return Some(Expr::number((first - last).max(0).saturating_add(-step - 1) / -step));
    }
    let clamp = |at: &Expr| at.greater_of(&zero)?.lesser_of(&extent);
    let from = clamp(&from_the_front(&start, &extent)?)?;
    let to = match end.as_number() {
        Some(number) if number >= FAR => extent.clone(),
        _ => clamp(&from_the_front(&end, &extent)?)?,
    };
    to.minus(&from)?.greater_of(&zero)?.ceil_div(&Expr::number(step))
}

/// The same of known elements.
fn cut(elems: &[Option<Elem>], start: &Expr, end: &Expr, step: &Expr) -> Option<Vec<Option<Elem>>> {
    let (start, end, step) = (start.as_number()?, end.as_number()?, step.as_number()?);
    let extent = elems.len() as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(extent) } else { at };
    let mut picked = Vec::new();
    if step > 0 {
        let (mut at, end) = (place(start).clamp(0, extent), place(end).clamp(0, extent));
        while at < end {
            picked.push(elems[usize::try_from(at).ok()?].clone());
            at = at.saturating_add(step);
        }
    } else if step < 0 {
        let (mut at, end) = (place(start).clamp(-1, extent - 1), place(end).clamp(-1, extent - 1));
        while at > end {
            picked.push(elems[usize::try_from(at).ok()?].clone());
            at = at.saturating_add(step);
        }
    }
    Some(picked)
}

fn pad(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let Some(mut dims) = dims else {
        cx.set(0, dtype, None);
        return Ok(());
    };
    let numbers = |values: &[i64]| values.iter().map(|&it| Some(Expr::number(it))).collect::<Vec<Dim>>();
    let pads = match cx.opt_ints("pads").or_else(|| cx.opt_ints("paddings")) {
        Some(pads) => Some(numbers(pads)),
        None => cx.ints(1),
    };
    let axes = match cx.has(3) {
        true => cx.numbers(3).ok().map(|axes| cx.axes(&axes, dims.len())).transpose()?,
        false => Some((0..dims.len()).collect()),
    };
    let (Some(axes), Some(pads)) = (axes, pads) else {
        dims.iter_mut().for_each(|dim| *dim = None);
        cx.set(0, dtype, Some(dims));
        return Ok(());
    };
    if pads.len() != 2 * axes.len() {
        return Err(cx.refuse(0, format!("{} paddings for {} axes", pads.len(), axes.len())));
    }
    for (at, &axis) in axes.iter().enumerate() {
        let (before, after) = (&pads[at], &pads[at + axes.len()]);
        dims[axis] = dims[axis].take().and_then(|dim| dim.plus(before.as_ref()?)?.plus(after.as_ref()?));
    }
    cx.set(0, dtype, Some(dims));
    Ok(())
}

fn center_crop_pad(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let mut dims = dims.ok_or(Stop::Unknown)?;
    let axes = match cx.opt_ints("axes") {
        Some(axes) => cx.axes(axes, dims.len())?,
        None => (0..dims.len()).collect(),
    };
    let wanted = cx.ints(1).unwrap_or_else(|| vec![None; axes.len()]);
    for (axis, extent) in axes.into_iter().zip(wanted) {
        dims[axis] = extent;
    }
    cx.set(0, dtype, Some(dims));
    Ok(())
}
