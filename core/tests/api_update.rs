//! What a server stores of what a client sends, and when it refuses.
#![cfg(not(loom))]

use maitred::api::meta::Time;
use maitred::api::update::{Answer, Birth, Refusal, Request, create, replace, replace_status};
use maitred::api::{Kind, Object, Reference, Version, v1};
use serde_json::{Value, json};

fn body() -> Value {
    json!({
        "metadata": { "name": "s" },
        "spec": { "priorityLevelConfiguration": { "name": "l" }, "matchingPrecedence": 500 },
    })
}

fn request(body: &Value) -> Request<'_> {
    Request { kind: Kind::FlowSchema, version: Version::V1, body, reference: Reference::default() }
}

fn birth() -> Birth {
    Birth { now: Time(1_000), uid: "uid-1".to_owned(), name_suffix: "abcde".to_owned() }
}

fn created(body: &Value) -> Object {
    create(request(body), birth(), |_| None).result.expect("accepted")
}

/// What a store holds after `body` was created.
fn stored(body: &Value) -> Object {
    let mut object = created(body);
    object.metadata_mut().resource_version = "7".to_owned();
    object
}

fn refusal(answer: Answer) -> Refusal {
    answer.result.expect_err("a refusal")
}

fn schema(object: &Object) -> &v1::FlowSchema {
    let Object::FlowSchema(schema) = object else { panic!("another kind") };
    schema
}

/// `body` with `value` at `pointer`, of which all but the last step exists.
fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    body.pointer_mut(parent).expect("the parent")[key] = value;
    body
}

// Create.

#[test]
fn a_new_object_gets_what_only_the_server_gives() {
    let mut sent = body();
    sent["metadata"] = json!({
        "name": "s", "namespace": "default", "uid": "mine", "generation": 77, "selfLink": "/x",
        "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z",
        "resourceVersion": "0", "labels": { "a": "b" }, "managedFields": [{ "manager": "x" }],
    });
    sent["status"] = json!({ "conditions": [{}, {}] });
    let object = created(&sent);
    let expected = json!({
        "name": "s", "uid": "uid-1", "generation": 1, "creationTimestamp": "1970-01-01T00:16:40Z",
        "labels": { "a": "b" },
    });
    assert_eq!(json!(object.metadata()), expected);
    assert_eq!(schema(&object).status, v1::FlowSchemaStatus::default());
}

#[test]
fn a_name_is_generated_from_its_beginning_within_63_bytes() {
    let name = |base: &str| {
        created(&with(body(), "/metadata", json!({ "generateName": base }))).metadata().name.clone()
    };
    assert_eq!(name("gen-"), "gen-abcde");
    assert_eq!(name(&"g".repeat(100)), format!("{}abcde", "g".repeat(58)));
}

#[test]
fn a_name_that_is_taken_is_refused_after_everything_else_is_fine() {
    let there = stored(&body());
    let refused = refusal(create(request(&body()), birth(), |name| Some(&there).filter(|_| name == "s")));
    assert_eq!((refused.code, refused.reason), (409, "AlreadyExists"));
    assert_eq!(refused.message, "flowschemas.flowcontrol.apiserver.k8s.io \"s\" already exists");
    let bad = with(body(), "/spec/matchingPrecedence", json!(-1));
    assert_eq!(refusal(create(request(&bad), birth(), |_| Some(&there))).code, 422);
}

#[test]
fn a_resource_version_on_create_is_the_servers_own_error() {
    let refused = |version: &str| {
        create(request(&with(body(), "/metadata/resourceVersion", json!(version))), birth(), |_| None)
            .result
            .err()
    };
    let refused_5 = refused("5").expect("refused");
    assert_eq!((refused_5.code, refused_5.reason), (500, ""));
    assert_eq!(refused_5.message, "resourceVersion should not be set on objects to be created");
    // What is no number is no version.
    assert_eq!(refused("abc"), None);
}

#[test]
fn all_faults_are_told_at_once() {
    let bad = json!({ "metadata": { "name": "A" }, "spec": { "matchingPrecedence": -1 } });
    let refused = refusal(create(request(&bad), birth(), |_| None));
    assert_eq!((refused.code, refused.reason, refused.faults.len()), (422, "Invalid", 3));
    assert!(
        refused
            .message
            .starts_with("FlowSchema.flowcontrol.apiserver.k8s.io \"A\" is invalid: [metadata.name: ")
    );
}

#[test]
fn a_body_that_cannot_be_read_is_a_bad_request() {
    for body in [
        json!([]),
        with(body(), "/spec/matchingPrecedence", json!("5")),
        json!({ "kind": "PriorityLevelConfiguration" }),
        json!({ "apiVersion": "flowcontrol.apiserver.k8s.io/v1beta2" }),
        json!({ "apiVersion": "v1" }),
    ] {
        let refused = refusal(create(request(&body), birth(), |_| None));
        assert_eq!((refused.code, refused.reason), (400, "BadRequest"), "{body}");
    }
}

