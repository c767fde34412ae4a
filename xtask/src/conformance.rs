//! Recorded answers of the reference: the slices that are checked in, and the whole sets where they are at hand.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::steps::{Steps, execute};
use crate::workspace::{locked, root};

/// The folders of the recorded sets.
const SETS: [&str; 3] = ["vectors", "corpus", "audit"];

#[derive(clap::Args)]
#[group(skip)]
pub struct Options {
    /// Folder that holds the recorded sets `vectors`, `corpus` and `audit`.
    #[arg(long, value_name = "DIR", default_value = "../shared")]
    recordings: PathBuf,
    /// Fails where they are missing, instead of saying that they were not run.
    #[arg(long)]
    require_recordings: bool,
}

pub fn run(steps: &mut Steps, options: &Options) {
    steps.check("conformance: checked in", || judge(&root().join("core/tests/vectors")));
    for set in SETS {
        let name = format!("conformance: {set}");
        let dir = root().join(&options.recordings).join(set);
        if dir.is_dir() || options.require_recordings {
            steps.check(&name, || judge_set(&dir));
        } else {
            let why = format!("{} is not there (--recordings DIR)", options.recordings.join(set).display());
            steps.not_run(&name, &why);
        }
    }
}

/// One set.
fn judge_set(dir: &Path) -> Result<()> {
    if !dir.is_dir() {
        bail!("{} is not there", dir.display());
    }
    judge(dir)
}

fn judge(dir: &Path) -> Result<()> {
    execute(locked("run").args(["--release", "--package", "maitred-conformance", "--"]).arg(dir))
}
