//! All schemas of a policy at once: which is the first that matches.
//!
//! Each part of each rule of each schema (one resource rule, or one rule for paths, with the subjects of its rule) is a
//! clause. A clause asks for one thing in each of a few dimensions (subject, verb, API group, resource, scope; or
//! subject, verb, path), so for a request the clauses that match are the intersection, over the dimensions, of the
//! clauses that cover its value there. Each dimension is one hash lookup, each group of the user one more.
//!
//! The sets are intersected in blocks of 64 clauses, and of these only those that every dimension has something in. To
//! make them few, clauses are numbered by shape first (which dimensions they leave open) and by the order of matching
//! then. Clauses of one shape name their values in the same dimensions, so a block that all dimensions share nearly
//! always holds a match: with a thousand schemas there are hardly more of them to look into than with ten.

use std::borrow::Cow;

use arrayvec::ArrayVec;

use super::{
    Request, Target,
    keys::{CollectedKeys, CollectedResources, Keys, Prefixes, Resources},
    rule::{ALL, SERVICE_ACCOUNT_PREFIX, covered_below, covers_all},
    sets::{Collected, Set, Sets},
};
use crate::api::v1::{FlowSchemaSpec, NonResourcePolicyRule, ResourcePolicyRule, Subject};

/// Sets of subjects that are intersected at a time. Users with more groups than this take several rounds.
const ROUND: usize = 16;

/// Finds the first schema that matches.
#[derive(Debug)]
pub(crate) struct Index {
    resources: ResourceIndex,
    paths: PathIndex,
}

impl Index {
    /// An index of schemas in the order of matching. Allocates, in proportion to the length of their lists.
    pub(crate) fn new<'a>(schemas: impl IntoIterator<Item = &'a FlowSchemaSpec>) -> Index {
        let (mut resources, mut paths) = (Vec::new(), Vec::new());
        for (schema, spec) in (0..).zip(schemas) {
            for rule in &spec.rules {
                let subjects = &*rule.subjects;
                resources.extend(rule.resource_rules.iter().map(|part| Clause { schema, subjects, part }));
                paths.extend(rule.non_resource_rules.iter().map(|part| Clause { schema, subjects, part }));
            }
        }
        Index { resources: ResourceIndex::new(resources), paths: PathIndex::new(paths) }
    }

    /// The place of the first schema that matches. Never allocates.
    #[inline]
    pub(crate) fn first_match<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> Option<u32> {
        self.search(request).0
    }

    /// The same, and how many blocks of clauses were looked into.
    #[inline]
    fn search<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> (Option<u32>, u32) {
        match request.target {
            Target::Resource { api_group, resource, subresource } => {
                let index = &self.resources;
                let dimensions = [
                    index.verbs.get(request.verb),
                    index.api_groups.get(api_group),
                    [index.resources.get(resource, subresource), index.all_resources],
                    if request.namespace.is_empty() {
                        [index.cluster, Set::default()]
                    } else {
                        index.namespaces.get(request.namespace)
                    },
                ];
                index.clauses.first(&index.sets, request, &dimensions)
            }
            Target::Path(path) => {
                let index = &self.paths;
                let dimensions =
                    [index.verbs.get(request.verb), [index.exact.get(path), index.below.get(path)]];
                index.clauses.first(&index.sets, request, &dimensions)
            }
        }
    }
}

/// A part of a rule, as it is collected.
struct Clause<'a, Part> {
    schema: u32,
    subjects: &'a [Subject],
    part: &'a Part,
}

impl<Part> Clause<'_, Part> {
    /// Which ways to match a subject it uses: everybody, by user name, by group.
    fn subject_shape(&self) -> [bool; 3] {
        let mut shape = [false; 3];
        for subject in self.subjects {
            match Who::of(subject) {
                Some(Who::Everybody) => shape[0] = true,
                Some(Who::User(_) | Who::AccountsOf(_)) => shape[1] = true,
                Some(Who::Group(_)) => shape[2] = true,
                None => {}
            }
        }
        shape
    }
}

