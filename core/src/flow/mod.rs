//! Flows: what tells them apart, their hash, and the hands that were already dealt.
//!
//! A flow is the name of a flow schema and a distinguisher; all requests of one flow share a hand of queues. The
//! hash decides the hand, so with [`FlowHasher::Kubernetes`] it is the same as in every Kubernetes API server. SHA-256
//! and dealing cost more than the rest of the path together: [`FlowCache`] keeps what they gave.
//!
//! Sources of the rules: `vectors/flowhash.jsonl`, `vectors/match.jsonl`.

mod cache;
mod slot;

use std::fmt;
use std::hash::Hasher as _;

use sha2::{Digest as _, Sha256};
use siphasher::sip::SipHasher24;

pub(crate) use cache::CacheKey;
pub use cache::{FlowCache, MAX_CACHED_BYTES};

use crate::shuffle::Hand;

/// What tells the flows of one schema apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Distinguisher {
    /// Nothing: all requests of the schema are one flow.
    None,
    /// The name of the user.
    ByUser,
    /// The namespace of the request; empty where it has none.
    ByNamespace,
}

impl Distinguisher {
    /// The method that an object names by its `distinguisherMethod.type`; none that is not known.
    pub fn from_type(type_: &str) -> Option<Distinguisher> {
        match type_ {
            "ByUser" => Some(Distinguisher::ByUser),
            "ByNamespace" => Some(Distinguisher::ByNamespace),
            _ => None,
        }
    }
}

/// Hash of the flow (schema name, distinguisher), as every Kubernetes API server computes it: the first eight bytes,
/// little-endian, of SHA-256 of the name, a zero byte and the distinguisher.
///
/// Some hundred nanoseconds for names of usual length. Never allocates.
pub fn flow_hash(schema: impl AsRef<[u8]>, distinguisher: impl AsRef<[u8]>) -> u64 {
    let digest = Sha256::new()
        .chain_update(schema.as_ref())
        .chain_update([0])
        .chain_update(distinguisher.as_ref())
        .finalize();
    u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
}

/// The secret of [`FlowHasher::Keyed`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FlowKey([u8; 16]);

impl FlowKey {
    /// A key from the operating system's source of randomness; its error if that has none to give.
    pub fn random() -> std::io::Result<FlowKey> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(FlowKey(key))
    }

    /// A given key, for instance one that several processes share so that their flows have the same hands.
    pub const fn from_bytes(key: [u8; 16]) -> FlowKey {
        FlowKey(key)
    }
}

/// Never shows the key.
impl fmt::Debug for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FlowKey(..)")
    }
}

/// How flows are hashed. Fixed when an engine is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlowHasher {
    /// As Kubernetes does ([`flow_hash`]): predictable, by anybody. Who may choose user names can search for one that
    /// shares a victim's hand.
    #[default]
    Kubernetes,
    /// SipHash-2-4 under a secret key, over the same bytes: nobody without the key can tell which flows share queues.
    Keyed(FlowKey),
}

impl FlowHasher {
    /// Hash of a flow. Never allocates.
    pub fn hash(&self, schema: impl AsRef<[u8]>, distinguisher: impl AsRef<[u8]>) -> u64 {
        match self {
            FlowHasher::Kubernetes => flow_hash(schema, distinguisher),
            FlowHasher::Keyed(FlowKey(key)) => {
                let mut hasher = SipHasher24::new_with_key(key);
                hasher.write(schema.as_ref());
                hasher.write(&[0]);
                hasher.write(distinguisher.as_ref());
                hasher.finish()
            }
        }
    }
}

/// A resolved flow: all that a level needs to seat a request. Holds for the policy that resolved it.
///
/// A caller that serves many requests of one flow may keep it and skip classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Index in [`Policy::schemas`](crate::policy::Policy::schemas).
    pub schema: u32,
    /// Index in [`Policy::levels`](crate::policy::Policy::levels).
    pub level: u32,
    /// No schema matched, and catch-all was taken all the same.
    pub fallback: bool,
    /// Hash of the flow; 0 unless the level has more than one queue.
    pub hash: u64,
    /// The queues that it may use; none where the level does not queue.
    pub hand: Option<Hand>,
}
