//! The README is true: its commands run, and print what it shows.
//!
//! In a `sh` block, each line is a command; the `text` block that follows shows lines of what the last one prints. `…`
//! stands for what differs or was left out. A command that runs these tests is not run by them.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::steps::{Steps, output};
use crate::workspace::{cargo, root};

const DOCUMENT: &str = "README.md";
const LEFT_OUT: &str = "…";

/// A command, and what the document shows of its output.
#[derive(Debug, PartialEq)]
struct Example {
    line: usize,
    command: String,
    shown: Vec<String>,
}

pub fn run(steps: &mut Steps) {
    let text = std::fs::read_to_string(root().join(DOCUMENT)).context("cannot read README.md");
    let examples = match text.map(|text| examples(&text)) {
        Ok(examples) => examples,
        Err(error) => return steps.check("README", || Err(error)),
    };
    let mut runnable = 0;
    for example in &examples {
        if let Some(arguments) = runnable_arguments(&example.command) {
            runnable += 1;
            steps.check(&format!("README:{}", example.line), || judge(example, &arguments));
        }
    }
    steps.check("README", || if runnable == 0 { bail!("{DOCUMENT} has no command to run") } else { Ok(()) });
}

/// The arguments of cargo, if the command runs a program of this workspace.
fn runnable_arguments(command: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "run", ..] => Some(words[1..].to_vec()),
        _ => None,
    }
}

fn judge(example: &Example, arguments: &[&str]) -> Result<()> {
    let mut command: Command = cargo(arguments[0]);
    let printed = output(command.args(&arguments[1..]))?;
    let mut lines = printed.lines();
    for shown in &example.shown {
        if !lines.any(|line| agrees(shown, line)) {
            bail!(
                "{DOCUMENT} shows a line that was not printed (or not in this place):\n  {shown}\nprinted was:\n{printed}"
            );
        }
    }
    Ok(())
}

/// Whether a printed line is the one that is shown, whatever the spaces between the words.
fn agrees(shown: &str, printed: &str) -> bool {
    let mut rest = printed.split_whitespace();
    let mut words = shown.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word == LEFT_OUT {
            match words.peek() {
                None => return true,
                Some(next) => {
                    // Up to the next word that is shown.
                    let mut ahead = rest.clone();
                    loop {
                        match ahead.clone().next() {
                            None => return false,
                            Some(found) if found == *next => break,
                            Some(_) => ahead.next(),
                        };
                    }
                    rest = ahead;
                }
            }
        } else if rest.next() != Some(word) {
            return false;
        }
    }
    rest.next().is_none()
}

/// The commands of a document.
fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut block = "";
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            block = if block.is_empty() { if language.is_empty() { "plain" } else { language } } else { "" };
        } else if block == "sh" && !line.trim().is_empty() {
            found.push(Example { line: index + 1, command: line.trim().into(), shown: Vec::new() });
        } else if block == "text"
            && let Some(example) = found.last_mut()
            && line.trim() != LEFT_OUT
            && !line.trim().is_empty()
        {
            example.shown.push(line.into());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_with_what_is_shown_of_their_output() {
        let text = "a\n```sh\ncargo run x\n```\nb\n```text\none\n…\ntwo  2\n```\n```rust\nlet x;\n```\n";
        let shown = vec!["one".to_owned(), "two  2".to_owned()];
        assert_eq!(examples(text), [Example { line: 3, command: "cargo run x".into(), shown }]);
    }

    #[test]
    fn dots_stand_for_words_that_differ() {
        assert!(agrees("took … s in all", "took 1.5 s   in all"));
        assert!(agrees("total 12 …", "total 12 and so on"));
        assert!(!agrees("total 12", "total 13"));
        assert!(!agrees("total 12", "total 12 more"));
        assert!(!agrees("took … s", "took 1.5"));
    }

    #[test]
    fn only_programs_of_the_workspace_are_run() {
        assert!(runnable_arguments("cargo run --release -- replay x").is_some());
        assert!(runnable_arguments("cargo xtask test").is_none());
    }
}
