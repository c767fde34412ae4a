//! The mandatory and suggested objects.

use std::path::Path;

use anyhow::{Context as _, Result};
use maitred::api::{Kind, Object, Objects, Version, builtin, encode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct Case {
    /// Place in its list.
    i: usize,
    kind: String,
    set: String,
    obj: Value,
}

/// Every data line, one object, is a case; so is the number of objects of each list.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut counts = std::collections::BTreeMap::<(String, Kind), usize>::new();
    for (line, case) in vectors::data::<Case>(path)? {
        let place = || format!("{}:{line}", path.display());
        let kind = Kind::from_name(&case.kind).with_context(place)?;
        let list = list(set(&case.set).with_context(place)?, kind);
        let got = list.get(case.i).map(|object| {
            let mut object = encode(object, Version::V1);
            json!({ "metadata": object["metadata"].take(), "spec": object["spec"].take() })
        });
        outcome.check(
            || format!("line {line}: {} {} {}", case.set, case.kind, case.i),
            &Some(case.obj),
            &got,
        );
        *counts.entry((case.set, kind)).or_default() += 1;
    }
    for name in ["mandatory", "suggested"] {
        for kind in Kind::ALL {
            let expected = counts.get(&(name.to_owned(), kind)).copied().unwrap_or(0);
            let got = set(name).map_or(0, |objects| list(objects, kind).len());
            outcome.check(|| format!("number of {name} {}", kind.resource()), &expected, &got);
        }
    }
    Ok(outcome)
}

fn set(name: &str) -> Option<Objects> {
    match name {
        "mandatory" => Some(builtin::mandatory()),
        "suggested" => Some(builtin::suggested()),
        _ => None,
    }
}

fn list(objects: Objects, kind: Kind) -> Vec<Object> {
    objects.into_iter().filter(|object| object.kind() == kind).collect()
}
