//! What a rule sees of a node, and where it puts what follows.

use heirloom_graph::{AttrValue, Attributes, Node};
use heirloom_mem::DType;

use crate::conflict::{ConflictKind, Source};
use crate::fact::{Dim, Elem, Fact, TensorFact, Type};
use crate::{Expr, MOST_ELEMS};

/// Why a rule ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Not enough is known.
    Unknown,
    /// The inputs contradict each other or the operator.
    Conflict(Box<ConflictKind>),
}

/// A node, what is known of its inputs, and what follows for its outputs.
pub(crate) struct Cx<'a> {
    pub(crate) node: &'a Node,
    /// The version of the node's domain.
    pub(crate) opset: i64,
    /// Names and facts of the inputs; `None` where one is left out.
    pub(crate) inputs: Vec<Option<(&'a str, &'a Fact)>>,
    pub(crate) outputs: Vec<Fact>,
    /// Names of the outputs.
    pub(crate) names: Vec<&'a str>,
    /// Within a function: the attributes of the call.
    pub(crate) arguments: Option<&'a Attributes>,
    /// Where the graph is, to name extents that depend on data.
    pub(crate) place: &'a str,
}

impl<'a> Cx<'a> {
    /// Whether an input is there.
    pub(crate) fn has(&self, input: usize) -> bool {
        matches!(self.inputs.get(input), Some(Some(_)))
    }

