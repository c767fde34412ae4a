//! Checks of a flow schema's `spec`.

use serde_json::{Value, json};

use super::{Check, names};
use crate::api::{Kind, builtin, v1};
use crate::error::{Fault, FaultKind};

const MAX_PRECEDENCE: i32 = 10_000;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

impl Check {
    pub(super) fn flow_schema(&mut self, schema: &v1::FlowSchema) {
        let (name, spec) = (&schema.metadata.name, &schema.spec);
        self.precedence(spec.matching_precedence, name);
        if let Some(method) = &spec.distinguisher_method {
            let supported = ["ByNamespace", "ByUser"];
            if !supported.contains(&method.type_.as_str()) {
                self.not_supported("spec.distinguisherMethod.type", method.type_.as_str(), &supported);
            }
        }
        let (path, level) = ("spec.priorityLevelConfiguration.name", &spec.priority_level_configuration.name);
        if level.is_empty() {
            self.required(path, "must reference a priority level");
        } else {
            for wrong in Kind::PriorityLevelConfiguration.name_faults(level) {
                self.invalid(path, level.as_str(), wrong);
            }
        }
        for (index, rule) in spec.rules.iter().enumerate() {
            self.rule(&format!("spec.rules[{index}]"), rule);
        }
        if builtin::mandatory_flow_schema(name).is_some_and(|fixed| fixed.spec != *spec) {
            self.invalid("spec", json!(spec), format!("spec of '{name}' must equal the fixed value"));
        }
    }

    fn precedence(&mut self, precedence: i32, name: &str) {
        let path = "spec.matchingPrecedence";
        if precedence <= 0 {
            self.invalid(path, precedence, "must be a positive value");
        }
        if precedence > MAX_PRECEDENCE {
            self.invalid(path, precedence, format!("must not be greater than {MAX_PRECEDENCE}"));
        }
        if precedence == 1 && name != "exempt" {
            let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
            self.invalid(path, precedence, detail);
        }
    }

    fn rule(&mut self, path: &str, rule: &v1::PolicyRulesWithSubjects) {
        if rule.subjects.is_empty() {
            self.required(&format!("{path}.subjects"), "subjects must contain at least one value");
        }
        for (index, subject) in rule.subjects.iter().enumerate() {
            self.subject(&format!("{path}.subjects[{index}]"), subject);
        }
        if rule.resource_rules.is_empty() && rule.non_resource_rules.is_empty() {
            let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
            self.required(path, detail);
        }
        for (index, rule) in rule.resource_rules.iter().enumerate() {
            self.resource_rule(&format!("{path}.resourceRules[{index}]"), rule);
        }
        for (index, rule) in rule.non_resource_rules.iter().enumerate() {
            self.non_resource_rule(&format!("{path}.nonResourceRules[{index}]"), rule);
        }
    }

    /// The field that the kind names must be there, the two others must not.
    fn subject(&mut self, path: &str, subject: &v1::Subject) {
        let fields = [
            ("serviceAccount", "ServiceAccount", subject.service_account.is_some()),
            ("user", "User", subject.user.is_some()),
            ("group", "Group", subject.group.is_some()),
        ];
        let Some((field, kind, given)) = fields.into_iter().find(|(_, kind, _)| *kind == subject.kind) else {
            let kinds = ["Group", "ServiceAccount", "User"];
            return self.not_supported(&format!("{path}.kind"), subject.kind.as_str(), &kinds);
        };
        let own = format!("{path}.{field}");
        if !given {
            self.required(&own, &format!("{field} is required when subject kind is '{kind}'"));
        } else if let (Some(account), "serviceAccount") = (&subject.service_account, field) {
            self.service_account(&own, account);
        } else {
            let name = match field {
                "user" => subject.user.as_ref().map(|user| &user.name),
                _ => subject.group.as_ref().map(|group| &group.name),
            };
            if name.is_none_or(String::is_empty) {
                self.required(&format!("{own}.name"), "");
            }
        }
        for (field, kind, given) in fields {
            if given && kind != subject.kind {
                let detail = format!("{field} is forbidden when subject kind is not '{kind}'");
                self.forbidden(&format!("{path}.{field}"), &detail);
            }
        }
    }

