//! `maitred replay` on a slice of a recorded log: the counts are exact, and what it predicts is near to what happened.

mod common;

use std::collections::BTreeMap;
use std::io::Read as _;

use common::{json, maitred, maitred_with};
use serde_json::Value;

const LOG: &str = "../../examples/audit.jsonl.gz";
const OBJECTS: [&str; 4] = ["--objects", "../../examples/objects.yaml", "--server-concurrency", "12"];

fn arguments<'a>(log: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["replay", log], &OBJECTS[..], more].concat()
}

fn slice() -> String {
    let file =
        std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/audit.jsonl.gz")).unwrap();
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

fn rejected(of: &Value) -> u64 {
    of["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

fn requests_by_schema(report: &Value) -> BTreeMap<String, u64> {
    let schemas = report["per_schema"].as_array().unwrap().iter();
    schemas
        .map(|schema| {
            (schema["flow_schema"].as_str().unwrap().to_owned(), schema["requests_in_log"].as_u64().unwrap())
        })
        .collect()
}

fn replay_text(log: &str) -> Value {
    let run = maitred_with(&arguments("-", &["--output", "json"]), log);
    assert_eq!(run.code, 0, "{}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

#[test]
fn what_runs_and_what_is_refused_add_up_to_the_requests_of_each_schema() {
    let report = json(&arguments(LOG, &[]));
    for schema in report["per_schema"].as_array().unwrap() {
        let played = schema["dispatched"].as_u64().unwrap() + rejected(schema);
        assert_eq!(schema["requests_in_log"], played, "{}", schema["flow_schema"]);
    }
    assert_eq!(report["total"]["requests_in_log"], report["log"]["requests"]);
}

#[test]
fn refusals_come_within_fifteen_parts_in_a_hundred_of_those_recorded() {
    let total = &json(&arguments(LOG, &[]))["total"];
    let (now, then) = (rejected(total) as f64, total["recorded_429"].as_f64().unwrap());
    assert!(then > 1000.0, "queues fill in the slice: {then}");
    assert!((now - then).abs() <= 0.15 * then, "{now} where {then} were recorded");
}

#[test]
fn waits_come_within_thirty_parts_in_a_hundred_of_those_that_there_were() {
    let total = &json(&arguments(LOG, &[]))["total"];
    let [then, now] = ["estimated_wait_seconds", "wait_seconds"].map(|sum| total[sum].as_f64().unwrap());
    assert!((now - then).abs() <= 0.3 * then, "{now} s where there were {then} s");
    // The log tells of most of them itself.
    assert!(total["recorded_wait_seconds"].as_f64().unwrap() > 0.7 * then);
}

#[test]
fn standard_input_unpacked_gives_the_same_as_the_packed_file() {
    assert_eq!(replay_text(&slice()), json(&arguments(LOG, &[])));
}

#[test]
fn the_events_that_end_requests_are_enough_for_the_counts() {
    let ends: Vec<_> =
        slice().lines().filter(|line| line.contains("\"ResponseComplete\"")).map(str::to_owned).collect();
    let report = replay_text(&ends.join("\n"));
    assert_eq!(requests_by_schema(&report), requests_by_schema(&json(&arguments(LOG, &[]))));
    assert!(report["log"]["watches_without_start"].as_u64().unwrap() > 0);
}

#[test]
fn the_order_of_the_lines_does_not_matter() {
    let mut lines: Vec<_> = slice().lines().map(str::to_owned).collect();
    // A watch's start comes before its end, as in every log; all else may be anywhere.
    lines.reverse();
    lines.sort_by_key(|line| line.contains("\"ResponseComplete\""));
    let (turned, whole) = (replay_text(&lines.join("\n")), json(&arguments(LOG, &[])));
    assert_eq!(requests_by_schema(&turned), requests_by_schema(&whole));
    assert_eq!(turned["total"]["recorded_429"], whole["total"]["recorded_429"]);
}

#[test]
fn bad_lines_are_shown_and_not_fatal_unless_strict() {
    let log = format!("not json\n{}", slice());
    let run = maitred_with(&arguments("-", &[]), &log);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("-:1: "), "{}", run.err);
    assert!(run.out.contains("1 bad line"), "{}", run.out);
    let strict = maitred_with(&arguments("-", &["--strict"]), &log);
    assert_eq!((strict.code, strict.out.as_str()), (2, ""));
    assert!(strict.err.contains("-:1: "), "{}", strict.err);
}

#[test]
fn what_is_no_log_is_told_and_nothing_is_printed() {
    for (input, tells) in
        [("", "no audit event"), ("{\"kind\":\"Pod\"}\n", "audit.k8s.io/v1 Event was expected")]
    {
        let run = maitred_with(&arguments("-", &[]), input);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.contains(tells), "{}", run.err);
    }
    let run = maitred(&arguments("no-such-log", &[]));
    assert_eq!(run.code, 2);
    assert!(run.err.contains("no-such-log"), "{}", run.err);
}

#[test]
fn more_seats_than_needed_leave_nobody_waiting_and_the_comparison_tells_so() {
    let mut more = arguments(LOG, &["--against-server-concurrency", "12"]);
    more[5] = "6000";
    let report = json(&more);
    let against = &report["against"];
    assert_eq!(against["server_concurrency"], 12);
    assert_eq!(against["moved"], Value::Array(Vec::new()));
    assert!(rejected(&against["total"]) > 1000);
    // A jail has no seats, however many the server has.
    let others =
        report["per_schema"].as_array().unwrap().iter().filter(|schema| schema["priority_level"] != "jail");
    assert_eq!(others.map(rejected).sum::<u64>(), 0);
}

#[test]
fn other_objects_move_requests_elsewhere() {
    let against = ["--against", "../../examples/objects.yaml"];
    assert_eq!(json(&arguments(LOG, &against))["against"]["moved"], Value::Array(Vec::new()));
    // The objects of a fresh server know nothing of elephants.
    let report = json(&[&["replay", LOG, "--server-concurrency", "12"], &against[..]].concat());
    let moved = report["against"]["moved"].as_array().unwrap();
    assert!(moved.iter().any(|moved| moved["from"]["flow_schema"] == "elephant-lists"), "{moved:?}");
    let all: u64 = moved.iter().map(|moved| moved["requests"].as_u64().unwrap()).sum();
    assert!(all <= report["log"]["requests"].as_u64().unwrap());
}

#[test]
fn the_slower_they_come_the_fewer_are_refused() {
    let at = |speed: &str| rejected(&json(&arguments(LOG, &["--speed", speed]))["total"]);
    let [slow, as_logged, fast] = ["0.5", "1", "2"].map(at);
    assert!(slow < as_logged && as_logged < fast, "{slow}, {as_logged}, {fast}");
}
