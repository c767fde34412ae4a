//! All that has to pass, in the order that tells soonest.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::steps::{Steps, output};
use crate::workspace::locked;
use crate::{conformance, lint, models, mutants, readme};

#[derive(clap::Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    models: models::Options,
    #[command(flatten)]
    conformance: conformance::Options,
}

pub fn run(steps: &mut Steps, options: &Options) {
    steps.check("tools", tools);
    lint::run(steps);
    steps.check("minimum Rust version", lint::msrv::check);
    lint::licences::run(steps);
    steps.command("workspace tests", locked("test").arg("--workspace"));
    models::points(steps);
    models::loom(steps, &options.models);
    mutants::run(steps, &mutants::Options::quick());
    conformance::run(steps, &options.conformance);
    readme::run(steps);
}

/// What the steps need besides cargo, all of which a missing tool would otherwise tell late and obscurely. Crates are
/// fetched by cargo.
fn tools() -> Result<()> {
    let needed = [
        ("cc", "links programs: install a C compiler, such as the package `gcc`"),
        ("git", "lists the files of the repository: install the package `git`"),
        ("rustfmt", "formats: rustup component add rustfmt"),
    ];
    let mut missing = Vec::new();
    for (tool, why) in needed {
        if output(Command::new(tool).arg("--version")).is_err() {
            missing.push(format!("`{tool}` {why}"));
        }
    }
    if !missing.is_empty() {
        bail!("missing: {}", missing.join("; "));
    }
    let rustc = output(Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-V"))?;
    let version = rustc.split_whitespace().nth(1).context("`rustc -V` names no version")?;
    lint::msrv::at_least(version)
}
