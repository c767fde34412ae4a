//! Reading and writing API objects: types, versions, defaults.
#![cfg(not(loom))]

use maitred::api::meta::Time;
use maitred::api::{
    self, DecodeOptions, Decoded, Kind, Object, Reading, Version, builtin, convert, decode, decode_with,
    encode,
};
use maitred::error::{Fault, FaultKind};
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema(spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": { "name": "s" },
        "spec": spec,
    })
}

fn level(version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("flowcontrol.apiserver.k8s.io/{version}"),
        "kind": "PriorityLevelConfiguration",
        "metadata": { "name": "l" },
        "spec": spec,
    })
}

fn read(value: &Value) -> Object {
    decode(value).expect("a readable object").object
}

/// What the object looks like in `version` after it was read, defaults filled in.
fn spec_in(value: &Value, version: Version) -> Value {
    encode(&read(value), version)["spec"].take()
}

fn faults(value: &Value) -> Vec<String> {
    decode(value).expect_err("an unreadable object").iter().map(Fault::to_string).collect()
}

// Types.

#[test]
fn every_value_of_a_wrong_type_is_told_with_its_path() {
    let object = schema(json!({
        "matchingPrecedence": "100",
        "rules": [
            { "subjects": [{ "kind": "User" }, { "kind": 5 }], "resourceRules": [{ "clusterScope": "yes" }] },
            { "nonResourceRules": [{ "verbs": "get" }] },
        ],
    }));
    assert_eq!(
        faults(&object),
        [
            r#"spec.matchingPrecedence: Invalid value: "100": must be a whole number, without quotes"#,
            "spec.rules[0].subjects[1].kind: Invalid value: 5: must be a string",
            r#"spec.rules[0].resourceRules[0].clusterScope: Invalid value: "yes": must be true or false"#,
            r#"spec.rules[1].nonResourceRules[0].verbs: Invalid value: "get": must be a list"#,
        ]
    );
}

#[test]
fn a_fault_knows_its_object() {
    let faults = decode(&schema(json!([]))).expect_err("a list is no spec");
    let [Fault { object: Some(object), path, kind: FaultKind::TypeInvalid, .. }] = faults.as_slice() else {
        panic!("{faults:?}")
    };
    assert_eq!((object.to_string().as_str(), path.as_str()), ("FlowSchema/s", "spec"));
}

#[test]
fn a_request_must_write_integers_as_integers() {
    for number in [json!(100.0), json!(1e3), json!(1.5), json!(2_147_483_648_u64), json!(-2_147_483_649_i64)]
    {
        let object = schema(json!({ "matchingPrecedence": number }));
        assert_eq!(faults(&object).len(), 1, "{number}");
    }
}

#[test]
fn a_file_may_write_an_integer_as_a_whole_float() {
    let read = |number: Value| {
        let options = DecodeOptions { whole_floats: true, ..DecodeOptions::default() };
        decode_with(&schema(json!({ "matchingPrecedence": number })), options)
    };
    assert!(read(json!(50.0)).object.is_some());
    assert!(read(json!(1e2)).object.is_some());
    assert!(read(json!(12.5)).object.is_none());
    assert!(read(json!(1e10)).object.is_none());
}

#[test]
fn null_is_the_same_as_absent_everywhere() {
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": { "name": "s", "labels": null, "creationTimestamp": null },
        "spec": { "matchingPrecedence": null, "distinguisherMethod": null, "rules": null },
        "status": null,
    });
    assert_eq!(read(&object), read(&schema(json!({}))));
}

#[test]
fn a_null_in_a_list_is_an_empty_item() {
    let Object::FlowSchema(schema) = read(&schema(json!({ "rules": [null, { "subjects": [null] }] }))) else {
        panic!("another kind")
    };
    assert_eq!(schema.spec.rules.len(), 2);
    assert_eq!(schema.spec.rules[1].subjects.len(), 1);
}

