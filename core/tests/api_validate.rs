//! What the API server refuses, and in which words. (The recorded answers of real servers are run by the conformance
//! runner; those of the hand-written checks are run here, too.)
#![cfg(not(loom))]

use std::io::Read as _;

use flate2::read::GzDecoder;
use maitred::api::{
    DecodeOptions, Kind, Object, Objects, Reference, Version, builtin, decode, decode_with, encode, validate,
    validate_status, validate_with,
};
use maitred::error::{Fault, FaultKind};
use serde_json::{Value, json};

fn object(value: Value) -> Object {
    decode(&value).expect("a readable object").object
}

fn schema_named(name: &str, spec: Value) -> Object {
    object(json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": { "name": name },
        "spec": spec,
    }))
}

/// A flow schema that is fine but for `rules`.
fn rules(rules: Value) -> Object {
    schema_named("s", json!({ "priorityLevelConfiguration": { "name": "l" }, "rules": rules }))
}

fn subject(subject: Value) -> Object {
    rules(json!([{
        "subjects": [subject],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
    }]))
}

/// A flow schema that is fine but for what `rule` sets in a resource rule.
fn resource_rule(changes: Value) -> Object {
    let mut rule = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"] });
    for (key, value) in changes.as_object().expect("an object") {
        rule[key] = value.clone();
    }
    rules(json!([{ "subjects": [{ "kind": "User", "user": { "name": "*" } }], "resourceRules": [rule] }]))
}

fn url(url: &str) -> Object {
    rules(json!([{
        "subjects": [{ "kind": "User", "user": { "name": "*" } }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": [url] }],
    }]))
}

fn level_named(name: &str, spec: Value) -> Object {
    object(json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": { "name": name },
        "spec": spec,
    }))
}

fn limited(limited: Value) -> Object {
    level_named("l", json!({ "type": "Limited", "limited": limited }))
}

fn queuing(queues: i32, hand: i32) -> Object {
    limited(
        json!({ "limitResponse": { "type": "Queue", "queuing": { "queues": queues, "handSize": hand } } }),
    )
}

fn with_metadata(metadata: Value) -> Object {
    object(json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": metadata,
        "spec": { "priorityLevelConfiguration": { "name": "l" } },
    }))
}

#[track_caller]
fn assert_faults(object: &Object, expected: &[&str]) {
    let faults: Vec<String> = validate(object).iter().map(Fault::to_string).collect();
    assert_eq!(faults, expected);
}

#[track_caller]
fn assert_paths(object: &Object, expected: &[(&str, FaultKind)]) {
    let faults = validate(object);
    let faults: Vec<_> = faults.iter().map(|fault| (fault.path.as_str(), fault.kind)).collect();
    assert_eq!(faults, expected);
}

const INVALID: FaultKind = FaultKind::Invalid;
const REQUIRED: FaultKind = FaultKind::Required;
const FORBIDDEN: FaultKind = FaultKind::Forbidden;

// Metadata.

#[test]
fn a_name_is_a_dns_subdomain() {
    for name in ["a", "0", "a.b-c", &"a".repeat(253)] {
        assert_faults(&with_metadata(json!({ "name": name })), &[]);
    }
    for name in ["A", "a_b", "-a", "a-", "a..b", ".", "a/b", "a b", "ñ", &"a".repeat(254)] {
        assert_paths(&with_metadata(json!({ "name": name })), &[("metadata.name", INVALID)]);
    }
    assert_faults(
        &with_metadata(json!({})),
        &["metadata.name: Required value: name or generateName is required"],
    );
}

#[test]
fn a_generated_name_may_begin_with_what_needs_an_end() {
    assert_faults(&with_metadata(json!({ "generateName": "a-" })), &[]);
    assert_paths(&with_metadata(json!({ "generateName": "A-" })), &[("metadata.generateName", INVALID)]);
    assert_paths(&with_metadata(json!({ "generateName": "-" })), &[("metadata.generateName", INVALID)]);
}

#[test]
fn keys_of_labels_and_annotations_may_have_a_domain() {
    let labels = |labels: Value| with_metadata(json!({ "name": "s", "labels": labels }));
    assert_faults(&labels(json!({ "example.com/A_b.c": "", "k": "V-1" })), &[]);
    for key in ["", "a b", "a/b/c", "/a", "a/", "Upper.com/a", &"k".repeat(64), "-a"] {
        assert!(!validate(&labels(json!({ key: "v" }))).is_empty(), "{key}");
    }
    assert_paths(&labels(json!({ "k": "a b" })), &[("metadata.labels", INVALID)]);
    let annotations = |annotations: Value| with_metadata(json!({ "name": "s", "annotations": annotations }));
    assert_faults(&annotations(json!({ "Example.COM/x": "any text at all" })), &[]);
    assert_paths(&annotations(json!({ "a b": "" })), &[("metadata.annotations", INVALID)]);
}

