//! Objects that every server has: the mandatory ones always, the suggested ones until somebody changes them.
//!
//! Source: `bootstrap.jsonl` and `bootstrap.json`, which are the objects of Kubernetes 1.37.

use std::sync::LazyLock;

use super::meta::{ObjectMeta, Time};
use super::{Objects, v1};

/// Annotation by which a server keeps the spec of a suggested object as it is here: `true` on those it made itself.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// `exempt` and `catch-all`, schemas and levels. They cannot be missing and cannot be changed, but for the
/// `spec.exempt` of the level `exempt`.
pub fn mandatory() -> Objects {
    Objects {
        flow_schemas: vec![
            schema("exempt", "exempt", 1, None, vec![rule(vec![group("system:masters")])]),
            schema("catch-all", "catch-all", 10_000, Some("ByUser"), vec![rule(everybody())]),
        ],
        priority_levels: vec![
            limited("catch-all", 5, 0, reject()),
            level(
                "exempt",
                v1::PriorityLevelConfigurationSpec {
                    type_: "Exempt".to_owned(),
                    limited: None,
                    exempt: Some(v1::ExemptPriorityLevelConfiguration {
                        nominal_concurrency_shares: Some(0),
                        lendable_percent: Some(0),
                    }),
                },
            ),
        ],
    }
}

/// What a server offers besides the mandatory objects, in the order of the reference.
pub fn suggested() -> Objects {
    let all = |subject| vec![rule(vec![subject])];
    Objects {
        flow_schemas: vec![
            schema("system-nodes", "system", 500, Some("ByUser"), all(group("system:nodes"))),
            schema("system-node-high", "node-high", 400, Some("ByUser"), vec![node_heartbeats()]),
            schema("probes", "exempt", 2, None, vec![probes()]),
            schema("system-leader-election", "leader-election", 100, Some("ByUser"), vec![leader_election()]),
            schema(
                "kube-controller-manager",
                "workload-high",
                800,
                Some("ByNamespace"),
                all(user("system:kube-controller-manager")),
            ),
            schema(
                "kube-scheduler",
                "workload-high",
                800,
                Some("ByNamespace"),
                all(user("system:kube-scheduler")),
            ),
            schema(
                "kube-system-service-accounts",
                "workload-high",
                900,
                Some("ByNamespace"),
                all(service_accounts("kube-system")),
            ),
            schema(
                "service-accounts",
                "workload-low",
                9000,
                Some("ByUser"),
                all(group("system:serviceaccounts")),
            ),
            schema("global-default", "global-default", 9900, Some("ByUser"), vec![rule(everybody())]),
        ],
        priority_levels: vec![
            limited("system", 30, 33, queue(64, 6)),
            limited("node-high", 40, 25, queue(64, 6)),
            limited("leader-election", 10, 0, queue(16, 4)),
            limited("workload-high", 40, 50, queue(128, 6)),
            limited("workload-low", 100, 90, queue(128, 6)),
            limited("global-default", 20, 50, queue(128, 6)),
        ],
    }
}

/// What a server holds that has just been set up: all of the above, marked as its own, and found sound at `now`.
pub fn fresh(now: Time) -> Objects {
    let (mut objects, suggested) = (mandatory(), suggested());
    objects.flow_schemas.extend(suggested.flow_schemas);
    objects.priority_levels.extend(suggested.priority_levels);
    let schemas = objects.flow_schemas.iter_mut().map(|schema| &mut schema.metadata);
    let levels = objects.priority_levels.iter_mut().map(|level| &mut level.metadata);
    for metadata in schemas.chain(levels) {
        metadata.annotations.insert(AUTO_UPDATE.to_owned(), "true".to_owned());
        metadata.generation = 1;
        metadata.creation_timestamp = Some(now);
    }
    for schema in &mut objects.flow_schemas {
        let level = &schema.spec.priority_level_configuration.name;
        schema.status.conditions.push(dangling(level, true, now));
    }
    objects
}

/// The condition by which a server says whether the level that a flow schema names exists.
pub fn dangling(level: &str, exists: bool, since: Time) -> v1::Condition {
    let (status, reason, end) = if exists {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    v1::Condition {
        type_: "Dangling".to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(since),
        reason: reason.to_owned(),
        message: format!(
            "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" {end}"
        ),
    }
}

static MANDATORY: LazyLock<Objects> = LazyLock::new(mandatory);

/// The mandatory flow schema of that name.
pub(crate) fn mandatory_flow_schema(name: &str) -> Option<&'static v1::FlowSchema> {
    MANDATORY.flow_schemas.iter().find(|schema| schema.metadata.name == name)
}

/// The mandatory level of that name.
pub(crate) fn mandatory_priority_level(name: &str) -> Option<&'static v1::PriorityLevelConfiguration> {
    MANDATORY.priority_levels.iter().find(|level| level.metadata.name == name)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() }
}

