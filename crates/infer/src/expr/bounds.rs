//! What an expression is at least and at most, since extents are not negative.

use super::{Atom, Expr, Function, floor_div};

impl Expr {
    /// A number that the expression is never below.
    pub fn least(&self) -> Option<i64> {
        self.bound(true)
    }

    /// A number that the expression is never above.
    pub fn most(&self) -> Option<i64> {
        self.bound(false)
    }

    /// Whether the two differ for all extents.
    pub fn differs(&self, other: &Expr) -> bool {
        let Some(difference) = self.minus(other) else { return false };
        difference.least().is_some_and(|least| least > 0) || difference.most().is_some_and(|most| most < 0)
    }

    fn bound(&self, least: bool) -> Option<i64> {
        // e + max(a, b) = max(e + a, e + b), and e - max(a, b) = min(e - a, e - b): what is common to both cancels.
        for (factors, value) in &self.terms {
            let ([Atom::Call(function @ (Function::Max | Function::Min), of)], 1 | -1) =
                (&factors[..], value)
            else {
                continue;
            };
            let rest = self.minus(&Expr { terms: vec![(factors.clone(), *value)] })?;
            let side = |side: &Expr| {
                let sum = if *value > 0 { rest.plus(side) } else { rest.minus(side) };
                sum?.bound(least)
            };
            let (a, b) = (side(&of.0), side(&of.1));
            let is_max = (*function == Function::Max) == (*value > 0);
            return match (is_max, least, a, b) {
                (true, true, a, b) => a.max(b),
                (false, false, Some(a), Some(b)) => Some(a.min(b)),
                (false, false, a, b) => a.or(b),
                (true, false, a, b) => Some(a?.max(b?)),
                (false, true, a, b) => Some(a?.min(b?)),
            };
        }
        self.terms.iter().try_fold(0i64, |sum, (factors, value)| {
            let bound = product(factors, least == (*value > 0))?;
            sum.checked_add(value.checked_mul(bound)?)
        })
    }
}

/// The least or greatest value of a product; only products of what is never negative have one.
fn product(factors: &[Atom], least: bool) -> Option<i64> {
    let mut product = 1i64;
    for factor in factors {
        let low = factor.bound(true);
        if factors.len() > 1 && low.is_none_or(|low| low < 0) {
            return None;
        }
        let bound = if least { low? } else { factor.bound(false)? };
        product = product.checked_mul(bound)?;
    }
    Some(product)
}

impl Atom {
    fn bound(&self, least: bool) -> Option<i64> {
        let (function, of) = match self {
            Atom::Symbol(_) | Atom::Fresh(_) => return least.then_some(0),
            Atom::Call(function, of) => (function, of),
        };
        let (a, b) = (of.0.bound(least), of.1.bound(least));
        match function {
            Function::FloorDiv => match of.1.as_number() {
                Some(by) if by > 0 => floor_div(a?, by),
                // What is not negative stays so, whatever it is divided by.
                _ => (least && a? >= 0 && b? >= 0).then_some(0),
            },
            Function::Mod => match of.1.as_number() {
                Some(by) if by > 0 => Some(if least { 0 } else { by - 1 }),
                _ => None,
            },
            Function::Max if least => a.max(b),
            Function::Max => Some(a?.max(b?)),
            Function::Min if least => Some(a?.min(b?)),
            Function::Min => match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }
}
