//! The levels of maitred, driven by simulated time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use maitred::borrow::{Limits, PeriodDemand};
use maitred::level::{
    Arena, ArenaSize, Config, Context, Discipline, Finished, Level, OutOfCells, Refusal as Why,
};
use maitred::shuffle::Deck;
use maitred::ticket::{State, TicketId, Width};

use crate::plan::Plan;
use crate::play::{Answer, Refusal, Seats};
use crate::record::Class;

/// Requests that may wait, run or linger at once. Address space is reserved for all; memory is used by those there are.
const TICKETS: usize = 1 << 20;

/// An engine for one play.
pub struct Engine {
    levels: Vec<PlayedLevel>,
    level_of: Vec<usize>,
    limits: Limits,
    context: Context,
    /// Waiting and running requests by the player's number.
    tickets: HashMap<u64, (usize, TicketId)>,
    /// The player's numbers of those that wait.
    waiting: HashMap<TicketId, u64>,
    /// Seats that are held after the end of their request.
    lingering: BinaryHeap<Reverse<(u64, u64, usize, u64)>>,
    lingered: u64,
}

struct PlayedLevel {
    name: Arc<str>,
    level: Level,
    deck: Option<Deck>,
    limit: u32,
    exempt: bool,
}

impl Engine {
    /// The levels of `plan`, at rest.
    ///
    /// # Errors
    /// When the levels have more queues than an arena can hold.
    pub fn new(plan: &Plan) -> Result<Self, OutOfCells> {
        let queues = |discipline: &Discipline| match discipline {
            Discipline::Queue { queues, .. } => *queues as usize,
            _ => 1,
        };
        let all: usize = plan.levels.iter().map(|level| queues(&level.discipline).next_power_of_two()).sum();
        let arena =
            Arena::new(ArenaSize { tickets: TICKETS, queues: all, levels: plan.levels.len(), threads: 1 });
        let mut context = Context::new(&arena)?;
        context.granted = Some(Vec::new());
        let limits = plan.limits();
        let levels = (0..)
            .zip(&plan.levels)
            .map(|(id, planned)| {
                let limit = current(&limits, &planned.spec.name);
                let config = Config { discipline: planned.discipline, limit };
                Ok(PlayedLevel {
                    name: planned.spec.name.clone(),
                    level: Level::new(&arena, id, config, plan.fidelity, 0)?,
                    deck: match planned.discipline {
                        Discipline::Queue { queues, hand_size, .. } => Deck::new(queues, hand_size).ok(),
                        _ => None,
                    },
                    limit,
                    exempt: planned.discipline == Discipline::Exempt,
                })
            })
            .collect::<Result<_, OutOfCells>>()?;
        Ok(Self {
            levels,
            level_of: plan.schemas.iter().map(|(_, level)| *level).collect(),
            limits,
            context,
            tickets: HashMap::new(),
            waiting: HashMap::new(),
            lingering: BinaryHeap::new(),
            lingered: 0,
        })
    }
}

fn current(limits: &Limits, name: &str) -> u32 {
    limits.level(name).map_or(0, |level| u32::try_from(level.current).unwrap_or(u32::MAX))
}

impl Seats for Engine {
    fn arrive(&mut self, now: u64, id: u64, class: &Class) -> Answer {
        let index = self.level_of[class.schema as usize];
        let PlayedLevel { level, deck, .. } = &self.levels[index];
        let hand = deck.as_ref().map(|deck| deck.deal(class.flow));
        let width = Width {
            initial_seats: class.initial_seats,
            final_seats: class.final_seats,
            additional_latency: class.latency_ns,
        };
        match level.arrive(&mut self.context, class.flow, hand.as_ref(), width, now).outcome {
            Ok(admitted) => {
                self.tickets.insert(id, (index, admitted.id));
                if admitted.state == State::Running {
                    // It is among those granted, but the player has its answer.
                    if let Some(granted) = &mut self.context.granted {
                        granted.retain(|ticket| *ticket != admitted.id);
                    }
                    Answer::Runs
                } else {
                    self.waiting.insert(admitted.id, id);
                    Answer::Waits
                }
            }
            Err(Why::QueueFull) => Answer::Refused(Refusal::QueueFull),
            Err(Why::ConcurrencyLimit) => Answer::Refused(Refusal::ConcurrencyLimit),
            Err(Why::OutOfTickets) => Answer::Refused(Refusal::OutOfTickets),
        }
    }

    fn finish(&mut self, now: u64, id: u64) {
        let Some((index, ticket)) = self.tickets.remove(&id) else { return };
        let finished = self.levels[index].level.finish(&mut self.context, ticket, now);
        if let Ok(Finished::Lingers(ns)) = finished {
            // Of those due at one moment the first to end goes first.
            self.lingering.push(Reverse((now.saturating_add(ns), self.lingered, index, ticket.to_bits())));
            self.lingered += 1;
        }
    }

    fn time_out(&mut self, now: u64, id: u64) {
        let Some((index, ticket)) = self.tickets.remove(&id) else { return };
        self.waiting.remove(&ticket);
        // One thread: what waits has not been granted meanwhile.
        let _ = self.levels[index].level.cancel(&mut self.context, ticket, now);
    }