fn schema(
    name: &str,
    level: &str,
    matching_precedence: i32,
    method: Option<&str>,
    rules: Vec<v1::PolicyRulesWithSubjects>,
) -> v1::FlowSchema {
    let spec = v1::FlowSchemaSpec {
        priority_level_configuration: v1::PriorityLevelConfigurationReference { name: level.to_owned() },
        matching_precedence,
        distinguisher_method: method.map(|method| v1::FlowDistinguisherMethod { type_: method.to_owned() }),
        rules,
    };
    v1::FlowSchema { metadata: named(name), spec, ..v1::FlowSchema::default() }
}

fn user(name: &str) -> v1::Subject {
    let user = Some(v1::UserSubject { name: name.to_owned() });
    v1::Subject { kind: "User".to_owned(), user, ..v1::Subject::default() }
}

fn group(name: &str) -> v1::Subject {
    let group = Some(v1::GroupSubject { name: name.to_owned() });
    v1::Subject { kind: "Group".to_owned(), group, ..v1::Subject::default() }
}

fn service_accounts(namespace: &str) -> v1::Subject {
    let service_account =
        Some(v1::ServiceAccountSubject { namespace: namespace.to_owned(), name: "*".to_owned() });
    v1::Subject { kind: "ServiceAccount".to_owned(), service_account, ..v1::Subject::default() }
}

fn everybody() -> Vec<v1::Subject> {
    vec![group("system:unauthenticated"), group("system:authenticated")]
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn resources(verbs: &[&str], group: &str, resources: &[&str], cluster_scope: bool) -> v1::ResourcePolicyRule {
    v1::ResourcePolicyRule {
        verbs: texts(verbs),
        api_groups: texts(&[group]),
        resources: texts(resources),
        cluster_scope,
        namespaces: texts(&["*"]),
    }
}

fn paths(verbs: &[&str], urls: &[&str]) -> v1::NonResourcePolicyRule {
    v1::NonResourcePolicyRule { verbs: texts(verbs), non_resource_urls: texts(urls) }
}

/// Everything that these subjects ask for.
fn rule(subjects: Vec<v1::Subject>) -> v1::PolicyRulesWithSubjects {
    v1::PolicyRulesWithSubjects {
        subjects,
        resource_rules: vec![resources(&["*"], "*", &["*"], true)],
        non_resource_rules: vec![paths(&["*"], &["*"])],
    }
}

fn node_heartbeats() -> v1::PolicyRulesWithSubjects {
    v1::PolicyRulesWithSubjects {
        subjects: vec![group("system:nodes")],
        resource_rules: vec![
            resources(&["*"], "", &["nodes", "nodes/status"], true),
            resources(&["*"], "coordination.k8s.io", &["leases"], false),
        ],
        non_resource_rules: Vec::new(),
    }
}

fn probes() -> v1::PolicyRulesWithSubjects {
    v1::PolicyRulesWithSubjects {
        subjects: everybody(),
        resource_rules: Vec::new(),
        non_resource_rules: vec![paths(&["get"], &["/healthz", "/readyz", "/livez"])],
    }
}

fn leader_election() -> v1::PolicyRulesWithSubjects {
    v1::PolicyRulesWithSubjects {
        subjects: vec![
            user("system:kube-controller-manager"),
            user("system:kube-scheduler"),
            service_accounts("kube-system"),
        ],
        resource_rules: vec![resources(
            &["get", "create", "update"],
            "coordination.k8s.io",
            &["leases"],
            false,
        )],
        non_resource_rules: Vec::new(),
    }
}

fn level(name: &str, spec: v1::PriorityLevelConfigurationSpec) -> v1::PriorityLevelConfiguration {
    v1::PriorityLevelConfiguration {
        metadata: named(name),
        spec,
        ..v1::PriorityLevelConfiguration::default()
    }
}

fn limited(
    name: &str,
    shares: i32,
    lendable_percent: i32,
    limit_response: v1::LimitResponse,
) -> v1::PriorityLevelConfiguration {
    level(
        name,
        v1::PriorityLevelConfigurationSpec {
            type_: "Limited".to_owned(),
            limited: Some(v1::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(shares),
                limit_response,
                lendable_percent: Some(lendable_percent),
                borrowing_limit_percent: None,
            }),
            exempt: None,
        },
    )
}

fn reject() -> v1::LimitResponse {
    v1::LimitResponse { type_: "Reject".to_owned(), queuing: None }
}

fn queue(queues: i32, hand_size: i32) -> v1::LimitResponse {
    let queuing = v1::QueuingConfiguration { queues, hand_size, queue_length_limit: 50 };
    v1::LimitResponse { type_: "Queue".to_owned(), queuing: Some(queuing) }
}
