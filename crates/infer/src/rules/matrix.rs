//! Products of matrices.

use heirloom_mem::DType;
use rustc_hash::FxHashMap;

use super::cx::better;
use super::{Cx, Outcome, Rule, Stop};
use crate::Expr;
use crate::fact::{Dim, TensorFact};

pub(super) const RULES: &[Rule] = &[
    ("Det", det),
    ("Einsum", einsum),
    ("Gemm", gemm),
    ("MatMul", mat_mul),
    ("MatMulInteger", mat_mul_integer),
    ("QLinearMatMul", q_linear_mat_mul),
];

pub(super) const MICROSOFT: &[Rule] = &[
    ("DynamicQuantizeMatMul", mat_mul),
    ("FusedGemm", gemm),
    ("FusedMatMul", fused_mat_mul),
    ("MatMulInteger16", mat_mul_integer),
    ("MatMulIntegerToFloat", mat_mul_integer_to_float),
    ("MatMulNBits", mat_mul_n_bits),
];

/// The shape of a product of stacks of matrices, each optionally transposed.
fn product(cx: &Cx<'_>, a: usize, b: usize, transposed: (bool, bool)) -> Result<Option<Vec<Dim>>, Stop> {
    let (Ok(left), Ok(right)) = (cx.dims(a), cx.dims(b)) else { return Ok(None) };
    if left.is_empty() || right.is_empty() {
        let input = if left.is_empty() { a } else { b };
        return Err(cx.refuse(input, "a scalar is no matrix".into()));
    }
    // A vector is a row on the left and a column on the right, and its axis of 1 is dropped.
    let (row, inner_left) = match left.len() {
        1 => (None, 0),
        rank if transposed.0 => (Some(rank - 1), rank - 2),
        rank => (Some(rank - 2), rank - 1),
    };
    let (inner_right, column) = match right.len() {
        1 => (0, None),
        rank if transposed.1 => (rank - 1, Some(rank - 2)),
        rank => (rank - 2, Some(rank - 1)),
    };
    cx.same((a, inner_left), (b, inner_right))?;
    let stacks = [&left[..left.len().saturating_sub(2)], &right[..right.len().saturating_sub(2)]];
    let rank = stacks[0].len().max(stacks[1].len());
    let mut dims = Vec::with_capacity(rank + 2);
    for axis in 0..rank {
        let at = |stack: &[Dim]| Some(stack[(axis + stack.len()).checked_sub(rank)?].clone());
        let dim = match (at(stacks[0]), at(stacks[1])) {
            (Some(x), None) => x,
            (None, Some(y)) => y,
            (Some(Some(x)), Some(y)) if x.is(1) => y,
            (Some(x), Some(Some(y))) if y.is(1) => x,
            (Some(Some(x)), Some(Some(y))) if x == y => Some(x),
            (Some(Some(x)), Some(Some(y))) => match (x.as_number(), y.as_number()) {
                (Some(_), Some(_)) => {
                    let place = |stack: &[Dim]| axis + stack.len() - rank;
                    return Err(cx.clash(
                        "extents that differ must be 1",
                        (a, place(stacks[0])),
                        (b, place(stacks[1])),
                    ));
                }
                (Some(_), None) => Some(x),
                (None, Some(_)) => Some(y),
                _ => None,
            },
            (Some(x), Some(y)) => {
                x.filter(|x| x.as_number().is_some()).or(y.filter(|y| y.as_number().is_some()))
            }
            (None, None) => None,
        };
        dims.push(dim);
    }
    dims.extend(row.map(|row| left[row].clone()));
    dims.extend(column.map(|column| right[column].clone()));
    Ok(Some(dims))
}

fn mat_mul(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = product(cx, 0, 1, (false, false))?;
    cx.set(0, dtype, dims);
    Ok(())
}

fn fused_mat_mul(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let is = |name: &str| cx.int(name, 0) != 0;
    if is("transBatchA") || is("transBatchB") {
        cx.set(0, dtype, None);
        return Ok(());
    }
    let dims = product(cx, 0, 1, (is("transA"), is("transB")))?;
    cx.set(0, dtype, dims);
    Ok(())
}

fn mat_mul_integer(cx: &mut Cx<'_>) -> Outcome {
    let dims = product(cx, 0, 1, (false, false))?;
    cx.set(0, DType::Int32, dims);
    Ok(())
}

fn mat_mul_integer_to_float(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(2)?;
    let dims = product(cx, 0, 1, (false, false))?;
    cx.set(0, dtype, dims);
    Ok(())
}

