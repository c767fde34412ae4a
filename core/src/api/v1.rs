//! `flowcontrol.apiserver.k8s.io/v1`: the stored form, to and from which the other versions convert.
//!
//! The structs mirror the API, field by field. Empty texts and lists and zero numbers stand for absent ones, save
//! where the API tells them apart (`Option`). Enumerations stay texts here: [`validate`](super::validate()) reports bad
//! ones, and the compiled policy has real enumerations. Sources of each field: the API reference of version 1.37.

use serde::{Serialize, Serializer};

use super::decode::decode_fields;
use super::meta::{ObjectMeta, Time};

/// Rule that maps requests to a priority level.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowSchema {
    /// Name and the like.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: FlowSchemaSpec,
    /// What a controller has found.
    pub status: FlowSchemaStatus,
}

decode_fields!(FlowSchema {
    "metadata" => metadata,
    "spec" => spec,
    "status" => status,
} ignoring "apiVersion", "kind");

/// What a flow schema matches, and where it sends what it matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowSchemaSpec {
    /// The level that serves matching requests.
    pub priority_level_configuration: PriorityLevelConfigurationReference,
    /// 1 to 10000, the lowest wins; 0 is absent and becomes 1000.
    pub matching_precedence: i32,
    /// How requests are told apart into flows; absent: all of the schema are one flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinguisher_method: Option<FlowDistinguisherMethod>,
    /// A request matches the schema when it matches any of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRulesWithSubjects>,
}

decode_fields!(FlowSchemaSpec {
    "priorityLevelConfiguration" => priority_level_configuration,
    "matchingPrecedence" => matching_precedence,
    "distinguisherMethod" => distinguisher_method,
    "rules" => rules,
});

/// How the flow distinguisher of a request is computed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowDistinguisherMethod {
    /// `ByUser` or `ByNamespace`.
    #[serde(rename = "type")]
    pub type_: String,
}

decode_fields!(FlowDistinguisherMethod { "type" => type_ });

/// Names a priority level.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriorityLevelConfigurationReference {
    /// Name of the level.
    pub name: String,
}

decode_fields!(PriorityLevelConfigurationReference { "name" => name });

/// Matches a request when a subject matches and one of the rules does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRulesWithSubjects {
    /// Who; at least one.
    #[serde(serialize_with = "list_or_null")]
    pub subjects: Vec<Subject>,
    /// What, of requests for resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_rules: Vec<ResourcePolicyRule>,
    /// What, of other requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_resource_rules: Vec<NonResourcePolicyRule>,
}

decode_fields!(PolicyRulesWithSubjects {
    "subjects" => subjects,
    "resourceRules" => resource_rules,
    "nonResourceRules" => non_resource_rules,
});

/// Matches who sends a request. `kind` names the one field that is given besides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Given when `kind` is `User`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserSubject>,
    /// Given when `kind` is `Group`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupSubject>,
    /// Given when `kind` is `ServiceAccount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountSubject>,
}

decode_fields!(Subject {
    "kind" => kind,
    "user" => user,
    "group" => group,
    "serviceAccount" => service_account,
});

/// A user by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct UserSubject {
    /// User name, or `*` for every user.
    pub name: String,
}

decode_fields!(UserSubject { "name" => name });

/// A group by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct GroupSubject {
    /// Group name, or `*` for every group.
    pub name: String,
}

decode_fields!(GroupSubject { "name" => name });

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ServiceAccountSubject {
    /// Its namespace.
    pub namespace: String,
    /// Its name, or `*` for every account of the namespace.
    pub name: String,
}

decode_fields!(ServiceAccountSubject { "namespace" => namespace, "name" => name });

/// Matches a request for a resource when verb, group, resource and scope all match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcePolicyRule {
    /// Verbs, or only `*`.
    #[serde(serialize_with = "list_or_null")]
    pub verbs: Vec<String>,
    /// API groups (the core group is the empty text), or only `*`.
    #[serde(serialize_with = "list_or_null")]
    pub api_groups: Vec<String>,
    /// Resources, `resource/subresource` for those below them, or only `*`.
    #[serde(serialize_with = "list_or_null")]
    pub resources: Vec<String>,
    /// Whether requests without a namespace match.
    #[serde(skip_serializing_if = "is_false")]
    pub cluster_scope: bool,
    /// Namespaces of matching requests, or only `*` for any that is not empty.
    #[serde(serialize_with = "list_or_null")]
    pub namespaces: Vec<String>,
}