/// Whom a subject matches.
enum Who<'a> {
    Everybody,
    User(Cow<'a, str>),
    Group(&'a str),
    /// A namespace, with a colon behind.
    AccountsOf(String),
}

impl<'a> Who<'a> {
    /// None for nobody: an unknown kind, or one without its part.
    fn of(subject: &'a Subject) -> Option<Who<'a>> {
        match subject.kind.as_str() {
            "User" => Some(match subject.user.as_ref()?.name.as_str() {
                ALL => Who::Everybody,
                name => Who::User(name.into()),
            }),
            "Group" => Some(match subject.group.as_ref()?.name.as_str() {
                ALL => Who::Everybody,
                name => Who::Group(name),
            }),
            "ServiceAccount" => {
                let account = subject.service_account.as_ref()?;
                let namespace = format!("{}:", account.namespace);
                Some(match account.name.as_str() {
                    ALL => Who::AccountsOf(namespace),
                    name => Who::User(format!("{SERVICE_ACCOUNT_PREFIX}{namespace}{name}").into()),
                })
            }
            _ => None,
        }
    }
}

/// Numbers clauses by shape, then in the order of matching; every shape begins with a block of its own.
///
/// `add` takes each clause with its number. Returns the schema of each number.
fn number<Part, Shape: Ord>(
    mut clauses: Vec<Clause<'_, Part>>,
    shape: impl Fn(&Clause<'_, Part>) -> Shape,
    mut add: impl FnMut(&Clause<'_, Part>, u32),
) -> Vec<u32> {
    // What fits into one block has nothing to gain.
    if clauses.len() > 64 {
        // Stable: keeps the order of matching within a shape.
        clauses.sort_by_cached_key(&shape);
    }
    let mut schemas = Vec::new();
    let mut before: Option<&Clause<'_, Part>> = None;
    for clause in &clauses {
        if clauses.len() > 64 && before.is_some_and(|before| shape(before) != shape(clause)) {
            schemas.resize(schemas.len().next_multiple_of(64), u32::MAX);
        }
        add(clause, schemas.len() as u32);
        schemas.push(clause.schema);
        before = Some(clause);
    }
    schemas
}

/// One dimension of plain values, where `*` alone in a list stands for all.
#[derive(Debug, Default)]
struct ValuesBuilder {
    keys: CollectedKeys,
    all: Collected,
}

impl ValuesBuilder {
    fn add(&mut self, list: &[String], clause: u32) {
        if covers_all(list) {
            self.all.insert(clause);
        } else {
            list.iter().for_each(|value| self.keys.insert(value, clause));
        }
    }

    fn build(&self, sets: &mut Sets) -> Values {
        Values { keys: self.keys.store(sets), all: sets.store(&self.all) }
    }
}

#[derive(Debug)]
struct Values {
    keys: Keys,
    all: Set,
}

impl Values {
    #[inline]
    fn get(&self, value: &[u8]) -> [Set; 2] {
        [self.keys.get(value), self.all]
    }
}

/// The dimension that both kinds of clause have: subjects.
#[derive(Debug, Default)]
struct SubjectsBuilder {
    everybody: Collected,
    users: CollectedKeys,
    groups: CollectedKeys,
    account_namespaces: CollectedKeys,
}

impl SubjectsBuilder {
    fn add(&mut self, subjects: &[Subject], clause: u32) {
        for who in subjects.iter().filter_map(Who::of) {
            match who {
                Who::Everybody => self.everybody.insert(clause),
                Who::User(name) => self.users.insert(&*name, clause),
                Who::Group(name) => self.groups.insert(name, clause),
                Who::AccountsOf(namespace) => self.account_namespaces.insert(namespace, clause),
            }
        }
    }

    fn build(&self, schemas: Vec<u32>, sets: &mut Sets) -> Clauses {
        Clauses {
            everybody: sets.store(&self.everybody),
            users: self.users.store(sets),
            groups: self.groups.store(sets),
            account_namespaces: self.account_namespaces.store_prefixes(b':', sets),
            schemas,
        }
    }
}

/// Clauses by their subjects.
#[derive(Debug)]
struct Clauses {
    /// The schema of each clause; none, `u32::MAX`, of the numbers between two shapes.
    schemas: Vec<u32>,
    everybody: Set,
    users: Keys,
    groups: Keys,
    /// Namespaces, each with its colon.
    account_namespaces: Prefixes,
}

impl Clauses {
    #[inline]
    fn first<G: AsRef<[u8]>, const D: usize>(
        &self,
        sets: &Sets,
        request: &Request<'_, G>,
        dimensions: &[[Set; 2]; D],
    ) -> (Option<u32>, u32) {
        let account = match request.user.strip_prefix(SERVICE_ACCOUNT_PREFIX.as_bytes()) {
            Some(account) => self.account_namespaces.get(account),
            None => Set::default(),
        };
        let mut round = ArrayVec::<Set, ROUND>::new();
        round.extend([self.everybody, self.users.get(request.user), account]);
        round.retain(|set| !set.is_empty());
        let mut groups = request.groups.iter();
        let (mut best, mut looked_into) = (u32::MAX, 0);
        loop {
            for group in groups.by_ref() {
                let set = self.groups.get(group.as_ref());
                if !set.is_empty() {
                    round.push(set);
                    if round.is_full() {
                        break;
                    }
                }
            }
            let (least, blocks) = sets.least_common(&round, dimensions, &self.schemas, best);
            (best, looked_into) = (least, looked_into + blocks);
            if groups.len() == 0 {
                return ((best != u32::MAX).then_some(best), looked_into);
            }
            round.clear();
        }
    }
}

#[derive(Debug)]
struct ResourceIndex {
    clauses: Clauses,
    verbs: Values,
    api_groups: Values,
    resources: Resources,
    all_resources: Set,
    namespaces: Values,
    /// Clauses for requests without a namespace.
    cluster: Set,
    sets: Sets,
}

impl ResourceIndex {
    fn new(clauses: Vec<Clause<'_, ResourcePolicyRule>>) -> ResourceIndex {
        let shape = |clause: &Clause<'_, ResourcePolicyRule>| {
            let rule = clause.part;
            let open = [&rule.verbs, &rule.api_groups, &rule.resources, &rule.namespaces]
                .map(|list| covers_all(list));
            (clause.subject_shape(), open, rule.cluster_scope, rule.namespaces.is_empty())
        };
        let mut subjects = SubjectsBuilder::default();
        let [mut verbs, mut api_groups, mut namespaces]: [ValuesBuilder; 3] = Default::default();
        let mut resources = CollectedResources::default();
        let [mut all_resources, mut cluster]: [Collected; 2] = Default::default();
        let schemas = number(clauses, shape, |clause, number| {
            let rule = clause.part;
            subjects.add(clause.subjects, number);
            verbs.add(&rule.verbs, number);
            api_groups.add(&rule.api_groups, number);
            namespaces.add(&rule.namespaces, number);
            if covers_all(&rule.resources) {
                all_resources.insert(number);
            } else {
                rule.resources.iter().for_each(|resource| resources.insert(resource, number));
            }
            if rule.cluster_scope {
                cluster.insert(number);
            }
        });
        let mut sets = Sets::new(schemas.len() as u32);
        ResourceIndex {
            clauses: subjects.build(schemas, &mut sets),
            verbs: verbs.build(&mut sets),
            api_groups: api_groups.build(&mut sets),
            resources: resources.store(&mut sets),
            all_resources: sets.store(&all_resources),
            namespaces: namespaces.build(&mut sets),
            cluster: sets.store(&cluster),
            sets,
        }
    }
}

#[derive(Debug)]
struct PathIndex {
    clauses: Clauses,
    verbs: Values,
    exact: Keys,
    /// Paths that end in a slash, and the empty one for all.
    below: Prefixes,
    sets: Sets,
}

impl PathIndex {
    fn new(clauses: Vec<Clause<'_, NonResourcePolicyRule>>) -> PathIndex {
        let every_path = |rule: &NonResourcePolicyRule| rule.non_resource_urls.iter().any(|path| path == ALL);
        let shape = |clause: &Clause<'_, NonResourcePolicyRule>| {
            (clause.subject_shape(), covers_all(&clause.part.verbs), every_path(clause.part))
        };
        let (mut subjects, mut verbs) = (SubjectsBuilder::default(), ValuesBuilder::default());
        let [mut exact, mut below]: [CollectedKeys; 2] = Default::default();
        let schemas = number(clauses, shape, |clause, number| {
            subjects.add(clause.subjects, number);
            verbs.add(&clause.part.verbs, number);
            if every_path(clause.part) {
                below.insert("", number);
                return;
            }
            for path in &clause.part.non_resource_urls {
                exact.insert(path, number);
                below.insert(covered_below(path), number);
            }
        });
        let mut sets = Sets::new(schemas.len() as u32);
        PathIndex {
            clauses: subjects.build(schemas, &mut sets),
            verbs: verbs.build(&mut sets),
            exact: exact.store(&mut sets),
            below: below.store_prefixes(b'/', &mut sets),
            sets,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{DecodeOptions, Kind, Object, Version, decode_with};

    fn spec(rules: serde_json::Value) -> FlowSchemaSpec {
        let options = DecodeOptions {
            kind: Some(Kind::FlowSchema),
            version: Some(Version::V1),
            ..DecodeOptions::default()
        };
        match decode_with(&json!({"spec": {"rules": rules}}), options).object {
            Some(Object::FlowSchema(schema)) => schema.spec,
            _ => panic!("not a schema"),
        }
    }

    /// Schemas as clusters have them: for one user, for the accounts of a namespace, for everybody in a namespace, for a
    /// resource, for a path; then one for all.
    fn schemas(count: usize) -> Vec<FlowSchemaSpec> {
        let user = |i| json!([{"kind": "User", "user": {"name": format!("user-{i}")}}]);
        let account = |i| json!([{"kind": "ServiceAccount", "serviceAccount": {"namespace": format!("n{i}"), "name": "*"}}]);
        let everybody = || json!([{"kind": "Group", "group": {"name": "system:authenticated"}}]);
        let on = |resource: String, namespace: String| json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": [resource], "clusterScope": true, "namespaces": [namespace]}]);
        let any = || String::from("*");
        let mut all: Vec<FlowSchemaSpec> = (0..count - 1)
            .map(|i| match i % 5 {
                0 => spec(json!([{"subjects": user(i), "resourceRules": on(any(), any())}])),
                1 => spec(json!([{"subjects": account(i), "resourceRules": on(any(), any())}])),
                2 => spec(json!([{"subjects": everybody(), "resourceRules": on(any(), format!("n{i}"))}])),
                3 => spec(json!([{"subjects": everybody(), "resourceRules": on(format!("r{i}"), any())}])),
                _ => spec(json!([{"subjects": everybody(), "nonResourceRules":
                    [{"verbs": ["get"], "nonResourceURLs": [format!("/p{i}/*")]}]}])),
            })
            .collect();
        all.push(spec(json!([{"subjects": everybody(), "resourceRules": on(any(), any()),
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}])));
        all
    }

    #[test]
    fn a_thousand_schemas_cost_about_what_ten_do() {
        // Hash lookups are the same for any number of schemas: one a dimension and one a group. The rest is blocks.
        let most_blocks = |count: usize| {
            let index = Index::new(&schemas(count));
            let mut most = 0;
            for i in (0..count).chain([usize::MAX]) {
                let (user, namespace) = (format!("user-{i}"), format!("n{i}"));
                let (account, resource, path) =
                    (format!("system:serviceaccount:n{i}:a"), format!("r{i}"), format!("/p{i}/x"));
                let groups = ["system:authenticated", "system:serviceaccounts", "dev"];
                let pods = Target::resource("", "pods", "");
                for request in [
                    Request::new(&user, &groups, "get", pods),
                    Request::new(&account, &groups, "get", pods),
                    Request::new("u", &groups, "get", pods).in_namespace(&namespace),
                    Request::new("u", &groups, "get", Target::resource("", &resource, ""))
                        .in_namespace("other"),
                    Request::new("u", &groups, "get", Target::path(&path)),
                ] {
                    let (found, blocks) = index.search(&request);
                    assert!(found.is_some());
                    most = most.max(blocks);
                }
            }
            most
        };
        let (few, many) = (most_blocks(10), most_blocks(1000));
        assert!(
            few == 1 && many <= 2 * few,
            "blocks of clauses looked into: {few} with 10, {many} with 1000"
        );
    }
}