fn q_linear_mat_mul(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(7)?;
    let dims = product(cx, 0, 3, (false, false))?;
    cx.set(0, dtype, dims);
    Ok(())
}

fn mat_mul_n_bits(cx: &mut Cx<'_>) -> Outcome {
    let TensorFact { dtype, dims } = cx.tensor(0)?.clone();
    let columns = cx.opt_int("N").map(Expr::number);
    let dims = dims.map(|mut dims| {
        if let Some(last) = dims.last_mut() {
            *last = columns;
        }
        dims
    });
    cx.set(0, dtype, dims);
    Ok(())
}

fn gemm(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let is = |name: &str| cx.int(name, 0) != 0;
    for input in [0, 1] {
        if cx.dims(input).is_ok_and(|dims| dims.len() != 2) {
            return Err(cx.refuse(input, "the operator takes matrices".into()));
        }
    }
    let dims = match product(cx, 0, 1, (is("transA"), is("transB")))? {
        Some(dims) => dims,
        None => {
            let side = |input: usize, transposed: bool, axis: usize| {
                cx.dims(input).ok().and_then(|dims| dims[if transposed { 1 - axis } else { axis }].clone())
            };
            vec![side(0, is("transA"), 0), side(1, is("transB"), 1)]
        }
    };
    cx.set(0, dtype, Some(dims));
    Ok(())
}

fn det(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let dims = cx.dims_of_rank(0, 2)?;
    cx.same((0, dims.len() - 2), (0, dims.len() - 1))?;
    cx.set(0, dtype, Some(Vec::from(&dims[..dims.len() - 2])));
    Ok(())
}

fn einsum(cx: &mut Cx<'_>) -> Outcome {
    let dtype = cx.dtype(0)?;
    let equation: String = cx.string("equation").chars().filter(|c| !c.is_whitespace()).collect();
    let (terms, output) = match equation.split_once("->") {
        Some((terms, output)) => (terms, Some(output)),
        None => (&*equation, None),
    };
    let mut extents: FxHashMap<char, Dim> = FxHashMap::default();
    let mut counts: std::collections::BTreeMap<char, usize> = std::collections::BTreeMap::new();
    // Axes that `...` stands for, right-aligned.
    let mut rest: Vec<Dim> = Vec::new();
    for (input, term) in terms.split(',').enumerate() {
        let dims = cx.dims(input)?;
        let letters = term.chars().filter(|c| *c != '.').count();
        let hidden = match (term.contains("..."), dims.len().checked_sub(letters)) {
            (true, Some(hidden)) => hidden,
            (false, Some(0)) => 0,
            _ => return Err(cx.refuse(input, format!("`{term}` names another number of axes"))),
        };
        let mut at = 0;
        for part in term.split_inclusive("...") {
            for letter in part.chars().filter(|c| *c != '.') {
                *counts.entry(letter).or_default() += 1;
                let dim = dims[at].clone();
                let known = extents.entry(letter).or_insert(None);
                *known = better(known.take(), dim);
                at += 1;
            }
            if part.ends_with("...") {
                let new = &dims[at..at + hidden];
                let longer = new.len().max(rest.len());
                let get = |list: &[Dim], axis: usize| match (axis + list.len()).checked_sub(longer) {
                    Some(own) => list[own].clone(),
                    None => Some(Expr::number(1)),
                };
                let one = |dim: &Dim| dim.as_ref().is_some_and(|it| it.is(1));
                rest = (0..longer)
                    .map(|axis| match (get(&rest, axis), get(new, axis)) {
                        (x, y) if one(&x) => y,
                        (x, y) if one(&y) => x,
                        (x, y) if x == y => x,
                        _ => None,
                    })
                    .collect();
                at += hidden;
            }
        }
    }
    let implicit = || {
        let single = counts.iter().filter(|(_, count)| **count == 1).map(|(letter, _)| *letter);
        let dots = if terms.contains("...") { "..." } else { "" };
        format!("{dots}{}", single.collect::<String>())
    };
    let output = output.map_or_else(implicit, String::from);
    let mut dims = Vec::new();
    for part in output.split_inclusive("...") {
        dims.extend(part.chars().filter(|c| *c != '.').map(|letter| extents.get(&letter).cloned().flatten()));
        if part.ends_with("...") {
            dims.extend(rest.iter().cloned());
        }
    }
    cx.set(0, dtype, Some(dims));
    Ok(())
}
