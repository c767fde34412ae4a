//! One request against one flow schema: whether it matches, by which rule, and if not, why not.
//!
//! A schema matches when one of its rules does; a rule when one of its subjects does and one of its resource rules (or,
//! for a request that is not for a resource, one of its rules for paths). Shapes that validation refuses have an answer
//! here, too, the one that the reference gives:
//! - `*` in a list stands for everything only when it is alone there (for paths and subjects also beside others);
//! - a path of a rule, less one trailing `*`, also covers everything below it, so `/healthz` covers `/healthz/ping`;
//! - a subject counts by its `kind` alone, and matches nobody when the kind is unknown or its part is missing.

use super::{Request, Target};
use crate::api::v1::{
    FlowSchemaSpec, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject,
};

/// Stands for every value.
pub(super) const ALL: &str = "*";

/// What the name of every service account begins with; namespace, a colon and its name follow.
pub(super) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Whether `list` covers `value`: it holds it, or consists of `*`.
fn covers(list: &[String], value: &[u8]) -> bool {
    covers_all(list) || list.iter().any(|entry| entry.as_bytes() == value)
}

/// Whether `list` consists of `*`.
pub(crate) fn covers_all(list: &[String]) -> bool {
    matches!(list, [only] if only == ALL)
}

/// The path below which everything is covered by a rule's `path`, ending in a slash.
pub(super) fn covered_below(path: &str) -> String {
    let path = path.strip_suffix('*').unwrap_or(path);
    let slash = if path.ends_with('/') { "" } else { "/" };
    format!("{path}{slash}")
}

fn covers_path(rule: &str, path: &[u8]) -> bool {
    rule == ALL || rule.as_bytes() == path || path.starts_with(covered_below(rule).as_bytes())
}

/// `resource`, or `resource/subresource` where there is one.
fn joined(resource: &[u8], subresource: &[u8]) -> Vec<u8> {
    if subresource.is_empty() { resource.into() } else { [resource, subresource].join(&b'/') }
}

fn subject_matches<G: AsRef<[u8]>>(subject: &Subject, request: &Request<'_, G>) -> bool {
    match subject.kind.as_str() {
        "User" => {
            subject.user.as_ref().is_some_and(|user| user.name == ALL || user.name.as_bytes() == request.user)
        }
        "Group" => subject.group.as_ref().is_some_and(|group| {
            group.name == ALL || request.groups.iter().any(|of| of.as_ref() == group.name.as_bytes())
        }),
        "ServiceAccount" => subject.service_account.as_ref().is_some_and(|account| {
            let name = request
                .user
                .strip_prefix(SERVICE_ACCOUNT_PREFIX.as_bytes())
                .and_then(|rest| rest.strip_prefix(account.namespace.as_bytes()))
                .and_then(|rest| rest.strip_prefix(b":"));
            name.is_some_and(|name| account.name == ALL || account.name.as_bytes() == name)
        }),
        _ => false,
    }
}

/// A field of a schema that does not cover a request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Path of the field in the object, such as `spec.rules[0].resourceRules[1].verbs`.
    pub path: String,
    /// What the request has.
    pub request: String,
    /// What the field covers, in words; empty for a list that is not there.
    pub covers: Vec<String>,
}

/// The path of the rule of `schema` that matches `request`, such as `spec.rules[0].nonResourceRules[1]`; or else all
/// that stands in the way: of each rule its subjects, or of each of its parts every field that differs.
///
/// Allocates; for explanations and tests.
pub fn check<G: AsRef<[u8]>>(
    schema: &FlowSchemaSpec,
    request: &Request<'_, G>,
) -> Result<String, Vec<Difference>> {
    let mut differences = Vec::new();
    if schema.rules.is_empty() {
        differences.push(difference("spec.rules", "any request", []));
    }
    for (i, rule) in schema.rules.iter().enumerate() {
        match check_rule(&format!("spec.rules[{i}]"), rule, request) {
            Ok(path) => return Ok(path),
            Err(more) => differences.extend(more),
        }
    }
    Err(differences)
}

