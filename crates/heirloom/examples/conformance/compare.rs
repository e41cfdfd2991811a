//! How far a result may be from what the suite expects.

use heirloom::{DType, Tensor, Value};

use crate::values::numbers;

/// |actual − expected| ≤ `absolute` + `relative` · |expected|.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

/// What the suite grants BFLOAT16 results at least.
const BFLOAT16_RELATIVE: f64 = 1.0 / 64.0;

/// `Err` says the first difference.
pub(crate) fn values(actual: &Value, expected: &Value, tolerance: Tolerance) -> Result<(), String> {
    match (actual, expected) {
        (Value::Tensor(actual), Value::Tensor(expected)) => tensors(actual, expected, tolerance),
        (Value::Strings(actual), Value::Strings(expected)) => {
            if actual.shape != expected.shape {
                return Err(format!("shape {:?} instead of {:?}", actual.shape, expected.shape));
            }
            match actual.elements.iter().zip(&expected.elements).position(|(a, e)| a != e) {
                None => Ok(()),
                Some(at) => Err(format!(
                    "element {at} is {:?} instead of {:?}",
                    String::from_utf8_lossy(&actual.elements[at]),
                    String::from_utf8_lossy(&expected.elements[at])
                )),
            }
        }
        (Value::Sequence(actual), Value::Sequence(expected)) => {
            if actual.len() != expected.len() {
                return Err(format!("{} elements instead of {}", actual.len(), expected.len()));
            }
            actual.iter().zip(&**expected).enumerate().try_for_each(|(at, (actual, expected))| {
                values(actual, expected, tolerance).map_err(|what| format!("[{at}]: {what}"))
            })
        }
        (Value::Map(actual), Value::Map(expected)) => {
            if actual.len() != expected.len() {
                return Err(format!("{} entries instead of {}", actual.len(), expected.len()));
            }
            actual.iter().zip(&**expected).try_for_each(|((key, actual), (other, expected))| {
                if key != other {
                    return Err(format!("the key {key} instead of {other}"));
                }
                values(actual, expected, tolerance).map_err(|what| format!("[{key}]: {what}"))
            })
        }
        (Value::Optional(None), Value::Optional(None)) => Ok(()),
        (Value::Optional(Some(actual)), Value::Optional(Some(expected))) => {
            values(actual, expected, tolerance)
        }
        _ => Err(format!("a {} instead of a {}", actual.kind(), expected.kind())),
    }
}

fn tensors(actual: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<(), String> {
    let (dtype, shape) = (expected.dtype(), expected.shape());
    if actual.dtype() != dtype || actual.shape() != shape {
        return Err(format!("{} {:?} instead of {dtype} {shape:?}", actual.dtype(), actual.shape()));
    }
    let relative = match dtype {
        DType::BFloat16 if tolerance.relative > 0.0 => tolerance.relative.max(BFLOAT16_RELATIVE),
        _ => tolerance.relative,
    };
    let exact = dtype.is_integer() || dtype == DType::Bool;
    let close = |a: f64, e: f64| {
        a == e
            || (a.is_nan() && e.is_nan())
            || (!exact && e.is_finite() && (a - e).abs() <= tolerance.absolute + relative * e.abs())
    };
    let (actual, expected) = (numbers(actual)?, numbers(expected)?);
    let far: Vec<usize> = (0..expected.len()).filter(|&at| !close(actual[at], expected[at])).collect();
    match far.first() {
        None => Ok(()),
        Some(&at) => Err(format!(
            "{} of {} elements differ, the first is [{at}]: {} instead of {}",
            far.len(),
            expected.len(),
            actual[at],
            expected[at]
        )),
    }
}
