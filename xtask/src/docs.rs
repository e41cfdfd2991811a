//! The documentation: links lead somewhere, and commands that it tells a reader to type exist.

use crate::outcome::{Faults, Outcome};
use crate::workspace::{self, Source};
use std::path::Path;

pub(crate) fn run(_args: &[String]) -> Outcome {
    let mut faults = Faults::default();
    let pages = workspace::sources(|path| path.ends_with(".md"))?;
    for page in &pages {
        check_links(page, &mut faults);
        check_commands(page, &mut faults);
    }
    println!("{} pages", pages.len());
    faults.outcome()
}

fn check_links(page: &Source, faults: &mut Faults) {
    for (index, line) in page.text.lines().enumerate() {
        for target in link_targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
            let path = workspace::root().join(if file.is_empty() {
                page.path.clone().into()
            } else {
                folder.join(file)
            });
            if !path.exists() {
                faults.at(&page.path, index + 1, format_args!("the link `{target}` leads nowhere"));
            } else if !anchor.is_empty() && !has_heading(&path, anchor) {
                faults.at(&page.path, index + 1, format_args!("`{target}`: the page has no such heading"));
            }
        }
    }
}

/// The targets of `[text](target)` in a line.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Whether a page has a heading that anchors as `anchor`: small letters, spaces as `-`, punctuation dropped.
fn has_heading(path: &Path, anchor: &str) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor_of(line.trim_start_matches('#').trim()) == anchor)
}

fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

fn check_commands(page: &Source, faults: &mut Faults) {
    for (index, line) in page.text.lines().enumerate() {
        for rest in line.split("cargo xtask ").skip(1) {
            let name = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
            if !name.is_empty() && crate::COMMANDS.iter().all(|command| command.name != name) {
                faults.at(&page.path, index + 1, format_args!("`cargo xtask {name}` is no command"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(check: fn(&Source, &mut Faults), text: &str) -> String {
        let mut faults = Faults::default();
        check(&Source { path: "docs/requirements.md".to_owned(), text: text.to_owned() }, &mut faults);
        faults.to_string()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        assert_eq!(faults_of(check_links, "[a](requirements.md#wire-format) [b](../Cargo.toml)"), "");
        assert!(
            faults_of(check_links, "\n[a](nowhere.md)")
                .contains("docs/requirements.md:2: the link `nowhere.md`")
        );
        assert!(faults_of(check_links, "[a](requirements.md#nowhere)").contains("no such heading"));
    }

    #[test]
    fn commands_exist() {
        assert_eq!(faults_of(check_commands, "`cargo xtask docs`, and cargo xtask fmt --check"), "");
        assert!(
            faults_of(check_commands, "run `cargo xtask nothing`")
                .contains("`cargo xtask nothing` is no command")
        );
    }
}
