//! The sequential model gives every answer of the reference in all traces of `vectors/queueset.jsonl`.
//!
//! `MAITRED_QUEUESET` names another file of the same form, plain or gzipped.
#![cfg(not(loom))]

mod model;

use flate2::read::GzDecoder;
use model::{Config, Discipline, Fidelity, Model, Outcome, Width};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

/// `[queues, hand size, queue length limit, limit]`
fn config(cfg: &Value) -> Config {
    let number = |i: usize| cfg[i].as_i64().expect("cfg holds numbers");
    let discipline = match number(0) {
        -1 => Discipline::Exempt,
        0 => Discipline::Reject,
        queues => Discipline::Queue {
            queues: queues as u32,
            hand_size: number(1) as u32,
            queue_length_limit: number(2) as u32,
        },
    };
    Config { discipline, limit: number(3) as u32, fidelity: Fidelity::Kubernetes }
}

fn u64_of(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn float(value: &Value) -> f64 {
    if value.is_null() { f64::NAN } else { value.as_f64().expect("a number") }
}

fn u64_in_string(value: &Value) -> u64 {
    value.as_str().expect("a decimal string").parse().expect("64 bits")
}

/// The difference, if any, between the recorded value and ours; an absent list stands for an empty one.
fn differs(event: &Value, key: &str, ours: Value) -> Option<String> {
    let empty = json!([]);
    let recorded = event.get(key).unwrap_or(&empty);
    (*recorded != ours).then(|| format!("{key} is {ours}, the reference has {recorded}"))
}

fn checkpoint(level: &Model) -> Value {
    let queues = level.queues().iter();
    queues.map(|q| json!([q.next_dispatch_r.to_string(), q.waiting, q.running, q.seats])).collect()
}

/// Does what the event says and compares all that it shows.
fn step(level: &mut Model, hashes: &[Value], event: &Value) -> Result<(), String> {
    let now = u64_of(&event["t"]);
    let kind = event["e"].as_str().expect("an event has a kind");
    let id = || u64_of(&event["id"]);
    let due = level.next_release();
    if kind == "r" {
        if due != Some((now, id())) {
            return Err(format!("next release is {due:?}"));
        }
    } else if kind != "k" && due.is_some_and(|(due, _)| due <= now) {
        return Err(format!("release {due:?} should have come before"));
    }
    let mut differences = Vec::new();
    match kind {
        "a" => {
            let hash = u64_in_string(&hashes[u64_of(&event["f"]) as usize]);
            let [initial, final_, latency_ns] = [0, 1, 2].map(|i| u64_of(&event["w"][i]));
            let width = Width { initial: initial as u32, final_: final_ as u32, latency_ns };
            let (outcome, queue) = level.arrive(now, id(), hash, width);
            let word = match outcome {
                Outcome::Run => "run",
                Outcome::Wait => "wait",
                Outcome::QueueFull => "queue-full",
                Outcome::ConcurrencyLimit => "concurrency-limit",
            };
            differences.extend(differs(event, "o", json!(word)));
            differences.extend(differs(event, "q", json!(queue)));
        }
        "f" => drop(level.finish(now, id())),
        "c" => drop(level.cancel(now, id())),
        "r" => level.release(now, id()),
        "s" => level.reconfigure(now, config(&event["cfg"])),
        "k" => {
            differences.extend(differs(event, "k", checkpoint(level)));
            differences.extend(differs(event, "rr", json!([level.robin(), level.hands_dealt()])));
        }
        other => panic!("event of unknown kind {other:?}"),
    }
    if kind != "k" {
        let clips = level.clipped().iter().map(|c| json!([c.id, c.final_seats, c.latency_ns])).collect();
        differences.extend(differs(event, "d", json!(level.granted())));
        differences.extend(differs(event, "clip", clips));
    }
    let counts = [level.waiting(), level.executing(), level.seats_in_use(), level.seats_waiting()];
    differences.extend(differs(event, "s", json!(counts)));
    differences.extend(differs(event, "R", json!(level.r().to_string())));
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

fn replay(trace: &Value) -> Result<(), String> {
    let mut level = Model::new(config(&trace["cfg"]));
    if let Some(r0) = trace.get("r0") {
        level.set_r(u64_in_string(r0));
    }
    let hashes = trace["h"].as_array().expect("h is a list");
    let events = trace["ev"].as_array().expect("ev is a list");
    for (i, event) in events.iter().enumerate() {
        step(&mut level, hashes, event).map_err(|e| format!("event {i}: {e}\n  {event}"))?;
    }
    let end = events.last().map_or(0, |event| u64_of(&event["t"]));
    // Bit for bit, but for the kinds of not-a-number, which the file writes as null.
    let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    let recorded: Vec<f64> =
        trace["demand"].as_array().expect("demand is a list").iter().map(float).collect();
    let ours = level.demand(end);
    if !recorded.iter().copied().map(bits).eq(ours.map(bits)) {
        return Err(format!("demand is {ours:?}, the reference has {recorded:?}"));
    }
    let totals = level.totals();
    differs(trace, "tot", json!([totals.rejected, totals.timed_out])).map_or(Ok(()), Err)
}

fn vectors() -> String {
    let path = std::env::var_os("MAITRED_QUEUESET").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/queueset.jsonl.gz")),
        PathBuf::from,
    );
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("a gzip file of text");
    } else {
        text = String::from_utf8(bytes).expect("text");
    }
    text
}

#[test]
fn every_recorded_decision_of_the_reference_is_the_models() {
    let mut by_kind: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut failures = Vec::new();
    for (i, line) in vectors().lines().enumerate().skip(1) {
        let trace: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("line {}: {e}", i + 1));
        let name = trace["name"].as_str().expect("a trace has a kind").to_owned();
        let count = by_kind.entry(name.clone()).or_default();
        count.0 += 1;
        match replay(&trace) {
            Ok(()) => count.1 += 1,
            Err(e) => failures.push(format!("line {} ({name}): {e}", i + 1)),
        }
    }
    for (kind, (traces, same)) in &by_kind {
        println!("{kind}: {same} of {traces}");
    }
    let traces: u32 = by_kind.values().map(|count| count.0).sum();
    assert!(traces > 0, "no traces");
    assert!(failures.is_empty(), "{} of {traces} traces differ:\n{}", failures.len(), failures.join("\n"));
}
