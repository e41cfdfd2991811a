//! `strftime_now`, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A moment on the calendar.
struct Calendar {
    year: i64,
    /// From 1.
    month: usize,
    day: i64,
    /// From 1 January = 1.
    day_of_year: i64,
    /// Sunday = 0.
    weekday: usize,
    second_of_day: i64,
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Calendar {
    fn new(time: SystemTime) -> Self {
        // Times before 1970 are of no use in a prompt.
        let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs().min(1 << 37)) as i64;
        let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
        let mut year = 1970 + days / 146_097 * 400;
        let mut left = days % 146_097;
        while left >= 365 + i64::from(is_leap(year)) {
            left -= 365 + i64::from(is_leap(year));
            year += 1;
        }
        let day_of_year = left + 1;
        let february = 28 + i64::from(is_leap(year));
        let mut month = 1;
        for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
            if left < length {
                break;
            }
            left -= length;
            month += 1;
        }
        let weekday = ((days + 4) % 7) as usize;
        Self { year, month, day: left + 1, day_of_year, weekday, second_of_day }
    }
}

/// `time` in Python's `strftime` notation.
pub(crate) fn format(time: SystemTime, format: &str) -> Result<String, Error> {
    let at = Calendar::new(time);
    let (hour, minute, second) = (at.second_of_day / 3600, at.second_of_day / 60 % 60, at.second_of_day % 60);
    let hour12 = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let mut code = characters.next();
        let padded = code != Some('-');
        if !padded {
            code = characters.next();
        }
        let number = |value: i64, width: usize| match padded {
            true => format!("{value:0width$}"),
            false => value.to_string(),
        };
        let (month, weekday) = (MONTHS[at.month - 1], WEEKDAYS[at.weekday]);
        let text = match code {
            Some('Y') => at.year.to_string(),
            Some('y') => number(at.year % 100, 2),
            Some('m') => number(at.month as i64, 2),
            Some('d') => number(at.day, 2),
            Some('e') => format!("{:2}", at.day),
            Some('j') => number(at.day_of_year, 3),
            Some('H') => number(hour, 2),
            Some('I') => number(hour12, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('p') => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
            Some('B') => month.to_owned(),
            Some('b' | 'h') => month[..3].to_owned(),
            Some('A') => weekday.to_owned(),
            Some('a') => weekday[..3].to_owned(),
            Some('F') => format!("{}-{:02}-{:02}", at.year, at.month, at.day),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('Z') => "UTC".to_owned(),
            Some('z') => "+0000".to_owned(),
            Some('%') => "%".to_owned(),
            code => {
                let code = code.map(String::from).unwrap_or_default();
                let message = format!("strftime_now: `%{code}` is not supported");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        };
        out.push_str(&text);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_as_python_writes_them() {
        // python -c "from datetime import *; print(datetime.fromtimestamp(T, timezone.utc).strftime(F))"
        let cases = [
            (0, "%Y-%m-%d %H:%M:%S %A %j", "1970-01-01 00:00:00 Thursday 001"),
            (951_782_399, "%d %b %Y %I:%M %p", "28 Feb 2000 11:59 PM"),
            (951_782_400, "%d %B %y %j", "29 February 00 060"),
            (1_735_689_599, "%a %b %e %T %Z%z %%", "Tue Dec 31 23:59:59 UTC+0000 %"),
            (4_102_444_800, "%F %-d/%-m", "2100-01-01 1/1"),
            (4_107_542_400, "%F", "2100-03-01"),
        ];
        for (seconds, pattern, expected) in cases {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(format(time, pattern).unwrap(), expected, "{seconds}");
        }
        assert!(format(UNIX_EPOCH, "%Q").is_err());
    }
}