#[test]
fn unknown_fields_are_dropped_and_told_with_their_paths() {
    let mut object = schema(json!({ "Type": 1, "rules": [{ "subjects": [{ "apiGroup": { "a": 1 } }] }] }));
    object["foo"] = json!(1);
    let Decoded { unknown, .. } = decode(&object).expect("unknown fields are no fault");
    let unknown: Vec<String> = unknown.iter().map(Fault::to_string).collect();
    assert_eq!(
        unknown,
        [
            r#"unknown field "spec.Type""#,
            r#"unknown field "spec.rules[0].subjects[0].apiGroup""#,
            r#"unknown field "foo""#,
        ]
    );
}

#[test]
fn a_field_of_another_version_is_unknown() {
    let shares = |version, field: &str| {
        let object = level(version, json!({ "type": "Limited", "limited": { field: 7 } }));
        decode(&object).expect("readable").unknown.len()
    };
    assert_eq!(shares("v1", "assuredConcurrencyShares"), 1);
    assert_eq!(shares("v1beta3", "assuredConcurrencyShares"), 1);
    assert_eq!(shares("v1beta2", "nominalConcurrencyShares"), 1);
    assert_eq!(shares("v1beta2", "assuredConcurrencyShares"), 0);
}

// Kind and version.

#[test]
fn versions_that_are_gone_are_named_with_those_that_are_served() {
    let [fault] = faults(&level("v1alpha1", json!({}))).try_into().expect("one fault");
    assert_eq!(
        fault,
        "apiVersion: Unsupported value: \"flowcontrol.apiserver.k8s.io/v1alpha1\": no longer served; supported \
         values: \"flowcontrol.apiserver.k8s.io/v1\", \"flowcontrol.apiserver.k8s.io/v1beta3\", \
         \"flowcontrol.apiserver.k8s.io/v1beta2\""
    );
}

