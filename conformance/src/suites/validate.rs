//! Defaults, conversion to v1, and the checks of the API objects that are written by hand.

use std::path::Path;

use anyhow::{Context as _, Result};
use maitred::api::{self, DecodeOptions, Kind, Object, Reference, Version};
use maitred::error::FaultKind;
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct Case {
    /// API version of the input.
    v: String,
    kind: String,
    #[serde(rename = "in")]
    input: Value,
    /// The spec after defaults, in v1.
    out: Value,
    /// Path and kind of each error, sorted.
    errs: Vec<(String, String)>,
}

/// Every data line is a case: the spec after defaults, and the faults.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, case) in vectors::data::<Case>(path)? {
        let place = || format!("{}:{line}", path.display());
        let kind = Kind::from_name(&case.kind).with_context(place)?;
        let version =
            Version::ALL.into_iter().find(|version| version.name() == case.v).with_context(place)?;
        let options = DecodeOptions { kind: Some(kind), version: Some(version), ..DecodeOptions::default() };
        let reading = api::decode_with(&case.input, options);
        let got = match &reading.object {
            Some(object) => (without_absent(&spec(object)), faults(object, version)),
            None => {
                (Value::Null, reading.faults.iter().map(|fault| (fault.path.clone(), "unread")).collect())
            }
        };
        let errs = case.errs.iter().map(|(path, kind)| (path.clone(), kind.as_str())).collect();
        outcome.check(
            || format!("line {line}: {} {}", case.v, case.kind),
            &(without_absent(&case.out), errs),
            &got,
        );
    }
    Ok(outcome)
}

fn spec(object: &Object) -> Value {
    api::encode(object, Version::V1)["spec"].take()
}

fn faults(object: &Object, version: Version) -> Vec<(String, &'static str)> {
    let faults = api::validate_with(object, version, Reference::Checks1_37);
    let mut faults: Vec<_> = faults.into_iter().map(|fault| (fault.path, word(fault.kind))).collect();
    faults.sort();
    faults
}

/// What the vectors call a kind of fault.
fn word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Required => "required",
        FaultKind::Invalid => "invalid",
        FaultKind::NotSupported => "not-supported",
        FaultKind::Forbidden => "forbidden",
        FaultKind::TooLong => "too-long",
        other => other.reason(),
    }
}

/// The value without members that are `null` or an empty list: an absent list may be written either way.
fn without_absent(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
            .map(|(key, value)| (key.clone(), without_absent(value)))
            .collect(),
        Value::Array(list) => list.iter().map(without_absent).collect(),
        other => other.clone(),
    }
}
