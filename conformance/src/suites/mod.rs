//! Which file is run by which suite.
//!
//! A suite is `run(path) -> Result<Outcome>`: it reads one file and answers each of its cases through maitred's public
//! API. A file that cannot be read, or of which a line makes no sense, is an error, never a skip.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::outcome::Outcome;

mod audit;
mod bootstrap;
mod bootstrap_corpus;
mod concalloc;
mod dealer;
mod dropped;
mod flowhash;
mod integrator;
mod limits;
mod limits_corpus;
mod match_;
mod queueset;
mod seatdemand;
mod validate;
mod validation;
mod watchcount;
mod wild;
mod workestimate;

/// A kind of file that is known.
pub struct Suite {
    /// File name; one `*` stands for any text.
    pattern: &'static str,
    /// Runs one file.
    pub run: fn(&Path) -> Result<Outcome>,
    /// The files that a run reads besides.
    pub inputs: fn(&Path) -> Vec<PathBuf>,
}

const fn suite(pattern: &'static str, run: fn(&Path) -> Result<Outcome>) -> Suite {
    Suite { pattern, run, inputs: |_| Vec::new() }
}

/// Every kind of file, in no order that matters: no two patterns match the same name.
static SUITES: &[Suite] = &[
    suite("bootstrap.json", bootstrap_corpus::run),
    suite("bootstrap.jsonl", bootstrap::run),
    suite("concalloc.jsonl", concalloc::run),
    suite("dealer.jsonl", dealer::run),
    suite("dropped.jsonl", dropped::run),
    suite("flowhash.jsonl", flowhash::run),
    suite("integrator.jsonl", integrator::run),
    Suite { pattern: "limits.json", run: limits_corpus::run, inputs: limits_corpus::inputs },
    suite("limits.jsonl", limits::run),
    suite("match.jsonl", match_::run),
    suite("queueset.jsonl", queueset::run),
    suite("seatdemand.jsonl", seatdemand::run),
    suite("validate.jsonl", validate::run),
    suite("validation-*.jsonl", validation::run),
    suite("watchcount.jsonl", watchcount::run),
    suite("workestimate.jsonl", workestimate::run),
    Suite { pattern: "expected.jsonl", run: wild::run, inputs: wild::inputs },
    Suite { pattern: "*-expected.json", run: audit::run, inputs: audit::inputs },
];

/// The suite that runs `path`, going by its name, packed by gzip or not.
pub fn of(path: &Path) -> Option<&'static Suite> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    SUITES.iter().find(|suite| matches(suite.pattern, name))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            name.len() >= head.len() + tail.len() && name.starts_with(head) && name.ends_with(tail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("validation-*.jsonl", "validation-v1.jsonl"));
        assert!(!matches("validation-*.jsonl", "validation-v1.json"));
        assert!(!matches("*-expected.json", "expected.json"));
        assert!(!matches("limits.json", "limits.jsonl"));
    }

    #[test]
    fn no_name_has_two_suites() {
        for suite in SUITES {
            let name = suite.pattern.replace('*', "x");
            assert_eq!(SUITES.iter().filter(|other| matches(other.pattern, &name)).count(), 1, "{name}");
        }
    }
}
