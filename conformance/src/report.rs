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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk;

    /// The report on a directory with these files, and the verdict.
    fn report(files: &[(&str, &str)]) -> (String, bool) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut out = Vec::new();
        let verdict = run(dir.path(), &walk::files(dir.path()).unwrap(), &mut out).unwrap();
        (String::from_utf8(out).unwrap(), verdict)
    }

    const HASHES: &str = "{\"fields\":{}}\n{\"fs\":\"\",\"d\":\"\",\"h\":\"10987292151339758702\"}\n";

    #[test]
    fn a_good_file_passes_and_others_are_listed() {
        let (text, verdict) = report(&[("a/flowhash.jsonl", HASHES), ("README.md", ""), ("a/x.yaml", "")]);
        assert_eq!(
            text,
            "unknown: README.md\na/flowhash.jsonl passed 1 of 1\nunknown: a/x.yaml\nALL passed 1 of 1 in 1 files\n"
        );
        assert!(verdict);
    }

    #[test]
    fn a_wrong_answer_is_shown_and_fails_the_whole() {
        let (text, verdict) = report(&[("flowhash.jsonl", &HASHES.replace("8702", "8703"))]);
        assert!(text.starts_with("flowhash.jsonl passed 0 of 1\n  "), "{text}");
        assert!(text.contains("10987292151339758703") && text.contains("10987292151339758702"), "{text}");
        assert!(text.ends_with("ALL passed 0 of 1 in 1 files\n") && !verdict);
    }

    #[test]
    fn what_holds_no_case_or_cannot_be_read_fails() {
        let cut = &HASHES[..HASHES.len() - 5];
        let headless = HASHES.split_once('\n').unwrap().1;
        for text in ["", "{\"fields\":{}}\n", cut, headless, "not json\n"] {
            let (report, verdict) = report(&[("flowhash.jsonl", text)]);
            assert!(report.starts_with("flowhash.jsonl passed 0 of 1\n"), "{text:?}: {report}");
            assert!(!verdict);
        }
        assert_eq!(report(&[]), ("ALL passed 0 of 0 in 0 files\n".to_owned(), false));
    }
}