decode_fields!(ResourcePolicyRule {
    "verbs" => verbs,
    "apiGroups" => api_groups,
    "resources" => resources,
    "clusterScope" => cluster_scope,
    "namespaces" => namespaces,
});

/// Matches a request that is not for a resource when verb and path match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NonResourcePolicyRule {
    /// Verbs, or only `*`.
    #[serde(serialize_with = "list_or_null")]
    pub verbs: Vec<String>,
    /// Paths, `/path/*` for all below one, or only `*`.
    #[serde(rename = "nonResourceURLs", serialize_with = "list_or_null")]
    pub non_resource_urls: Vec<String>,
}

decode_fields!(NonResourcePolicyRule { "verbs" => verbs, "nonResourceURLs" => non_resource_urls });

/// State of a flow schema.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FlowSchemaStatus {
    /// One for each type of condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

decode_fields!(FlowSchemaStatus { "conditions" => conditions });

/// A thing that a controller has found about an object; the same for both kinds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, such as `Dangling`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// When `status` last changed.
    pub last_transition_time: Option<Time>,
    /// One word, in camel case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

decode_fields!(Condition {
    "type" => type_,
    "status" => status,
    "lastTransitionTime" => last_transition_time,
    "reason" => reason,
    "message" => message,
});

/// A named pool of seats.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriorityLevelConfiguration {
    /// Name and the like.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: PriorityLevelConfigurationSpec,
    /// What a controller has found.
    pub status: PriorityLevelConfigurationStatus,
}

decode_fields!(PriorityLevelConfiguration {
    "metadata" => metadata,
    "spec" => spec,
    "status" => status,
} ignoring "apiVersion", "kind");

/// What a level is. `type_` names the one field that is given besides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriorityLevelConfigurationSpec {
    /// `Limited`, or `Exempt` for the level named `exempt`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Given when `type` is `Limited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited: Option<LimitedPriorityLevelConfiguration>,
    /// May be given when `type` is `Exempt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exempt: Option<ExemptPriorityLevelConfiguration>,
}

decode_fields!(PriorityLevelConfigurationSpec {
    "type" => type_,
    "limited" => limited,
    "exempt" => exempt,
});

/// A level whose requests need seats.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitedPriorityLevelConfiguration {
    /// Share of the server's seats, in proportion to the shares of all levels; absent: 30.
    pub nominal_concurrency_shares: Option<i32>,
    /// What happens to a request that finds no seat.
    pub limit_response: LimitResponse,
    /// Percent of the level's seats that others may use while it does not, 0 to 100; absent: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lendable_percent: Option<i32>,
    /// Percent of the level's seats that it may borrow besides; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub borrowing_limit_percent: Option<i32>,
}

decode_fields!(LimitedPriorityLevelConfiguration {
    "nominalConcurrencyShares" => nominal_concurrency_shares,
    "limitResponse" => limit_response,
    "lendablePercent" => lendable_percent,
    "borrowingLimitPercent" => borrowing_limit_percent,
});

/// A level whose requests never wait.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExemptPriorityLevelConfiguration {
    /// Share of the server's seats that is set aside; absent: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominal_concurrency_shares: Option<i32>,
    /// Percent of these seats that others may use while the level does not, 0 to 100; absent: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lendable_percent: Option<i32>,
}

decode_fields!(ExemptPriorityLevelConfiguration {
    "nominalConcurrencyShares" => nominal_concurrency_shares,
    "lendablePercent" => lendable_percent,
});

/// What happens to a request that finds no seat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LimitResponse {
    /// `Queue` or `Reject`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Given when `type` is `Queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queuing: Option<QueuingConfiguration>,
}

decode_fields!(LimitResponse { "type" => type_, "queuing" => queuing });

/// Sizes of a level's queues. A zero is absent and becomes the default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuingConfiguration {
    /// Number of queues; absent: 64.
    pub queues: i32,
    /// Number of queues that one flow may use; absent: 8.
    pub hand_size: i32,
    /// Requests that may wait in one queue; absent: 50.
    pub queue_length_limit: i32,
}

decode_fields!(QueuingConfiguration {
    "queues" => queues,
    "handSize" => hand_size,
    "queueLengthLimit" => queue_length_limit,
});

/// State of a priority level.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PriorityLevelConfigurationStatus {
    /// One for each type of condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

decode_fields!(PriorityLevelConfigurationStatus { "conditions" => conditions });

/// Servers print an empty list that is not optional as `null`.
fn list_or_null<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    if list.is_empty() { to.serialize_none() } else { list.serialize(to) }
}

fn is_false(value: &bool) -> bool {
    !value
}
