//! Arithmetic on known elements: what exporters compute shapes with.

use std::cmp::Ordering;

use crate::Expr;
use crate::fact::Elem;

/// The numbers behind two elements, where both are numbers.
fn reals(a: &Elem, b: &Elem) -> Option<(f64, f64)> {
    Some((real(a)?, real(b)?))
}

fn real(elem: &Elem) -> Option<f64> {
    match elem {
        Elem::Real(value) => Some(*value),
        Elem::Int(expr) => expr.as_number().map(|value| value as f64),
        Elem::Bool(_) => None,
    }
}

/// The elements of a binary operator's output; `None` for an operator whose results are not followed.
pub(super) fn binary(op: &str, a: &Elem, b: &Elem) -> Option<Elem> {
    if let (Elem::Int(x), Elem::Int(y)) = (a, b) {
        return match op {
            "Add" | "Sum" => x.plus(y),
            "Sub" => x.minus(y),
            "Mul" => x.times(y),
            // Integers are divided towards 0: for what may be negative that is not the quotient rounded down.
            "Div" => match (x.as_number(), y.as_number()) {
                (Some(x), Some(y)) => x.checked_div(y).map(Expr::number),
                _ if x.least().is_some_and(|x| x >= 0) && y.least().is_some_and(|y| y >= 0) => x.floor_div(y),
                _ => None,
            },
            "Mod" => x.modulo(y),
            "Max" => x.greater_of(y),
            "Min" => x.lesser_of(y),
            "Pow" => power(x, y),
            _ => return compare(op, a, b).map(Elem::Bool),
        }
        .map(Elem::Int);
    }
    if let (Elem::Bool(x), Elem::Bool(y)) = (a, b) {
        return Some(Elem::Bool(match op {
            "And" => *x && *y,
            "Or" => *x || *y,
            "Xor" => x != y,
            "Equal" => x == y,
            _ => return None,
        }));
    }
    let pair = reals(a, b);
    let number = |value: f64| Some(Elem::Real(value));
    match (op, pair) {
        ("Add" | "Sum", Some((x, y))) => number(x + y),
        ("Sub", Some((x, y))) => number(x - y),
        ("Mul", Some((x, y))) => number(x * y),
        ("Div", Some((x, y))) => number(x / y),
        ("Pow", Some((x, y))) => number(x.powf(y)),
        ("Max", Some((x, y))) => number(x.max(y)),
        ("Min", Some((x, y))) => number(x.min(y)),
        // An extent that went through a float: times and by whole numbers it stays exact.
        ("Mul", None) => match (a, b) {
            (Elem::Int(x), Elem::Real(y)) | (Elem::Real(y), Elem::Int(x)) => scaled(x, *y),
            _ => None,
        },
        ("Div", None) => match (a, b) {
            (Elem::Int(x), Elem::Real(y)) => x.exact_quotient(&whole(*y)?).map(Elem::Int),
            _ => None,
        },
        ("Add", None) => match (a, b) {
            (Elem::Int(x), Elem::Real(y)) | (Elem::Real(y), Elem::Int(x)) => {
                x.plus(&whole(*y)?).map(Elem::Int)
            }
            _ => None,
        },
        ("Sub", None) => match (a, b) {
            (Elem::Int(x), Elem::Real(y)) => x.minus(&whole(*y)?).map(Elem::Int),
            _ => None,
        },
        _ => compare(op, a, b).map(Elem::Bool),
    }
}

/// A float that is a whole number.
fn whole(value: f64) -> Option<Expr> {
    (value.fract() == 0.0 && value.abs() < 1e15).then(|| Expr::number(value as i64))
}

fn scaled(x: &Expr, by: f64) -> Option<Elem> {
    match whole(by) {
        Some(by) => x.times(&by).map(Elem::Int),
        None => x.exact_quotient(&whole(1.0 / by)?).map(Elem::Int),
    }
}

fn power(x: &Expr, y: &Expr) -> Option<Expr> {
    let exponent = y.as_number().filter(|n| (0..=8).contains(n))?;
    (0..exponent).try_fold(Expr::number(1), |product, _| product.times(x))
}

/// What a comparison says, where it is the same for all extents.
fn compare(op: &str, a: &Elem, b: &Elem) -> Option<bool> {
    let order = match (a, b) {
        (Elem::Int(x), Elem::Int(y)) => {
            if op == "Equal" {
                return if x == y { Some(true) } else { x.differs(y).then_some(false) };
            }
            let difference = x.minus(y)?;
            return match op {
                "Less" => sign(&difference, |d| d < 0, |d| d >= 0),
                "LessOrEqual" => sign(&difference, |d| d <= 0, |d| d > 0),
                "Greater" => sign(&difference, |d| d <= 0, |d| d > 0).map(|is| !is),
                "GreaterOrEqual" => sign(&difference, |d| d < 0, |d| d >= 0).map(|is| !is),
                _ => None,
            };
        }
        _ => {
            let (x, y) = reals(a, b)?;
            x.partial_cmp(&y)?
        }
    };
    Some(match op {
        "Equal" => order == Ordering::Equal,
        "Less" => order == Ordering::Less,
        "LessOrEqual" => order != Ordering::Greater,
        "Greater" => order == Ordering::Greater,
        "GreaterOrEqual" => order != Ordering::Less,
        _ => return None,
    })
}

