//! Which initializers, by patterns of their names.

use std::fmt;

/// Names that match one of the patterns to include (all where there is none) and none of those to exclude. In a pattern
/// `*` stands for any characters, also none, and `?` for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameFilter {
    /// Patterns to include.
    pub include: Vec<String>,
    /// Patterns to exclude.
    pub exclude: Vec<String>,
}

impl NameFilter {
    /// Whether the name is selected.
    pub fn selects(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

impl fmt::Display for NameFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |patterns: &[String]| {
            patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(", ")
        };
        if !self.include.is_empty() {
            write!(f, " by {}", list(&self.include))?;
        }
        if !self.exclude.is_empty() {
            write!(f, " without {}", list(&self.exclude))?;
        }
        Ok(())
    }
}

/// Whether all of `name` is what `pattern` says.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Behind the last `*`, and where the name went on there.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                p += 1;
                retry = Some((p, n));
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, from)) => {
                    p = after;
                    n = from + 1;
                    retry = Some((after, n));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("w", "w", true),
            ("w", "w2", false),
            ("*.weight", "layer.0.weight", true),
            ("*.weight", "layer.0.weight.scale", false),
            ("layer.?.*", "layer.7.q", true),
            ("layer.?.*", "layer.17.q", false),
            ("*", "", true),
            ("a*b*c", "a-bb-b-c", true),
            ("a*b*c", "a-bb-b-d", false),
            ("**", "x", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn exclusion_wins_over_inclusion() {
        let filter = NameFilter { include: vec!["a*".into()], exclude: vec!["*2".into()] };
        assert_eq!(["a1", "a2", "b1"].map(|name| filter.selects(name)), [true, false, false]);
        assert!(NameFilter::default().selects("anything"));
    }
}
