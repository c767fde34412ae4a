//! `maitred validate`: one clear message for each fault, and JSON that stays as it is.

mod common;

use common::{json, maitred, maitred_with};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// The one line that is printed of a file with one fault, less the file's name.
fn message(file: &str) -> String {
    let run = maitred(&["validate", &format!("faults/{file}")]);
    assert_eq!(run.code, 1);
    let lines: Vec<_> = run.out.lines().collect();
    let [message, "0 accepted, 1 refused, 0 warnings"] = lines[..] else { panic!("{}", run.out) };
    message.strip_prefix(&format!("faults/{file}:")).unwrap().to_owned()
}

#[test]
fn a_planted_fault_gets_one_message_that_says_where_what_and_what_is_allowed() {
    let namespace = format!(
        "18:20: error: FlowSchema/one-team: spec.rules[0].resourceRules[0].namespaces[0]: Invalid value: \"team/a\": \
         each member of this list must be '*' or a DNS-1123 label; {LABEL}"
    );
    let expected = [
        (
            "exempt-by-another-name.yaml",
            "6:3: error: PriorityLevelConfiguration/admins: spec.type: Invalid value: \"Exempt\": must be 'Exempt' if \
             and only if `name` is 'exempt'",
        ),
        (
            "hand-larger-than-deck.yaml",
            "13:9: error: PriorityLevelConfiguration/batch: spec.limited.limitResponse.queuing.handSize: Invalid value: \
             10: should not be greater than queues (8)",
        ),
        ("missing-bracket.yaml", "6:12: error: cannot be read: unclosed bracket '{'"),
        ("namespace-with-a-slash.yaml", &namespace),
        (
            "precedence-out-of-range.yaml",
            "8:3: error: FlowSchema/backups: spec.matchingPrecedence: Invalid value: 10500: must not be greater than \
             10000",
        ),
        (
            "quoted-star-forgotten.yaml",
            "15:15: error: cannot be read: while scanning an anchor or alias, did not find expected alphabetic or \
             numeric character (an asterisk must be quoted: '*')",
        ),
        (
            "shares-in-the-wrong-version.yaml",
            "4:3: error: PriorityLevelConfiguration/old: apiVersion: Unsupported value: \
             \"flowcontrol.apiserver.k8s.io/v1beta1\": no longer served; supported values: \
             \"flowcontrol.apiserver.k8s.io/v1\", \"flowcontrol.apiserver.k8s.io/v1beta3\", \
             \"flowcontrol.apiserver.k8s.io/v1beta2\"",
        ),
        (
            "star-beside-others.yaml",
            "16:7: error: FlowSchema/readers: spec.rules[0].resourceRules[0].apiGroups: Invalid value: [\"\",\"*\"]: if \
             '*' is present, must not specify other api groups",
        ),
        (
            "unknown-kind-of-subject.yaml",
            "11:7: error: FlowSchema/robots: spec.rules[0].subjects[0].kind: Unsupported value: \"Robot\": supported \
             values: \"Group\", \"ServiceAccount\", \"User\"",
        ),
        (
            "user-called-no.yaml",
            "13:9: error: FlowSchema/norway: spec.rules[0].subjects[0].user.name: Invalid value: false: must be a string \
             (YAML 1.1 reads no as a boolean: quote it to have text)",
        ),
    ];
    for (file, message) in expected {
        assert_eq!(self::message(file), message, "{file}");
    }
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults")).unwrap().count();
    assert_eq!(files, expected.len());
}

#[test]
fn a_directory_is_read_whole_and_json_tells_every_object() {
    let report = json(&["validate", "faults"]);
    let objects = report["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 10);
    assert!(
        objects
            .iter()
            .all(|object| object["accepted"] == false && !object["faults"].as_array().unwrap().is_empty())
    );
    assert_eq!(
        objects[4],
        serde_json::json!({
            "file": "faults/precedence-out-of-range.yaml",
            "document": 0,
            "kind": "FlowSchema",
            "name": "backups",
            "accepted": false,
            "faults": [{
                "path": "spec.matchingPrecedence",
                "reason": "FieldValueInvalid",
                "message": "Invalid value: 10500: must not be greater than 10000",
                "line": 8
            }],
            "warnings": []
        })
    );
}

const SCHEMA: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: s}
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 300
  rules:
  - subjects: [{kind: User, user: {name: alice}}]
    nonResourceRules: [{verbs: [get], nonResourceURLs: [/metrics]}]
";

/// Findings of `text` as it is printed, less the name of standard input.
fn lines(text: &str, arguments: &[&str]) -> Vec<String> {
    let run = maitred_with(&[&["validate", "-"], arguments].concat(), text);
    let mut lines: Vec<_> = run.out.lines().map(|line| line.trim_start_matches("-:").to_owned()).collect();
    lines.pop();
    lines
}

