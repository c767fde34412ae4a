//! An engine of maitred, driven by simulated time.

use std::collections::HashMap;

use maitred::engine::{ADJUSTMENT_PERIOD, Engine, Options, Rejection};
use maitred::level::ArenaSize;
use maitred::policy::LevelKind;
use maitred::ticket::{State, TicketId, Width};
use maitred::time::Manual;

use crate::plan::Plan;
use crate::play::{Answer, Refusal, Seats};
use crate::record::Class;

/// Requests that may wait, run or linger at once. Address space is reserved for all; memory is used by those there are.
const TICKETS: usize = 1 << 18;

/// An engine for one play.
///
/// It adjusts limits every ten seconds of its own clock, which is some seconds ahead of the play's: so much that the first
/// adjustment falls where the play wants it. Until the play begins it is idle.
pub struct PlayedEngine {
    engine: Engine,
    ahead: u64,
    /// Index of each level in the plan, with its name; without those that have no limit.
    limited: Vec<(usize, Box<str>)>,
    /// Waiting and running requests by the player's number.
    tickets: HashMap<u64, TicketId>,
    /// The player's numbers of those that wait.
    waiting: HashMap<TicketId, u64>,
}

/// The levels have more queues than an engine can hold, or are more than it can hold.
#[derive(Debug)]
pub struct TooLarge;

impl PlayedEngine {
    /// An engine with the objects of `plan`, at rest, which adjusts limits for the first time at `first_adjustment`, after
    /// ten seconds at the latest.
    ///
    /// # Errors
    /// When the objects ask for more than an engine can hold.
    pub fn new(plan: &Plan, first_adjustment: u64) -> Result<Self, TooLarge> {
        let queues = |kind: &LevelKind| match kind {
            LevelKind::Queue { deck, .. } => deck.deck_size() as usize,
            _ => 1,
        };
        let levels = plan.policy.levels();
        let all_queues: usize = levels.iter().map(|level| queues(&level.kind).next_power_of_two()).sum();
        let options = Options {
            server_concurrency_limit: plan.server_concurrency(),
            fidelity: plan.fidelity,
            arena: ArenaSize {
                tickets: TICKETS,
                // Two more for the mandatory levels as they are before the objects are applied.
                queues: all_queues + 2,
                levels: levels.len() + 2,
                threads: 2,
            },
            clock_lag: 0,
            ..Options::default()
        };
        let engine = Engine::with_clock(options, Manual::default()).map_err(|_| TooLarge)?;
        engine.apply(&plan.objects).map_err(|_| TooLarge)?;
        engine.note_grants();
        Ok(Self {
            engine,
            ahead: ADJUSTMENT_PERIOD - first_adjustment.min(ADJUSTMENT_PERIOD),
            limited: (0..)
                .zip(levels)
                .filter(|(_, level)| level.kind != LevelKind::Exempt)
                .map(|(index, level)| (index, level.name.as_ref().into()))
                .collect(),
            tickets: HashMap::new(),
            waiting: HashMap::new(),
        })
    }
}

impl Seats for PlayedEngine {
    fn arrive(&mut self, now: u64, id: u64, class: &Class) -> Answer {
        let width = Width {
            initial_seats: class.initial_seats,
            final_seats: class.final_seats,
            additional_latency: class.latency_ns,
        };
        match self.engine.submit_hashed(class.schema, class.flow, width, now + self.ahead).outcome {
            Ok(admitted) => {
                self.tickets.insert(id, admitted.id);
                if admitted.state == State::Running {
                    return Answer::Runs;
                }
                self.waiting.insert(admitted.id, id);
                Answer::Waits
            }
            Err(Rejection::QueueFull) => Answer::Refused(Refusal::QueueFull),
            Err(Rejection::ConcurrencyLimit) => Answer::Refused(Refusal::ConcurrencyLimit),
            Err(_) => Answer::Refused(Refusal::OutOfTickets),
        }
    }

    fn finish(&mut self, now: u64, id: u64) {
        if let Some(ticket) = self.tickets.remove(&id) {
            // Refused only for what does not run, and the player knows what does.
            let _ = self.engine.finish(ticket, now + self.ahead);
        }
    }

    fn time_out(&mut self, now: u64, id: u64) {
        if let Some(ticket) = self.tickets.remove(&id) {
            self.waiting.remove(&ticket);
            // Refused only for what was granted, and there is no other thread to grant it just now.
            let _ = self.engine.cancel(ticket, Rejection::TimedOut, now + self.ahead);
        }
    }

    fn next_tick(&self) -> u64 {
        self.engine.next_due().saturating_sub(self.ahead)
    }

    fn tick(&mut self, now: u64) -> bool {
        self.engine.tick(now + self.ahead).adjusted.is_some()
    }

    fn granted(&mut self, ids: &mut Vec<u64>) {
        // What ran at once is among them; the player has its answer already.
        ids.extend(self.engine.take_grants().iter().filter_map(|ticket| self.waiting.remove(ticket)));
    }

    fn limits(&self, see: &mut dyn FnMut(usize, u64)) {
        self.engine.with_limits(|limits| {
            for (index, name) in &self.limited {
                see(*index, limits.level(name).map_or(0, |level| level.current));
            }
        });
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
                "limited": {"nominalConcurrencyShares": shares, "lendablePercent": 100, "limitResponse": response}}})
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
            for (seed, first) in [(1, 1_000_000_000), (2, 7_300_000_000), (3, 10_000_000_000), (4, 1)] {
                let schemas = plan.schemas.len() as u32;
                let (mut ours, mut theirs) = (Made::new(seed, schemas), Made::new(seed, schemas));
                play(&mut PlayedEngine::new(&plan, first).unwrap(), &mut ours, 500_000_000).unwrap();
                play(&mut StandIn::new(&plan, first), &mut theirs, 500_000_000).unwrap();
                for why in [Refusal::QueueFull, Refusal::ConcurrencyLimit, Refusal::TimeOut] {
                    assert!(
                        ours.fates.iter().any(|(_, outcome)| *outcome == Err(why)),
                        "seed {seed}: no {why:?}"
                    );
                }
                assert_eq!(ours.fates.len(), 3000);
                let differs = ours.fates.iter().zip(&theirs.fates).find(|(ours, theirs)| ours != theirs);
                assert_eq!(differs, None, "seed {seed}, {fidelity:?}: ours, then the model's");
            }
        }
    }
}
