//! Einstein sums: the equation, and contractions of two operands at a time as batches of matrix products.

use heirloom_mem::Shape;
use heirloom_runtime::{CancelToken, KernelError};

use crate::product::{Ring, product};

/// An axis: a letter of the equation, or one that an ellipsis stands for, counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Letter(char),
    Rest(usize),
}

/// One term as it is written.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    before: Vec<char>,
    ellipsis: bool,
    behind: Vec<char>,
}

/// A parsed equation.
#[derive(Clone, Debug)]
pub(crate) struct Equation {
    terms: Vec<Term>,
    result: Option<Term>,
}

impl Term {
    fn parse(text: &str) -> Result<Term, String> {
        let (before, behind) = match text.split_once("...") {
            Some((before, behind)) => (before, Some(behind)),
            None => (text, None),
        };
        let letters = |text: &str| -> Result<Vec<char>, String> {
            match text.chars().find(|c| !c.is_ascii_alphabetic()) {
                None => Ok(text.chars().collect()),
                Some(c) => Err(format!("`{c}` is no letter")),
            }
        };
        Ok(Term {
            before: letters(before)?,
            ellipsis: behind.is_some(),
            behind: letters(behind.unwrap_or(""))?,
        })
    }

    fn letters(&self) -> impl Iterator<Item = char> {
        self.before.iter().chain(&self.behind).copied()
    }

    /// The labels of a term whose ellipsis stands for `rest` axes.
    fn labels(&self, rest: usize) -> Vec<Label> {
        let ellipsis = (0..if self.ellipsis { rest } else { 0 }).rev().map(Label::Rest);
        let before = self.before.iter().map(|&c| Label::Letter(c));
        before.chain(ellipsis).chain(self.behind.iter().map(|&c| Label::Letter(c))).collect()
    }
}

impl Equation {
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Equation, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (&*text, None),
        };
        let terms = left.split(',').map(Term::parse).collect::<Result<Vec<_>, _>>()?;
        let result = right.map(Term::parse).transpose()?;
        for c in result.iter().flat_map(Term::letters) {
            if !terms.iter().any(|term| term.letters().any(|other| other == c)) {
                return Err(format!("`{c}` stands in the result alone"));
            }
            if result.iter().flat_map(Term::letters).filter(|&other| other == c).count() > 1 {
                return Err(format!("`{c}` stands twice in the result"));
            }
        }
        Ok(Equation { terms, result })
    }

    /// The number of operands.
    pub(crate) fn inputs(&self) -> usize {
        self.terms.len()
    }

    /// The labels and extents for operands of these shapes.
    pub(crate) fn plan(&self, shapes: &[Shape]) -> Result<Plan, KernelError> {
        let unfit = |what| KernelError::Shape { what, shapes: Vec::from(shapes) };
        let mut terms = Vec::new();
        let mut extents: Vec<(Label, usize)> = Vec::new();
        let mut most = 0;
        for (term, shape) in self.terms.iter().zip(shapes) {
            let named = term.before.len() + term.behind.len();
            let fits = if term.ellipsis { shape.len() >= named } else { shape.len() == named };
            if !fits {
                return Err(unfit("operands have as many axes as their terms have letters"));
            }
            let labels = term.labels(shape.len() - named);
            most = most.max(labels.iter().filter(|label| matches!(label, Label::Rest(_))).count());
            for (&label, &extent) in labels.iter().zip(shape) {
                match extents.iter_mut().find(|(other, _)| *other == label) {
                    None => extents.push((label, extent)),
                    Some((_, known)) if *known == extent || extent == 1 => {}
                    Some((_, known)) if *known == 1 => *known = extent,
                    Some(_) => return Err(unfit("axes of one letter have one extent")),
                }
            }
            terms.push(labels);
        }
        let result = match &self.result {
            Some(result) => result.labels(most),
            // Without one: the ellipsis, then the letters that occur once, by the alphabet.
            None => {
                let mut once: Vec<char> = self.terms.iter().flat_map(Term::letters).collect();
                let all = once.clone();
                once.retain(|c| all.iter().filter(|other| *other == c).count() == 1);
                once.sort_unstable();
                (0..most).rev().map(Label::Rest).chain(once.into_iter().map(Label::Letter)).collect()
            }
        };
        Ok(Plan { terms, result, extents })
    }
}

