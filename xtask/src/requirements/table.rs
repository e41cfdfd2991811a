//! The table of requirements: rows `| ID | what must hold | due |` or `… | open |`.

use crate::outcome::Faults;

pub(super) struct Row {
    pub(super) id: String,
    pub(super) must: String,
    pub(super) due: bool,
}

/// All rows whose first cell looks like an ID (capital letters and a number).
pub(super) fn parse(path: &str, text: &str, faults: &mut Faults) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        if !line.starts_with('|') || !is_id(cells[0]) {
            continue;
        }
        let [id, must, due] = cells[..] else {
            faults.at(path, index + 1, "a row has three cells: ID, what must hold, due or open");
            continue;
        };
        if !matches!(due, "due" | "open") {
            faults.at(path, index + 1, format_args!("`{due}` is neither `due` nor `open`"));
        }
        if rows.iter().any(|row| row.id == id) {
            faults.at(path, index + 1, format_args!("`{id}` has a row already"));
        }
        rows.push(Row { id: id.to_owned(), must: must.to_owned(), due: due == "due" });
    }
    rows
}

/// One or two capital letters and a number, such as `W1` and `GB12`.
pub(super) fn is_id(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.len() - digits.len();
    (1..=2).contains(&letters) && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_bad_ones_named() {
        let mut faults = Faults::default();
        let text = "# W\n| ID | must | due |\n|---|---|---|\n| W1 | one | due |\n| GB2 | two | open |\n\
                    | W1 | again | due |\n| W3 | three | later |\n| W4 | four |\n";
        let rows = parse("t.md", text, &mut faults);
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["W1", "GB2", "W1", "W3"]);
        assert!(rows[0].due && !rows[1].due);
        let text = faults.to_string();
        assert!(text.contains("t.md:6: `W1` has a row already"), "{text}");
        assert!(text.contains("t.md:7: `later`") && text.contains("t.md:8: a row has"), "{text}");
    }

    #[test]
    fn ids_are_letters_and_a_number() {
        assert!(is_id("W1") && is_id("GB12"));
        assert!(!is_id("ID") && !is_id("1") && !is_id("w1") && !is_id("W1a") && !is_id(""));
    }
}