fn check_rule<G: AsRef<[u8]>>(
    path: &str,
    rule: &PolicyRulesWithSubjects,
    request: &Request<'_, G>,
) -> Result<String, Vec<Difference>> {
    if !rule.subjects.iter().any(|subject| subject_matches(subject, request)) {
        let covers = rule.subjects.iter().map(subject_in_words);
        return Err(vec![difference(format!("{path}.subjects"), requester_in_words(request), covers)]);
    }
    let (list, parts): (_, Vec<Vec<Difference>>) = match request.target {
        Target::Resource { api_group, resource, subresource } => {
            let resource = joined(resource, subresource);
            let check = |rule| check_resource_rule(rule, request, api_group, &resource);
            ("resourceRules", rule.resource_rules.iter().map(check).collect())
        }
        Target::Path(url) => {
            let check = |rule| check_path_rule(rule, request, url);
            ("nonResourceRules", rule.non_resource_rules.iter().map(check).collect())
        }
    };
    if let Some(i) = parts.iter().position(Vec::is_empty) {
        return Ok(format!("{path}.{list}[{i}]"));
    }
    if parts.is_empty() {
        let kind = if list == "resourceRules" { "a request for a resource" } else { "a request for a path" };
        return Err(vec![difference(format!("{path}.{list}"), kind, [])]);
    }
    let placed = parts.into_iter().enumerate().flat_map(|(i, differences)| {
        differences
            .into_iter()
            .map(move |found| Difference { path: format!("{path}.{list}[{i}].{}", found.path), ..found })
    });
    Err(placed.collect())
}

fn check_resource_rule<G>(
    rule: &ResourcePolicyRule,
    request: &Request<'_, G>,
    api_group: &[u8],
    resource: &[u8],
) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut require = |field: &str, list: &[String], value: &[u8]| {
        if !covers(list, value) {
            differences.push(difference(
                field,
                in_quotes(value),
                list.iter().map(|entry| in_quotes(entry.as_bytes())),
            ));
        }
    };
    require("verbs", &rule.verbs, request.verb);
    require("apiGroups", &rule.api_groups, api_group);
    require("resources", &rule.resources, resource);
    if !request.namespace.is_empty() {
        require("namespaces", &rule.namespaces, request.namespace);
    } else if !rule.cluster_scope {
        differences.push(difference("clusterScope", "no namespace", ["false".into()]));
    }
    differences
}

fn check_path_rule<G>(
    rule: &NonResourcePolicyRule,
    request: &Request<'_, G>,
    path: &[u8],
) -> Vec<Difference> {
    let mut differences = Vec::new();
    if !covers(&rule.verbs, request.verb) {
        let verbs = rule.verbs.iter().map(|entry| in_quotes(entry.as_bytes()));
        differences.push(difference("verbs", in_quotes(request.verb), verbs));
    }
    if !rule.non_resource_urls.iter().any(|rule| covers_path(rule, path)) {
        let paths = rule.non_resource_urls.iter().map(|entry| in_quotes(entry.as_bytes()));
        differences.push(difference("nonResourceURLs", in_quotes(path), paths));
    }
    differences
}

fn difference(
    path: impl Into<String>,
    request: impl Into<String>,
    covers: impl IntoIterator<Item = String>,
) -> Difference {
    Difference { path: path.into(), request: request.into(), covers: covers.into_iter().collect() }
}

fn in_quotes(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes))
}

fn requester_in_words<G: AsRef<[u8]>>(request: &Request<'_, G>) -> String {
    let groups: Vec<String> = request.groups.iter().map(|group| in_quotes(group.as_ref())).collect();
    let groups = if groups.is_empty() { "no groups".into() } else { format!("groups {}", groups.join(", ")) };
    format!("user {}, {groups}", in_quotes(request.user))
}

fn subject_in_words(subject: &Subject) -> String {
    let missing = || format!("nobody (kind {:?} without its part)", subject.kind);
    match subject.kind.as_str() {
        "User" => subject.user.as_ref().map_or_else(missing, |user| format!("user {:?}", user.name)),
        "Group" => subject.group.as_ref().map_or_else(missing, |group| format!("group {:?}", group.name)),
        "ServiceAccount" => subject.service_account.as_ref().map_or_else(missing, |account| {
            format!("service account {:?} of namespace {:?}", account.name, account.namespace)
        }),
        kind => format!("nobody (unknown kind {kind:?})"),
    }
}