#[test]
fn an_object_of_another_group_or_kind_is_refused() {
    assert!(faults(&json!({ "apiVersion": "apps/v1", "kind": "FlowSchema" }))[0].contains("in the group"));
    assert!(
        faults(&json!({ "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "flowschema" }))[0]
            .starts_with("kind: Unsupported value")
    );
    assert_eq!(faults(&json!({})).len(), 2);
}

#[test]
fn an_object_that_does_not_tell_takes_kind_and_version_of_the_place() {
    let place = DecodeOptions {
        kind: Some(Kind::FlowSchema),
        version: Some(Version::V1Beta3),
        ..DecodeOptions::default()
    };
    for body in [json!({}), json!(null), json!({ "apiVersion": "", "kind": "" })] {
        let Reading { object, version, .. } = decode_with(&body, place);
        assert!(matches!(object, Some(Object::FlowSchema(_))), "{body}");
        assert_eq!(version, Some(Version::V1Beta3));
    }
    assert!(decode_with(&json!([]), place).object.is_none());
}

// Defaults.

#[test]
fn absent_and_zero_values_get_their_defaults() {
    assert_eq!(spec_in(&schema(json!({})), Version::V1)["matchingPrecedence"], 1000);
    let spec = json!({
        "type": "Limited",
        "limited": { "limitResponse": { "type": "Queue", "queuing": { "queues": 0, "handSize": null } } },
    });
    assert_eq!(
        spec_in(&level("v1", spec), Version::V1),
        json!({
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 30,
                "limitResponse": {
                    "type": "Queue",
                    "queuing": { "queues": 64, "handSize": 8, "queueLengthLimit": 50 },
                },
                "lendablePercent": 0,
            },
        })
    );
    let spec = json!({ "type": "Exempt", "exempt": {} });
    let exempt = json!({ "nominalConcurrencyShares": 0, "lendablePercent": 0 });
    assert_eq!(spec_in(&level("v1", spec), Version::V1)["exempt"], exempt);
}

#[test]
fn what_is_absent_as_a_whole_stays_absent() {
    let spec = json!({ "type": "Limited", "limited": { "limitResponse": { "type": "Queue" } } });
    assert!(spec_in(&level("v1", spec), Version::V1)["limited"]["limitResponse"].get("queuing").is_none());
    assert_eq!(spec_in(&level("v1", json!({ "type": "Exempt" })), Version::V1), json!({ "type": "Exempt" }));
}

#[test]
fn a_borrowing_limit_has_no_default() {
    let spec = json!({ "type": "Limited", "limited": {} });
    assert!(spec_in(&level("v1", spec), Version::V1)["limited"].get("borrowingLimitPercent").is_none());
}

#[test]
fn defaults_can_be_left_out() {
    let options = DecodeOptions { defaults: false, ..DecodeOptions::default() };
    let Some(Object::FlowSchema(schema)) = decode_with(&schema(json!({})), options).object else {
        panic!("unreadable")
    };
    assert_eq!(schema.spec.matching_precedence, 0);
}

// Versions.

fn shares(version: &str, annotated: bool, shares: Option<i32>) -> Object {
    let field = if version == "v1beta2" { "assuredConcurrencyShares" } else { "nominalConcurrencyShares" };
    let mut object = level(version, json!({ "type": "Limited", "limited": { field: shares } }));
    if annotated {
        object["metadata"]["annotations"] = json!({ api::v1beta3::PRESERVE_ZERO: "x", "mine": "1" });
    }
    read(&object)
}

fn shares_of(object: &Object) -> Option<i32> {
    let Object::PriorityLevelConfiguration(level) = object else { return None };
    level.spec.limited.as_ref()?.nominal_concurrency_shares
}

#[test]
fn zero_shares_are_meant_in_v1_and_absent_in_older_versions() {
    assert_eq!(shares_of(&shares("v1", false, Some(0))), Some(0));
    assert_eq!(shares_of(&shares("v1beta3", false, Some(0))), Some(30));
    assert_eq!(shares_of(&shares("v1beta2", false, Some(0))), Some(30));
    assert_eq!(shares_of(&shares("v1beta2", false, Some(7))), Some(7));
}

#[test]
fn an_annotation_makes_zero_shares_meant_in_v1beta3_whatever_its_value() {
    assert_eq!(shares_of(&shares("v1beta3", true, Some(0))), Some(0));
    assert_eq!(shares_of(&shares("v1beta3", true, None)), Some(0));
    assert_eq!(shares_of(&shares("v1beta2", true, None)), Some(30));
}

#[test]
fn the_annotation_goes_when_v1beta3_is_read_and_comes_back_empty_when_it_is_written() {
    let object = shares("v1beta3", true, Some(0));
    assert_eq!(encode(&object, Version::V1)["metadata"]["annotations"], json!({ "mine": "1" }));
    let annotations = json!({ api::v1beta3::PRESERVE_ZERO: "", "mine": "1" });
    assert_eq!(encode(&object, Version::V1Beta3)["metadata"]["annotations"], annotations);
    let object = shares("v1beta3", true, Some(5));
    assert_eq!(encode(&object, Version::V1Beta3)["metadata"]["annotations"], json!({ "mine": "1" }));
}

#[test]
fn shares_are_assured_in_v1beta2() {
    let written = encode(&shares("v1", false, Some(7)), Version::V1Beta2);
    assert_eq!(written["apiVersion"], "flowcontrol.apiserver.k8s.io/v1beta2");
    assert_eq!(written["spec"]["limited"]["assuredConcurrencyShares"], 7);
    assert!(written["spec"]["limited"].get("nominalConcurrencyShares").is_none());
}

#[test]
fn what_v1beta2_cannot_say_is_told() {
    let zero = shares("v1", false, Some(0));
    assert!(convert::loss(&zero, Version::V1Beta2).is_some());
    assert!(convert::loss(&zero, Version::V1Beta3).is_none());
    assert!(convert::loss(&shares("v1", false, Some(1)), Version::V1Beta2).is_none());
}

#[test]
fn members_are_written_in_the_order_of_the_api() {
    let text =
        encode(&read(&schema(json!({ "rules": [{ "resourceRules": [{}] }] }))), Version::V1).to_string();
    assert_eq!(
        text,
        r#"{"kind":"FlowSchema","apiVersion":"flowcontrol.apiserver.k8s.io/v1","metadata":{"name":"s"},"#
            .to_owned()
            + r#""spec":{"priorityLevelConfiguration":{"name":""},"matchingPrecedence":1000,"rules":[{"subjects":null,"#
            + r#""resourceRules":[{"verbs":null,"apiGroups":null,"resources":null,"namespaces":null}]}]},"status":{}}"#
    );
}

#[test]
fn everything_that_a_server_keeps_survives() {
    let object = json!({
        "kind": "FlowSchema",
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {
            "name": "s", "generateName": "g-", "uid": "u", "resourceVersion": "5", "generation": 3,
            "creationTimestamp": "2026-11-30T22:36:04Z", "deletionTimestamp": "2026-12-01T00:00:00Z",
            "deletionGracePeriodSeconds": 30, "labels": { "a": "b" }, "annotations": { "c": "d" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": true }],
            "finalizers": ["example.com/x"],
            "managedFields": [{
                "manager": "m", "operation": "Update", "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
                "time": "2026-11-30T22:36:04Z", "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": {} },
                "subresource": "status",
            }],
        },
        "spec": { "priorityLevelConfiguration": { "name": "l" }, "matchingPrecedence": 5 },
        "status": { "conditions": [{
            "type": "Dangling", "status": "True", "lastTransitionTime": "2026-11-30T22:36:04Z",
            "reason": "NotFound", "message": "m",
        }] },
    });
    assert_eq!(encode(&read(&object), Version::V1), object);
}

// Times.

#[test]
fn times_are_read_as_rfc_3339_and_written_in_utc() {
    let cases = [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        ("2024-02-29T23:59:59.999Z", "2024-02-29T23:59:59Z"),
        ("2026-01-02T03:04:05+02:30", "2026-01-02T00:34:05Z"),
        ("1999-12-31T20:00:00-05:00", "2000-01-01T01:00:00Z"),
        ("2026-01-02T5:04:05,5Z", "2026-01-02T05:04:05Z"),
        ("0000-03-01T00:00:00Z", "0000-03-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ];
    for (text, written) in cases {
        assert_eq!(Time::parse(text).expect(text).to_string(), written);
    }
}

#[test]
fn what_is_no_time_is_refused() {
    let texts = [
        "",
        "yesterday",
        "2026-01-02",
        "2026-1-02T03:04:05Z",
        "2026-13-02T03:04:05Z",
        "2025-02-29T00:00:00Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:60Z",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05.Z",
        "2026-01-02t03:04:05z",
        "2026-01-02T03:04:05+25:00",
        "2026-01-02T03:04:05Zx",
        "2026-01-02T03:04:05+0:300",
        "é026-01-02T03:04:05Z",
        "2026-01-02T03:04:05+é:00",
    ];
    for text in texts {
        assert_eq!(Time::parse(text), None, "{text}");
    }
}

// What is built in.

#[test]
fn what_a_server_has_is_valid_by_its_own_rules() {
    for object in builtin::fresh(Time(0)) {
        assert_eq!(api::validate(&object), [], "{:?}", object.metadata().name);
    }
}

proptest! {
    #[test]
    fn reading_never_panics_and_writing_what_was_read_changes_nothing(
        spec in json_value(),
        metadata in json_value(),
        version in prop::sample::select(&Version::ALL),
        kind in prop::sample::select(&Kind::ALL),
    ) {
        let object = json!({
            "apiVersion": version.api_version(), "kind": kind.name(), "metadata": metadata, "spec": spec,
        });
        if let Ok(Decoded { object, .. }) = decode(&object) {
            let _ = api::validate(&object);
            for version in Version::ALL {
                if convert::loss(&object, version).is_none() {
                    let again = read(&encode(&object, version));
                    prop_assert_eq!(encode(&again, Version::V1), encode(&object, Version::V1));
                }
            }
        }
    }
}

/// JSON in which the field names of the API are frequent.
fn json_value() -> impl Strategy<Value = Value> {
    let names = [
        "name",
        "labels",
        "type",
        "limited",
        "exempt",
        "limitResponse",
        "queuing",
        "queues",
        "handSize",
        "nominalConcurrencyShares",
        "assuredConcurrencyShares",
        "rules",
        "subjects",
        "kind",
        "user",
        "resourceRules",
        "namespaces",
        "verbs",
        "matchingPrecedence",
        "creationTimestamp",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (0..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["", "Limited", "Queue", "User", "*", "a", "2026-01-02T03:04:05Z"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(names.to_vec()), inner), 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}