#[test]
fn all_annotations_together_have_256_kibibytes() {
    let annotations =
        |size: usize| with_metadata(json!({ "name": "s", "annotations": { "k": "v".repeat(size) } }));
    assert_faults(&annotations((256 << 10) - 1), &[]);
    assert_faults(
        &annotations(256 << 10),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn a_finalizer_is_the_servers_own_or_has_a_domain() {
    let finalizers = |list: Value| with_metadata(json!({ "name": "s", "finalizers": list }));
    assert_faults(&finalizers(json!(["orphan", "example.com/x"])), &[]);
    assert_paths(&finalizers(json!(["foo"])), &[("metadata.finalizers[0]", INVALID)]);
    assert_paths(&finalizers(json!(["orphan", "foregroundDeletion"])), &[("metadata.finalizers", INVALID)]);
}

#[test]
fn an_owner_is_named_in_full_and_only_one_controls() {
    let owners = |owners: Value| with_metadata(json!({ "name": "s", "ownerReferences": owners }));
    let owner = json!({ "apiVersion": "apps/v1", "kind": "A", "name": "a", "uid": "1", "controller": true });
    assert_faults(&owners(json!([owner])), &[]);
    assert_paths(&owners(json!([owner, owner])), &[("metadata.ownerReferences", INVALID)]);
    assert_paths(
        &owners(json!([{}])),
        &[
            ("metadata.ownerReferences[0].apiVersion", REQUIRED),
            ("metadata.ownerReferences[0].kind", REQUIRED),
            ("metadata.ownerReferences[0].name", REQUIRED),
            ("metadata.ownerReferences[0].uid", REQUIRED),
        ],
    );
    let event = json!({ "apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1" });
    assert_paths(&owners(json!([event])), &[("metadata.ownerReferences[0]", INVALID)]);
    for version in ["a/b/c", "v1/", "/"] {
        let owner = json!({ "apiVersion": version, "kind": "A", "name": "a", "uid": "1" });
        assert_paths(&owners(json!([owner])), &[("metadata.ownerReferences[0].apiVersion", INVALID)]);
    }
}

#[test]
fn what_the_server_sets_or_drops_is_not_judged() {
    assert_faults(
        &with_metadata(json!({
            "name": "s", "namespace": "default", "generation": -1, "uid": "x", "managedFields": [{ "manager": "m" }],
        })),
        &[],
    );
}

// Flow schemas.

#[test]
fn precedence_is_from_1_to_10000_and_1_is_for_exempt_alone() {
    let precedence = |precedence: i32| {
        let spec = json!({ "matchingPrecedence": precedence, "priorityLevelConfiguration": { "name": "l" } });
        schema_named("s", spec)
    };
    assert_faults(&precedence(2), &[]);
    assert_faults(&precedence(10_000), &[]);
    assert_faults(&precedence(-1), &["spec.matchingPrecedence: Invalid value: -1: must be a positive value"]);
    assert_faults(
        &precedence(10_001),
        &["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
    );
    assert_faults(
        &precedence(1),
        &[
            "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
        ],
    );
}

#[test]
fn a_level_must_be_named_and_need_not_exist() {
    assert_faults(
        &schema_named("s", json!({})),
        &["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
    );
    let named = |name: &str| schema_named("s", json!({ "priorityLevelConfiguration": { "name": name } }));
    assert_faults(&named("nowhere"), &[]);
    assert_paths(&named("No"), &[("spec.priorityLevelConfiguration.name", INVALID)]);
}

#[test]
fn flows_are_told_apart_by_user_or_by_namespace() {
    let method = |method: &str| {
        let spec = json!({
            "priorityLevelConfiguration": { "name": "l" }, "distinguisherMethod": { "type": method },
        });
        schema_named("s", spec)
    };
    assert_faults(&method("ByUser"), &[]);
    assert_faults(
        &method("byUser"),
        &[
            "spec.distinguisherMethod.type: Unsupported value: \"byUser\": supported values: \"ByNamespace\", \"ByUser\"",
        ],
    );
    assert_paths(&method(""), &[("spec.distinguisherMethod.type", FaultKind::NotSupported)]);
}

#[test]
fn a_rule_needs_somebody_and_something() {
    assert_faults(
        &rules(json!([{}])),
        &[
            "spec.rules[0].subjects: Required value: subjects must contain at least one value",
            "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
        ],
    );
    assert_faults(&rules(json!([])), &[]);
}

#[test]
fn the_kind_of_a_subject_names_the_one_field_that_is_given() {
    assert_faults(&subject(json!({ "kind": "Group", "group": { "name": "g" } })), &[]);
    assert_faults(
        &subject(json!({ "kind": "User" })),
        &["spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'"],
    );
    assert_faults(
        &subject(json!({ "kind": "User", "user": { "name": "u" }, "group": {} })),
        &["spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'"],
    );
    assert_faults(
        &subject(json!({ "kind": "user", "user": { "name": "u" } })),
        &["spec.rules[0].subjects[0].kind: Unsupported value: \"user\": supported values: \"Group\", \
         \"ServiceAccount\", \"User\""],
    );
    assert_faults(
        &subject(json!({ "kind": "Group", "group": {} })),
        &["spec.rules[0].subjects[0].group.name: Required value"],
    );
}

#[test]
fn a_service_account_is_in_one_namespace() {
    let account = |namespace: &str, name: &str| {
        subject(
            json!({ "kind": "ServiceAccount", "serviceAccount": { "namespace": namespace, "name": name } }),
        )
    };
    let (namespace, name) = (
        "spec.rules[0].subjects[0].serviceAccount.namespace",
        "spec.rules[0].subjects[0].serviceAccount.name",
    );
    assert_faults(&account("ns", "*"), &[]);
    assert_faults(&account("ns", "a.b"), &[]);
    assert_paths(&account("ns", "a_b"), &[(name, INVALID)]);
    assert_paths(&account("*", "a"), &[(namespace, INVALID)]);
    assert_faults(
        &account("a.b", "a"),
        &[&format!("{namespace}: Invalid value: \"a.b\": must not contain dots")],
    );
    assert_paths(&account("", ""), &[(name, REQUIRED), (namespace, REQUIRED)]);
}

#[test]
fn verbs_are_those_of_the_api_or_a_star_alone() {
    let verbs = |verbs: Value| resource_rule(json!({ "verbs": verbs }));
    let path = "spec.rules[0].resourceRules[0].verbs";
    assert_faults(&verbs(json!(["get", "get", "deletecollection", "proxy"])), &[]);
    assert_paths(&verbs(json!([])), &[(path, REQUIRED)]);
    assert_paths(&verbs(json!(["GET"])), &[(path, FaultKind::NotSupported)]);
    assert_paths(&verbs(json!(["head", "post"])), &[(path, FaultKind::NotSupported)]);
    assert_faults(
        &verbs(json!(["*", "bogus"])),
        &[&format!(
            "{path}: Invalid value: [\"*\",\"bogus\"]: if '*' is present, must not specify other verbs"
        )],
    );
}

#[test]
fn a_star_must_be_alone_in_every_list() {
    for (field, what) in
        [("apiGroups", "api groups"), ("resources", "resources"), ("namespaces", "namespaces")]
    {
        assert_faults(
            &resource_rule(json!({ field: ["*", "*"] })),
            &[&format!(
                "spec.rules[0].resourceRules[0].{field}: Invalid value: [\"*\",\"*\"]: if '*' is present, must not specify \
             other {what}"
            )],
        );
    }
    assert_faults(&resource_rule(json!({ "apiGroups": ["*.k8s.io", ""], "resources": ["*/*", ""] })), &[]);
}

#[test]
fn a_resource_rule_without_cluster_scope_needs_namespaces() {
    let path = "spec.rules[0].resourceRules[0].namespaces";
    assert_paths(&resource_rule(json!({ "namespaces": [] })), &[(path, REQUIRED)]);
    assert_faults(&resource_rule(json!({ "namespaces": [], "clusterScope": true })), &[]);
    let indexed = "spec.rules[0].resourceRules[0].namespaces[1]";
    assert_paths(&resource_rule(json!({ "namespaces": ["a", "a.b"] })), &[(indexed, INVALID)]);
    assert_paths(&resource_rule(json!({ "namespaces": ["a", "kube-*"] })), &[(indexed, INVALID)]);
}

#[test]
fn a_path_begins_with_a_slash_and_may_end_with_a_star_segment() {
    for good in ["/", "/a", "/a/", "/*", "/a/*", "/a/../b", "/a?b", "/a\tb", "*"] {
        assert_faults(&url(good), &[]);
    }
    let bad = [
        ("", "must not be empty"),
        ("a", "must start with slash"),
        ("a b", "must start with slash"),
        ("**", "must start with slash"),
        ("/a b", "must not contain white-space"),
        ("//", "must not contain double slash"),
        ("//*", "must not contain double slash"),
        ("/a*", "wildcard can only do suffix matching"),
        ("/*/*", "wildcard can only do suffix matching"),
        ("/a/*/b", "wildcard can only do suffix matching"),
    ];
    for (bad, why) in bad {
        let path = "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]";
        assert_faults(&url(bad), &[&format!("{path}: Invalid value: \"{bad}\": {why}")]);
    }
}

// Levels.

#[test]
fn only_the_level_exempt_is_exempt() {
    assert_faults(
        &level_named("l", json!({ "type": "Exempt" })),
        &["spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"],
    );
    assert_faults(&level_named("exempt", json!({ "type": "Exempt" })), &[]);
}

#[test]
fn the_type_of_a_level_names_the_one_field_that_is_given() {
    assert_faults(&level_named("l", json!({ "type": "Limited" })), &["spec.limited: Required value"]);
    assert_faults(&level_named("l", json!({})), &["spec.type: Required value"]);
    let response = json!({ "limitResponse": { "type": "Reject" } });
    assert_faults(
        &level_named("l", json!({ "type": "Limited", "limited": response, "exempt": {} })),
        &["spec.exempt: Forbidden"],
    );
    assert_faults(
        &level_named("l", json!({ "type": "limited", "limited": response })),
        &[
            "spec.type: Unsupported value: \"limited\": supported values: \"Exempt\", \"Limited\"",
            "spec.limited: Forbidden",
        ],
    );
}

#[test]
fn queuing_is_given_when_and_only_when_requests_queue() {
    let response = |response: Value| limited(json!({ "limitResponse": response }));
    let path = "spec.limited.limitResponse.queuing";
    assert_faults(&response(json!({ "type": "Queue", "queuing": {} })), &[]);
    assert_paths(&response(json!({ "type": "Queue" })), &[(path, REQUIRED)]);
    assert_paths(&response(json!({ "type": "Reject", "queuing": { "queues": -1 } })), &[(path, FORBIDDEN)]);
    assert_paths(&response(json!({})), &[("spec.limited.limitResponse.type", REQUIRED)]);
}

#[test]
fn shares_and_percentages_have_bounds() {
    let with =
        |field: &str, value: i32| limited(json!({ field: value, "limitResponse": { "type": "Reject" } }));
    for (field, good, bad) in [
        ("nominalConcurrencyShares", [0, i32::MAX], vec![-1]),
        ("lendablePercent", [0, 100], vec![-1, 101]),
        ("borrowingLimitPercent", [0, i32::MAX], vec![-1]),
    ] {
        for good in good {
            assert_faults(&with(field, good), &[]);
        }
        for bad in bad {
            assert_paths(&with(field, bad), &[(&format!("spec.limited.{field}"), INVALID)]);
        }
    }
}

#[test]
fn a_hand_must_fit_the_deck_and_the_hash() {
    for (queues, hand) in [(1, 1), (64, 10), (128, 8), (512, 6), (10_000_000, 2)] {
        assert_faults(&queuing(queues, hand), &[]);
    }
    let path = "spec.limited.limitResponse.queuing.handSize";
    assert_faults(
        &queuing(4, 0),
        &[&format!("{path}: Invalid value: 8: should not be greater than queues (4)")],
    );
    assert_faults(&queuing(64, -1), &[&format!("{path}: Invalid value: -1: must be positive")]);
    assert_faults(
        &queuing(512, 7),
        &[&format!(
            "{path}: Invalid value: 7: required entropy bits of deckSize 512 and handSize 7 should not be greater than 60"
        )],
    );
    assert_paths(&queuing(10_000_001, 1), &[("spec.limited.limitResponse.queuing.queues", INVALID)]);
}

#[test]
fn the_annotation_for_zero_shares_is_for_v1beta3_alone() {
    let mut level = limited(json!({ "limitResponse": { "type": "Reject" } }));
    level.metadata_mut().annotations.insert(maitred::api::v1beta3::PRESERVE_ZERO.into(), String::new());
    assert_paths(&level, &[("metadata.annotations", FORBIDDEN)]);
}

#[test]
fn paths_are_named_as_the_version_names_them() {
    let level = limited(json!({ "nominalConcurrencyShares": -1, "limitResponse": { "type": "Reject" } }));
    let path = |version| validate_with(&level, version, Reference::default())[0].path.clone();
    assert_eq!(path(Version::V1Beta3), "spec.limited.nominalConcurrencyShares");
    assert_eq!(path(Version::V1Beta2), "spec.limited.assuredConcurrencyShares");
}

// Mandatory objects.

#[test]
fn mandatory_objects_cannot_be_changed_but_for_the_settings_of_exempt() {
    let Objects { flow_schemas, priority_levels } = builtin::mandatory();
    for mut schema in flow_schemas {
        assert_faults(&Object::FlowSchema(schema.clone()), &[]);
        schema.spec.rules.clear();
        assert_paths(&Object::FlowSchema(schema), &[("spec", INVALID)]);
    }
    for mut level in priority_levels {
        let exempt = level.metadata.name == "exempt";
        if let Some(limited) = &mut level.spec.limited {
            limited.lendable_percent = Some(1);
        }
        if let Some(exempt) = &mut level.spec.exempt {
            exempt.lendable_percent = Some(50);
            exempt.nominal_concurrency_shares = Some(7);
        }
        let expected: &[_] = if exempt { &[] } else { &[("spec", INVALID)] };
        assert_paths(&Object::PriorityLevelConfiguration(level), expected);
    }
}

// Status.

#[test]
fn conditions_have_a_type_that_no_other_has() {
    let mut schema = json!({ "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema" });
    schema["status"] = json!({ "conditions": [{ "type": "A" }, { "type": "A" }, {}] });
    let schema = object(schema);
    let faults = validate_status(&schema, Reference::default());
    let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert_eq!(
        faults,
        ["status.conditions[1].type: Duplicate value: \"A\"", "status.conditions[2].type: Required value",]
    );
}

// Texts.

#[test]
fn invisible_characters_of_a_value_are_shown() {
    let faults = validate(&with_metadata(json!({ "name": "a\u{0}\n\u{7f}\u{a0}\"é" })));
    assert_eq!(faults[0].value.as_deref(), Some("\"a\\x00\\n\\x7f\\u00a0\\\"é\""));
}

#[test]
fn a_server_with_generated_checks_tells_a_repeated_fault_once() {
    let twice = with_metadata(json!({ "name": "s", "finalizers": ["/x", "/x"] }));
    let count = |reference| validate_with(&twice, Version::V1, reference).len();
    assert_eq!(count(Reference::Server1_37), 1);
    assert_eq!(count(Reference::Server1_31), 2);
}

// Recorded answers.

#[test]
fn the_recorded_answers_of_the_hand_written_checks_are_given() {
    let bytes: &[u8] = include_bytes!("vectors/validate.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzipped text");
    let mut cases = 0;
    for (index, line) in text.lines().enumerate().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let version = Version::ALL.into_iter().find(|version| case["v"] == version.name());
        let options = DecodeOptions {
            kind: case["kind"].as_str().and_then(Kind::from_name),
            version,
            ..Default::default()
        };
        let object = decode_with(&case["in"], options).object.expect("readable");
        let faults = validate_with(&object, version.expect("a version"), Reference::Checks1_37);
        let mut faults: Vec<_> = faults.iter().map(|fault| [fault.path.as_str(), word(fault.kind)]).collect();
        faults.sort_unstable();
        assert_eq!(json!(faults), case["errs"], "line {}", index + 1);
        let spec = encode(&object, Version::V1)["spec"].take();
        assert_eq!(without_null(&spec), without_null(&case["out"]), "line {}", index + 1);
        cases += 1;
    }
    assert_eq!(cases, 1506);
}

fn word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Required => "required",
        FaultKind::Invalid => "invalid",
        FaultKind::NotSupported => "not-supported",
        FaultKind::Forbidden => "forbidden",
        other => other.reason(),
    }
}

/// An absent list may be recorded as `null`, an empty one or not at all.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null() && **value != json!([]));
            kept.map(|(key, value)| (key.clone(), without_null(value))).collect()
        }
        Value::Array(list) => list.iter().map(without_null).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_recorded_mandatory_and_suggested_objects_are_built_in() {
    let mut cases = 0;
    for line in include_str!("vectors/bootstrap.jsonl").lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let set = if case["set"] == "mandatory" { builtin::mandatory() } else { builtin::suggested() };
        let of_kind = set.into_iter().filter(|object| case["kind"] == object.kind().name());
        let got = of_kind
            .skip(case["i"].as_u64().expect("a place") as usize)
            .map(|object| encode(&object, Version::V1));
        let got = got.map(|object| json!({ "metadata": object["metadata"], "spec": object["spec"] })).next();
        assert_eq!(got.as_ref(), Some(&case["obj"]));
        cases += 1;
    }
    assert_eq!(cases, 19);
}