/// Whether `below` holds of the greatest value, or `above` of the least.
fn sign(difference: &Expr, below: impl Fn(i64) -> bool, above: impl Fn(i64) -> bool) -> Option<bool> {
    if difference.most().is_some_and(below) {
        return Some(true);
    }
    difference.least().is_some_and(above).then_some(false)
}

/// The elements of a unary operator's output.
pub(super) fn unary(op: &str, a: &Elem) -> Option<Elem> {
    Some(match (op, a) {
        ("Identity" | "Round" | "Floor" | "Ceil", Elem::Int(x)) => Elem::Int(x.clone()),
        ("Identity", other) => other.clone(),
        ("Neg", Elem::Int(x)) => Elem::Int(Expr::number(0).minus(x)?),
        ("Abs" | "Relu", Elem::Int(x)) if x.least().is_some_and(|x| x >= 0) => Elem::Int(x.clone()),
        ("Abs", Elem::Int(x)) => Elem::Int(Expr::number(x.as_number()?.checked_abs()?)),
        ("Not", Elem::Bool(x)) => Elem::Bool(!x),
        ("Neg", Elem::Real(x)) => Elem::Real(-x),
        ("Abs", Elem::Real(x)) => Elem::Real(x.abs()),
        ("Floor", Elem::Real(x)) => Elem::Real(x.floor()),
        ("Ceil", Elem::Real(x)) => Elem::Real(x.ceil()),
        ("Round", Elem::Real(x)) => Elem::Real(x.round_ties_even()),
        ("Sqrt", _) => Elem::Real(real(a)?.sqrt()),
        ("Reciprocal", _) => Elem::Real(1.0 / real(a)?),
        ("Exp", _) => Elem::Real(real(a)?.exp()),
        ("Log", _) => Elem::Real(real(a)?.ln()),
        _ => return None,
    })
}

/// An element as another type. An extent as a float stays the extent.
pub(super) fn cast(a: &Elem, to: heirloom_mem::DType) -> Option<Elem> {
    use heirloom_mem::DType as D;
    let is_float = matches!(to, D::Float | D::Double | D::Float16 | D::BFloat16);
    let is_int =
        matches!(to, D::Int64 | D::Int32 | D::Uint64 | D::Uint32 | D::Int16 | D::Uint16 | D::Int8 | D::Uint8);
    Some(match a {
        Elem::Int(x) if is_int || is_float => match x.as_number() {
            Some(number) if is_float => Elem::Real(number as f64),
            Some(number) => Elem::Int(Expr::number(fitting(number, to)?)),
            None => Elem::Int(x.clone()),
        },
        Elem::Real(x) if is_float => Elem::Real(*x),
        Elem::Real(x) if is_int && x.is_finite() && x.abs() < 9e15 => {
            Elem::Int(Expr::number(fitting(x.trunc() as i64, to)?))
        }
        Elem::Bool(x) if is_int => Elem::Int(Expr::number(i64::from(*x))),
        Elem::Bool(x) if is_float => Elem::Real(f64::from(u8::from(*x))),
        Elem::Bool(x) if to == D::Bool => Elem::Bool(*x),
        Elem::Int(x) if to == D::Bool => match x.as_number() {
            Some(number) => Elem::Bool(number != 0),
            None => Elem::Bool(x.least().filter(|least| *least > 0).map(|_| true)?),
        },
        Elem::Real(x) if to == D::Bool => Elem::Bool(*x != 0.0),
        _ => return None,
    })
}

/// A number that the type holds.
fn fitting(number: i64, to: heirloom_mem::DType) -> Option<i64> {
    use heirloom_mem::DType as D;
    let range = match to {
        D::Int8 => i64::from(i8::MIN)..=i64::from(i8::MAX),
        D::Uint8 => 0..=i64::from(u8::MAX),
        D::Int16 => i64::from(i16::MIN)..=i64::from(i16::MAX),
        D::Uint16 => 0..=i64::from(u16::MAX),
        D::Int32 => i64::from(i32::MIN)..=i64::from(i32::MAX),
        D::Uint32 => 0..=i64::from(u32::MAX),
        D::Uint64 => 0..=i64::MAX,
        _ => i64::MIN..=i64::MAX,
    };
    range.contains(&number).then_some(number)
}
