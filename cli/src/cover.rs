//! Whether one part of a flow schema matches everything that another does.
//!
//! Sound, not complete: `true` is certain (users have the groups that a server gives them), `false` may only mean that
//! several parts together cover what none covers alone.

use maitred::api::v1::{FlowSchema, NonResourcePolicyRule, ResourcePolicyRule, Subject};

/// Whether `wide` matches every request that `narrow` matches.
pub fn schema(wide: &FlowSchema, narrow: &FlowSchema) -> bool {
    let by_one_rule =
        |subject: &Subject, covers: &dyn Fn(&maitred::api::v1::PolicyRulesWithSubjects) -> bool| {
            let mut rules = wide.spec.rules.iter();
            rules.any(|rule| rule.subjects.iter().any(|other| self::subject(other, subject)) && covers(rule))
        };
    narrow.spec.rules.iter().all(|rule| {
        rule.subjects.iter().all(|subject| {
            rule.resource_rules.iter().all(|narrow| {
                by_one_rule(subject, &|rule| {
                    rule.resource_rules.iter().any(|wide| resource_rule(wide, narrow))
                })
            }) && rule.non_resource_rules.iter().all(|narrow| {
                by_one_rule(subject, &|rule| {
                    rule.non_resource_rules.iter().any(|wide| non_resource_rule(wide, narrow))
                })
            })
        })
    })
}

