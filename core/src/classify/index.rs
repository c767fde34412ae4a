//! All schemas of a policy at once: which is the first that matches.
//!
//! Each part of each rule of each schema (one resource rule, or one rule for paths, with the subjects of its rule) is a
//! clause; clauses are numbered in the order of matching. A clause asks for one thing in each of a few dimensions
//! (subject, verb, API group, resource, scope; or subject, verb, path), so for a request the clauses that match are the
//! intersection, over the dimensions, of the clauses that name its value there. Each dimension is one hash lookup, and
//! the intersection looks at blocks of 64 clauses that all dimensions have in common: with a thousand schemas hardly
//! more of them than with ten.

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
        let (mut resources, mut paths) = (ResourceBuilder::default(), PathBuilder::default());
        for (schema, spec) in (0..).zip(schemas) {
            for rule in &spec.rules {
                rule.resource_rules.iter().for_each(|part| resources.add(schema, &rule.subjects, part));
                rule.non_resource_rules.iter().for_each(|part| paths.add(schema, &rule.subjects, part));
            }
        }
        Index { resources: resources.build(), paths: paths.build() }
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

/// What both kinds of clause have: schemas and subjects.
#[derive(Debug, Default)]
struct ClausesBuilder {
    schemas: Vec<u32>,
    everybody: Collected,
    users: CollectedKeys,
    groups: CollectedKeys,
    account_namespaces: CollectedKeys,
}

impl ClausesBuilder {
    fn add(&mut self, schema: u32, subjects: &[Subject]) -> u32 {
        let clause = self.schemas.len() as u32;
        self.schemas.push(schema);
        for subject in subjects {
            match subject {
                Subject { kind, user: Some(user), .. } if kind == "User" => match user.name.as_str() {
                    ALL => self.everybody.insert(clause),
                    name => self.users.insert(name, clause),
                },
                Subject { kind, group: Some(group), .. } if kind == "Group" => match group.name.as_str() {
                    ALL => self.everybody.insert(clause),
                    name => self.groups.insert(name, clause),
                },
                Subject { kind, service_account: Some(account), .. } if kind == "ServiceAccount" => {
                    let namespace = format!("{}:", account.namespace);
                    match account.name.as_str() {
                        ALL => self.account_namespaces.insert(namespace, clause),
                        name => {
                            self.users.insert(format!("{SERVICE_ACCOUNT_PREFIX}{namespace}{name}"), clause)
                        }
                    }
                }
                _ => {}
            }
        }
        clause
    }

    /// A store for sets of these clauses.
    fn sets(&self) -> Sets {
        Sets::new(self.schemas.len() as u32)
    }

    fn build(self, sets: &mut Sets) -> Clauses {
        Clauses {
            everybody: sets.store(&self.everybody),
            users: self.users.store(sets),
            groups: self.groups.store(sets),
            account_namespaces: self.account_namespaces.store_prefixes(b':', sets),
            schemas: self.schemas,
        }
    }
}

#[derive(Debug)]
struct Clauses {
    /// The schema of each clause.
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
        let mut round = arrayvec::ArrayVec::<Set, ROUND>::from_iter([
            self.everybody,
            self.users.get(request.user),
            account,
        ]);
        let mut groups = request.groups.iter();
        let (mut best, mut looked_into) = (None, 0);
        loop {
            let room = round.remaining_capacity();
            round.extend(groups.by_ref().take(room).map(|group| self.groups.get(group.as_ref())));
            let below = best.unwrap_or(self.schemas.len() as u32);
            let (found, blocks) = sets.first_common(&round, dimensions, below);
            (best, looked_into) = (found.or(best), looked_into + blocks);
            if groups.len() == 0 {
                break;
            }
            round.clear();
        }
        (best.map(|clause| self.schemas[clause as usize]), looked_into)
    }
}

#[derive(Debug, Default)]
struct ResourceBuilder {
    clauses: ClausesBuilder,
    verbs: ValuesBuilder,
    api_groups: ValuesBuilder,
    resources: CollectedResources,
    all_resources: Collected,
    namespaces: ValuesBuilder,
    cluster: Collected,
}

impl ResourceBuilder {
    fn add(&mut self, schema: u32, subjects: &[Subject], rule: &ResourcePolicyRule) {
        let clause = self.clauses.add(schema, subjects);
        self.verbs.add(&rule.verbs, clause);
        self.api_groups.add(&rule.api_groups, clause);
        self.namespaces.add(&rule.namespaces, clause);
        if covers_all(&rule.resources) {
            self.all_resources.insert(clause);
        } else {
            rule.resources.iter().for_each(|resource| self.resources.insert(resource, clause));
        }
        if rule.cluster_scope {
            self.cluster.insert(clause);
        }
    }

    fn build(self) -> ResourceIndex {
        let mut sets = self.clauses.sets();
        ResourceIndex {
            clauses: self.clauses.build(&mut sets),
            verbs: self.verbs.build(&mut sets),
            api_groups: self.api_groups.build(&mut sets),
            resources: self.resources.store(&mut sets),
            all_resources: sets.store(&self.all_resources),
            namespaces: self.namespaces.build(&mut sets),
            cluster: sets.store(&self.cluster),
            sets,
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

#[derive(Debug, Default)]
struct PathBuilder {
    clauses: ClausesBuilder,
    verbs: ValuesBuilder,
    exact: CollectedKeys,
    below: CollectedKeys,
}

impl PathBuilder {
    fn add(&mut self, schema: u32, subjects: &[Subject], rule: &NonResourcePolicyRule) {
        let clause = self.clauses.add(schema, subjects);
        self.verbs.add(&rule.verbs, clause);
        for path in &rule.non_resource_urls {
            if path == ALL {
                self.below.insert("", clause);
            } else {
                self.exact.insert(path, clause);
                self.below.insert(covered_below(path), clause);
            }
        }
    }

    fn build(self) -> PathIndex {
        let mut sets = self.clauses.sets();
        PathIndex {
            clauses: self.clauses.build(&mut sets),
            verbs: self.verbs.build(&mut sets),
            exact: self.exact.store(&mut sets),
            below: self.below.store_prefixes(b'/', &mut sets),
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
