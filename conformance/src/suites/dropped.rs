//! Retry-After from the history of dropped requests.

use std::path::Path;

use anyhow::Result;
use maitred::estimate::RetryAfterTracker;
use serde::Deserialize;

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct Story {
    /// [second, level, drops in it now, Retry-After after them]
    ops: Vec<(u64, String, u64, u64)>,
}

/// Every data line, one tracker's story, is a case.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, story) in vectors::data::<Story>(path)? {
        let tracker = RetryAfterTracker::new();
        let expected: Vec<u64> = story.ops.iter().map(|&(.., seconds)| seconds).collect();
        let answers = story.ops.iter().map(|(now, level, drops, _)| {
            for _ in 0..*drops {
                tracker.record(level, *now);
            }
            tracker.seconds(level)
        });
        let got: Vec<u64> = answers.collect();
        outcome.check(|| format!("line {line}: {} operations", story.ops.len()), &expected, &got);
    }
    Ok(outcome)
}
