//! Rules of this repository that no tool knows.

pub mod doors;
pub mod licences;
pub mod links;
pub mod msrv;
pub mod paths;

use anyhow::{Result, bail};

use crate::steps::Steps;

/// All rules that need nothing but the files.
pub fn run(steps: &mut Steps) {
    steps.check("lint: doors", doors::check);
    steps.check("lint: paths", paths::check);
    steps.check("lint: links", links::check);
    steps.check("lint: planted faults", crate::mutants::check_table);
}

/// Fails with all `faults`, one a line.
fn verdict(faults: Vec<String>) -> Result<()> {
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}
