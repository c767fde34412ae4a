//! What a play needs to know of a set of objects.

use std::sync::Arc;

use maitred::api::Objects;
use maitred::borrow::{LevelSpec, Limits};
use maitred::error::Fault;
use maitred::fidelity::Fidelity;
use maitred::level::Discipline;
use maitred::policy::{Level, LevelKind, Policy};

/// A priority level.
#[derive(Debug, Clone)]
pub struct PlannedLevel {
    /// What its limits go by.
    pub spec: LevelSpec,
    /// What it does with a request that finds no seat.
    pub discipline: Discipline,
}

/// A set of objects in force on a server.
#[derive(Debug)]
pub struct Plan {
    /// The objects.
    pub objects: Objects,
    /// The same, compiled.
    pub policy: Policy,
    /// Whose decisions are played.
    pub fidelity: Fidelity,
    /// The levels of the policy.
    pub levels: Vec<PlannedLevel>,
    /// Name of each schema of the policy and index of its level.
    pub schemas: Vec<(Arc<str>, usize)>,
}

impl Plan {
    /// A server with these objects and so many seats.
    ///
    /// # Errors
    /// All faults of the objects.
    pub fn new(objects: &Objects, server_concurrency: u32, fidelity: Fidelity) -> Result<Self, Vec<Fault>> {
        let policy = Policy::compile(objects, server_concurrency)?;
        let level = |level: &Level| PlannedLevel { spec: level.spec(), discipline: discipline(&level.kind) };
        Ok(Self {
            objects: objects.clone(),
            fidelity,
            levels: policy.levels().iter().map(level).collect(),
            schemas: policy
                .schemas()
                .iter()
                .map(|schema| (schema.name.clone(), schema.level as usize))
                .collect(),
            policy,
        })
    }

    /// Seats of the server.
    pub fn server_concurrency(&self) -> u32 {
        self.policy.server_concurrency_limit()
    }

    /// The limits of a server that has just started.
    pub fn limits(&self) -> Limits {
        Limits::at_rest(self.fidelity, self.server_concurrency(), &self.policy.level_specs()).0
    }
}

fn discipline(kind: &LevelKind) -> Discipline {
    match kind {
        LevelKind::Exempt => Discipline::Exempt,
        LevelKind::Reject => Discipline::Reject,
        LevelKind::Queue { deck, queue_length_limit } => Discipline::Queue {
            queues: deck.deck_size(),
            // A hand has 60 cards at most.
            hand_size: u8::try_from(deck.hand_size()).unwrap_or(u8::MAX),
            queue_length_limit: *queue_length_limit,
        },
    }
}
