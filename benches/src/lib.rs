//! Worlds that are measured: engines and levels in a known state.

use std::collections::VecDeque;
use std::sync::Arc;

use maitred::api::{Objects, builtin, v1};
use maitred::engine::{Engine, Options};
use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Level};
use maitred::shuffle::{Deck, Hand};
use maitred::ticket::{State, TicketId, Width};

/// An engine with the suggested objects and enough seats that nobody waits.
pub fn engine() -> Engine {
    let engine = Engine::new(Options::default()).expect("the default options leave memory");
    engine.apply(&builtin::suggested()).expect("the suggested objects are valid");
    engine
}

/// `schemas` flow schemas, each for a user of its own (`user-0` first in precedence), all of one level.
pub fn many_schemas(schemas: usize) -> Objects {
    let mut objects = builtin::suggested();
    let model = objects.flow_schemas.iter().find(|schema| schema.metadata.name == "service-accounts");
    let model = model.expect("a suggested schema").clone();
    objects.flow_schemas = (0..schemas).map(|i| for_user(&model, i)).collect();
    objects
}

fn for_user(model: &v1::FlowSchema, i: usize) -> v1::FlowSchema {
    let mut schema = model.clone();
    schema.metadata.name = format!("schema-{i}");
    schema.spec.matching_precedence = 2 + i as i32 % 9998;
    for rule in &mut schema.spec.rules {
        rule.subjects = vec![v1::Subject {
            kind: "User".into(),
            user: Some(v1::UserSubject { name: format!("user-{i}") }),
            ..Default::default()
        }];
    }
    schema
}

/// A level with 64 queues and hands of 8, driven on a given time that moves a microsecond an event.
pub struct World {
    level: Level,
    cx: Context,
    hands: Vec<(u64, Hand)>,
    next: usize,
    now: u64,
    running: VecDeque<TicketId>,
}

const QUEUES: u32 = 64;
const HAND: u8 = 8;
/// Flows that take turns.
const FLOWS: u64 = 256;
const EVENT_NS: u64 = 1000;

impl World {
    /// With `limit` seats, and filled so that `waiting` requests wait.
    pub fn new(limit: u32, waiting: usize) -> World {
        let arena: Arc<Arena> = Arena::new(ArenaSize::default());
        let discipline =
            Discipline::Queue { queues: QUEUES, hand_size: HAND, queue_length_limit: 1 + waiting as u32 };
        let level = Level::new(&arena, 0, Config { discipline, limit }, Fidelity::Corrected, EVENT_NS)
            .expect("the arena has room for one level");
        let mut cx = Context::new(&arena).expect("the arena has room for one thread");
        cx.granted = Some(Vec::with_capacity(16));
        let deck = Deck::new(QUEUES, HAND).expect("64 and 8 make a deck");
        let hash = |flow: u64| flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hands = (0..FLOWS).map(|flow| (hash(flow), deck.deal(hash(flow)))).collect();
        let mut world = World { level, cx, hands, next: 0, now: 0, running: VecDeque::with_capacity(64) };
        for _ in 0..if waiting == 0 { 0 } else { limit as usize + waiting } {
            world.arrive();
        }
        world
    }

    /// A request of the next flow arrives.
    pub fn arrive(&mut self) {
        let (hash, hand) = &self.hands[self.next];
        self.next = (self.next + 1) % self.hands.len();
        self.now += EVENT_NS;
        let arrival = self.level.arrive(&mut self.cx, *hash, Some(hand), Width::ONE, self.now);
        let admitted = arrival.outcome.expect("no queue is full");
        // Nobody else is granted by an arrival here.
        self.cx.granted.iter_mut().for_each(Vec::clear);
        if admitted.state == State::Running {
            self.running.push_back(admitted.id);
        }
    }

    /// The request that has run longest ends; whoever is next is granted.
    pub fn finish(&mut self) {
        let ended = self.running.pop_front().expect("somebody runs");
        self.now += EVENT_NS;
        self.level.finish(&mut self.cx, ended, self.now).expect("it runs");
        self.running.extend(self.cx.granted.iter_mut().flat_map(|granted| granted.drain(..)));
    }

    /// Requests that wait.
    pub fn waiting(&mut self) -> u64 {
        self.level.occupancy(&mut self.cx).waiting as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_stays_as_long_as_it_was_built() {
        let mut world = World::new(10, 1000);
        for _ in 0..100 {
            world.arrive();
            world.finish();
        }
        assert_eq!(world.waiting(), 1000);
    }

    #[test]
    fn nobody_waits_where_there_are_seats() {
        let mut world = World::new(10, 0);
        for _ in 0..100 {
            world.arrive();
            world.finish();
        }
        assert_eq!(world.waiting(), 0);
    }

    #[test]
    fn many_schemas_are_a_valid_set() {
        engine().apply(&many_schemas(1000)).unwrap();
    }
}
