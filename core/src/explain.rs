//! Why a request is classified as it is: which schema took it, and what kept it from each one before.
//!
//! For people and tools. Allocates; nothing here is on a request's path, and it decides nothing: the choice is
//! [`Policy::classify`]'s.

use serde::Serialize;

use crate::{
    classify::{
        Request,
        rule::{Difference, check},
    },
    flow::{Distinguisher, FlowHasher},
    policy::{Dangling, LevelKind, Policy},
};

/// All that is to be told about one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The schema that takes the request.
    pub flow_schema: String,
    /// Its precedence.
    pub matching_precedence: i32,
    /// There is no such object; it is mandatory, and imagined.
    pub imagined: bool,
    /// The part of the schema that matches, such as `spec.rules[0].resourceRules[1]`; none where no schema matched and
    /// catch-all takes the request all the same.
    pub matched_by: Option<String>,
    /// The level.
    pub priority_level: String,
    /// What the level does with requests that find no seat.
    pub response: Response,
    /// How the schema tells flows apart.
    pub distinguisher_method: Distinguisher,
    /// What that gives for this request. (Bytes that are no UTF-8 are replaced.)
    pub distinguisher: String,
    /// Which queues the flow may use; none where the level does not queue.
    pub shuffle: Option<Shuffle>,
    /// The schemas before it, in the order of matching.
    pub earlier: Vec<NotMatched>,
    /// Schemas that match, and would have come first, but take no part.
    pub dangling: Vec<DanglingMatch>,
}

/// What a level does with a request that finds no seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Response {
    /// There are always seats.
    Exempt,
    /// Rejects it.
    Reject,
    /// Lets it wait.
    Queue,
}

/// The hand of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shuffle {
    /// Hash of the flow, in decimal: it may pass what numbers in JSON hold. 0 where there is only one queue.
    pub hash: String,
    /// Number of queues of the level.
    pub queues: u32,
    /// The queues that the flow may use, in the order dealt.
    pub hand: Vec<u32>,
}

/// A schema before the one that matches, and why it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotMatched {
    /// The schema.
    pub flow_schema: String,
    /// Its precedence.
    pub matching_precedence: i32,
    /// Where it would have sent the request.
    pub priority_level: String,
    /// Every field that stands in the way.
    pub differences: Vec<Difference>,
}

/// A schema that matches but takes no part, because its level does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DanglingMatch {
    /// The schema.
    pub flow_schema: String,
    /// Its precedence.
    pub matching_precedence: i32,
    /// The level that does not exist.
    pub priority_level: String,
    /// The part that matches.
    pub matched_by: String,
}

/// Explains what `policy` makes of `request`, with flows hashed by `hasher`.
pub fn explain<G: AsRef<[u8]>>(
    policy: &Policy,
    request: &Request<'_, G>,
    hasher: &FlowHasher,
) -> Explanation {
    let classified = policy.classify(request);
    let flow = policy.flow(request, hasher);
    let schema = &policy.schemas()[flow.schema as usize];
    let level = &policy.levels()[flow.level as usize];
    // Where nothing matched, every schema came before, catch-all too.
    let before = if flow.fallback { policy.schemas().len() } else { flow.schema as usize };
    let earlier = policy.schemas()[..before].iter().map(|schema| NotMatched {
        flow_schema: schema.name.to_string(),
        matching_precedence: schema.precedence,
        priority_level: schema.spec.priority_level_configuration.name.clone(),
        differences: check(&schema.spec, request).err().unwrap_or_default(),
    });
    let comes_first = |dangling: &&Dangling| match schema.imagined {
        // Imagined schemas are outside the order of precedence: exempt before all, catch-all behind.
        true => flow.schema > 0,
        false => {
            flow.fallback
                || (dangling.spec.matching_precedence, &dangling.name) < (schema.precedence, &schema.name)
        }
    };
    let dangling = policy.dangling().iter().filter(comes_first);
    let dangling = dangling.filter_map(|dangling| {
        Some(DanglingMatch {
            flow_schema: dangling.name.to_string(),
            matching_precedence: dangling.spec.matching_precedence,
            priority_level: dangling.spec.priority_level_configuration.name.clone(),
            matched_by: check(&dangling.spec, request).ok()?,
        })
    });
    Explanation {
        flow_schema: schema.name.to_string(),
        matching_precedence: schema.precedence,
        imagined: schema.imagined,
        matched_by: check(&schema.spec, request).ok(),
        priority_level: level.name.to_string(),
        response: match level.kind {
            LevelKind::Exempt => Response::Exempt,
            LevelKind::Reject => Response::Reject,
            LevelKind::Queue { .. } => Response::Queue,
        },
        distinguisher_method: schema.distinguisher,
        distinguisher: String::from_utf8_lossy(policy.distinguisher(classified, request)).into_owned(),
        shuffle: flow.hand.map(|hand| Shuffle {
            hash: flow.hash.to_string(),
            queues: hand.deck_size(),
            hand: hand.cards().to_vec(),
        }),
        earlier: earlier.collect(),
        dangling: dangling.collect(),
    }
}
