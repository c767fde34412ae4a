//! Watches that a change concerns.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use maitred::estimate::{Request, WatchTracker};
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct Story {
    ops: Vec<Vec<Value>>,
}

/// [op, watch number, API group, resource, namespace, name, field selector, counted]
type Registration = (String, u64, String, String, String, String, String, bool);
/// [op, verb, API group, resource, namespace, name, answer]
type Question = (String, String, String, String, String, String, u64);

/// Every data line, one tracker's story, is a case.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, story) in vectors::data::<Story>(path)? {
        let (expected, got) = replay(&story.ops).with_context(|| format!("{}:{line}", path.display()))?;
        outcome.check(|| format!("line {line}: {} operations", story.ops.len()), &expected, &got);
    }
    Ok(outcome)
}

/// What registrations and questions were answered: the recording, and we.
fn replay(ops: &[Vec<Value>]) -> Result<(Vec<u64>, Vec<u64>)> {
    let tracker = WatchTracker::new();
    let mut guards = HashMap::new();
    let (mut expected, mut got) = (Vec::new(), Vec::new());
    for op in ops {
        let read = || format!("operation {op:?}");
        match op.first().and_then(Value::as_str) {
            Some("w") => {
                let (_, number, group, resource, namespace, name, selector, counted): Registration =
                    serde_json::from_value(op.clone().into()).with_context(read)?;
                let request = Request {
                    // The recording does not tell the other verbs apart.
                    verb: if counted { "watch" } else { "list" },
                    api_group: &group,
                    resource: &resource,
                    subresource: "",
                    namespace: &namespace,
                    name: &name,
                };
                let guard =
                    tracker.register(&request, format!("fieldSelector={}", encoded(&selector)).as_bytes());
                expected.push(u64::from(counted));
                got.push(u64::from(guard.is_some()));
                guards.insert(number, guard);
            }
            Some("f") => {
                let number = op.get(1).and_then(Value::as_u64).with_context(read)?;
                drop(guards.remove(&number).with_context(|| format!("watch {number} is not registered"))?);
            }
            Some("g") => {
                let (_, verb, group, resource, namespace, name, answer): Question =
                    serde_json::from_value(op.clone().into()).with_context(read)?;
                let request = Request {
                    verb: &verb,
                    api_group: &group,
                    resource: &resource,
                    subresource: "",
                    namespace: &namespace,
                    name: &name,
                };
                expected.push(answer);
                got.push(tracker.count(&request));
            }
            _ => bail!("unknown operation {op:?}"),
        }
    }
    Ok((expected, got))
}

/// In the form encoding.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
