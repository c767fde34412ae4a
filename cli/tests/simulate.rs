//! `maitred simulate`: the scenarios that are shipped show what they are for, and bad ones get one clear message.

mod common;

use common::{json, maitred, maitred_with};
use serde_json::Value;

fn scenario(name: &str) -> String {
    format!("../../examples/scenarios/{name}.yaml")
}

fn simulate(name: &str) -> Value {
    json(&["simulate", &scenario(name)])
}

fn one<'a>(report: &'a Value, list: &str, key: &str, name: &str) -> &'a Value {
    let rows = report[list].as_array().unwrap();
    rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

fn flow<'a>(report: &'a Value, name: &str) -> &'a Value {
    one(report, "per_flow", "flow", name)
}

fn level<'a>(report: &'a Value, name: &str) -> &'a Value {
    one(report, "per_level", "priority_level", name)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_mouse_waits_for_about_one_seat_while_an_elephant_offers_a_hundred_times_the_capacity() {
    let report = simulate("elephant-and-mice");
    let (elephant, mouse) = (flow(&report, "elephant"), flow(&report, "mouse"));
    let seats = number(&level(&report, "shared")["seats"]["mean"]);
    let mean_service = 0.2;
    let capacity = seats / mean_service;
    assert!(number(&elephant["offered"]) / 120.0 > 99.0 * capacity);
    assert!(number(&mouse["wait"]["p99"]) <= 3.0 * mean_service, "{mouse:#}");
    assert_eq!(mouse["rejected"], serde_json::json!({}));
    assert!(number(&mouse["share_of_fair"]) > 0.95, "{mouse:#}");
    assert!(number(&elephant["rejected"]["queue-full"]) > 0.9 * number(&elephant["offered"]));
    assert!(number(&elephant["wait"]["p50"]) > 10.0 * number(&mouse["wait"]["p99"]), "{elephant:#}");
    assert!(number(&level(&report, "shared")["seats"]["utilisation"]) > 0.99);
}

#[test]
fn no_mouse_of_the_scenario_shares_all_its_queues_with_the_elephant() {
    let hand = |user: &str| {
        let deck = maitred::shuffle::Deck::new(64, 8).unwrap();
        deck.deal(maitred::flow::flow_hash("everybody", user)).cards().to_vec()
    };
    let elephant = hand("elephant");
    for mouse in 1..=10 {
        assert!(hand(&format!("mouse-{mouse}")).iter().any(|card| !elephant.contains(card)));
    }
}

#[test]
fn wide_lists_do_not_starve_narrow_requests() {
    let report = simulate("wide-lists");
    let (dashboard, operator) = (flow(&report, "dashboard"), flow(&report, "operator"));
    for narrow in [operator, flow(&report, "deployer")] {
        assert_eq!(narrow["rejected"], serde_json::json!({}));
        assert!(number(&narrow["share_of_fair"]) > 0.9, "{narrow:#}");
        // One list's time at most, nearly always: 99 in 100 take less than 600 ms.
        assert!(number(&narrow["wait"]["p99"]) < 0.6, "{narrow:#}");
    }
    assert!(number(&dashboard["wait"]["p50"]) > number(&operator["wait"]["p50"]));
    // The lists have most of what the others leave.
    assert!(number(&level(&report, "shared")["seats"]["utilisation"]) > 0.75, "{report:#}");
    assert!(number(&dashboard["share"]) > 0.5, "{dashboard:#}");
}

#[test]
fn borrowing_raises_the_busy_levels_limit_and_gives_it_back_to_its_owner() {
    let report = simulate("borrowing");
    let (people, batch) = (&level(&report, "people")["seats"], &level(&report, "batch")["seats"]);
    assert!(number(&batch["greatest"]) > 1.5 * number(&batch["nominal"]), "{batch:#}");
    assert!(number(&people["least"]) < 0.5 * number(&people["nominal"]), "{people:#}");
    assert!(number(&people["at_end"]) >= number(&people["nominal"]) - 5.0, "{people:#}");
    assert!(number(&batch["at_end"]) < 1.2 * number(&batch["nominal"]), "{batch:#}");
}

#[test]
fn a_jail_refuses_everything_and_nobody_else_notices() {
    let report = simulate("jail");
    for name in ["mad", "mad-but-patient"] {
        let jailed = flow(&report, name);
        assert_eq!(jailed["priority_level"], "jail");
        assert_eq!((&jailed["dispatched"], &jailed["seat_seconds"]), (&0.into(), &0.0.into()));
        assert_eq!(jailed["rejected"]["concurrency-limit"], jailed["offered"]);
        assert!(number(&jailed["offered"]) > 0.0);
    }
    // They come back when they are told to: after a second at the soonest.
    assert!(number(&flow(&report, "mad-but-patient")["offered"]) <= 20.0 * 30.0);
    assert_eq!(number(&flow(&report, "others")["wait"]["max"]), 0.0);
}

