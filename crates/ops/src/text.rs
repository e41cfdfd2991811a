//! Numbers as text and back.

use heirloom_runtime::KernelError;

fn no_number(text: &str) -> KernelError {
    KernelError::Other(format!("{text:?} is no number"))
}

/// A decimal number, `inf` or `nan` in any case, with an optional sign.
pub(crate) fn float(text: &[u8]) -> Result<f64, KernelError> {
    let text = String::from_utf8_lossy(text);
    text.trim().parse().map_err(|_| no_number(&text))
}

/// A decimal integer; one that is written as a float is cut off toward zero.
pub(crate) fn integer(text: &[u8]) -> Result<i64, KernelError> {
    let lossy = String::from_utf8_lossy(text);
    lossy.trim().parse().or_else(|_| float(text).map(|v| v as i64))
}

/// The text of a float, from its shortest digits in the form `d.ddde-5`: plain from 1e-4 on and below 1e16, with `.0`
/// behind an integer.
pub(crate) fn shortest(scientific: String) -> String {
    let Some((digits, exponent)) = scientific.split_once('e') else {
        // `NaN` and `inf`.
        return scientific.to_lowercase();
    };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits: String = digits.chars().filter(|c| *c != '.').collect();
    match usize::try_from(exponent) {
        Ok(whole) if digits.len() <= whole + 1 => format!("{sign}{digits:0<width$}.0", width = whole + 1),
        Ok(whole) => format!("{sign}{}.{}", &digits[..=whole], &digits[whole + 1..]),
        Err(_) => {
            format!("{sign}0.{digits:0>width$}", width = digits.len() + exponent.unsigned_abs() as usize - 1)
        }
    }
}

/// The text with the fewest digits that `same` takes for the number.
pub(crate) fn of_half(value: f32, same: impl Fn(f32) -> bool) -> String {
    let texts = (0..8).map(|digits| format!("{value:.digits$e}"));
    let fits = |text: &String| text.parse().is_ok_and(&same);
    shortest(texts.into_iter().find(fits).unwrap_or_else(|| format!("{value:e}")))
}

#[cfg(test)]
mod tests {
    use super::{float, integer, of_half, shortest};

    #[test]
    fn floats_are_written_as_numpy_writes_them() {
        let text = |v: f32| shortest(format!("{v:e}"));
        let values = [
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.976_761_1, "0.9767611"),
            (0.039_187_793, "0.039187793"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1234.5, "1234.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (f32::NAN, "nan"),
            (f32::NEG_INFINITY, "-inf"),
            (0.0, "0.0"),
        ];
        for (value, expected) in values {
            assert_eq!(text(value), expected);
        }
        let half = half::f16::from_f32(0.1);
        assert_eq!(of_half(half.to_f32(), |v| half::f16::from_f32(v) == half), "0.1");
    }

    #[test]
    fn texts_are_read_and_others_refused() {
        assert_eq!(float(b" -1.5e2 ").unwrap(), -150.0);
        assert_eq!(float(b"+INF").unwrap(), f64::INFINITY);
        assert!(float(b"NaN").unwrap().is_nan());
        assert_eq!((integer(b"-9223372036854775808").unwrap(), integer(b"2.9").unwrap()), (i64::MIN, 2));
        assert!(float(b"one").is_err() && integer(b"").is_err());
    }
}
