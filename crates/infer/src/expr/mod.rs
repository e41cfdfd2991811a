//! Integer expressions over the extents that a model's symbols stand for: `past + new`, `floor((n - 1)/2) + 1`.
//!
//! An expression is kept as a polynomial in a fixed order of its terms, so that two of them are the same number for all
//! extents whenever they are equal. The converse does not hold: what is not equal may still be the same number.

mod bounds;
mod parse;
mod show;

use std::sync::Arc;

/// A factor of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Atom {
    /// An extent that the model names.
    Symbol(Arc<str>),
    /// An extent that depends on data: which value, and which axis of it.
    Fresh(Arc<str>),
    /// Something that no polynomial can say.
    Call(Function, Arc<(Expr, Expr)>),
}

/// A function of two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Function {
    /// The quotient, rounded down.
    FloorDiv,
    /// The remainder of that.
    Mod,
    Max,
    Min,
}

/// Factors in order; none is the constant term.
type Monomial = Vec<Atom>;

/// An integer expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expr {
    /// Each product of factors once, with a coefficient that is not 0.
    terms: Vec<(Monomial, i64)>,
}

/// Longer expressions say nothing to anybody: they count as unknown.
const MOST_TERMS: usize = 24;
const MOST_FACTORS: usize = 8;
const MOST_DEPTH: usize = 12;

