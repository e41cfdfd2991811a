//! What a model declares of a value, together with what follows from its inputs.

use crate::fact::{Dim, TensorFact, Type};
use crate::rules::sequence_common;

/// The more telling of both, and whether they contradict each other.
pub(crate) fn with_declared(inferred: Option<Type>, declared: Type) -> (Type, bool) {
    let Some(inferred) = inferred else { return (declared, false) };
    match (inferred, declared) {
        (Type::Tensor(inferred), Type::Tensor(declared)) => tensors(inferred, declared),
        (Type::Sequence(a), Type::Sequence(b)) => {
            let (element, clash) = elements(a, b);
            (Type::Sequence(element), clash)
        }
        (Type::Optional(a), Type::Optional(b)) => {
            let (element, clash) = elements(a, b);
            (Type::Optional(element), clash)
        }
        (inferred, declared) => {
            let clash = std::mem::discriminant(&inferred) != std::mem::discriminant(&declared);
            (inferred, clash)
        }
    }
}

fn elements(
    inferred: Option<std::sync::Arc<Type>>,
    declared: Option<std::sync::Arc<Type>>,
) -> (Option<std::sync::Arc<Type>>, bool) {
    match (inferred, declared) {
        (Some(a), Some(b)) => {
            let (ty, clash) = with_declared(Some((*a).clone()), (*b).clone());
            (Some(std::sync::Arc::new(ty)), clash)
        }
        (a, b) => (a.or(b), false),
    }
}

fn tensors(inferred: TensorFact, declared: TensorFact) -> (Type, bool) {
    if inferred.dtype != declared.dtype {
        return (Type::Tensor(inferred), true);
    }
    let (Some(ours), Some(theirs)) = (&inferred.dims, &declared.dims) else {
        let dims = inferred.dims.or(declared.dims);
        return (Type::tensor(inferred.dtype, dims), false);
    };
    if ours.len() != theirs.len() {
        return (Type::Tensor(inferred), true);
    }
    let clash =
        ours.iter().zip(theirs).any(|(a, b)| a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a.differs(b)));
    let dims = ours.iter().zip(theirs).map(|(a, b)| chosen(a, b)).collect();
    (Type::tensor(inferred.dtype, Some(dims)), clash)
}

/// What follows from the inputs is right for all of them; a declaration may be of one export's inputs only.
fn chosen(inferred: &Dim, declared: &Dim) -> Dim {
    match (inferred, declared) {
        (Some(a), _) if a.is_closed() => Some(a.clone()),
        (_, Some(b)) => Some(b.clone()),
        (a, None) => a.clone(),
    }
}

/// The type of a value that comes from one of two places.
pub(crate) fn either(a: &Type, b: &Type) -> Option<Type> {
    sequence_common(a, b)
}
