//! The objects of a server that has just been set up.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use maitred::api::meta::Time;
use maitred::api::{DecodeOptions, Kind, Object, Version, builtin, decode_with, encode};
use serde_json::Value;

use crate::outcome::Outcome;

/// Every object of the two lists is a case: its spec, status, annotations and generation; so is the set of names.
pub fn run(path: &Path) -> Result<Outcome> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let recorded: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let mut outcome = Outcome::default();
    for kind in Kind::ALL {
        let items = &recorded[kind.resource()]["items"];
        let items =
            items.as_array().with_context(|| format!("{}: no {}", path.display(), kind.resource()))?;
        ensure!(!items.is_empty(), "{}: no {}", path.display(), kind.resource());
        let mut names = Vec::new();
        for item in items {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            names.push(name.to_owned());
            let created = item["metadata"]["creationTimestamp"].as_str().and_then(Time::parse);
            let created = created.with_context(|| format!("{}: {name} has no time", path.display()))?;
            // The condition may have been set later than the object was made.
            let found = item["status"]["conditions"][0]["lastTransitionTime"].as_str().and_then(Time::parse);
            let fresh = builtin::fresh(found.unwrap_or(created)).into_iter();
            let got =
                fresh.filter(|object| object.kind() == kind).find(|object| object.metadata().name == name);
            let got = got.map(|object| judged(&encode(&object, Version::V1)));
            outcome.check(|| format!("{} {name}", kind.name()), &Some(judged(item)), &got);
            let options =
                DecodeOptions { kind: Some(kind), version: Some(Version::V1), ..DecodeOptions::default() };
            let again = decode_with(item, options).object.map(|object| encode(&object, Version::V1));
            let again = again.map(|mut object| {
                [object["metadata"].take(), object["spec"].take(), object["status"].take()]
            });
            let same = Some(["metadata", "spec", "status"].map(|part| item[part].clone()));
            outcome.check(|| format!("{} {name}, read and written", kind.name()), &same, &again);
        }
        names.sort();
        let fresh = builtin::fresh(Time(0)).into_iter().filter(|object| object.kind() == kind);
        let mut got: Vec<String> = fresh.map(|object: Object| object.metadata().name.clone()).collect();
        got.sort();
        outcome.check(|| format!("names of all {}", kind.resource()), &names, &got);
    }
    Ok(outcome)
}

/// What is judged: not UID, versions and times, which are of that server alone.
fn judged(object: &Value) -> [Value; 4] {
    let metadata = &object["metadata"];
    [&object["spec"], &object["status"], &metadata["annotations"], &metadata["generation"]].map(Value::clone)
}