#[test]
fn the_jail_of_the_reference_lets_one_request_at_a_time_run() {
    let report = json(&["simulate", &scenario("jail"), "--fidelity", "kubernetes"]);
    let jail = level(&report, "jail");
    assert!(number(&jail["dispatched"]) > 0.0);
    // 30 s of one request after the other, 200 ms each.
    assert!(number(&jail["seat_seconds"]) <= 30.0, "{jail:#}");
}

#[test]
fn overload_is_refused_because_queues_are_full_and_the_rest_is_divided_fairly() {
    let report = simulate("overload");
    let account = flow(&report, "account");
    assert!(number(&account["rejected"]["queue-full"]) > 1000.0, "{account:#}");
    let busy = level(&report, account["priority_level"].as_str().unwrap());
    assert!(number(&busy["seats"]["utilisation"]) > 0.95, "{busy:#}");
    assert!((number(&account["share_of_fair"]) - 1.0).abs() < 0.1, "{account:#}");
    let manager = flow(&report, "controller-manager");
    assert_ne!(manager["priority_level"], account["priority_level"]);
    assert!(number(&manager["wait"]["p99"]) < 0.1, "{manager:#}");
    assert_eq!(level(&report, "exempt")["dispatched"], level(&report, "exempt")["offered"]);
}

#[test]
fn what_was_offered_ran_was_refused_or_still_waits() {
    for name in ["elephant-and-mice", "wide-lists", "borrowing", "jail", "overload"] {
        let report = simulate(name);
        for row in ["per_flow", "per_level"].iter().flat_map(|list| report[list].as_array().unwrap()) {
            let rejected: u64 =
                row["rejected"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
            let count = |key: &str| row[key].as_u64().unwrap();
            assert_eq!(count("offered"), count("dispatched") + rejected + count("waiting_at_end"), "{row:#}");
            assert_eq!(count("dispatched"), count("finished") + count("running_at_end"), "{row:#}");
        }
    }
}

#[test]
fn a_scenario_gives_the_same_for_a_seed_and_something_else_for_another() {
    for name in ["elephant-and-mice", "wide-lists", "borrowing", "jail", "overload"] {
        let run = |more: &[&str]| maitred(&[&["simulate", &scenario(name)], more].concat()).out;
        let first = run(&[]);
        assert!(first.contains("with seed 1,"), "{first}");
        assert_eq!(run(&[]), first);
        assert_ne!(run(&["--seed", "2"]), first);
    }
}

#[test]
fn flows_see_the_same_traffic_whatever_objects_and_other_flows_there_are() {
    let text = |more: &str| {
        format!(
            "duration: 20s\nflows:\n{more}- name: a\n  request: {{resource: pods}}\n  arrivals: {{rate: 50/s}}\n  service: 5ms\n"
        )
    };
    let other = "- {name: b, request: {path: /x}, arrivals: {rate: 70/s}, service: 1ms}\n";
    let offered = |text: &str, arguments: &[&str]| {
        let run = maitred_with(&[&["simulate", "-", "-o", "json"], arguments].concat(), text);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        flow(&report, "a")["offered"].clone()
    };
    let alone = offered(&text(""), &[]);
    assert_eq!(offered(&text(other), &[]), alone);
    assert_eq!(offered(&text(other), &["--server-concurrency", "5"]), alone);
}

/// Of an M/M/1 queue: half of the requests find the server busy, and the mean wait is the mean service time.
#[test]
fn one_seat_and_one_flow_are_the_queue_of_the_textbook() {
    let text = "
duration: 2000s
serverConcurrencyLimit: 1
waitLimit: 60s
objects:
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: PriorityLevelConfiguration
  metadata: {name: line}
  spec:
    type: Limited
    limited:
      nominalConcurrencyShares: 1000
      limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 1000}}
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: FlowSchema
  metadata: {name: line}
  spec:
    priorityLevelConfiguration: {name: line}
    matchingPrecedence: 1000
    rules:
    - subjects: [{kind: User, user: {name: '*'}}]
      resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*']}]