    fn service_account(&mut self, path: &str, account: &v1::ServiceAccountSubject) {
        let name = format!("{path}.name");
        match account.name.as_str() {
            "" => self.required(&name, ""),
            "*" => {}
            given => {
                for wrong in names::dns_subdomain(given) {
                    self.invalid(&name, given, wrong);
                }
            }
        }
        let namespace = format!("{path}.namespace");
        match account.namespace.as_str() {
            "" => self.required(&namespace, "must specify namespace for service account"),
            given => {
                for wrong in names::dns_label(given) {
                    self.invalid(&namespace, given, wrong);
                }
            }
        }
    }

    fn resource_rule(&mut self, path: &str, rule: &v1::ResourcePolicyRule) {
        self.verbs(&format!("{path}.verbs"), &rule.verbs);
        let groups = format!("{path}.apiGroups");
        self.list(
            &groups,
            &rule.api_groups,
            "resource rules must supply at least one api group",
            "api groups",
        );
        let resources = format!("{path}.resources");
        self.list(
            &resources,
            &rule.resources,
            "resource rules must supply at least one resource",
            "resources",
        );

        let path = format!("{path}.namespaces");
        if rule.namespaces.is_empty() && !rule.cluster_scope {
            let detail = "resource rules that are not cluster scoped must supply at least one namespace";
            self.required(&path, detail);
        } else if has_star(&rule.namespaces) {
            self.only_star(&path, &rule.namespaces, "namespaces");
        } else {
            for (index, namespace) in rule.namespaces.iter().enumerate() {
                for wrong in names::dns_label(namespace) {
                    let detail = format!("each member of this list must be '*' or a DNS-1123 label; {wrong}");
                    self.invalid(&format!("{path}[{index}]"), namespace.as_str(), detail);
                }
            }
        }
    }

    fn non_resource_rule(&mut self, path: &str, rule: &v1::NonResourcePolicyRule) {
        self.verbs(&format!("{path}.verbs"), &rule.verbs);
        let (path, urls) = (format!("{path}.nonResourceURLs"), &rule.non_resource_urls);
        self.list(&path, urls, "nonResourceURLs must contain at least one value", "non-resource URLs");
        if has_star(urls) {
            return;
        }
        for (index, url) in urls.iter().enumerate() {
            if let Some(wrong) = url_fault(url) {
                self.invalid(&format!("{path}[{index}]"), url.as_str(), wrong);
            }
        }
    }

    fn verbs(&mut self, path: &str, verbs: &[String]) {
        self.list(path, verbs, "verbs must contain at least one value", "verbs");
        let known = |verb: &String| VERBS.contains(&verb.as_str());
        if !has_star(verbs) && !verbs.iter().all(known) {
            self.not_supported(path, verbs.to_vec(), &VERBS);
        }
    }

    /// A list that must not be empty, and in which `*` must be alone.
    fn list(&mut self, path: &str, list: &[String], if_empty: &str, what: &str) {
        if list.is_empty() {
            self.required(path, if_empty);
        } else if has_star(list) {
            self.only_star(path, list, what);
        }
    }

    fn only_star(&mut self, path: &str, list: &[String], what: &str) {
        if list.len() > 1 {
            let detail = format!("if '*' is present, must not specify other {what}");
            let fault = Fault::new(FaultKind::Invalid, path, detail);
            self.faults.push(fault.with_value(Value::from(list.to_vec())));
        }
    }
}

fn has_star(list: &[String]) -> bool {
    list.iter().any(|item| item == "*")
}

/// The first thing that is wrong with the path of a non-resource rule.
fn url_fault(url: &str) -> Option<&'static str> {
    let stars = url.matches('*').count();
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !url.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}
