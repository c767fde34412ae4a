//! The lock-free protocol, interleaving by interleaving.
//!
//! Loom runs small models of two or three threads through every order of their atomic operations, up to a number of
//! preemptions. Points suspend real threads for good in the middle of an operation and let the others go on. Both build
//! the engine with a `cfg` of its own, into folders of their own, so that the usual artefacts stay.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::steps::{Steps, execute};
use crate::workspace::{engine_tests, locked, rustflags, target};

/// Ends of the names of the tests, by the `cfg` that they are built with.
const LOOM: &str = "_loom";
const POINTS: &str = "_points";

#[derive(clap::Args, Clone)]
#[group(skip)]
pub struct Options {
    /// Preemptions that a loom model explores.
    #[arg(long, value_name = "N", default_value_t = 2)]
    preemptions: u32,
    /// Seconds after which a loom model is cut short; it says whether it was.
    #[arg(long, value_name = "S", default_value_t = 4)]
    seconds_per_model: u32,
}

pub fn loom(steps: &mut Steps, options: &Options) {
    steps.check("models: loom", || {
        let mut test = loom_command(&target("loom"))?;
        test.env("MAITRED_LOOM_BOUND", options.preemptions.to_string());
        test.env("MAITRED_LOOM_SECONDS", options.seconds_per_model.to_string());
        // What was explored is told on standard output.
        execute(test.args(["--", "--nocapture"]))
    });
}

pub fn points(steps: &mut Steps) {
    steps.check("models: suspended threads", || execute(&mut points_command(&target("maitred_points"))?));
}

/// Tests that suspend threads at points, and those of many threads, which yield at them.
pub fn points_command(folder: &Path) -> Result<Command> {
    let mut test = test_command("maitred_points", POINTS, folder)?;
    test.args(["--test", "level_threads"]);
    Ok(test)
}

/// The models.
pub fn loom_command(folder: &Path) -> Result<Command> {
    test_command("loom", LOOM, folder)
}

/// Runs the engine's tests that end with `suffix`, built with `cfg` into `folder`.
fn test_command(cfg: &str, suffix: &str, folder: &Path) -> Result<Command> {
    let mut test = locked("test");
    test.args(["--release", "--package", "maitred"]);
    for name in engine_tests(suffix)? {
        test.arg("--test").arg(name);
    }
    test.arg("--target-dir").arg(folder).env("RUSTFLAGS", rustflags(&format!("--cfg {cfg}")));
    Ok(test)
}
