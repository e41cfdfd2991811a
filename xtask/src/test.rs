//! All tests and checks, in the order in which a fault is cheapest to find. Sets up what it needs: a Python
//! environment in `.venv`, cargo-deny in `target/cargo-deny`, the real models in Heirloom's cache.

mod process;
mod reading;
mod steps;

use crate::outcome::{Faults, Outcome};
use process::Finished;
use reading::Tally;
use std::time::{Duration, Instant};
use steps::{STEPS, Step};

const USAGE: &str = "usage: cargo xtask test [--only STEP,…] [--skip STEP,…] [--list]";

/// How much of a failing step's output the summary shows.
const SHOWN_LINES: usize = 200;

struct Done {
    step: &'static Step,
    tally: Tally,
    messages: String,
}

pub(crate) fn run(args: &[String]) -> Outcome {
    let Some(steps) = chosen(args)? else {
        for step in STEPS {
            println!("  {:14}{}", step.name, step.about);
        }
        return Ok(());
    };
    let start = Instant::now();
    let done: Vec<Done> = steps.into_iter().map(run_step).collect();
    summarize(&done, start.elapsed());
    let failed: usize = done.iter().map(|done| done.tally.failed).sum();
    // What failed has been told; the counts stay the last line.
    if failed == 0 { Ok(()) } else { Err(Faults::default()) }
}

/// The steps to run, or `None` where only their list is wanted.
fn chosen(args: &[String]) -> Result<Option<Vec<&'static Step>>, Faults> {
    let mut steps: Vec<&Step> = STEPS.iter().collect();
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--list" {
            return Ok(None);
        }
        let names = args.next().ok_or_else(|| Faults::one(USAGE))?;
        let names: Vec<&str> = names.split(',').collect();
        if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
            return Err(Faults::one(format!("there is no step `{unknown}`; `--list` shows them\n{USAGE}")));
        }
        match flag.as_str() {
            "--only" => steps.retain(|step| names.contains(&step.name)),
            "--skip" => steps.retain(|step| !names.contains(&step.name)),
            _ => return Err(Faults::one(USAGE)),
        }
    }
    Ok(Some(steps))
}

fn run_step(step: &'static Step) -> Done {
    use std::io::Write as _;
    print!("{:14}", step.name);
    let _ = std::io::stdout().flush();
    let start = Instant::now();
    let finished = (step.commands)().and_then(|commands| process::run_all(step.name, commands));
    let (tally, messages) = match finished {
        Ok(Finished { success, log, output }) => {
            let tally = step.reading.tally(&output, success);
            let messages = if tally.failed == 0 {
                String::new()
            } else {
                excerpt(&step.reading.failures(&output), &log)
            };
            (tally, messages)
        }
        Err(faults) => (Tally { passed: 0, failed: 1, skipped: 0 }, faults.to_string()),
    };
    println!("{:>7.1} s  {tally}", start.elapsed().as_secs_f64());
    Done { step, tally, messages }
}

fn excerpt(text: &str, log: &std::path::Path) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(SHOWN_LINES);
    let cut = if from > 0 { format!("… {from} lines more in {}\n", log.display()) } else { String::new() };
    cut + &lines[from..].join("\n")
}

fn summarize(done: &[Done], time: Duration) {
    for done in done.iter().filter(|done| done.tally.failed > 0) {
        println!("\n──── {} failed ────\n{}", done.step.name, done.messages.trim_end());
    }
    let total = done.iter().fold(Tally::default(), |total, done| total + done.tally);
    println!("\n{:.0} s in all", time.as_secs_f64());
    println!("{total}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Vec<&'static str> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        chosen(&args).unwrap().unwrap().into_iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_are_chosen_by_name_and_unknown_names_refused() {
        assert_eq!(names(&[]).len(), STEPS.len());
        assert_eq!(names(&["--only", "tidy,fmt"]), ["fmt", "tidy"]);
        assert!(!names(&["--skip", "deny"]).contains(&"deny"));
        let unknown = ["--only".to_owned(), "nothing".to_owned()];
        assert!(chosen(&unknown).unwrap_err().to_string().contains("no step `nothing`"));
    }

    #[test]
    fn an_excerpt_keeps_the_end_and_tells_where_the_rest_is() {
        let text = (0..SHOWN_LINES + 5).map(|line| format!("{line}\n")).collect::<String>();
        let shown = excerpt(&text, std::path::Path::new("x.log"));
        assert!(shown.starts_with("… 5 lines more in x.log\n5\n") && shown.ends_with("204"), "{shown}");
        assert_eq!(excerpt("a\nb\n", std::path::Path::new("x.log")), "a\nb");
    }
}
