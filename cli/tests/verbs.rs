//! The verbs that need no engine.

mod common;

use common::{json, maitred, maitred_with};
use serde_json::json;

#[test]
fn explain_names_schema_level_flow_and_hand_of_a_request() {
    let report =
        json(&["explain", "--user", "alice", "--verb", "get", "--resource", "pods", "--namespace", "n"]);
    assert_eq!(report["flow_schema"], "global-default");
    assert_eq!(report["priority_level"], "global-default");
    assert_eq!(report["matched_by"], "spec.rules[0].resourceRules[0]");
    assert_eq!(report["groups"], json!(["system:authenticated"]));
    // SHA-256 of "global-default", a zero byte and "alice"; its first eight bytes, little-endian.
    assert_eq!(report["shuffle"]["hash"], "17644606172554983095");
    assert_eq!(report["shuffle"]["hand"], json!([55, 62, 126, 125, 105, 1]));
    let earlier = report["earlier"].as_array().unwrap();
    assert_eq!(earlier[0]["flow_schema"], "exempt");
    assert_eq!(earlier[0]["differences"][0]["path"], "spec.rules[0].subjects");
    assert_eq!(earlier[0]["differences"][0]["covers"], json!(["group \"system:masters\""]));
}

#[test]
fn explain_takes_paths_and_falls_back_to_catch_all() {
    let health = json(&["explain", "--user", "prober", "--path", "/healthz"]);
    assert_eq!((&health["flow_schema"], &health["path"]), (&json!("probes"), &json!("/healthz")));
    let nobody = json(&["explain", "--user", "x", "--only-these-groups", "--path", "/metrics"]);
    assert_eq!(nobody["flow_schema"], "catch-all");
    assert_eq!(maitred(&["explain", "--user", "x"]).code, 2);
    assert_eq!(maitred(&["explain", "--user", "x", "--path", "/a", "--resource", "pods"]).code, 2);
}

const DANGLING: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: ghost}
spec:
  priorityLevelConfiguration: {name: no-such}
  matchingPrecedence: 5
  rules:
  - subjects: [{kind: User, user: {name: '*'}}]
    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]
";

#[test]
fn explain_tells_a_schema_that_is_ignored_because_its_level_is_missing() {
    let run = maitred_with(&["explain", "-", "--user", "a", "--path", "/x"], DANGLING);
    assert_eq!(run.code, 0);
    assert!(
        run.out.contains("ghost, precedence 5, would have matched, but its level \"no-such\" does not exist"),
        "{}",
        run.out
    );
}

#[test]
fn limits_divide_a_servers_seats_as_a_fresh_server_does() {
    let report = json(&["limits", "--server-concurrency", "600"]);
    let level = |name: &str| {
        let levels = report["levels"].as_array().unwrap();
        levels.iter().find(|level| level["priority_level"] == name).unwrap().clone()
    };
    let low = level("workload-low");
    assert_eq!(
        (&low["nominal"], &low["min"], &low["max"], &low["current"]),
        (&json!(245), &json!(24), &json!(845), &json!(56))
    );
    assert_eq!(level("catch-all")["nominal"], 13);
    assert_eq!(report["nominal_sum"], 602);
    assert_eq!(maitred(&["limits"]).code, 2);
    assert_eq!(maitred(&["limits", "--server-concurrency", "0"]).code, 2);
}

#[test]
fn shuffle_prints_the_documented_table_and_the_settings_of_objects() {
    let table = json(&["shuffle"]);
    let first = &table["settings"][0];
    assert_eq!((&first["hand_size"], &first["queues"]), (&json!(12), &json!(32)));
    // As the documentation of the API tabulates it.
    for (place, documented) in [(0, 4.428838398950118e-9), (1, 0.11431348830099144), (2, 0.9935089607656024)]
    {
        let exact = first["chances"][place]["probability"].as_f64().unwrap();
        assert!((exact / documented - 1.0).abs() < 1e-9, "{exact} {documented}");
    }
    let refused = maitred(&["shuffle", "--queues", "4", "--hand-size", "8"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("hand size must not be larger than deck size"), "{}", refused.err);
    assert_eq!(maitred(&["shuffle", "--queues", "4"]).code, 2);
}

const JAIL: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: jail}
spec:
  type: Limited
  limited: {nominalConcurrencyShares: 0, limitResponse: {type: Reject}}
