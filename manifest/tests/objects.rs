//! Faults and warnings of objects in files, with their places.

use maitred_manifest::{Content, Entry, Strictness, duplicates, objects, read_str};

const SCHEMA: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: s}
spec:
  priorityLevelConfiguration: {name: exempt}
";

fn entries_with(text: &str, strictness: Strictness) -> Vec<Entry> {
    read_str("f.yaml", text).into_iter().flat_map(|document| document.into_entries(strictness)).collect()
}

fn entries(text: &str) -> Vec<Entry> {
    entries_with(text, Strictness::Warn)
}

/// Place, path and words of each.
fn shown(faults: &[maitred::error::Fault]) -> Vec<String> {
    faults.iter().map(|fault| format!("{} {fault}", fault.at.as_ref().unwrap())).collect()
}

#[test]
fn a_fault_has_the_place_of_its_field() {
    let text = format!("{SCHEMA}  matchingPrecedence: 10001\n");
    assert_eq!(
        shown(&entries(&text)[0].faults),
        ["f.yaml:6:3 spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"]
    );
}

#[test]
fn a_word_that_yaml_reads_as_a_boolean_is_explained() {
    let text = format!("{SCHEMA}  rules:\n  - subjects: [{{kind: User, user: {{name: no}}}}]\n");
    let faults = shown(&entries(&text)[0].faults);
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].starts_with("f.yaml:7:36 spec.rules[0].subjects[0].user.name: Invalid value: false"),
        "{}",
        faults[0]
    );
    assert!(faults[0].ends_with("(YAML 1.1 reads no as a boolean: quote it to have text)"), "{}", faults[0]);
}

#[test]
fn whole_floats_are_integers_in_files() {
    let entry = |number| entries(&format!("{SCHEMA}  matchingPrecedence: {number}\n")).remove(0);
    assert!(entry("1e2").accepted());
    assert!(entry("50.0").accepted());
    assert!(!entry("12.5").accepted());
}

#[test]
fn objects_of_other_apis_are_foreign_and_no_fault() {
    let entries = entries("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n");
    assert!(matches!(&entries[0].content, Content::Foreign { api_version } if api_version == "apps/v1"));
    assert!(entries[0].faults.is_empty());
    assert!(objects(&entries).unwrap().flow_schemas.is_empty());
}

#[test]
fn our_kinds_in_a_wrong_group_or_version_and_wrong_kinds_in_our_group_are_faults() {
    for (head, path) in [
        ("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: FlowSchema\n", "apiVersion"),
        ("apiVersion: v1\nkind: PriorityLevelConfiguration\n", "apiVersion"),
        ("apiVersion: flowcontrol.apiserver.k8s.io/v1alpha1\nkind: FlowSchema\n", "apiVersion"),
        ("apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowShema\n", "kind"),
    ] {
        let entry = &entries(head)[0];
        assert!(matches!(entry.content, Content::Unreadable));
        assert_eq!(
            entry.faults.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>(),
            [path],
            "{head}"
        );
    }
}

#[test]
fn a_namespace_an_unknown_field_and_a_key_given_twice_are_warnings_unless_strict() {
    let text = "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: s
  namespace: here
spec:
  priorityLevelConfiguration: {name: exempt}
  matchingPrecedence: 5
  matchingPrecedence: 010
  precedence: 7
";
    let entry = &entries(text)[0];
    assert!(entry.accepted());
    assert_eq!(
        entry.warnings.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>(),
        ["metadata.namespace", "spec.matchingPrecedence", "spec.matchingPrecedence", "spec.precedence"]
    );
    let strict = &entries_with(text, Strictness::Strict)[0];
    assert_eq!((strict.faults.len(), strict.warnings.len()), (4, 0));
    assert_eq!(shown(&strict.faults)[3], "f.yaml:10:3 unknown field \"spec.precedence\"");
}

#[test]
fn an_object_given_twice_is_a_fault_of_the_set() {
    let text = format!("{SCHEMA}---\n{SCHEMA}");
    let entries = entries(&text);
    assert!(entries.iter().all(Entry::accepted));
    assert_eq!(
        shown(&duplicates(&entries)),
        [
            "f.yaml:9:12 metadata.name: Duplicate value: \"s\": this object is also in f.yaml:1:1: the later one would be written over it"
        ]
    );
    assert!(objects(&entries).is_err());
}

#[test]
fn what_cannot_be_read_is_an_entry_with_its_place() {
    let entries = entries(&format!("{SCHEMA}---\na: [\n"));
    assert_eq!(entries.len(), 2);
    assert!(!entries[1].accepted());
    assert_eq!(entries[1].faults[0].at.as_ref().unwrap().line, 7);
}