#[test]
fn a_good_object_from_standard_input_is_fine() {
    let run = maitred_with(&["validate", "-"], SCHEMA);
    assert_eq!((run.code, run.out.as_str()), (0, "1 accepted, 0 refused, 0 warnings\n"));
}

#[test]
fn strict_turns_surprises_of_reading_into_faults() {
    let text = SCHEMA.replace("300", "0300").replace("  rules:", "  precedence: 5\n  rules:");
    let warned = maitred_with(&["validate", "-"], &text);
    assert_eq!(warned.code, 0);
    assert!(warned.out.ends_with("1 accepted, 0 refused, 2 warnings\n"), "{}", warned.out);
    let strict = maitred_with(&["validate", "--strict", "-"], &text);
    assert_eq!(strict.code, 1);
    assert!(
        strict.out.contains("-:7:3: error: FlowSchema/s: unknown field \"spec.precedence\"\n"),
        "{}",
        strict.out
    );
}

#[test]
fn what_is_surely_not_meant_is_a_warning() {
    let dangling = lines(&SCHEMA.replace("workload-low", "no-such"), &[]);
    assert_eq!(
        dangling,
        [
            "5:32: warning: FlowSchema/s: spec.priorityLevelConfiguration.name: \"no-such\": no such level in these files, nor \
          one that every server has: the schema will be ignored (Dangling)"
        ]
    );
    let covered = lines(&SCHEMA.replace("300", "9950").replace("alice", "bob"), &[]);
    assert_eq!(
        covered,
        [
            "6:3: warning: FlowSchema/s: spec.matchingPrecedence: 9950: can never match: \"global-default\" with precedence \
          9900 comes first and matches all that this does"
        ]
    );
    let wide = SCHEMA.replace("{name: alice}}", "{name: alice}}, {kind: User, user: {name: '*'}}");
    assert_eq!(
        lines(&wide, &[]),
        [
            "8:16: warning: FlowSchema/s: spec.rules[0].subjects[0]: needless: subjects[1] of the same rule matches all that \
          this does"
        ]
    );
    let resources =
        "resourceRules: [{verbs: [get], apiGroups: [apps], resources: ['*/scale'], clusterScope: true}]";
    let star = SCHEMA.replace("nonResourceRules: [{verbs: [get], nonResourceURLs: [/metrics]}]", resources);
    assert_eq!(
        lines(&star, &[]),
        [
            "9:67: warning: FlowSchema/s: spec.rules[0].resourceRules[0].resources[0]: \"*/scale\": matches nothing: only a `*` \
          alone stands for other resources"
        ]
    );
    let twice = lines(&format!("{SCHEMA}---\n{SCHEMA}"), &[]);
    assert_eq!(
        twice,
        [
            "13:12: warning: FlowSchema/s: metadata.name: \"s\": this object is also in -:1:1: the later one would be written \
          over it"
        ]
    );
}

#[test]
fn few_queues_for_a_hand_are_doubtful_and_the_suggested_settings_are_not() {
    let level = |queues: u32, hand: u32| {
        format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {{name: l}}\nspec:\n  \
             type: Limited\n  limited:\n    limitResponse:\n      type: Queue\n      queuing: {{queues: {queues}, handSize: \
             {hand}}}\n"
        )
    };
    assert_eq!(
        lines(&level(32, 2), &[]),
        [
            "9:29: warning: PriorityLevelConfiguration/l: spec.limited.limitResponse.queuing.handSize: 2: of 32 queues: a heavy \
          flow holds all queues of a light one with a chance of 0.20 %; with a handSize of 5 it is 5.0e-4 %"
        ]
    );
    for (queues, hand) in [(64, 6), (128, 6), (16, 4), (1, 1)] {
        assert_eq!(lines(&level(queues, hand), &[]), [""; 0]);
    }
}

#[test]
fn objects_of_other_apis_are_told_and_do_no_harm() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n";
    assert_eq!(lines(text, &[]), ["1:1: note: Deployment/d is of apps/v1, none of ours: skipped"]);
    assert_eq!(maitred_with(&["validate", "-"], text).code, 0);
}

#[test]
fn what_cannot_be_read_exits_with_2_and_the_rest_is_judged() {
    let run = maitred(&["validate", "no-such-file.yaml", "faults/user-called-no.yaml"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("error: no-such-file.yaml: "), "{}", run.err);
    assert!(run.out.contains("FlowSchema/norway"));
    assert_eq!(maitred(&["validate"]).code, 2);
    assert_eq!(maitred(&["no-such-verb"]).code, 2);
}
