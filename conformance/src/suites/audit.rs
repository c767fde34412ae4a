//! Audit recordings of a real server: the log, classified and played through the engine, against what the server counted.
//!
//! For each flow schema of the recording two cases: the requests that the log holds, which must equal the recorded
//! `requests_in_log`; and what the engine dispatches and refuses of them, which must add up to it. One more case says
//! that the replay finds no schema that the recording does not know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use maitred::api::Objects;
use maitred::fidelity::Fidelity;
use maitred_manifest::{Manifest, Strictness, objects};
use maitred_replay::{Lines, Options, Plan, replay};
use serde::Deserialize;

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct Recorded {
    server_concurrency: u32,
    per_schema: Vec<RecordedSchema>,
}

#[derive(Deserialize)]
struct RecordedSchema {
    priority_level: String,
    flow_schema: String,
    requests_in_log: u64,
}

/// The log and the objects of the recording whose counts `path` tells.
pub fn inputs(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix("-expected.json")) else {
        return Vec::new();
    };
    [".jsonl.gz", ".jsonl", "-objects.yaml"]
        .map(|suffix| path.with_file_name(format!("{name}{suffix}")))
        .into()
}

/// Runs one recording.
pub fn run(path: &Path) -> Result<Outcome> {
    let recorded: Recorded =
        serde_json::from_value(vectors::json(path)?).with_context(|| path.display().to_string())?;
    if recorded.per_schema.is_empty() {
        bail!("{}: tells of no schema", path.display());
    }
    let files = inputs(path);
    let [gzip, plain, manifest] = &files[..] else {
        bail!("{}: is not named as a recording is", path.display())
    };
    let log = if gzip.exists() { gzip } else { plain };

    let plan = Plan::new(&read_objects(manifest)?, recorded.server_concurrency, Fidelity::Kubernetes)
        .map_err(|faults| anyhow!("{}: {faults:?}", manifest.display()))?;
    let lines = Lines::open(log).with_context(|| log.display().to_string())?;
    let name = log.display().to_string();
    let report = replay(&mut [(name, lines)], plan, None, &Options::default(), &mut |_| ())
        .map_err(|error| anyhow!("{}: {error}", log.display()))?;

    let mut outcome = Outcome::default();
    for schema in &recorded.per_schema {
        let RecordedSchema { priority_level, flow_schema, requests_in_log } = schema;
        let ours = report
            .per_schema
            .iter()
            .find(|s| s.priority_level == *priority_level && s.flow_schema == *flow_schema);
        let found = ours.map_or(0, |s| s.figures.requests_in_log);
        let case = |what: &str| format!("{priority_level}, {flow_schema}: {what}");
        outcome.check(|| case("requests in the log"), requests_in_log, &found);
        let played = ours.map_or(0, |s| s.figures.dispatched + s.figures.rejected.values().sum::<u64>());
        outcome.check(|| case("dispatched and refused by the engine"), requests_in_log, &played);
    }
    let known: BTreeSet<_> =
        recorded.per_schema.iter().map(|s| (s.priority_level.as_str(), s.flow_schema.as_str())).collect();
    let others: Vec<_> = report
        .per_schema
        .iter()
        .filter(|s| s.figures.requests_in_log > 0)
        .map(|s| (s.priority_level.as_str(), s.flow_schema.as_str()))
        .filter(|names| !known.contains(names))
        .collect();
    outcome.check(|| "requests of schemas that the recording does not know".into(), &Vec::new(), &others);
    Ok(outcome)
}

fn read_objects(path: &Path) -> Result<Objects> {
    let (entries, unreadable) = Manifest::read(&[path], &mut std::io::empty()).into_entries(Strictness::Warn);
    if let Some(file) = unreadable.first() {
        bail!("{}: {}", file.file, file.message);
    }
    objects(&entries).map_err(|faults| anyhow!("{}: {faults:?}", path.display()))
}
