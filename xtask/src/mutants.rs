//! Planted faults: each is one wrong line of the protocol, behind a `cfg`, and a test must notice it.
//!
//! A set of models proves something only if it fails when the protocol is wrong.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::models;
use crate::steps::{Steps, execute};
use crate::workspace::{cargo, files, root, target, text};

/// A planted fault.
struct Fault {
    /// The value of `maitred_mutant`.
    name: &'static str,
    /// What its test is built with.
    built: Built,
    /// The test that notices it soonest.
    noticed_by: &'static str,
    /// Whether that takes less than half a minute.
    quick: bool,
}

#[derive(Clone, Copy)]
enum Built {
    Loom,
    Points,
}

static FAULTS: &[Fault] = &[
    fault("arrive_without_looking_again", ""),
    stress("clock_not_installed"),
    Fault { quick: true, ..stress("finish_without_looking_again") },
    stress("header_not_installed"),
    Fault { noticed_by: "a_thread_held", ..stress("helpers_wait") },
    fault("level_word_first", ""),
    fault("old_value_back", ""),
    fault("repeating_words", ""),
    fault("state_before_start", ""),
    fault("unchecked_read", ""),
];

const fn fault(name: &'static str, noticed_by: &'static str) -> Fault {
    Fault { name, built: Built::Loom, noticed_by, quick: false }
}

/// A fault that many threads notice.
const fn stress(name: &'static str) -> Fault {
    Fault { name, built: Built::Points, noticed_by: "with_the_short_way", quick: false }
}

#[derive(clap::Args)]
#[group(skip)]
pub struct Options {
    /// Only the faults that are noticed within seconds.
    #[arg(long)]
    quick: bool,
    /// Only this fault.
    #[arg(value_name = "FAULT")]
    only: Option<String>,
}

impl Options {
    pub fn quick() -> Self {
        Options { quick: true, only: None }
    }
}

pub fn run(steps: &mut Steps, options: &Options) {
    let chosen = |fault: &&Fault| match &options.only {
        Some(name) => fault.name == name,
        None => fault.quick || !options.quick,
    };
    let mut any = false;
    for fault in FAULTS.iter().filter(chosen) {
        any = true;
        steps.check(&format!("fault: {}", fault.name), || is_noticed(fault));
    }
    if !any {
        steps.check("faults", || bail!("no such fault"));
    }
}

/// Builds with the fault and expects the test to fail. First without, so that a test that always fails counts for
/// nothing; that run is part of `loom` and `points`.
fn is_noticed(fault: &Fault) -> Result<()> {
    let folder = target("mutants");
    // The wrapper's variable is nothing that cargo knows of: what was built with another fault has to go.
    let mut clean = cargo("clean");
    clean.args(["--release", "--package", "maitred", "--target-dir"]).arg(&folder).stderr(Stdio::null());
    execute(&mut clean)?;
    let command = || -> Result<Command> {
        let mut test = match fault.built {
            Built::Loom => models::loom_command(&folder)?,
            Built::Points => models::points_command(&folder)?,
        };
        test.env("RUSTC_WORKSPACE_WRAPPER", root().join("xtask/with-fault.sh"));
        test.env("MAITRED_FAULT", fault.name);
        Ok(test)
    };
    // What does not build has noticed nothing.
    execute(command()?.arg("--no-run"))?;
    let status = command()?.args(["--", fault.noticed_by]).status().context("cannot run cargo")?;
    if status.success() {
        bail!("{} passes with the fault planted", fault.noticed_by);
    }
    Ok(())
}

/// The names of all faults.
pub fn names() -> impl Iterator<Item = &'static str> {
    FAULTS.iter().map(|fault| fault.name)
}

/// The table and the sources name the same faults.
pub fn check_table() -> Result<()> {
    let mut planted = BTreeSet::new();
    for file in files()?.iter().filter(|file| file.starts_with("core/src")) {
        if let Some(text) = text(file)? {
            planted.extend(
                text.split("maitred_mutant = \"")
                    .skip(1)
                    .filter_map(|rest| rest.split_once('"').map(|(name, _)| name.to_owned())),
            );
        }
    }
    let listed: BTreeSet<String> = names().map(str::to_owned).collect();
    if planted != listed {
        let unlisted: Vec<_> = planted.difference(&listed).collect();
        let gone: Vec<_> = listed.difference(&planted).collect();
        bail!("xtask/src/mutants.rs: not in the table: {unlisted:?}; not in the sources: {gone:?}");
    }
    Ok(())
}
