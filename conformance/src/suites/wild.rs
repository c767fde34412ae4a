//! `wild/expected.jsonl`: manifests in files, and what kubectl and a server made of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use maitred::api::{Version, encode};
use maitred::error::FaultKind;
use maitred_manifest::{Entry, Manifest, Strictness};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    file: String,
    /// Kind and name, joined by a slash.
    object: String,
    accepted: bool,
    /// HTTP status.
    code: Option<u16>,
    /// Field, and reason; the reason `type` stands for a wrong JSON type.
    causes: Option<Vec<(String, String)>>,
    /// `client` where kubectl refused before it sent anything.
    by: Option<String>,
    /// The stored spec, or those of its fields that matter.
    spec: Option<Value>,
    precedence: Option<i32>,
    #[serde(rename = "note")]
    _note: Option<String>,
}

/// Runs one file.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut files = BTreeMap::new();
    for (number, case) in cases(path)? {
        let entries = match files.entry(case.file.clone()) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                new.insert(entries(&path.with_file_name(&case.file))?)
            }
        };
        // An object that cannot be read has no name.
        let entry = entries
            .iter()
            .find(|entry| entry.object.to_string() == case.object)
            .or_else(|| entries.iter().find(|entry| entry.object.kind.is_empty()));
        let expected = expected(&case);
        let got = entry.map_or(Value::Null, |entry| got(entry, &case));
        outcome.check(|| format!("line {number}, {} in {}", case.object, case.file), &expected, &got);
    }
    Ok(outcome)
}

/// The manifests that a run reads.
pub fn inputs(path: &Path) -> Vec<PathBuf> {
    let cases = cases(path).unwrap_or_default();
    cases.iter().map(|(_, case)| path.with_file_name(&case.file)).collect()
}

fn cases(path: &Path) -> Result<Vec<(usize, Case)>> {
    let lines = vectors::lines(path)?.into_iter();
    let case = |line: vectors::Line| {
        let case = serde_json::from_value(line.value)
            .with_context(|| format!("{}:{}", path.display(), line.number))?;
        Ok((line.number, case))
    };
    lines.map(case).collect()
}

fn entries(path: &Path) -> Result<Vec<Entry>> {
    let manifest = Manifest::read(&[path], &mut std::io::empty());
    let (entries, unreadable) = manifest.into_entries(Strictness::Warn);
    ensure!(unreadable.is_empty(), "{}: {}", path.display(), unreadable[0].message);
    Ok(entries)
}

/// What the line tells, in the form that [`got`] answers in.
fn expected(case: &Case) -> Value {
    let causes = case.causes.as_ref().map(|causes| {
        let mut causes = causes.clone();
        causes.sort();
        causes
    });
    json!({
        "accepted": case.accepted,
        "code": case.code,
        "by client": case.by.is_some(),
        "causes": causes,
        "spec": case.spec,
        "precedence": case.precedence,
    })
}

/// What we make of the object, as far as the line tells.
fn got(entry: &Entry, case: &Case) -> Value {
    let object = entry.decoded();
    let spec = object.map(|object| encode(object, Version::V1)["spec"].take());
    let wrong_type = entry.faults.iter().any(|fault| fault.kind == FaultKind::TypeInvalid);
    // kubectl looks at nothing but the kind and its version.
    let by_client = object.is_none() && !wrong_type;
    let code = match (entry.accepted(), wrong_type) {
        (true, _) => 201,
        (false, true) => 400,
        (false, false) => 422,
    };
    let mut causes: Vec<_> = entry
        .faults
        .iter()
        .map(|fault| {
            let reason = if fault.kind == FaultKind::TypeInvalid { "type" } else { fault.kind.reason() };
            (fault.path.as_str(), reason)
        })
        .collect();
    causes.sort();
    json!({
        "accepted": entry.accepted(),
        "code": case.code.map(|_| code),
        "by client": by_client,
        "causes": case.causes.as_ref().map(|_| causes),
        "spec": case.spec.as_ref().map(|expected| told(spec.clone().unwrap_or_default(), expected)),
        "precedence": case.precedence.map(|_| spec.unwrap_or_default()["matchingPrecedence"].take()),
    })
}

/// The members of `value` that `expected` speaks of.
fn told(value: Value, expected: &Value) -> Value {
    match (value, expected) {
        (Value::Object(map), Value::Object(expected)) => map
            .into_iter()
            .filter_map(|(key, member)| expected.get(&key).map(|expected| (key, told(member, expected))))
            .collect(),
        (Value::Array(items), Value::Array(expected)) if items.len() == expected.len() => {
            items.into_iter().zip(expected).map(|(item, expected)| told(item, expected)).collect()
        }
        (value, _) => value,
    }
}