    fn next_timer(&self) -> Option<u64> {
        self.lingering.peek().map(|Reverse((at, ..))| *at)
    }

    fn run_timers(&mut self, now: u64) {
        while let Some(Reverse((at, _, index, ticket))) = self.lingering.peek().copied()
            && at <= now
        {
            self.lingering.pop();
            let _ = self.levels[index].level.release(&mut self.context, TicketId::from_bits(ticket), now);
        }
    }

    fn adjust(&mut self, now: u64) {
        let Self { levels, limits, context, .. } = self;
        limits.adjust(|name| match levels.iter().find(|level| &*level.name == name) {
            Some(level) => level.level.take_demand(context, now),
            None => PeriodDemand::empty(0.0),
        });
        for level in levels {
            level.limit = current(limits, &level.name);
            level.level.set_limit(context, level.limit, now);
        }
    }

    fn granted(&mut self, ids: &mut Vec<u64>) {
        let granted = self.context.granted.iter_mut().flat_map(|granted| granted.drain(..));
        ids.extend(granted.filter_map(|ticket| self.waiting.remove(&ticket)));
    }

    fn limits(&self, see: &mut dyn FnMut(usize, u64)) {
        for (index, level) in self.levels.iter().enumerate().filter(|(_, level)| !level.exempt) {
            see(index, level.limit.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use maitred::api::{Objects, decode};
    use maitred::fidelity::Fidelity;
    use serde_json::json;

    use super::*;
    use crate::play::{Arrival, Fate, Traffic, play};
    use crate::standin::StandIn;

    /// Requests made from a seed, and what became of them.
    struct Made {
        state: u64,
        left: u32,
        next: u64,
        schemas: u32,
        fates: Vec<(u64, Result<u64, Refusal>)>,
    }

    impl Made {
        fn new(seed: u64, schemas: u32) -> Self {
            Self { state: seed, left: 3000, next: 0, schemas, fates: Vec::new() }
        }

        fn below(&mut self, bound: u64) -> u64 {
            self.state =
                self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.state >> 33) % bound
        }
    }

    impl Traffic for Made {
        fn next_at(&mut self) -> io::Result<Option<u64>> {
            Ok((self.left > 0).then_some(self.next))
        }

        fn take(&mut self) -> io::Result<Arrival> {
            self.left -= 1;
            let at = self.next;
            self.next += self.below(30_000_000);
            let wide = self.below(8) == 0;
            let lingers = self.below(5) == 0;
            let class = Class {
                schema: self.below(self.schemas.into()) as u32,
                flow: self.below(12).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                initial_seats: if wide { 3 } else { 1 },
                final_seats: if lingers { 2 } else { 0 },
                latency_ns: if lingers { 5_000_000 } else { 0 },
            };
            Ok(Arrival { at, class, service_ns: self.below(150_000_000), tag: self.left.into() })
        }

        fn fate(&mut self, _now: u64, fate: &Fate) -> io::Result<()> {
            self.fates.push((fate.arrival.tag, fate.outcome));
            Ok(())
        }
    }

    fn plan(fidelity: Fidelity) -> Plan {
        let level = |name: &str, shares: u32, response: serde_json::Value| {
            json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
                "metadata": {"name": name}, "spec": {"type": "Limited",
                "limited": {"nominalConcurrencyShares": shares, "lendablePercent": 50, "limitResponse": response}}})
        };
        let queue = |queues: u32, hand: u32, longest: u32| json!({"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": longest}});
        let schema = |name: &str| {
            json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
                "spec": {"priorityLevelConfiguration": {"name": name}, "matchingPrecedence": 100}})
        };
        let objects: Objects = [
            level("fair", 10, queue(8, 2, 2)),
            level("line", 5, queue(1, 1, 10)),
            level("turnstile", 5, json!({"type": "Reject"})),
            schema("fair"),
            schema("line"),
            schema("turnstile"),
        ]
        .iter()
        .map(|object| decode(object).unwrap().object)
        .collect();
        Plan::new(&objects, 6, fidelity).unwrap()
    }

    #[test]
    fn every_request_fares_as_under_the_sequential_model() {
        for fidelity in [Fidelity::Kubernetes, Fidelity::Corrected] {
            let plan = plan(fidelity);
            for seed in 1..=4 {
                let schemas = plan.schemas.len() as u32;
                let (mut ours, mut theirs) = (Made::new(seed, schemas), Made::new(seed, schemas));
                play(&mut Engine::new(&plan).unwrap(), &mut ours, 500_000_000, 1_000_000_000).unwrap();
                play(&mut StandIn::new(&plan), &mut theirs, 500_000_000, 1_000_000_000).unwrap();
                for why in [Refusal::QueueFull, Refusal::ConcurrencyLimit, Refusal::TimeOut] {
                    assert!(
                        ours.fates.iter().any(|(_, outcome)| *outcome == Err(why)),
                        "seed {seed}: no {why:?}"
                    );
                }
                assert_eq!(ours.fates.len(), 3000);
                assert_eq!(ours.fates, theirs.fates, "seed {seed}, {fidelity:?}");
            }
        }
    }
}
