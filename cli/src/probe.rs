//! Requests that a set of flow schemas speaks of, to try another set with.

use std::collections::BTreeSet;

use maitred::api::Objects;
use maitred::api::v1::Subject;
use maitred::classify::{Classified, Request, Target};
use maitred::policy::Policy;

use crate::requester::implied_groups;

/// Requests tried at most.
const MAX_PROBES: usize = 50_000;
/// Requests tried for one subject and one part of a rule at most.
const MAX_OF_A_RULE: usize = 500;

/// A request to try.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probe {
    /// Who sends it, in words.
    pub who: String,
    user: String,
    groups: Vec<String>,
    verb: String,
    target: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    Resource { api_group: String, resource: String, subresource: String, namespace: String },
    Path(String),
}

/// Requests to try.
#[derive(Debug)]
pub struct Probes {
    /// The requests, each once.
    pub list: Vec<Probe>,
    /// Whether there would have been more.
    pub left_out: bool,
}

impl Probe {
    /// What is asked for, in words.
    pub fn what(&self) -> String {
        match &self.target {
            Wanted::Path(path) => format!("{} {path}", self.verb),
            Wanted::Resource { api_group, resource, subresource, namespace } => {
                let dot = if api_group.is_empty() { "" } else { "." };
                let slash = if subresource.is_empty() { "" } else { "/" };
                let place = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
                format!("{} {resource}{dot}{api_group}{slash}{subresource}{place}", self.verb)
            }
        }
    }

    /// Where `policy` sends it.
    pub fn classify(&self, policy: &Policy) -> Classified {
        let request = |target| Request::new(&self.user, &self.groups, &self.verb, target);
        policy.classify(&match &self.target {
            Wanted::Path(path) => request(Target::path(path)),
            Wanted::Resource { api_group, resource, subresource, namespace } => {
                request(Target::resource(api_group, resource, subresource)).in_namespace(namespace)
            }
        })
    }
}

/// For each rule of each schema: a request for each of its subjects, verbs, resources, namespaces and paths. What a `*`
/// stands for is tried with the name `any`.
pub fn probes(sets: [&Objects; 2]) -> Probes {
    let mut found = BTreeSet::new();
    let mut left_out = false;
    for rule in sets.iter().flat_map(|set| &set.flow_schemas).flat_map(|schema| &schema.spec.rules) {
        for subject in &rule.subjects {
            let Some((who, user, groups)) = sender(subject) else { continue };
            let send = |(verb, target): (String, Wanted)| Probe {
                who: who.clone(),
                user: user.clone(),
                groups: groups.clone(),
                verb,
                target,
            };
            for part in &rule.resource_rules {
                let all = resources(part);
                left_out |= all.len() > MAX_OF_A_RULE;
                found.extend(all.into_iter().take(MAX_OF_A_RULE).map(send));
            }
            for part in &rule.non_resource_rules {
                let paths = part.non_resource_urls.iter().map(|url| match url.strip_suffix('*') {
                    Some(head) => format!("/{}any", head.trim_start_matches('/')),
                    None => url.clone(),
                });
                let paths: Vec<_> = paths.collect();
                let verbs = values(&part.verbs, "get");
                let all = verbs
                    .iter()
                    .flat_map(|verb| paths.iter().map(|path| (verb.clone(), Wanted::Path(path.clone()))));
                left_out |= verbs.len() * paths.len() > MAX_OF_A_RULE;
                found.extend(all.take(MAX_OF_A_RULE).map(send));
            }
            if found.len() > MAX_PROBES {
                return Probes { list: found.into_iter().take(MAX_PROBES).collect(), left_out: true };
            }
        }
    }
    Probes { list: found.into_iter().collect(), left_out }
}

/// A member of `subject`: in words, as a user, with groups.
fn sender(subject: &Subject) -> Option<(String, String, Vec<String>)> {
    let user = |user: &str, who: String| (who, user.to_owned(), implied_groups(user));
    Some(match subject.kind.as_str() {
        "User" => match subject.user.as_ref()?.name.as_str() {
            "*" => user("any", "any user".to_owned()),
            name => user(name, format!("user {name}")),
        },
        "ServiceAccount" => {
            let account = subject.service_account.as_ref()?;
            let name = if account.name == "*" { "any" } else { &account.name };
            let namespace = &account.namespace;
            user(
                &format!("system:serviceaccount:{namespace}:{name}"),
                format!("service account {namespace}/{name}"),
            )
        }
        "Group" => match subject.group.as_ref()?.name.as_str() {
            "*" | "system:authenticated" => user("any", "any user".to_owned()),
            "system:unauthenticated" => user("system:anonymous", "anonymous users".to_owned()),
            "system:serviceaccounts" => {
                user("system:serviceaccount:any:any", "any service account".to_owned())
            }
            name => {
                let who = format!("group {name}");
                if let Some(namespace) = name.strip_prefix("system:serviceaccounts:") {
                    return Some(user(&format!("system:serviceaccount:{namespace}:any"), who));
                }
                let mut groups = vec![name.to_owned()];
                groups.extend(implied_groups("any"));
                (who, "any".to_owned(), groups)
            }
        },
        _ => return None,
    })
}

fn resources(rule: &maitred::api::v1::ResourcePolicyRule) -> Vec<(String, Wanted)> {
    let mut namespaces = values(&rule.namespaces, "any");
    if rule.cluster_scope {
        namespaces.push(String::new());
    }
    let mut all = Vec::new();
    for verb in values(&rule.verbs, "get") {
        for api_group in values(&rule.api_groups, "") {
            for resource in &rule.resources {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let resource = if resource == "*" { "any" } else { resource };
                for namespace in &namespaces {
                    // One more than is tried tells that some are left out.
                    if all.len() > MAX_OF_A_RULE {
                        return all;
                    }
                    let target = Wanted::Resource {
                        api_group: api_group.clone(),
                        resource: resource.to_owned(),
                        subresource: subresource.to_owned(),
                        namespace: namespace.clone(),
                    };
                    all.push((verb.clone(), target));
                }
            }
        }
    }
    all
}

/// The values of a list; `any` in place of `*`.
fn values(list: &[String], any: &str) -> Vec<String> {
    list.iter().map(|value| if value == "*" { any.to_owned() } else { value.clone() }).collect()
}