/// Whether `wide` matches everybody whom `narrow` matches.
pub fn subject(wide: &Subject, narrow: &Subject) -> bool {
    match (Who::of(wide), Who::of(narrow)) {
        (Some(wide), Some(narrow)) => wide.covers(narrow),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Who<'a> {
    User(&'a str),
    Group(&'a str),
    Account { namespace: &'a str, name: &'a str },
}

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
const ACCOUNTS: &str = "system:serviceaccounts";

impl<'a> Who<'a> {
    fn of(subject: &'a Subject) -> Option<Who<'a>> {
        match subject.kind.as_str() {
            "User" => {
                let name = subject.user.as_ref()?.name.as_str();
                let account =
                    name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
                Some(account.map_or(Who::User(name), |(namespace, name)| Who::Account { namespace, name }))
            }
            "Group" => Some(Who::Group(&subject.group.as_ref()?.name)),
            "ServiceAccount" => {
                let account = subject.service_account.as_ref()?;
                Some(Who::Account { namespace: &account.namespace, name: &account.name })
            }
            _ => None,
        }
    }

    fn covers(self, narrow: Who<'_>) -> bool {
        match (self, narrow) {
            // Everybody has a name and a group.
            (Who::User("*") | Who::Group("*"), _) => true,
            (Who::User(wide), Who::User(narrow)) => wide == narrow,
            (Who::Account { namespace, name }, Who::Account { namespace: other, name: narrow }) => {
                namespace == other && (name == "*" || name == narrow)
            }
            (Who::Group(wide), Who::Group(narrow)) => {
                let of_account = narrow == ACCOUNTS || narrow.starts_with("system:serviceaccounts:");
                wide == narrow
                    || (wide == AUTHENTICATED && narrow != UNAUTHENTICATED && narrow != "*")
                    || (wide == ACCOUNTS && of_account)
            }
            (Who::Group(wide), Who::Account { namespace, .. }) => {
                wide == AUTHENTICATED
                    || wide == ACCOUNTS
                    || wide.strip_prefix("system:serviceaccounts:") == Some(namespace)
            }
            (Who::Group(wide), Who::User(narrow)) => {
                wide == AUTHENTICATED && narrow != ANONYMOUS && narrow != "*"
            }
            _ => false,
        }
    }
}

fn resource_rule(wide: &ResourcePolicyRule, narrow: &ResourcePolicyRule) -> bool {
    list(&wide.verbs, &narrow.verbs)
        && list(&wide.api_groups, &narrow.api_groups)
        && list(&wide.resources, &narrow.resources)
        && (wide.cluster_scope || !narrow.cluster_scope)
        && list(&wide.namespaces, &narrow.namespaces)
}

fn non_resource_rule(wide: &NonResourcePolicyRule, narrow: &NonResourcePolicyRule) -> bool {
    let url = |narrow: &String| {
        wide.non_resource_urls.iter().any(|wide| {
            // A path, with or without a star at its end, also stands for everything below it.
            let head = wide.strip_suffix('*').unwrap_or(wide);
            let below = head.strip_suffix('/').unwrap_or(head);
            wide == "*"
                || wide == narrow
                || narrow.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    list(&wide.verbs, &narrow.verbs) && narrow.non_resource_urls.iter().all(url)
}

fn list(wide: &[String], narrow: &[String]) -> bool {
    narrow.iter().all(|item| wide.iter().any(|wide| wide == "*" || wide == item))
}

#[cfg(test)]
mod tests {
    use maitred::classify::rule::check;
    use maitred::classify::{Request, Target};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};
    use serde_json::{Value, json};

    use super::*;
    use crate::requester::implied_groups;

    fn subject_of(value: Value) -> Subject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn groups_cover_the_accounts_and_users_that_are_in_them() {
        let group = |name: &str| subject_of(json!({"kind": "Group", "group": {"name": name}}));
        let user = |name: &str| subject_of(json!({"kind": "User", "user": {"name": name}}));
        let account =
            subject_of(json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}}));
        assert!(subject(&group("system:authenticated"), &account));
        assert!(subject(&group("system:serviceaccounts:n"), &account));
        assert!(!subject(&group("system:serviceaccounts:m"), &account));
        assert!(subject(&account, &user("system:serviceaccount:n:a")));
        assert!(subject(&user("*"), &group("system:unauthenticated")));
        assert!(!subject(&group("system:authenticated"), &user("system:anonymous")));
        assert!(!subject(&group("system:authenticated"), &group("*")));
        assert!(!subject(&user("a"), &user("*")));
    }

    #[test]
    fn paths_with_a_star_cover_what_is_below_and_not_the_path_itself() {
        let rule = |url: &str| NonResourcePolicyRule {
            verbs: vec!["get".into()],
            non_resource_urls: vec![url.into()],
        };
        assert!(non_resource_rule(&rule("/a/*"), &rule("/a/b")));
        assert!(non_resource_rule(&rule("/a/*"), &rule("/a/b/*")));
        assert!(!non_resource_rule(&rule("/a/*"), &rule("/a")));
        assert!(!non_resource_rule(&rule("/a/*"), &rule("/ab")));
    }

    fn subjects() -> impl Strategy<Value = Value> {
        let user = select(vec!["*", "a", "b", "system:anonymous", "system:serviceaccount:n:a"]);
        let group =
            select(vec!["*", "g", AUTHENTICATED, UNAUTHENTICATED, ACCOUNTS, "system:serviceaccounts:n"]);
        let account = (select(vec!["n", "m"]), select(vec!["*", "a"]));
        prop_oneof![
            user.prop_map(|name| json!({"kind": "User", "user": {"name": name}})),
            group.prop_map(|name| json!({"kind": "Group", "group": {"name": name}})),
            account.prop_map(|(namespace, name)| {
                json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}})
            }),
        ]
    }

    /// Some of the values, or a star.
    fn list(values: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
        prop_oneof![subsequence(values, 1..=values.len()), Just(vec!["*"])]
    }

    const PATHS: &[&str] = &["/a", "/a/", "/a/*", "/a/b", "/a/b/*", "/"];
    const RESOURCES: &[&str] = &["pods", "pods/log", "*/log", "nodes"];

    fn schemas() -> impl Strategy<Value = FlowSchema> {
        let resources =
            (list(&["get", "list"]), list(&["", "x"]), list(RESOURCES), any::<bool>(), list(&["n", "m"]));
        let resource_rule = resources.prop_map(|(verbs, groups, resources, cluster, namespaces)| {
            json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "clusterScope": cluster, "namespaces": namespaces})
        });
        let path_rule = (list(&["get", "list"]), list(PATHS))
            .prop_map(|(verbs, paths)| json!({"verbs": verbs, "nonResourceURLs": paths}));
        let rule = (vec(subjects(), 1..3), vec(resource_rule, 0..3), vec(path_rule, 0..2));
        let rule = rule.prop_map(|(subjects, resources, paths)| {
            json!({"subjects": subjects, "resourceRules": resources, "nonResourceRules": paths})
        });
        vec(rule, 1..3).prop_map(|rules| {
            serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": {"rules": rules}})).unwrap()
        })
    }

    const USERS: &[&str] =
        &["a", "b", "c", "system:anonymous", "system:serviceaccount:n:a", "system:serviceaccount:m:b"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_covers_matches_every_request_that_the_other_matches(wide in schemas(), narrow in schemas()) {
            if !schema(&wide, &narrow) {
                return Ok(());
            }
            let mut targets = vec![];
            for path in ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/c"] {
                targets.push((Target::path(path), ""));
            }
            for (resource, subresource) in [("pods", ""), ("pods", "log"), ("nodes", "log"), ("nodes", ""), ("x", "")] {
                for namespace in ["", "n", "m", "o"] {
                    for group in ["", "x", "y"] {
                        targets.push((Target::resource(group, resource, subresource), namespace));
                    }
                }
            }
            for user in USERS {
                for more in [&[][..], &["g"]] {
                    // The anonymous user is in no group of somebody's own.
                    if *user == ANONYMOUS && !more.is_empty() {
                        continue;
                    }
                    let groups: Vec<_> = implied_groups(user).into_iter().chain(more.iter().map(|g| g.to_string())).collect();
                    for (verb, (target, namespace)) in ["get", "list", "put"].into_iter().flat_map(|verb| targets.iter().map(move |t| (verb, t))) {
                        let request = Request::new(user, &groups, verb, *target).in_namespace(*namespace);
                        if check(&narrow.spec, &request).is_ok() {
                            prop_assert!(check(&wide.spec, &request).is_ok(), "{request:?}");
                        }
                    }
                }
            }
        }
    }
}