    /// How many inputs there are, trailing ones that are left out not counted.
    pub(crate) fn input_count(&self) -> usize {
        self.inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1)
    }

    pub(crate) fn fact(&self, input: usize) -> Result<&'a Fact, Stop> {
        match self.inputs.get(input) {
            Some(Some((_, fact))) => Ok(fact),
            _ => Err(Stop::Unknown),
        }
    }

    pub(crate) fn ty(&self, input: usize) -> Result<&'a Type, Stop> {
        self.fact(input)?.ty.as_ref().ok_or(Stop::Unknown)
    }

    pub(crate) fn tensor(&self, input: usize) -> Result<&'a TensorFact, Stop> {
        match self.ty(input)? {
            Type::Tensor(tensor) => Ok(tensor),
            // An optional that must hold a value reads as the value.
            Type::Optional(Some(inner)) => inner.as_tensor().ok_or(Stop::Unknown),
            _ => Err(Stop::Unknown),
        }
    }

    pub(crate) fn dtype(&self, input: usize) -> Result<DType, Stop> {
        Ok(self.tensor(input)?.dtype)
    }

    /// The extents of an input whose rank is known.
    pub(crate) fn dims(&self, input: usize) -> Result<&'a [Dim], Stop> {
        self.tensor(input)?.dims.as_deref().ok_or(Stop::Unknown)
    }

    /// The extents of an input that has at least this rank.
    pub(crate) fn dims_of_rank(&self, input: usize, least: usize) -> Result<&'a [Dim], Stop> {
        let dims = self.dims(input)?;
        if dims.len() < least {
            let reason = format!("the operator takes at least {least} axes");
            return Err(self.refuse(input, reason));
        }
        Ok(dims)
    }

    pub(crate) fn elems(&self, input: usize) -> Option<&'a [Option<Elem>]> {
        self.fact(input).ok()?.elems.as_deref()
    }

    /// What is known of the integers that an input holds; `None` where not even their number is known.
    pub(crate) fn ints(&self, input: usize) -> Option<Vec<Dim>> {
        let int = |elem: &Option<Elem>| match elem {
            Some(Elem::Int(expr)) => Some(expr.clone()),
            _ => None,
        };
        match self.elems(input) {
            Some(elems) => Some(elems.iter().map(int).collect()),
            None => {
                let extent = match self.dims(input).ok()? {
                    [] => 1,
                    [Some(extent)] => usize::try_from(extent.as_number()?).ok()?,
                    _ => return None,
                };
                (extent <= MOST_ELEMS).then(|| vec![None; extent])
            }
        }
    }

    /// The integers that an input holds, all known.
    pub(crate) fn numbers(&self, input: usize) -> Result<Vec<i64>, Stop> {
        let ints = self.ints(input).ok_or(Stop::Unknown)?;
        let numbers: Option<Vec<i64>> = ints.iter().map(|int| int.as_ref()?.as_number()).collect();
        numbers.ok_or(Stop::Unknown)
    }

    pub(crate) fn attr(&self, name: &str) -> Option<&'a AttrValue> {
        match self.node.attributes.get(name) {
            Some(AttrValue::Reference(to)) => self.arguments?.get(to),
            other => other,
        }
    }

    pub(crate) fn opt_int(&self, name: &str) -> Option<i64> {
        match self.attr(name) {
            Some(AttrValue::Int(value)) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        self.opt_int(name).unwrap_or(default)
    }

    pub(crate) fn opt_ints(&self, name: &str) -> Option<&'a [i64]> {
        match self.attr(name) {
            Some(AttrValue::Ints(values)) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn string(&self, name: &str) -> &'a str {
        match self.attr(name) {
            Some(AttrValue::String(bytes)) => std::str::from_utf8(bytes).unwrap_or_default(),
            _ => "",
        }
    }

    /// A type that an attribute names by its number.
    pub(crate) fn dtype_attr(&self, name: &str) -> Option<DType> {
        DType::from_onnx(i32::try_from(self.opt_int(name)?).ok()?)
    }

    /// Integers that are an attribute in some versions and an input in others.
    pub(crate) fn attr_or_input(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, Stop> {
        match self.opt_ints(name) {
            Some(values) => Ok(Some(Vec::from_iter(values.iter().copied()))),
            None if self.has(input) => self.numbers(input).map(Some),
            None => Ok(None),
        }
    }

    /// An axis counted from the front.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, Stop> {
        let counted = if axis < 0 { axis.checked_add_unsigned(rank as u64) } else { Some(axis) };
        match counted.map(usize::try_from) {
            Some(Ok(at)) if at < rank => Ok(at),
            _ => Err(self.refuse(0, format!("axis {axis} of {rank} axes"))),
        }
    }

    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>, Stop> {
        axes.iter().map(|&axis| self.axis(axis, rank)).collect()
    }

    /// Sets what is known of an output; one that the node does not have is left aside.
    pub(crate) fn set_fact(&mut self, output: usize, fact: Fact) {
        if let Some(slot) = self.outputs.get_mut(output) {
            *slot = fact;
        }
    }

    pub(crate) fn set(&mut self, output: usize, dtype: DType, dims: Option<Vec<Dim>>) {
        self.set_fact(output, Fact::tensor(dtype, dims));
    }

    /// An extent that depends on data.
    pub(crate) fn fresh(&self, output: usize, axis: usize) -> Dim {
        let name = self.names.get(output).copied().unwrap_or_default();
        Some(Expr::fresh(&format!("{}{name}.{axis}", self.place)))
    }

    pub(crate) fn source(&self, input: usize, axis: Option<usize>) -> Source {
        let (value, ty) = match self.inputs.get(input) {
            Some(Some((name, fact))) => {
                (*name, fact.ty.as_ref().map_or_else(|| "unknown".into(), ToString::to_string))
            }
            _ => ("", "absent".into()),
        };
        Source { value: value.into(), ty, axis }
    }

    /// An input that the operator does not take.
    pub(crate) fn refuse(&self, input: usize, reason: String) -> Stop {
        Stop::Conflict(Box::new(ConflictKind::Operator { input: self.source(input, None), reason }))
    }

    /// Two inputs that do not fit each other, by their axes.
    pub(crate) fn clash(&self, what: &'static str, a: (usize, usize), b: (usize, usize)) -> Stop {
        let (first, second) = (self.source(a.0, Some(a.1)), self.source(b.0, Some(b.1)));
        Stop::Conflict(Box::new(ConflictKind::Inputs { what, first, second }))
    }

    /// The extent that two axes have in common, each given as input and axis counted from the front.
    pub(crate) fn same(&self, a: (usize, usize), b: (usize, usize)) -> Result<Dim, Stop> {
        let dim = |(input, axis): (usize, usize)| self.dims(input).ok()?.get(axis)?.clone();
        let (x, y) = (dim(a), dim(b));
        if let (Some(x), Some(y)) = (&x, &y)
            && x.differs(y)
        {
            return Err(self.clash("the extents must be equal", a, b));
        }
        Ok(better(x, y))
    }

    /// The shape that inputs have after broadcasting; `None` where a rank is not known.
    pub(crate) fn broadcast(&self, inputs: &[usize]) -> Result<Option<Vec<Dim>>, Stop> {
        let shapes: Result<Vec<&[Dim]>, Stop> = inputs.iter().map(|&input| self.dims(input)).collect();
        let Ok(shapes) = shapes else { return Ok(None) };
        let rank = shapes.iter().map(|dims| dims.len()).max().unwrap_or(0);
        let mut result = Vec::with_capacity(rank);
        for axis in 0..rank {
            let mut dim: Dim = Some(Expr::number(1));
            let mut from = None;
            for (at, dims) in shapes.iter().enumerate() {
                let Some(own) = (axis + dims.len()).checked_sub(rank) else { continue };
                let other = &dims[own];
                if other.as_ref().is_some_and(|other| other.is(1)) {
                    continue;
                }
                let here = (inputs[at], own);
                dim = match from {
                    None => other.clone(),
                    Some(first) => match (dim, other) {
                        (Some(a), Some(b)) if a == *b => Some(a),
                        (Some(a), Some(b)) => match (a.as_number(), b.as_number()) {
                            (Some(_), Some(_)) => {
                                return Err(self.clash("extents that differ must be 1", first, here));
                            }
                            // The other is 1 or the same.
                            (Some(_), None) => Some(a),
                            (None, Some(_)) => Some(b.clone()),
                            _ => None,
                        },
                        // Nothing is known of one of them: it is 1 or the other, as long as that is not 1 itself.
                        (Some(a), None) if a.as_number().is_some() => Some(a),
                        (None, Some(b)) if b.as_number().is_some() => Some(b.clone()),
                        _ => None,
                    },
                };
                from.get_or_insert(here);
            }
            result.push(dim);
        }
        Ok(Some(result))
    }
}

/// The more telling of two extents that are the same.
pub(crate) fn better(a: Dim, b: Dim) -> Dim {
    let worth = |dim: &Dim| match dim {
        None => 0,
        Some(expr) if expr.as_number().is_some() => 4,
        Some(expr) if !expr.is_closed() => 1,
        Some(expr) if expr.as_symbol().is_some() => 3,
        Some(_) => 2,
    };
    if worth(&b) > worth(&a) { b } else { a }
}
