//! Compiling a set of objects: order, mandatory objects, levels, faults; and what explanations tell.
#![cfg(not(loom))]

use maitred::{
    api::{Decoded, Object, Objects, builtin, decode},
    classify::{Request, Target},
    explain::{Response, explain},
    flow::{Distinguisher, FlowHasher},
    policy::{LevelKind, Policy},
};
use serde_json::{Value, json};

fn object(kind: &str, name: &str, spec: Value) -> Object {
    let version = "flowcontrol.apiserver.k8s.io/v1";
    let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let Decoded { object, unknown, .. } = decode(&object).expect("readable");
    assert!(unknown.is_empty(), "{unknown:?}");
    object
}

fn schema(name: &str, precedence: i32, level: &str, rules: Value) -> Object {
    let level = json!({"name": level});
    let spec = json!({"matchingPrecedence": precedence, "priorityLevelConfiguration": level, "rules": rules,
        "distinguisherMethod": {"type": "ByUser"}});
    object("FlowSchema", name, spec)
}

fn level(name: &str, limited: Value) -> Object {
    object("PriorityLevelConfiguration", name, json!({"type": "Limited", "limited": limited}))
}

fn queuing(queues: i32, hand_size: i32) -> Value {
    json!({"limitResponse": {"type": "Queue", "queuing": {"queues": queues, "handSize": hand_size}}})
}

fn everything_of(user: &str) -> Value {
    json!([{"subjects": [{"kind": "User", "user": {"name": user}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true, "namespaces": ["*"]}]}])
}

fn compile(objects: impl IntoIterator<Item = Object>) -> Policy {
    Policy::compile(&objects.into_iter().collect(), 600).expect("compiles")
}

fn names(policy: &Policy) -> Vec<&str> {
    policy.schemas().iter().map(|schema| &*schema.name).collect()
}

fn get_pods<'a>(user: &'a str) -> Request<'a> {
    Request::new(user, &["system:authenticated"], "get", Target::resource("", "pods", "")).in_namespace("n")
}

#[test]
fn without_objects_the_mandatory_ones_are_imagined() {
    let policy = compile([]);
    assert_eq!(names(&policy), ["exempt", "catch-all"]);
    assert!(policy.schemas().iter().all(|schema| schema.imagined));
    let levels: Vec<_> =
        policy.levels().iter().map(|level| (&*level.name, &level.kind, level.nominal)).collect();
    assert_eq!(levels, [("catch-all", &LevelKind::Reject, 600), ("exempt", &LevelKind::Exempt, 0)]);
    assert!(policy.level_specs().is_empty(), "there are no objects to take limits from");
}

#[test]
fn schemas_go_by_precedence_and_then_by_name() {
    let of = |name, precedence| schema(name, precedence, "catch-all", everything_of("u"));
    let policy = compile([of("b", 5), of("c", 1), of("a", 5), of("zz", 10_000), of("aa", 10_000)]);
    assert_eq!(names(&policy), ["exempt", "c", "a", "b", "aa", "zz", "catch-all"]);
}

#[test]
fn an_exempt_schema_that_exists_is_sorted_and_an_imagined_one_goes_first() {
    let before = schema("a", 1, "catch-all", everything_of("u"));
    assert_eq!(names(&compile([before.clone()])), ["exempt", "a", "catch-all"]);
    let mut objects = builtin::mandatory();
    objects.push(before);
    assert_eq!(names(&compile(objects)), ["a", "exempt", "catch-all"]);
}

#[test]
fn a_schema_whose_level_does_not_exist_takes_no_part() {
    let policy = compile([schema("lost", 5, "nowhere", everything_of("alice"))]);
    assert_eq!(names(&policy), ["exempt", "catch-all"]);
    let [dangling] = policy.dangling() else { panic!("{:?}", policy.dangling()) };
    assert_eq!((&*dangling.name, &*dangling.spec.priority_level_configuration.name), ("lost", "nowhere"));
    let classified = policy.classify(&get_pods("alice"));
    assert_eq!(policy.schemas()[classified.schema as usize].name, "catch-all".into());
}

#[test]
fn a_request_that_matches_nothing_goes_to_catch_all() {
    let policy = compile([]);
    let nobody: Request<'_> = Request::new("nobody", &[], "get", Target::path("/"));
    let classified = policy.classify(&nobody);
    assert_eq!((classified.schema, classified.level, classified.fallback), (1, 0, true));
    assert!(!policy.classify(&get_pods("alice")).fallback, "authenticated users match the schema itself");
}

#[test]
fn seats_are_those_of_a_fresh_server() {
    let policy =
        Policy::compile(&builtin::fresh(maitred::api::meta::Time::default()), 600).expect("compiles");
    let seats = |name: &str| {
        let level = policy.levels().iter().find(|level| &*level.name == name).expect(name);
        (level.nominal, level.min, level.max)
    };
    // 245 shares in all.
    assert_eq!(seats("workload-low"), (245, 24, 845));
    assert_eq!(seats("catch-all"), (13, 13, 613));
    assert_eq!(seats("exempt"), (0, 0, 600));
}

