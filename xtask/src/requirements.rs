//! Which tests prove which requirement. The table is `docs/requirements.md`; a test that proves one has above it a
//! line `// proves: E1, L2` (`# proves:` in Python). A check of this tool may prove one too: the line then stands
//! above its `run`.

mod proofs;
mod table;

use crate::outcome::{Faults, Outcome};
use crate::workspace;
use std::collections::BTreeMap;

const TABLE: &str = "docs/requirements.md";

pub(crate) fn run(_args: &[String]) -> Outcome {
    let mut faults = Faults::default();
    let text = std::fs::read_to_string(workspace::at(TABLE))
        .map_err(|error| Faults::one(format!("{TABLE}: {error}")))?;
    let rows = table::parse(TABLE, &text, &mut faults);
    let mut proofs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in workspace::sources(|path| path.ends_with(".rs") || path.ends_with(".py"))? {
        for proof in proofs::scan(&source, &mut faults) {
            proofs.entry(proof.id).or_default().push(proof.test);
        }
    }
    judge(&rows, &proofs, &mut faults);
    for row in &rows {
        let tests = proofs.get(&row.id).map_or(&[][..], Vec::as_slice);
        println!("{:4} {:5} {}", row.id, if row.due { "due" } else { "open" }, row.must);
        for test in tests {
            println!("             {test}");
        }
    }
    let proved = rows.iter().filter(|row| proofs.contains_key(&row.id)).count();
    let due = rows.iter().filter(|row| row.due).count();
    println!("{} requirements, {due} due, {proved} with tests", rows.len());
    faults.outcome()
}

fn judge(rows: &[table::Row], proofs: &BTreeMap<String, Vec<String>>, faults: &mut Faults) {
    for row in rows.iter().filter(|row| row.due && !proofs.contains_key(&row.id)) {
        faults.push(format!("requirement `{}` is due and no test proves it", row.id));
    }
    for (id, tests) in proofs {
        if !rows.iter().any(|row| row.id == *id) {
            faults.push(format!("`{id}` is in no row of {TABLE}; it is named by {}", tests.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_row_without_a_test_and_an_unknown_id_are_faults() {
        let mut faults = Faults::default();
        let rows = table::parse("t", "| W1 | a | due |\n| W2 | b | due |\n| W3 | c | open |\n", &mut faults);
        let proofs = [("W1", "a.rs: x"), ("W9", "b.rs: y")];
        let proofs = proofs.map(|(id, test)| (id.to_owned(), vec![test.to_owned()])).into();
        judge(&rows, &proofs, &mut faults);
        let text = faults.to_string();
        assert!(text.contains("`W2` is due and no test proves it"), "{text}");
        assert!(text.contains("`W9` is in no row of docs/requirements.md; it is named by b.rs: y"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