/// An equation with the extents of its labels.
pub(crate) struct Plan {
    pub(crate) terms: Vec<Vec<Label>>,
    result: Vec<Label>,
    extents: Vec<(Label, usize)>,
}

/// Elements with a label for each axis.
pub(crate) struct Operand<W> {
    elements: Vec<W>,
    labels: Vec<Label>,
    strides: Vec<usize>,
}

impl<W: Copy> Operand<W> {
    /// A dense operand. Axes of extent 1 are broadcast; a label that stands twice means the diagonal.
    pub(crate) fn new(elements: Vec<W>, shape: &[usize], all: &[Label]) -> Operand<W> {
        let (mut labels, mut strides): (Vec<Label>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut stride = 1;
        for (&label, &extent) in all.iter().zip(shape).rev() {
            let own = if extent == 1 { 0 } else { stride };
            match labels.iter().position(|&other| other == label) {
                Some(at) => strides[at] += own,
                None => {
                    labels.push(label);
                    strides.push(own);
                }
            }
            stride *= extent;
        }
        Operand { elements, labels, strides }
    }

    fn stride(&self, label: Label) -> usize {
        self.labels.iter().position(|&other| other == label).map_or(0, |at| self.strides[at])
    }

    fn has(&self, label: Label) -> bool {
        self.labels.contains(&label)
    }
}

impl Plan {
    fn extent(&self, label: Label) -> usize {
        self.extents.iter().find(|(other, _)| *other == label).map_or(1, |(_, extent)| *extent)
    }

    pub(crate) fn result_shape(&self) -> Shape {
        self.result.iter().map(|&label| self.extent(label)).collect()
    }

    /// The elements of `operand` for the labels in this order; labels that are not among them are summed.
    fn arranged<W: Ring>(&self, operand: &Operand<W>, order: &[Label]) -> Vec<W> {
        let summed: Vec<Label> = operand.labels.iter().copied().filter(|l| !order.contains(l)).collect();
        let mut out = vec![W::default(); order.iter().map(|&label| self.extent(label)).product()];
        let axes: Vec<(usize, usize)> =
            order.iter().chain(&summed).map(|&label| (self.extent(label), operand.stride(label))).collect();
        let inner: usize = summed.iter().map(|&label| self.extent(label)).product();
        if inner == 0 || out.is_empty() {
            return out;
        }
        let mut counter = vec![0; axes.len()];
        let mut from = 0;
        for o in &mut out {
            for _ in 0..inner {
                *o = o.plus(operand.elements[from]);
                for at in (0..axes.len()).rev() {
                    counter[at] += 1;
                    from += axes[at].1;
                    if counter[at] < axes[at].0 {
                        break;
                    }
                    from -= axes[at].1 * counter[at];
                    counter[at] = 0;
                }
            }
        }
        out
    }

    /// The elements of the result.
    pub(crate) fn contract<W: Ring>(
        &self,
        operands: Vec<Operand<W>>,
        cancel: &CancelToken,
    ) -> Result<Vec<W>, KernelError> {
        let mut left = operands.into_iter();
        let Some(mut whole) = left.next() else { return Ok(Vec::new()) };
        while let Some(next) = left.next() {
            let later = |label: Label| {
                self.result.contains(&label) || left.as_slice().iter().any(|operand| operand.has(label))
            };
            whole = self.pair(&whole, &next, later, cancel)?;
        }
        Ok(self.arranged(&whole, &self.result))
    }