#[test]
fn all_faults_of_all_objects_are_told_at_once() {
    let mut undistinguished = schema("s", 5, "catch-all", json!([]));
    if let Object::FlowSchema(schema) = &mut undistinguished {
        schema.spec.distinguisher_method.as_mut().unwrap().type_ = "ByMoon".to_owned();
    }
    let objects: Objects = [
        level("twice", queuing(64, 8)),
        level("twice", queuing(64, 8)),
        level("wide", queuing(8, 9)),
        level("entropy", queuing(1024, 7)),
        level("short", json!({"limitResponse": {"type": "Queue"}})),
        level(
            "negative",
            json!({"nominalConcurrencyShares": -1, "lendablePercent": 101, "borrowingLimitPercent": -1,
            "limitResponse": {"type": "Drop"}}),
        ),
        object("PriorityLevelConfiguration", "free", json!({"type": "Exempt"})),
        object("PriorityLevelConfiguration", "exempt", json!({"type": "Limited", "limited": queuing(1, 1)})),
        object("PriorityLevelConfiguration", "odd", json!({"type": "Odd"})),
        object("PriorityLevelConfiguration", "bare", json!({"type": "Limited"})),
        undistinguished,
    ]
    .into_iter()
    .collect();
    let faults = Policy::compile(&objects, 600).expect_err("faulty");
    let told: Vec<String> = faults
        .iter()
        .map(|fault| format!("{} {}", fault.object.as_ref().expect("an object").name, fault.path))
        .collect();
    assert_eq!(
        told,
        [
            "twice metadata.name",
            "wide spec.limited.limitResponse.queuing.handSize",
            "entropy spec.limited.limitResponse.queuing.handSize",
            "short spec.limited.limitResponse.queuing",
            "negative spec.limited.limitResponse.type",
            "negative spec.limited.nominalConcurrencyShares",
            "negative spec.limited.lendablePercent",
            "negative spec.limited.borrowingLimitPercent",
            "free spec.type",
            "exempt spec.type",
            "odd spec.type",
            "bare spec.limited",
            "s spec.distinguisherMethod.type",
        ]
    );
}

#[test]
fn an_explanation_names_the_part_that_matches_and_the_flow() {
    let policy =
        compile([level("queues", queuing(64, 8)), schema("mine", 5, "queues", everything_of("alice"))]);
    let explanation = explain(&policy, &get_pods("alice"), &FlowHasher::Kubernetes);
    assert_eq!(explanation.flow_schema, "mine");
    assert_eq!(explanation.matched_by.as_deref(), Some("spec.rules[0].resourceRules[0]"));
    assert_eq!((explanation.priority_level.as_str(), explanation.response), ("queues", Response::Queue));
    assert_eq!(explanation.distinguisher_method, Distinguisher::ByUser);
    assert_eq!(explanation.distinguisher, "alice");
    let shuffle = explanation.shuffle.expect("the level queues");
    assert_eq!((shuffle.queues, shuffle.hand.len()), (64, 8));
}

#[test]
fn an_explanation_tells_every_field_that_kept_an_earlier_schema_from_matching() {
    let rules = json!([
        {"subjects": [{"kind": "Group", "group": {"name": "ops"}}, {"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}}],
         "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]},
        {"subjects": [{"kind": "User", "user": {"name": "*"}}],
         "resourceRules": [
            {"verbs": ["list", "watch"], "apiGroups": ["apps"], "resources": ["pods"], "namespaces": ["m"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"], "clusterScope": true, "namespaces": ["*"]}]},
        {"subjects": [{"kind": "User", "user": {"name": "*"}}],
         "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]}
    ]);
    let policy = compile([schema("early", 5, "catch-all", rules)]);
    let explanation = explain(&policy, &get_pods("alice"), &FlowHasher::Kubernetes);
    assert_eq!(explanation.flow_schema, "catch-all");
    let [exempt, early] = &explanation.earlier[..] else { panic!("{:?}", explanation.earlier) };
    let told = |of: &maitred::explain::NotMatched| -> Vec<String> {
        let in_words =
            of.differences.iter().map(|it| format!("{}: {}: {}", it.path, it.request, it.covers.join(", ")));
        in_words.collect()
    };
    let who = "user \"alice\", groups \"system:authenticated\"";
    assert_eq!(told(exempt), [format!("spec.rules[0].subjects: {who}: group \"system:masters\"")]);
    assert_eq!(
        told(early),
        [
            &format!(
                "spec.rules[0].subjects: {who}: group \"ops\", service account \"*\" of namespace \"n\""
            )[..],
            "spec.rules[1].resourceRules[0].verbs: \"get\": \"list\", \"watch\"",
            "spec.rules[1].resourceRules[0].apiGroups: \"\": \"apps\"",
            "spec.rules[1].resourceRules[0].namespaces: \"n\": \"m\"",
            "spec.rules[1].resourceRules[1].resources: \"pods\": \"pods/log\"",
            "spec.rules[2].resourceRules: a request for a resource: ",
        ]
    );
}

#[test]
fn an_explanation_tells_of_a_dangling_schema_that_would_have_come_first() {
    let objects = |precedence| [schema("lost", precedence, "nowhere", everything_of("alice"))];
    let of = |policy: &Policy, user| explain(policy, &get_pods(user), &FlowHasher::Kubernetes).dangling;
    let policy = compile(objects(5));
    let dangling = of(&policy, "alice");
    assert_eq!(dangling.len(), 1);
    assert_eq!(dangling[0].matched_by, "spec.rules[0].resourceRules[0]");
    assert_eq!(of(&policy, "bob"), []);
    let later = compile([objects(10)[0].clone(), schema("mine", 7, "catch-all", everything_of("alice"))]);
    assert_eq!(of(&later, "alice"), []);
}
