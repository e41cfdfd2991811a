//! Rules that no compiler checks. Each rule looks at one tracked text file.

mod length;
mod safety;
mod sorted;
mod words;

use crate::outcome::{Faults, Outcome};
use crate::workspace::{self, Source};

type Rule = fn(&Source, &mut Faults);

const RULES: &[Rule] = &[length::check, safety::check, sorted::check, words::check];

pub(crate) fn run(_args: &[String]) -> Outcome {
    let sources = workspace::sources(|_| true)?;
    let mut faults = Faults::default();
    for source in &sources {
        for rule in RULES {
            rule(source, &mut faults);
        }
    }
    println!("{} files", sources.len());
    faults.outcome()
}

#[cfg(test)]
fn faults_of(rule: Rule, path: &str, text: &str) -> String {
    let mut faults = Faults::default();
    rule(&Source { path: path.to_owned(), text: text.to_owned() }, &mut faults);
    faults.to_string()
}