    /// The product of two operands, summed over the labels that nothing needs `later`.
    fn pair<W: Ring>(
        &self,
        a: &Operand<W>,
        b: &Operand<W>,
        later: impl Fn(Label) -> bool,
        cancel: &CancelToken,
    ) -> Result<Operand<W>, KernelError> {
        let both = a.labels.iter().copied().filter(|&label| b.has(label));
        let (batch, inner): (Vec<Label>, Vec<Label>) = both.partition(|&label| later(label));
        let own = |x: &Operand<W>, y: &Operand<W>| -> Vec<Label> {
            x.labels.iter().copied().filter(|&l| !y.has(l) && later(l)).collect()
        };
        let (rows, columns) = (own(a, b), own(b, a));
        let join = |lists: &[&[Label]]| -> Vec<Label> { lists.concat() };
        let size = |labels: &[Label]| -> usize { labels.iter().map(|&label| self.extent(label)).product() };
        let (m, n, k) = (size(&rows), size(&columns), size(&inner));
        let x = self.arranged(a, &join(&[&batch, &rows, &inner]));
        let y = self.arranged(b, &join(&[&batch, &columns, &inner]));
        let mut elements = vec![W::default(); size(&batch) * m * n];
        if k > 0 && m * n > 0 {
            for (at, out) in elements.chunks_exact_mut(m * n).enumerate() {
                let (x, y) = (&x[at * m * k..(at + 1) * m * k], &y[at * n * k..(at + 1) * n * k]);
                product(out, x, y, (n, k), true, cancel)?;
            }
        }
        let labels = join(&[&batch, &rows, &columns]);
        let shape: Shape = labels.iter().map(|&label| self.extent(label)).collect();
        Ok(Operand::new(elements, &shape, &labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn einsum(equation: &str, inputs: &[(&[usize], &[i32])]) -> (Vec<usize>, Vec<i32>) {
        let equation = Equation::parse(equation).unwrap();
        let shapes: Vec<Shape> = inputs.iter().map(|(shape, _)| Shape::from_slice(shape)).collect();
        let plan = equation.plan(&shapes).unwrap();
        let operands = inputs
            .iter()
            .zip(&plan.terms)
            .map(|((shape, elements), labels)| Operand::new(Vec::from(*elements), shape, labels))
            .collect();
        let result = plan.contract(operands, &CancelToken::new()).unwrap();
        (plan.result_shape().into_vec(), result)
    }

    #[test]
    fn products_sums_diagonals_and_outer_products_are_those_of_numpy() {
        let matrix: (&[usize], &[i32]) = (&[2, 2], &[1, 2, 3, 4]);
        assert_eq!(einsum("ij->ji", &[matrix]), (vec![2, 2], vec![1, 3, 2, 4]));
        assert_eq!(einsum("ii", &[matrix]), (vec![], vec![5]));
        assert_eq!(einsum("ii->i", &[matrix]), (vec![2], vec![1, 4]));
        assert_eq!(einsum("ij->i", &[matrix]), (vec![2], vec![3, 7]));
        assert_eq!(einsum("ij,jk", &[matrix, matrix]), (vec![2, 2], vec![7, 10, 15, 22]));
        assert_eq!(einsum("i,j->ji", &[(&[2], &[1, 2]), (&[2], &[3, 4])]), (vec![2, 2], vec![3, 6, 4, 8]));
        assert_eq!(einsum("ij,jk,kl->il", &[matrix, matrix, matrix]), (vec![2, 2], vec![37, 54, 81, 118]));
    }

    #[test]
    fn an_ellipsis_is_broadcast_and_extents_that_differ_are_refused() {
        let batch: (&[usize], &[i32]) = (&[2, 1, 2], &[1, 2, 3, 4]);
        let column: (&[usize], &[i32]) = (&[2, 1], &[1, 10]);
        assert_eq!(einsum("...ij,...jk->...ik", &[batch, column]), (vec![2, 1, 1], vec![21, 43]));
        let equation = Equation::parse("ij,jk->ik").unwrap();
        assert!(equation.plan(&[Shape::from_slice(&[2, 3]), Shape::from_slice(&[2, 3])]).is_err());
        assert!(Equation::parse("i?->i").is_err() && Equation::parse("i->j").is_err());
    }
}
