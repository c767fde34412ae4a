//! Choice of flow schema: as the reference chooses, and the index as the rules say.
#![cfg(not(loom))]

use std::io::Read as _;

use flate2::read::GzDecoder;
use maitred::{
    api::{DecodeOptions, Kind, Object, Objects, Version, decode_with, v1},
    classify::{Request, Target, rule},
    policy::Policy,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

fn schema(object: &Value) -> v1::FlowSchema {
    let options = DecodeOptions {
        kind: Some(Kind::FlowSchema),
        version: Some(Version::V1),
        defaults: false,
        ..DecodeOptions::default()
    };
    match decode_with(object, options).object {
        Some(Object::FlowSchema(schema)) => schema,
        _ => panic!("not a flow schema: {object}"),
    }
}

fn level(name: &str, type_: &str, queues: i64) -> v1::PriorityLevelConfiguration {
    let response = match queues {
        0 => json!({"type": "Reject"}),
        queues => json!({"type": "Queue", "queuing": {"queues": queues, "handSize": queues.min(8)}}),
    };
    let spec = match type_ {
        "Exempt" => json!({"type": "Exempt"}),
        _ => json!({"type": "Limited", "limited": {"limitResponse": response}}),
    };
    let options = DecodeOptions {
        kind: Some(Kind::PriorityLevelConfiguration),
        version: Some(Version::V1),
        ..DecodeOptions::default()
    };
    match decode_with(&json!({"metadata": {"name": name}, "spec": spec}), options).object {
        Some(Object::PriorityLevelConfiguration(level)) => level,
        _ => panic!("not a level: {name}"),
    }
}

fn policy(schemas: Vec<v1::FlowSchema>, levels: Vec<v1::PriorityLevelConfiguration>) -> Policy {
    Policy::compile(&Objects { flow_schemas: schemas, priority_levels: levels }, 600).expect("compiles")
}

#[test]
fn all_choices_are_those_of_the_reference() {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("vectors/match.jsonl.gz")[..]).read_to_string(&mut text).expect("gzip");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let header = lines.next().expect("a header");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let levels: Vec<_> = header["more"]["levels"].as_array().expect("levels").iter().collect();
    let levels =
        || levels.iter().map(|it| level(&text(&it[0]), &text(&it[1]), it[2].as_i64().unwrap())).collect();
    let mut current = policy(Vec::new(), Vec::new());
    let mut requests = 0;
    for line in lines {
        match line["k"].as_str() {
            Some("config") => {
                current =
                    policy(line["fs"].as_array().expect("a list").iter().map(schema).collect(), levels());
            }
            Some("order") => {
                let order: Vec<Value> = current.schemas().iter().map(|schema| json!(&*schema.name)).collect();
                assert_eq!(line["fs"], json!(order));
            }
            _ => {
                let part: Vec<String> =
                    (0..9).map(|i| line["r"][i].as_str().unwrap_or_default().to_owned()).collect();
                let groups: Vec<String> = serde_json::from_value(line["r"][1].clone()).unwrap_or_default();
                let target = match line["r"][3].as_bool() {
                    Some(true) => Target::resource(&part[4], &part[5], &part[6]),
                    _ => Target::path(&part[8]),
                };
                let request = Request::new(&part[0], &groups, &part[2], target).in_namespace(&part[7]);
                let classified = current.classify(&request);
                let name = &current.schemas()[classified.schema as usize].name;
                let level = &current.levels()[classified.level as usize].name;
                let distinguisher = String::from_utf8_lossy(current.distinguisher(classified, &request));
                let got = json!([&**name, &**level, classified.fallback, distinguisher]);
                assert_eq!(json!([line["fs"], line["pl"], line["fb"], line["d"]]), got, "{}", line["r"]);
                requests += 1;
            }
        }
    }
    assert!(requests > 3000);
}

/// The first schema that matches, by asking one after the other.
fn one_by_one(policy: &Policy, request: &Request<'_, String>) -> Option<u32> {
    policy.schemas().iter().position(|schema| rule::check(&schema.spec, request).is_ok()).map(|at| at as u32)
}

