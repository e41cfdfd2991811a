//! Expressions as people write them.

use std::fmt;

use super::{Atom, Expr, Function};

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // The number stands last: `past + 1`.
        let (numbers, others): (Vec<_>, Vec<_>) =
            self.terms.iter().partition(|(factors, _)| factors.is_empty());
        for (at, (factors, value)) in others.into_iter().chain(numbers).enumerate() {
            match (at, *value < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let size = value.unsigned_abs();
            if factors.is_empty() || size != 1 {
                write!(f, "{size}{}", if factors.is_empty() { "" } else { "*" })?;
            }
            for (at, factor) in factors.iter().enumerate() {
                write!(f, "{}{factor}", if at == 0 { "" } else { "*" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (function, of) = match self {
            Atom::Symbol(name) => return f.write_str(name),
            Atom::Fresh(name) => return write!(f, "?{name}"),
            Atom::Call(function, of) => (function, of),
        };
        let inner = |expr: &Expr| match expr.terms.len() {
            0 | 1 => expr.to_string(),
            _ => format!("({expr})"),
        };
        match function {
            Function::FloorDiv => write!(f, "floor({}/{})", inner(&of.0), inner(&of.1)),
            Function::Mod => write!(f, "mod({}, {})", of.0, of.1),
            Function::Max => write!(f, "max({}, {})", of.0, of.1),
            Function::Min => write!(f, "min({}, {})", of.0, of.1),
        }
    }
}
