//! Declared dimensions that are expressions: exporters write `past_sequence_length + sequence_length` or `2*s0`.

use super::Expr;

impl Expr {
    /// What a declared dimension of this name stands for. One that reads as a sum or product of names and numbers is one;
    /// every other name, those with hyphens or dots too, is a symbol. `None` for names by which exporters say that they
    /// know nothing.
    pub fn declared(name: &str) -> Option<Expr> {
        let name = name.trim();
        if matches!(name, "" | "?" | "*" | "None" | "none" | "dynamic") || name.starts_with('-') {
            return None;
        }
        let mut parser = Parser { rest: name, depth: 0 };
        let parsed = parser.sum().filter(|_| parser.rest.trim().is_empty());
        Some(parsed.unwrap_or_else(|| Expr::symbol(name)))
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A sign between two terms: with space around it, for hyphens occur in names.
    fn sign(&mut self) -> Option<bool> {
        for (token, is_plus) in [(" + ", true), (" - ", false)] {
            if let Some(rest) = self.rest.strip_prefix(token) {
                self.rest = rest;
                return Some(is_plus);
            }
        }
        match self.rest.strip_prefix('+') {
            Some(rest) => {
                self.rest = rest;
                Some(true)
            }
            None => None,
        }
    }

    fn sum(&mut self) -> Option<Expr> {
        let mut sum = self.product()?;
        while let Some(is_plus) = self.sign() {
            let term = self.product()?;
            sum = if is_plus { sum.plus(&term) } else { sum.minus(&term) }?;
        }
        Some(sum)
    }

    fn product(&mut self) -> Option<Expr> {
        let mut product = self.factor()?;
        loop {
            if self.take("//") {
                product = product.floor_div(&self.factor()?)?;
            } else if self.take("*") {
                product = product.times(&self.factor()?)?;
            } else {
                return Some(product);
            }
        }
    }

    fn factor(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > 64 {
            return None;
        }
        if self.take("(") {
            let inner = self.sum()?;
            return self.take(")").then_some(inner);
        }
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !(c.is_alphanumeric() || "_.:".contains(c))).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if word.is_empty() || rest.starts_with('(') {
            return None;
        }
        self.rest = rest;
        match word.parse::<i64>() {
            Ok(number) => Some(Expr::number(number)),
            Err(_) if word.starts_with(|c: char| c.is_ascii_digit()) => None,
            Err(_) => Some(Expr::symbol(word)),
        }
    }
}
