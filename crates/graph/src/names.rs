//! Names that are close to a wrong one, for messages.

/// More candidates than this are not looked at.
const CANDIDATES: usize = 4096;
/// Longer names are compared by their first characters.
const LENGTH: usize = 64;

/// Up to three of the names that differ least from `name`, the closest first: those that can be had by changing a
/// third of the characters or fewer.
pub(crate) fn closest<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted: Vec<char> = name.chars().take(LENGTH).collect();
    let limit = (wanted.len() / 3).max(1);
    let mut found: Vec<(usize, &str)> =
        among.take(CANDIDATES).filter_map(|other| Some((edits(&wanted, other, limit)?, other))).collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name.into()).collect()
}

/// Characters to insert, remove or replace (Levenshtein's distance), where they are `limit` or fewer.
fn edits(wanted: &[char], other: &str, limit: usize) -> Option<usize> {
    let other: Vec<char> = other.chars().take(LENGTH).collect();
    if wanted.len().abs_diff(other.len()) > limit {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in wanted.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (corner + usize::from(a != b)).min(above + 1).min(row[j] + 1);
            corner = above;
        }
    }
    row.last().copied().filter(|&edits| edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn the_closest_names_come_first_and_far_ones_not_at_all() {
        let names = ["stateN", "states", "logits", "state_in"];
        assert_eq!(closest("stateM", names.into_iter()), ["stateN", "states"]);
        assert!(closest("completely_else", names.into_iter()).is_empty());
    }
}