flows:
- {name: a, request: {resource: pods}, arrivals: {rate: 5/s}, service: {exponential: 100ms}}
";
    let run = maitred_with(&["simulate", "-", "-o", "json"], text);
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.err));
    let line = level(&report, "line");
    assert!((number(&line["wait"]["mean"]) / 0.1 - 1.0).abs() < 0.1, "{line:#}");
    assert!((number(&line["seats"]["utilisation"]) - 0.5).abs() < 0.02, "{line:#}");
    assert!((number(&flow(&report, "a")["share_of_fair"]) - 1.0).abs() < 0.01);
}

/// The one line about a scenario with one fault, less the name of the file.
fn message(text: &str) -> String {
    let run = maitred_with(&["simulate", "-"], text);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
    let lines: Vec<_> = run.err.lines().collect();
    let [message, "error: 1 fault in the scenario: nothing was done"] = lines[..] else {
        panic!("{}", run.err)
    };
    message.strip_prefix("-:").unwrap().to_owned()
}

const GOOD: &str = "description: a
duration: 10s
flows:
- name: a
  request:
    resource: pods
  arrivals: {rate: 50/s}
  service: {exponential: 5ms}
";

#[test]
fn a_field_that_is_not_known_is_told_with_its_line_and_what_was_meant() {
    assert_eq!(
        message(&GOOD.replace("  service:", "  widht: {}\n  service:")),
        "8:3: error: unknown field \"flows[0].widht\": did you mean \"width\"?"
    );
}

#[test]
fn a_rate_without_a_unit_is_told_with_its_line_and_what_is_allowed() {
    assert_eq!(
        message(&GOOD.replace("50/s", "50")),
        "7:14: error: flows[0].arrivals.rate: Invalid value: 50: must be a number of requests and a unit of time: \
         50/s, 0.5/s, 300/m or 10/h"
    );
}

#[test]
fn a_flow_that_does_not_say_what_it_asks_for_is_told_with_its_line() {
    assert_eq!(
        message(&GOOD.replace("    resource: pods", "    verb: get")),
        "5:3: error: flows[0].request: Required value: needs a resource, or a path"
    );
}

#[test]
fn a_scenario_that_is_no_yaml_or_is_not_there_is_told() {
    assert_eq!(
        message("flows: [\n").split_once(": ").unwrap().1,
        "error: cannot be read: unclosed bracket '['"
    );
    let run = maitred(&["simulate", "no-such.yaml"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("no-such.yaml: error: cannot be read: No such file"), "{}", run.err);
}

#[test]
fn every_fault_of_a_scenario_is_told_at_once() {
    let text = "duration: 0s
seed: -1
flows:
- name: a
  request: {resource: pods, path: /x}
  arrivals: {rate: 1/s, closedLoop: {clients: 1}}
  service: {uniform: {from: 5ms, to: 1ms}}
  from: 20s
- name: a
  name: b
  request: {path: healthz}
  arrivals: {}
  width: {finalSeats: 3}
  service: 0s
";
    let run = maitred_with(&["simulate", "-"], text);
    let places: Vec<_> = run.err.lines().map(|line| line.split(" error").next().unwrap()).collect();
    let expected = [
        "-:1:1:",
        "-:2:1:",
        "-:5:29:",
        "-:6:25:",
        "-:7:34:",
        "-:10:3:",
        "-:11:13:",
        "-:12:3:",
        "-:13:3:",
        "-:14:3:",
        "error: 10 faults in the scenario: nothing was done",
    ];
    assert_eq!(places, expected, "{}", run.err);
}

#[test]
fn objects_with_faults_are_told_with_their_lines_in_the_scenario() {
    let text = format!(
        "{GOOD}objects:
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: PriorityLevelConfiguration
  metadata: {{name: x}}
  spec: {{type: Limited}}
"
    );
    let run = maitred_with(&["simulate", "-"], &text);
    assert_eq!(run.code, 2);
    assert!(
        run.err.starts_with("-:13:3: error: PriorityLevelConfiguration/x: spec.limited: Required value"),
        "{}",
        run.err
    );
}

#[test]
fn objects_may_be_in_a_file_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    path(
        "levels.yaml",
        "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: more}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}
",
    );
    let report = json(&["simulate", &path("s.yaml", &format!("{GOOD}objects: levels.yaml\n"))]);
    assert_eq!(flow(&report, "a")["priority_level"], "catch-all");
    assert_eq!(report["per_level"].as_array().unwrap().len(), 3);
    let run = maitred(&["simulate", &path("t.yaml", &format!("{GOOD}objects: none.yaml\n"))]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("none.yaml: No such file"), "{}", run.err);
}
