//! Runs the files and says what came of each.

use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::outcome::{Mismatch, Outcome};
use crate::suites::{self, Suite};

/// Mismatches shown of each file.
const SHOWN: usize = 3;

/// Runs all `files` of `dir`, writes the report, and tells whether everything passed. A directory in which nothing is
/// known has not passed.
pub fn run(dir: &Path, files: &[PathBuf], out: &mut dyn Write) -> Result<bool> {
    let mut used = BTreeMap::new();
    for file in files {
        for input in suites::of(file).map_or_else(Vec::new, |suite| (suite.inputs)(file)) {
            used.insert(input, file);
        }
    }
    let (mut passed, mut total, mut runs) = (0, 0, 0);
    for file in files {
        let name = name(dir, file);
        if let Some(suite) = suites::of(file) {
            let outcome = outcome_of(suite, file);
            writeln!(out, "{name} passed {} of {}", outcome.passed, outcome.total)?;
            for Mismatch { case, expected, got } in outcome.mismatches.iter().take(SHOWN) {
                writeln!(out, "  {case}\n    expected {expected}\n    got      {got}")?;
            }
            if outcome.mismatches.len() > SHOWN {
                writeln!(out, "  and {} more", outcome.mismatches.len() - SHOWN)?;
            }
            passed += outcome.passed;
            total += outcome.total;
            runs += 1;
        } else if let Some(by) = used.get(file) {
            writeln!(out, "used: {name} (by {})", self::name(dir, by))?;
        } else {
            writeln!(out, "unknown: {name}")?;
        }
        out.flush()?;
    }
    writeln!(out, "ALL passed {passed} of {total} in {runs} files")?;
    Ok(runs > 0 && passed == total)
}

/// Runs one file. What keeps it from running at all counts as one failed case.
fn outcome_of(suite: &Suite, file: &Path) -> Outcome {
    let failed = |got: String| Outcome {
        total: 1,
        passed: 0,
        mismatches: vec![Mismatch { case: "the file as a whole".into(), expected: "a run".into(), got }],
    };
    match catch_unwind(AssertUnwindSafe(|| (suite.run)(file))) {
        Ok(Ok(outcome)) if outcome.total == 0 => failed("the file holds no case".into()),
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => failed(format!("{error:#}")),
        Err(_) => failed("a panic (its message is on standard error)".into()),
    }
}

fn name(dir: &Path, file: &Path) -> String {
    let path = file.strip_prefix(dir).unwrap_or(file);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
