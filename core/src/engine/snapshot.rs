//! What requests are decided by, from one set of objects to the next.

use crate::classify::{self, Request};
use crate::flow::Flow;
use crate::policy::{LevelKind, Resolver};

/// One set of objects in force.
pub(super) struct Snapshot {
    pub(super) generation: u64,
    pub(super) resolver: Resolver,
    /// By index of the policy's levels.
    pub(super) levels: Box<[Binding]>,
    /// By index of the policy's schemas: where their outcomes are counted.
    pub(super) rows: Box<[u32]>,
}

/// Where a level of the policy is.
pub(super) struct Binding {
    pub(super) place: u32,
    pub(super) tenancy: u32,
}

/// Everything that seating a request asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) generation: u64,
    pub(super) flow: Flow,
    pub(super) place: u32,
    pub(super) tenancy: u32,
    pub(super) row: u32,
}

impl Snapshot {
    #[inline]
    pub(super) fn target<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> Target {
        self.target_of(self.resolver.resolve(request))
    }

    /// Of the flow of a schema that has this hash.
    pub(super) fn target_of_hash(&self, schema: u32, hash: u64) -> Option<Target> {
        let policy = self.resolver.policy();
        let level = policy.schemas().get(schema as usize)?.level;
        let (hash, hand) = match &policy.levels()[level as usize].kind {
            LevelKind::Queue { deck, .. } => {
                let hash = if deck.deck_size() == 1 { 0 } else { hash };
                (hash, Some(deck.deal(hash)))
            }
            LevelKind::Exempt | LevelKind::Reject => (0, None),
        };
        Some(self.target_of(Flow { schema, level, fallback: false, hash, hand }))
    }

    #[inline]
    fn target_of(&self, flow: Flow) -> Target {
        let binding = &self.levels[flow.level as usize];
        Target {
            generation: self.generation,
            flow,
            place: binding.place,
            tenancy: binding.tenancy,
            row: self.rows[flow.schema as usize],
        }
    }
}

/// A flow that was resolved once, for many requests: no classification, no hash, no dealing.
///
/// Good for any number of new sets of objects, and even with another engine, though it is then resolved anew with each
/// request, as it is until [`Engine::refresh`](super::Engine::refresh). Sharing it between threads writes nothing.
#[derive(Clone, Debug)]
pub struct ResolvedFlow {
    target: Target,
    request: Box<Owned>,
}

/// A request's attributes, kept.
#[derive(Clone, Debug)]
struct Owned {
    user: Box<[u8]>,
    groups: Box<[Box<[u8]>]>,
    verb: Box<[u8]>,
    namespace: Box<[u8]>,
    resource: Option<[Box<[u8]>; 3]>,
    path: Box<[u8]>,
}

impl ResolvedFlow {
    pub(super) fn new<G: AsRef<[u8]>>(request: &Request<'_, G>, target: Target) -> Self {
        let (resource, path) = match request.target {
            classify::Target::Resource { api_group, resource, subresource } => {
                (Some([api_group.into(), resource.into(), subresource.into()]), Box::default())
            }
            classify::Target::Path(path) => (None, path.into()),
        };
        let request = Owned {
            user: request.user.into(),
            groups: request.groups.iter().map(|g| g.as_ref().into()).collect(),
            verb: request.verb.into(),
            namespace: request.namespace.into(),
            resource,
            path,
        };
        ResolvedFlow { target, request: Box::new(request) }
    }

    /// The flow, as of the objects that it was last resolved by.
    pub fn flow(&self) -> &Flow {
        &self.target.flow
    }

    #[inline]
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.target.generation
    }

    pub(super) fn retarget(&mut self, target: Target) {
        self.target = target;
    }

    pub(super) fn with_request<T>(&self, f: impl FnOnce(&Request<'_, Box<[u8]>>) -> T) -> T {
        let r = &self.request;
        let target = match &r.resource {
            Some([api_group, resource, subresource]) => {
                classify::Target::Resource { api_group, resource, subresource }
            }
            None => classify::Target::Path(&r.path),
        };
        f(&Request { user: &r.user, groups: &r.groups, verb: &r.verb, namespace: &r.namespace, target })
    }
}