impl Expr {
    /// A number.
    pub fn number(value: i64) -> Expr {
        Expr { terms: if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] } }
    }

    /// A symbol by its name: an extent, so never negative.
    pub fn symbol(name: &str) -> Expr {
        Expr { terms: vec![(vec![Atom::Symbol(name.into())], 1)] }
    }

    /// An extent that depends on data; `name` tells it apart from others.
    pub fn fresh(name: &str) -> Expr {
        Expr { terms: vec![(vec![Atom::Fresh(name.into())], 1)] }
    }

    /// The number, where it is one.
    pub fn as_number(&self) -> Option<i64> {
        match &self.terms[..] {
            [] => Some(0),
            [(factors, value)] if factors.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// Whether the expression is this number for all extents.
    pub fn is(&self, number: i64) -> bool {
        self.as_number() == Some(number)
    }

    /// The sum; `None` where it overflows or becomes too long.
    pub fn plus(&self, other: &Expr) -> Option<Expr> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(x), Some(y)) => x.0.cmp(&y.0),
            };
            match order {
                std::cmp::Ordering::Less => terms.extend(a.next().cloned()),
                std::cmp::Ordering::Greater => terms.extend(b.next().cloned()),
                std::cmp::Ordering::Equal => {
                    let (x, y) = (a.next()?, b.next()?);
                    let sum = x.1.checked_add(y.1)?;
                    if sum != 0 {
                        terms.push((x.0.clone(), sum));
                    }
                }
            }
        }
        (terms.len() <= MOST_TERMS).then_some(Expr { terms })
    }

    /// The difference; `None` as for [`plus`](Expr::plus).
    pub fn minus(&self, other: &Expr) -> Option<Expr> {
        self.plus(&other.times_number(-1)?)
    }

    fn times_number(&self, number: i64) -> Option<Expr> {
        if number == 0 {
            return Some(Expr::default());
        }
        let terms = self.terms.iter();
        let terms: Option<Vec<_>> =
            terms.map(|(factors, value)| Some((factors.clone(), value.checked_mul(number)?))).collect();
        Some(Expr { terms: terms? })
    }

    /// The product; `None` as for [`plus`](Expr::plus).
    pub fn times(&self, other: &Expr) -> Option<Expr> {
        let mut sum = Expr::default();
        for (x, a) in &self.terms {
            for (y, b) in &other.terms {
                let mut factors: Monomial = x.iter().chain(y).cloned().collect();
                if factors.len() > MOST_FACTORS {
                    return None;
                }
                factors.sort();
                sum = sum.plus(&Expr { terms: vec![(factors, a.checked_mul(*b)?)] })?;
            }
        }
        Some(sum)
    }

    /// The product of all.
    pub fn product<'a>(factors: impl IntoIterator<Item = &'a Expr>) -> Option<Expr> {
        factors.into_iter().try_fold(Expr::number(1), |product, factor| product.times(factor))
    }

    /// The quotient where `other` divides the expression whatever the extents are, 0 left aside; `None` where it may not.
    pub fn exact_quotient(&self, other: &Expr) -> Option<Expr> {
        if self == other {
            return Some(Expr::number(1));
        }
        // Long division: where it comes out even, it is right.
        let (divisor, by) = other.leading()?;
        let (mut quotient, mut rest) = (Expr::default(), self.clone());
        for _ in 0..=MOST_TERMS {
            let Some((factors, value)) = rest.leading() else { return Some(quotient) };
            if value.checked_rem(*by)? != 0 {
                return None;
            }
            let mut left = factors.clone();
            for factor in divisor {
                let at = left.iter().position(|it| it == factor)?;
                left.remove(at);
            }
            let term = Expr { terms: vec![(left, value.checked_div(*by)?)] };
            rest = rest.minus(&term.times(other)?)?;
            quotient = quotient.plus(&term)?;
        }
        None
    }

    /// The term of the most factors.
    fn leading(&self) -> Option<&(Monomial, i64)> {
        self.terms.iter().max_by_key(|(factors, _)| (factors.len(), factors))
    }

    /// The quotient, rounded down; `None` for a divisor that is or may be 0 by its number, or as for
    /// [`plus`](Expr::plus).
    pub fn floor_div(&self, other: &Expr) -> Option<Expr> {
        if other.is(0) {
            return None;
        }
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return floor_div(a, b).map(Expr::number);
        }
        if let Some(exact) = self.exact_quotient(other) {
            return Some(exact);
        }
        let Some(by) = other.as_number().filter(|by| *by > 0) else {
            return self.call(Function::FloorDiv, other);
        };
        // What the divisor divides comes out: floor((b·x + r)/b) = x + floor(r/b).
        let (mut out, mut rest) = (Expr::default(), Expr::default());
        for (factors, value) in &self.terms {
            let (whole, part) = (value.div_euclid(by), value.rem_euclid(by));
            let term = |value: i64| match value {
                0 => Expr::default(),
                value => Expr { terms: vec![(factors.clone(), value)] },
            };
            if part == 0 || factors.is_empty() {
                out = out.plus(&term(whole))?;
                rest = rest.plus(&term(part))?;
            } else {
                rest = rest.plus(&term(*value))?;
            }
        }
        let quotient = match (&rest.terms[..], rest.as_number()) {
            (_, Some(number)) => Expr::number(number.div_euclid(by)),
            // floor(floor(x/a)/b) = floor(x/(a·b)).
            ([(factors, 1)], _) => match &factors[..] {
                [Atom::Call(Function::FloorDiv, inner)] if inner.1.as_number().is_some_and(|a| a > 0) => {
                    inner.0.floor_div(&inner.1.times_number(by)?)?
                }
                _ => rest.call(Function::FloorDiv, other)?,
            },
            _ => rest.call(Function::FloorDiv, other)?,
        };
        out.plus(&quotient)
    }

    /// The quotient, rounded up.
    pub fn ceil_div(&self, other: &Expr) -> Option<Expr> {
        self.plus(other)?.minus(&Expr::number(1))?.floor_div(other)
    }

    /// The remainder of [`floor_div`](Expr::floor_div).
    pub fn modulo(&self, other: &Expr) -> Option<Expr> {
        if other.is(0) {
            return None;
        }
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return Some(Expr::number(a.checked_sub(floor_div(a, b)?.checked_mul(b)?)?));
        }
        if self.exact_quotient(other).is_some() {
            return Some(Expr::default());
        }
        self.call(Function::Mod, other)
    }

    /// The greater of two.
    pub fn greater_of(&self, other: &Expr) -> Option<Expr> {
        match self.minus(other)? {
            difference if difference.least().is_some_and(|least| least >= 0) => Some(self.clone()),
            difference if difference.most().is_some_and(|most| most <= 0) => Some(other.clone()),
            _ => self.call_sorted(Function::Max, other),
        }
    }

    /// The smaller of two.
    pub fn lesser_of(&self, other: &Expr) -> Option<Expr> {
        match self.minus(other)? {
            difference if difference.least().is_some_and(|least| least >= 0) => Some(other.clone()),
            difference if difference.most().is_some_and(|most| most <= 0) => Some(self.clone()),
            _ => self.call_sorted(Function::Min, other),
        }
    }

    /// A function for which the order of its arguments does not matter.
    fn call_sorted(&self, function: Function, other: &Expr) -> Option<Expr> {
        if self <= other { self.call(function, other) } else { other.call(function, self) }
    }

    fn call(&self, function: Function, other: &Expr) -> Option<Expr> {
        if self.depth().max(other.depth()) >= MOST_DEPTH {
            return None;
        }
        let atom = Atom::Call(function, Arc::new((self.clone(), other.clone())));
        Some(Expr { terms: vec![(vec![atom], 1)] })
    }

    fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.terms.iter().flat_map(|(factors, _)| factors)
    }

    fn depth(&self) -> usize {
        let below = |atom: &Atom| match atom {
            Atom::Call(_, of) => 1 + of.0.depth().max(of.1.depth()),
            _ => 0,
        };
        self.atoms().map(below).max().unwrap_or(0)
    }

    /// Whether symbols of the model and numbers alone tell the value: nothing in it depends on data.
    pub fn is_closed(&self) -> bool {
        self.atoms().all(|atom| match atom {
            Atom::Symbol(_) => true,
            Atom::Fresh(_) => false,
            Atom::Call(_, of) => of.0.is_closed() && of.1.is_closed(),
        })
    }

    /// Whether a symbol of this name occurs.
    pub fn mentions(&self, name: &str) -> bool {
        self.atoms().any(|atom| match atom {
            Atom::Symbol(symbol) => &**symbol == name,
            Atom::Fresh(_) => false,
            Atom::Call(_, of) => of.0.mentions(name) || of.1.mentions(name),
        })
    }

    /// The symbol's name, where the expression is one symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        match &self.terms[..] {
            [(factors, 1)] => match &factors[..] {
                [Atom::Symbol(name)] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The number that the expression is for the extents that `extent` gives; `None` where one is missing, or it has none.
    pub fn value(&self, extent: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut sum = 0i64;
        for (factors, value) in &self.terms {
            let mut product = *value;
            for factor in factors {
                let factor = match factor {
                    Atom::Symbol(name) => extent(name)?,
                    Atom::Fresh(_) => return None,
                    Atom::Call(function, of) => {
                        let (a, b) = (of.0.value(extent)?, of.1.value(extent)?);
                        match function {
                            Function::FloorDiv => floor_div(a, b)?,
                            Function::Mod => a.checked_sub(floor_div(a, b)?.checked_mul(b)?)?,
                            Function::Max => a.max(b),
                            Function::Min => a.min(b),
                        }
                    }
                };
                product = product.checked_mul(factor)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a.checked_rem(b)? != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

impl From<usize> for Expr {
    fn from(extent: usize) -> Expr {
        match i64::try_from(extent) {
            Ok(extent) => Expr::number(extent),
            Err(_) => Expr::fresh("more than 2^63"),
        }
    }
}
