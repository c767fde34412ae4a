//! Steps: named, timed, all of them run even when one fails, and a table at the end that cannot be misread.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

enum Outcome {
    Passed,
    Failed(String),
    /// Not run, and why. Never a pass: the table says so.
    NotRun(String),
}

/// What was run so far.
pub struct Steps {
    done: Vec<(String, Outcome, Duration)>,
}

impl Steps {
    pub fn new() -> Self {
        Steps { done: Vec::new() }
    }

    /// Runs `check`; an error fails the step.
    pub fn check(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        eprintln!("==> {name}");
        let start = Instant::now();
        let outcome = match check() {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        let took = start.elapsed();
        match &outcome {
            Outcome::Failed(why) => eprintln!("==> {name}: FAILED after {:.1} s\n{why}", took.as_secs_f64()),
            _ => eprintln!("==> {name}: passed in {:.1} s", took.as_secs_f64()),
        }
        self.done.push((name.into(), outcome, took));
    }

    /// Runs `command`; a status other than success fails the step.
    pub fn command(&mut self, name: &str, command: &mut Command) {
        self.check(name, || execute(command));
    }

    /// Records that a step was left out.
    pub fn not_run(&mut self, name: &str, why: &str) {
        eprintln!("==> {name}: NOT RUN: {why}");
        self.done.push((name.into(), Outcome::NotRun(why.into()), Duration::ZERO));
    }

    /// Prints the table; success if no step failed.
    pub fn report(self) -> ExitCode {
        let failed = self.done.iter().filter(|(_, outcome, _)| matches!(outcome, Outcome::Failed(_))).count();
        if self.done.len() > 1 {
            eprintln!();
            for (name, outcome, took) in &self.done {
                let (verdict, why) = match outcome {
                    Outcome::Passed => ("passed", ""),
                    Outcome::Failed(why) => ("FAILED", why.lines().next().unwrap_or("")),
                    Outcome::NotRun(why) => ("NOT RUN", why.as_str()),
                };
                let line = format!("{verdict:>7} {:>7.1} s  {name:<28} {why}", took.as_secs_f64());
                eprintln!("{}", line.trim_end());
            }
            let not_run =
                self.done.iter().filter(|(_, outcome, _)| matches!(outcome, Outcome::NotRun(_))).count();
            let passed = self.done.len() - failed - not_run;
            eprintln!("{passed} passed, {failed} failed, {not_run} not run");
        }
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Runs `command` and waits for its end.
pub fn execute(command: &mut Command) -> Result<()> {
    eprintln!("    {}", shown(command));
    let status = command.status().with_context(|| missing(command))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs `command` and gives what it printed on standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output().with_context(|| missing(command))?;
    if !output.status.success() {
        bail!("{} ended with {}", shown(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} printed what is not UTF-8", shown(command)))
}

fn missing(command: &Command) -> String {
    format!("cannot run `{}`: is it installed and on PATH?", command.get_program().to_string_lossy())
}

/// The command as one would type it, with the variables that it sets.
fn shown(command: &Command) -> String {
    let mut words = Vec::new();
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={:?}", key.to_string_lossy(), value.to_string_lossy()));
        }
    }
    words.push(command.get_program().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