#[test]
fn unknown_fields_old_versions_and_repeated_owners_are_warned_of_in_this_order() {
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1" });
    let sent = with(with(body(), "/foo", json!(1)), "/metadata/ownerReferences", json!([owner, owner]));
    let Answer { result, warnings } =
        create(Request { version: Version::V1Beta3, ..request(&sent) }, birth(), |_| None);
    assert_eq!(result.expect("accepted").metadata().owner_references.len(), 1);
    assert_eq!(
        warnings[0],
        "flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is deprecated in v1.29+, unavailable in v1.32+; use \
         flowcontrol.apiserver.k8s.io/v1 FlowSchema"
    );
    assert_eq!(warnings[1], "unknown field \"foo\"");
    assert!(warnings[2].ends_with("duplicate UID(s) observed: 1"));
}

// Replace.

#[test]
fn a_changed_spec_counts_a_generation() {
    let there = stored(&body());
    let replaced = |body: Value| replace(request(&body), "s", Some(&there)).result.expect("accepted");
    assert_eq!(replaced(body()), there);
    let labelled = replaced(with(body(), "/metadata/labels", json!({ "a": "b" })));
    assert_eq!(labelled.metadata().generation, 1);
    let moved = replaced(with(body(), "/spec/matchingPrecedence", json!(600)));
    assert_eq!(moved.metadata().generation, 2);
    // The default is what it was before: nothing changes.
    let there = stored(&with(body(), "/spec/matchingPrecedence", json!(1000)));
    let defaulted = with(body(), "/spec/matchingPrecedence", json!(0));
    assert_eq!(replace(request(&defaulted), "s", Some(&there)).result.expect("accepted"), there);
}

#[test]
fn a_replacement_leaves_status_and_the_servers_metadata_alone() {
    let mut there = stored(&body());
    if let Object::FlowSchema(schema) = &mut there {
        schema.status.conditions.push(v1::Condition { type_: "A".to_owned(), ..v1::Condition::default() });
    }
    let mut sent = body();
    sent["metadata"] = json!({ "name": "s", "generation": 99, "creationTimestamp": "2001-01-01T00:00:00Z" });
    sent["status"] = json!({ "conditions": [{}, {}] });
    assert_eq!(replace(request(&sent), "s", Some(&there)).result.expect("accepted"), there);
}

#[test]
fn what_is_not_there_cannot_be_replaced() {
    let refused = refusal(replace(request(&body()), "s", None));
    assert_eq!((refused.code, refused.reason), (404, "NotFound"));
}

#[test]
fn the_body_must_name_the_object_of_the_url() {
    let there = stored(&body());
    let refused = refusal(replace(request(&body()), "t", Some(&there)));
    assert_eq!((refused.code, refused.reason), (400, "BadRequest"));
    assert_eq!(refused.message, "the name of the object (s) does not match the name on the URL (t)");
    let nameless = with(body(), "/metadata", json!({}));
    let refused = refusal(replace(request(&nameless), "s", Some(&there)));
    assert_eq!(
        refused.message,
        "the name of the object (s based on URL) was undeterminable: name must be provided"
    );
}

#[test]
fn an_old_version_or_another_uid_conflicts() {
    let there = stored(&body());
    let code = |pointer: &str, value: &str| {
        let sent = with(body(), pointer, json!(value));
        replace(request(&sent), "s", Some(&there)).result.map_or_else(|refusal| refusal.code, |_| 200)
    };
    assert_eq!(code("/metadata/resourceVersion", "7"), 200);
    assert_eq!(code("/metadata/resourceVersion", "007"), 200);
    assert_eq!(code("/metadata/resourceVersion", ""), 200);
    assert_eq!(code("/metadata/resourceVersion", "0"), 200);
    assert_eq!(code("/metadata/resourceVersion", "6"), 409);
    assert_eq!(code("/metadata/resourceVersion", "8"), 409);
    assert_eq!(code("/metadata/resourceVersion", "abc"), 500);
    assert_eq!(code("/metadata/resourceVersion", "+7"), 500);
    assert_eq!(code("/metadata/resourceVersion", "99999999999999999999"), 500);
    assert_eq!(code("/metadata/uid", "uid-1"), 200);
    assert_eq!(code("/metadata/uid", "uid-2"), 409);
}

#[test]
fn a_deletion_cannot_be_written_by_a_replacement() {
    let sent = with(body(), "/metadata/deletionTimestamp", json!("2026-01-02T03:04:05Z"));
    let refused = refusal(replace(request(&sent), "s", Some(&stored(&body()))));
    assert_eq!(
        refused.faults[0].to_string(),
        "metadata.deletionTimestamp: Invalid value: \"2026-01-02T03:04:05Z\": field is immutable"
    );
}

// Status.

#[test]
fn replacing_the_status_changes_nothing_else() {
    let there = stored(&body());
    let sent = json!({
        "metadata": { "name": "s", "labels": { "a": "b" } },
        "spec": { "matchingPrecedence": -1 },
        "status": { "conditions": [{ "type": "A", "status": "Maybe" }] },
    });
    let object = replace_status(request(&sent), "s", Some(&there)).result.expect("accepted");
    assert_eq!((object.metadata(), &schema(&object).spec), (there.metadata(), &schema(&there).spec));
    assert_eq!(schema(&object).status.conditions[0].status, "Maybe");
}

#[test]
fn a_bad_status_is_refused() {
    let sent = with(body(), "/status", json!({ "conditions": [{}] }));
    let refused = refusal(replace_status(request(&sent), "s", Some(&stored(&body()))));
    assert_eq!(refused.code, 422);
    assert_eq!(refused.faults[0].path, "status.conditions[0].type");
}
