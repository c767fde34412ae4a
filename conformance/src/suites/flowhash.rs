//! Hashes of flows.

use std::path::Path;

use maitred::flow::flow_hash;
use serde::Deserialize;

use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
struct Case {
    fs: String,
    d: String,
    h: String,
}

/// Every data line is a case.
pub fn run(path: &Path) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, Case { fs, d, h }) in vectors::data::<Case>(path)? {
        let got = flow_hash(&fs, &d).to_string();
        outcome.check(|| format!("line {line}: flow {fs:?}, {d:?}"), &h, &got);
    }
    Ok(outcome)
}