fn indexed(policy: &Policy, request: &Request<'_, String>) -> Option<u32> {
    let classified = policy.classify(request);
    (!classified.fallback).then_some(classified.schema)
}

const USERS: &[&str] = &[
    "",
    "*",
    "alice",
    "system:serviceaccount:n:a",
    "system:serviceaccount:n:*",
    "system:serviceaccount:n:m:a",
    "system:serviceaccount:n",
    "system:serviceaccount::a",
];
const GROUPS: &[&str] = &["", "*", "dev", "ops", "system:authenticated", "system:masters"];
const NAMESPACES: &[&str] = &["", "*", "n", "m", "n:m"];
const VERBS: &[&str] = &["", "*", "get", "list"];
const API_GROUPS: &[&str] = &["", "*", "apps"];
const RESOURCES: &[&str] = &["", "*", "pods", "pods/status", "pods/", "a/b/c", "*/status"];
const PATHS: &[&str] =
    &["", "*", "/", "/*", "/a", "/a/", "/a/*", "/a*", "/a**", "/a/b", "/a/b/c", "/a/b/*", "a", "//"];

fn one_of(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(values).prop_map(str::to_owned)
}

fn list_of(values: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop_oneof![1 => Just(vec!["*".to_owned()]), 3 => vec(one_of(values), 0..3)]
}

/// Subjects of all shapes, also those that validation refuses.
fn subject() -> impl Strategy<Value = v1::Subject> {
    let kind =
        prop_oneof![3 => Just("User"), 3 => Just("Group"), 3 => Just("ServiceAccount"), 1 => Just("Robot")];
    (kind, one_of(USERS), one_of(GROUPS), one_of(NAMESPACES), any::<[bool; 3]>()).prop_map(
        |(kind, user, group, namespace, missing)| {
            let part = |of: &str, i: usize| (kind == of) != (missing[i] && i > 0);
            v1::Subject {
                kind: kind.to_owned(),
                user: part("User", 0).then(|| v1::UserSubject { name: user.clone() }),
                group: part("Group", 1).then_some(v1::GroupSubject { name: group }),
                service_account: part("ServiceAccount", 2).then(|| v1::ServiceAccountSubject {
                    namespace,
                    name: if user.is_empty() { "*".to_owned() } else { "a".to_owned() },
                }),
            }
        },
    )
}

fn rules() -> impl Strategy<Value = v1::PolicyRulesWithSubjects> {
    let resource_rule =
        (list_of(VERBS), list_of(API_GROUPS), list_of(RESOURCES), any::<bool>(), list_of(NAMESPACES))
            .prop_map(|(verbs, api_groups, resources, cluster_scope, namespaces)| v1::ResourcePolicyRule {
                verbs,
                api_groups,
                resources,
                cluster_scope,
                namespaces,
            });
    let non_resource_rule = (list_of(VERBS), list_of(PATHS))
        .prop_map(|(verbs, non_resource_urls)| v1::NonResourcePolicyRule { verbs, non_resource_urls });
    (vec(subject(), 0..4), vec(resource_rule, 0..3), vec(non_resource_rule, 0..3)).prop_map(
        |(subjects, resource_rules, non_resource_rules)| v1::PolicyRulesWithSubjects {
            subjects,
            resource_rules,
            non_resource_rules,
        },
    )
}

/// Schemas named by number, all of one precedence.
fn schemas(most: usize) -> impl Strategy<Value = Vec<v1::FlowSchema>> {
    vec(vec(rules(), 0..3), 0..most).prop_map(|all| {
        let schema = |(i, rules)| {
            let mut schema = v1::FlowSchema::default();
            schema.metadata.name = format!("s{i:04}");
            schema.spec.priority_level_configuration.name = "catch-all".to_owned();
            schema.spec.matching_precedence = 1000;
            schema.spec.rules = rules;
            schema
        };
        all.into_iter().enumerate().map(schema).collect()
    })
}

#[derive(Debug)]
struct Asked {
    user: String,
    groups: Vec<String>,
    verb: String,
    namespace: String,
    target: (bool, String, String, String, String),
}

