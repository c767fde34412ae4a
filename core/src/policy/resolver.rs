//! A policy together with the flows that it resolved lately.

use super::Policy;
use crate::{
    classify::{Classified, Request},
    flow::{CacheKey, Flow, FlowCache, FlowHasher},
};

/// From a request to its flow, with a cache in between.
///
/// The cache holds hands of this one policy, so both live and go together: a new policy comes with an empty cache, and
/// no entry can outlive the deck that it was dealt from.
#[derive(Debug)]
pub struct Resolver {
    policy: Policy,
    hasher: FlowHasher,
    cache: FlowCache,
}

impl Resolver {
    /// A resolver that keeps about `cached_flows` flows (see [`FlowCache::new`]).
    pub fn new(policy: Policy, hasher: FlowHasher, cached_flows: usize) -> Resolver {
        Resolver { policy, hasher, cache: FlowCache::new(cached_flows) }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How flows are hashed.
    pub fn hasher(&self) -> &FlowHasher {
        &self.hasher
    }

    /// The cache of flows.
    pub fn cache(&self) -> &FlowCache {
        &self.cache
    }

    /// The flow of `request`; always the same as [`Policy::flow`] gives. Neither allocates nor waits for anybody.
    #[inline]
    pub fn resolve<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> Flow {
        self.resolve_classified(self.policy.classify(request), request)
    }

    /// The same for a request that this resolver's policy has already classified.
    #[inline]
    pub fn resolve_classified<G>(&self, classified: Classified, request: &Request<'_, G>) -> Flow {
        self.policy.flow_with(classified, request, |schema, distinguisher, deck| {
            let key = CacheKey::new(schema, distinguisher);
            if let Some(found) = key.as_ref().and_then(|key| self.cache.find(key)) {
                return found;
            }
            let hash = self.hasher.hash(&*self.policy.schemas[schema as usize].name, distinguisher);
            let hand = deck.deal(hash);
            if let Some(key) = key {
                self.cache.insert(&key, hash, hand);
            }
            (hash, hand)
        })
    }
}