";

#[test]
fn convert_renames_shares_and_tells_what_a_version_cannot_say() {
    let beta2 = maitred_with(&["convert", "--to", "v1beta2", "-"], JAIL);
    assert_eq!(beta2.code, 1);
    assert!(beta2.err.contains("v1beta2 cannot say zero"), "{}", beta2.err);
    let beta3 = maitred_with(&["convert", "--to", "v1beta3", "-"], JAIL);
    assert_eq!(beta3.code, 0);
    assert!(
        beta3.out.contains("flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares: \"\""),
        "{}",
        beta3.out
    );
    let back = maitred_with(&["convert", "--to", "v1", "-"], &beta3.out);
    assert_eq!(back.code, 0);
    assert!(back.out.contains("nominalConcurrencyShares: 0\n"), "{}", back.out);
    assert!(!back.out.contains("annotations"), "{}", back.out);
}

#[test]
fn convert_refuses_a_set_with_faults_and_prints_nothing_of_it() {
    let run = maitred(&["convert", "--to", "v1", "faults/precedence-out-of-range.yaml"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("1 fault in the objects: nothing was done"), "{}", run.err);
}

#[test]
fn diff_tells_fields_seats_and_who_goes_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let schema = |level: &str| {
        DANGLING
            .replace("no-such", level)
            .replace("'*'}}", "bob}}")
            .replace("['*']}", "[/a]}")
            .replace("['*'], ", "[get], ")
    };
    let old = path("old.yaml", &format!("{JAIL}---\n{}", schema("jail")));
    let new = path("new.yaml", &schema("exempt"));
    let report = json(&["diff", &old, &new]);
    assert_eq!(
        report["flow_schemas"],
        json!([{"name": "ghost", "change": "changed", "fields": [
            {"path": "spec.priorityLevelConfiguration.name", "old": "jail", "new": "exempt"}
        ]}])
    );
    assert_eq!(report["priority_levels"], json!([{"name": "jail", "change": "removed", "fields": []}]));
    assert_eq!(report["seats"][0]["priority_level"], "jail");
    assert_eq!(
        report["requests"],
        json!([{
            "who": "user bob",
            "old": {"flow_schema": "ghost", "priority_level": "jail"},
            "new": {"flow_schema": "ghost", "priority_level": "exempt"},
            "what": ["get /a"]
        }])
    );
    assert_eq!(maitred(&["diff", &old, &new]).code, 1);
    let same = maitred(&["diff", &old, &old]);
    assert_eq!(same.code, 0);
    assert!(same.out.starts_with("no difference\n"), "{}", same.out);
}

#[test]
fn there_are_no_colours_in_a_pipe() {
    for arguments in [&["validate", "faults"][..], &["explain", "--user", "a", "--path", "/x"]] {
        let run = maitred(arguments);
        assert!(!run.out.contains('\u{1b}') && !run.err.contains('\u{1b}'));
    }
}

#[test]
fn yaml_output_is_the_same_data_as_json() {
    let arguments = ["limits", "--server-concurrency", "100"];
    let yaml = maitred(&[&arguments[..], &["-o", "yaml"]].concat()).out;
    let text = format!("apiVersion: x/v1\nkind: Report\n{yaml}");
    let document = maitred_manifest::read_str("f", &text).remove(0);
    let mut value = document.items[0].value.clone();
    for key in ["apiVersion", "kind"] {
        value.as_object_mut().unwrap().shift_remove(key);
    }
    // YAML has one kind of number: a whole float reads as an integer.
    let json = json(&arguments).to_string().replace(".0,", ",").replace(".0}", "}");
    assert_eq!(value.to_string(), json);
}

#[test]
fn completions_and_manual_pages_come_from_the_parser() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = maitred(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.out.contains("explain"), "{shell}");
    }
    assert!(maitred(&["man"]).out.contains(".SH SUBCOMMANDS"));
    assert!(maitred(&["man", "explain"]).out.contains("maitred\\-explain"));
    assert_eq!(maitred(&["man", "nothing"]).code, 2);
}

#[test]
fn help_says_what_exit_codes_mean() {
    let help = maitred(&["--help"]);
    assert_eq!(help.code, 0);
    for code in ["0  fine", "1  findings", "2  usage"] {
        assert!(help.out.contains(code), "{}", help.out);
    }
}