impl Asked {
    fn request(&self) -> Request<'_, String> {
        let (is_resource, api_group, resource, subresource, path) = &self.target;
        let target = if *is_resource {
            Target::resource(api_group, resource, subresource)
        } else {
            Target::path(path)
        };
        Request::new(&self.user, &self.groups, &self.verb, target).in_namespace(&self.namespace)
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let resource = select(&["", "pods", "pods/", "a", "a/b", "*"][..]).prop_map(str::to_owned);
    let subresource = select(&["", "status", "c", "b/c", "b"][..]).prop_map(str::to_owned);
    let target = (any::<bool>(), one_of(API_GROUPS), resource, subresource, one_of(PATHS));
    (one_of(USERS), vec(one_of(GROUPS), 0..4), one_of(VERBS), one_of(NAMESPACES), target)
        .prop_map(|(user, groups, verb, namespace, target)| Asked { user, groups, verb, namespace, target })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_index_finds_the_schema_that_asking_one_by_one_finds(
        schemas in schemas(12),
        asked in vec(asked(), 20),
    ) {
        let policy = policy(schemas, Vec::new());
        for asked in asked {
            let request = asked.request();
            prop_assert_eq!(indexed(&policy, &request), one_by_one(&policy, &request), "{:?}", request);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_index_does_so_with_hundreds_of_schemas(schemas in schemas(400), asked in vec(asked(), 50)) {
        let policy = policy(schemas, Vec::new());
        for asked in asked {
            let request = asked.request();
            prop_assert_eq!(indexed(&policy, &request), one_by_one(&policy, &request), "{:?}", request);
        }
    }
}

fn for_user(name: &str, user: &str) -> v1::FlowSchema {
    schema(&json!({"metadata": {"name": name}, "spec": {
        "priorityLevelConfiguration": {"name": "catch-all"}, "matchingPrecedence": 1000,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": user}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]}]}}))
}

#[test]
fn ten_thousand_schemas_are_told_apart() {
    let schemas = (0..10_000).map(|i| for_user(&format!("s{i:05}"), &format!("user-{i}"))).collect();
    let policy = policy(schemas, Vec::new());
    let target = Target::resource("", "pods", "");
    for i in [0, 1, 63, 64, 4095, 4096, 8191, 8192, 9999] {
        let user = format!("user-{i}");
        let request: Request<'_> = Request::new(&user, &[], "get", target).in_namespace("n");
        let found = policy.classify(&request);
        assert_eq!(*policy.schemas()[found.schema as usize].name, format!("s{i:05}"));
    }
    let nobody: Request<'_> = Request::new("nobody", &[], "get", target).in_namespace("n");
    assert!(policy.classify(&nobody).fallback);
}

#[test]
fn every_group_of_a_user_counts_however_many_there_are() {
    let of_group = |name: &str, group: &str| {
        let mut schema = for_user(name, "");
        schema.spec.rules[0].subjects = vec![v1::Subject {
            kind: "Group".to_owned(),
            group: Some(v1::GroupSubject { name: group.to_owned() }),
            ..v1::Subject::default()
        }];
        schema
    };
    // Every group is named by some schema, and so has to be looked into.
    let mut schemas: Vec<_> = (0..100).map(|i| of_group(&format!("z{i}"), &format!("g{i}"))).collect();
    schemas.extend([of_group("a", "first"), of_group("b", "second")]);
    let policy = policy(schemas, Vec::new());
    for (at, expected) in [(0, "a"), (20, "a"), (99, "a"), (200, "b")] {
        let mut groups: Vec<String> = (0..100).map(|i| format!("g{i}")).collect();
        groups[3] = "second".to_owned();
        if let Some(place) = groups.get_mut(at) {
            *place = "first".to_owned();
        }
        let request = Request::new("u", &groups, "get", Target::resource("", "pods", "")).in_namespace("n");
        let found = policy.classify(&request).schema;
        assert_eq!(&*policy.schemas()[found as usize].name, expected, "first at {at}");
    }
}
