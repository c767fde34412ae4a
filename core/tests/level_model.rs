//! Driven by one thread, the lock-free level decides as the sequential model does: same outcome, same queue, same grants,
//! same R, same queues, after every event.
#![cfg(not(loom))]

mod model;

use std::collections::{BTreeMap, HashMap};

use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Finished, Level, Refusal};
use maitred::shuffle::Deck;
use maitred::ticket::{State, TicketId, Width};
use model::{EPOCH, Model, Outcome};
use proptest::prelude::*;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What a story is made of.
#[derive(Debug, Clone, Copy)]
struct Shape {
    fidelity: Fidelity,
    queues: u32,
    hand_size: u8,
    queue_length_limit: u32,
    limit: u32,
    /// Initial and final seats up to this.
    widest: u32,
    latency: bool,
    flows: u64,
    /// Changes of configuration: none, of the limit, or of everything.
    changes: Changes,
    r0: u64,
    events: usize,
    by_steps: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Changes {
    None,
    Limit,
    All,
}

struct Both {
    shape: Shape,
    config: Config,
    level: Level,
    cx: Context,
    model: Model,
    tickets: HashMap<u64, TicketId>,
    ids: HashMap<TicketId, u64>,
    running: Vec<u64>,
    waiting: Vec<u64>,
    timers: BTreeMap<(u64, u64), u64>,
    timers_set: u64,
    now: u64,
    next_id: u64,
}

fn model_config(c: Config, fidelity: Fidelity) -> model::Config {
    model::Config {
        discipline: match c.discipline {
            Discipline::Exempt => model::Discipline::Exempt,
            Discipline::Reject => model::Discipline::Reject,
            Discipline::Queue { queues, hand_size, queue_length_limit } => {
                model::Discipline::Queue { queues, hand_size: hand_size.into(), queue_length_limit }
            }
        },
        limit: c.limit,
        fidelity: match fidelity {
            Fidelity::Kubernetes => model::Fidelity::Kubernetes,
            Fidelity::Corrected => model::Fidelity::Corrected,
        },
    }
}

fn discipline(queues: u32, hand_size: u8, queue_length_limit: u32) -> Discipline {
    match queues {
        0 => Discipline::Reject,
        _ => Discipline::Queue { queues, hand_size: hand_size.min(queues.min(15) as u8), queue_length_limit },
    }
}

impl Both {
    fn new(shape: Shape) -> Both {
        let queues = (shape.queues as usize * 8).max(1 << 12);
        let arena = Arena::new(ArenaSize { tickets: 1 << 13, queues, levels: 2, threads: 1 });
        let mut cx = Context::new(&arena).unwrap();
        let config = Config {
            discipline: discipline(shape.queues, shape.hand_size, shape.queue_length_limit),
            limit: shape.limit,
        };
        let mut level = Level::new(&arena, 1, config, shape.fidelity, 0).unwrap();
        if shape.by_steps {
            level = level.always_by_steps();
        }
        let level = level.starting_at_r(&mut cx, shape.r0);
        let mut model = Model::new(model_config(config, shape.fidelity));
        model.set_r(shape.r0);
        cx.granted = Some(Vec::new());
        Both {
            shape,
            config,
            level,
            cx,
            model,
            tickets: HashMap::new(),
            ids: HashMap::new(),
            running: Vec::new(),
            waiting: Vec::new(),
            timers: BTreeMap::new(),
            timers_set: 0,
            now: 0,
            next_id: 0,
        }
    }

    fn arrive(&mut self, hash: u64, width: Width) {
        let id = self.next_id;
        self.next_id += 1;
        let hand = match self.config.discipline {
            Discipline::Queue { queues, hand_size, .. } => {
                Some(Deck::new(queues, hand_size).unwrap().deal(hash))
            }
            _ => None,
        };
        let ours = self.level.arrive(&mut self.cx, hash, hand.as_ref(), width, self.now);
        let w = (width.initial_seats, width.final_seats, width.additional_latency);
        let (outcome, place) = self.model.arrive(self.now, id, hash, w);
        let said = match ours.outcome {
            Ok(admitted) => {
                self.tickets.insert(id, admitted.id);
                self.ids.insert(admitted.id, id);
                if admitted.state == State::Running {
                    Outcome::Run
                } else {
                    self.waiting.push(id);
                    Outcome::Wait
                }
            }
            Err(Refusal::QueueFull) => Outcome::QueueFull,
            Err(Refusal::ConcurrencyLimit) => Outcome::ConcurrencyLimit,
            Err(Refusal::OutOfTickets) => panic!("the arena is large enough"),
        };
        assert_eq!(said, outcome, "outcome of {id}");
        assert_eq!(ours.queue.map_or(-1, |q| q as i32), place, "queue of {id}");
    }

    fn finish(&mut self, k: usize) {
        let id = self.running.swap_remove(k);
        let finished = self.level.finish(&mut self.cx, self.tickets[&id], self.now).unwrap();
        let due = self.model.finish(self.now, id);
        match finished {
            Finished::Released => assert_eq!(due, None),
            Finished::Lingers(ns) => {
                assert_eq!(due, Some(self.now + ns));
                self.timers.insert((self.now + ns, self.timers_set), id);
                self.timers_set += 1;
            }
        }
    }

    fn cancel(&mut self, k: usize) {
        let id = self.waiting.swap_remove(k);
        self.level.cancel(&mut self.cx, self.tickets[&id], self.now).unwrap();
        self.model.cancel(self.now, id);
    }

    fn release(&mut self) {
        let ((due, _), id) = self.timers.pop_first().unwrap();
        self.now = due;
        self.level.release(&mut self.cx, self.tickets[&id], due).unwrap();
        self.model.release(due, id);
    }

    fn configure(&mut self, config: Config) {
        self.config = config;
        self.level.configure(&mut self.cx, &config, self.now).unwrap();
        self.model.reconfigure(self.now, model_config(config, self.shape.fidelity));
    }

    /// Both agree on everything that can be seen.
    fn compare(&mut self, queues_too: bool) {
        let granted: Vec<u64> = self.cx.granted.as_mut().unwrap().drain(..).map(|t| self.ids[&t]).collect();
        assert_eq!(granted, self.model.granted(), "grants");
        for id in &granted {
            self.waiting.retain(|w| w != id);
        }
        self.running.extend(&granted);
        let o = self.level.occupancy(&mut self.cx);
        let m = &self.model;
        assert_eq!(
            (o.waiting, o.seats_in_use, o.seats_waiting, o.arrivals, o.queues as usize),
            (m.waiting(), m.seats_in_use(), u64::from(m.seats_waiting()), m.hands_dealt(), m.queues().len()),
            "counts"
        );
        assert_eq!(o.r.wrapping_sub(m.r()) % EPOCH, 0, "R is {}, the model's {}", o.r, m.r());
        let t = self.level.totals();
        assert_eq!(t.dispatched - t.finished, u64::from(m.executing()), "running");
        if !queues_too {
            return;
        }
        assert_eq!(self.level.last_granted(&mut self.cx).map_or(-1, i64::from), m.robin(), "scan position");
        let wound_back = o.r != m.r();
        for (i, q) in m.queues().iter().enumerate() {
            let ours = self.level.queue(&mut self.cx, i as u32).expect("a queue for each of the model's");
            let counts = (ours.running as usize, ours.waiting as usize);
            assert_eq!(counts, (q.running.len(), q.waiting.len()), "queue {i}");
            assert_eq!(ours.work, q.work_waiting, "work waiting in queue {i}");
            if !wound_back {
                assert_eq!(ours.next_dispatch_r, q.next_dispatch_r, "next_dispatch_r of queue {i}");
            }
        }
    }
}

/// Plays a random story on both; the end is empty.
fn play(shape: Shape, seed: u64) {
    let mut r = Random(seed);
    let mut b = Both::new(shape);
    let hashes: Vec<u64> = (0..shape.flows).map(|_| r.next()).collect();
    for event in 0..shape.events {
        if !r.one_in(4) {
            let pause = if r.one_in(10) { 50_000_000 } else { 2_000_000 };
            b.now += r.below(pause);
        }
        while b.timers.first_key_value().is_some_and(|(t, _)| t.0 <= b.now) {
            let now = b.now;
            b.release();
            b.compare(event % 8 == 0);
            b.now = now.max(b.now);
        }
        match r.below(20) {
            0..=8 => {
                let seats = |r: &mut Random| match r.below(4) {
                    0 => 1 + r.below(shape.widest.into()) as u32,
                    _ => 1 + r.below(u64::from(shape.widest.min(3))) as u32,
                };
                let mut width = Width::seats(seats(&mut r));
                if shape.latency && r.one_in(3) {
                    width.final_seats = seats(&mut r);
                    let most = r.below(3) * 20_000_000;
                    width.additional_latency = r.below(most + 1);
                }
                let flow = r.below(shape.flows) as usize;
                b.arrive(hashes[flow], width);
            }
            9..=16 if !b.running.is_empty() => {
                let k = r.below(b.running.len() as u64) as usize;
                b.finish(k);
            }
            17 if !b.waiting.is_empty() => {
                let k = r.below(b.waiting.len() as u64) as usize;
                b.cancel(k);
            }
            18 if shape.changes != Changes::None => {
                let limit = r.below(2 * u64::from(shape.limit) + 2) as u32;
                b.configure(Config { limit, ..b.config });
            }
            19 if shape.changes == Changes::All => {
                let queues = r.below(2 * u64::from(shape.queues) + 2) as u32;
                let hand = 1 + r.below(6) as u8;
                let length = 1 + r.below(u64::from(shape.queue_length_limit) + 3) as u32;
                let config = Config { discipline: discipline(queues, hand, length), ..b.config };
                b.configure(config);
            }
            _ => continue,
        }
        b.compare(event % 8 == 0);
    }
    end(&mut b);
}

/// Everything ends, and nothing is left.
fn end(b: &mut Both) {
    if b.config.limit == 0 {
        b.configure(Config { limit: 1, ..b.config });
        b.compare(true);
    }
    while !b.running.is_empty() || !b.timers.is_empty() || !b.waiting.is_empty() {
        b.now += 1000;
        if !b.running.is_empty() {
            b.finish(0);
        } else if !b.timers.is_empty() {
            b.release();
        } else {
            b.cancel(0);
        }
        b.compare(false);
    }
    b.compare(true);
    let o = b.level.occupancy(&mut b.cx);
    assert_eq!((o.waiting, o.seats_in_use, o.active_queues), (0, 0, 0), "at rest");
    if b.shape.fidelity == Fidelity::Corrected {
        assert_eq!(o.seats_waiting, 0, "at rest");
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    let fidelity = prop_oneof![Just(Fidelity::Corrected), Just(Fidelity::Kubernetes)];
    let changes = prop_oneof![Just(Changes::None), Just(Changes::Limit), Just(Changes::All)];
    let limit = prop_oneof![0u32..12, 1u32..100, 600u32..1_000_000];
    let r0 = prop_oneof![Just(0u64), Just(EPOCH + EPOCH / 2 - 5_000_000)];
    let queues = prop_oneof![0u32..8, 1u32..80];
    (
        (fidelity, queues, 1u8..8, 1u32..12, limit),
        (prop_oneof![Just(1u32), 1u32..6, 1u32..40], any::<bool>(), 1u64..12, changes, r0, any::<bool>()),
    )
        .prop_map(|((fidelity, queues, hand_size, queue_length_limit, limit), rest)| {
            let (widest, latency, flows, changes, r0, by_steps) = rest;
            // At large limits only wide requests ever wait.
            let widest = if limit >= 600 { limit } else { widest };
            Shape {
                fidelity,
                queues,
                hand_size,
                queue_length_limit,
                limit,
                widest,
                latency,
                flows,
                changes,
                r0,
                events: 300,
                by_steps,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_story_is_decided_as_the_model_decides_it(shape in shapes(), seed in any::<u64>()) {
        play(shape, seed);
    }
}

fn cases() -> u32 {
    std::env::var("MAITRED_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

fn plain(fidelity: Fidelity) -> Shape {
    Shape {
        fidelity,
        queues: 64,
        hand_size: 8,
        queue_length_limit: 50,
        limit: 10,
        widest: 1,
        latency: false,
        flows: 20,
        changes: Changes::None,
        r0: 0,
        events: 0,
        by_steps: false,
    }
}

#[test]
fn a_thousand_grants_on_one_raise_of_the_limit_are_the_models_in_its_order() {
    for fidelity in [Fidelity::Corrected, Fidelity::Kubernetes] {
        let mut b = Both::new(Shape { limit: 0, queue_length_limit: 200, ..plain(fidelity) });
        for i in 0..1000u64 {
            b.now += 1000;
            b.arrive((i % 20) << 17 ^ 0x1234_5678_9ABC, Width::seats(1 + (i % 3) as u32));
            b.compare(false);
        }
        assert_eq!(b.waiting.len(), 1000);
        b.configure(Config { limit: 5000, ..b.config });
        assert_eq!(b.model.granted().len(), 1000);
        b.compare(true);
        end(&mut b);
    }
}

#[test]
fn more_queues_than_the_packed_word_can_say_are_served_the_same() {
    for fidelity in [Fidelity::Corrected, Fidelity::Kubernetes] {
        let shape = Shape {
            queues: 20_000,
            hand_size: 4,
            flows: 500,
            events: 400,
            widest: 3,
            latency: true,
            ..plain(fidelity)
        };
        let mut b = Both::new(shape);
        let mut r = Random(7);
        for event in 0..shape.events {
            b.now += r.below(1_000_000);
            while b.timers.first_key_value().is_some_and(|(t, _)| t.0 <= b.now) {
                let now = b.now;
                b.release();
                b.compare(false);
                b.now = now.max(b.now);
            }
            if r.below(5) < 3 {
                b.arrive(r.below(shape.flows) << 20, Width::seats(1 + r.below(3) as u32));
            } else if !b.running.is_empty() {
                b.finish(0);
            } else {
                continue;
            }
            b.compare(event == shape.events - 1);
        }
        end(&mut b);
    }
}

#[test]
fn hands_of_fifteen_cards_are_dealt_and_offset_as_the_models() {
    for fidelity in [Fidelity::Corrected, Fidelity::Kubernetes] {
        play(Shape { queues: 16, hand_size: 15, limit: 3, events: 2000, ..plain(fidelity) }, 15);
    }
}

#[test]
fn more_arrivals_than_the_packed_word_counts_keep_their_offset() {
    for fidelity in [Fidelity::Corrected, Fidelity::Kubernetes] {
        let mut b = Both::new(Shape { limit: 100, ..plain(fidelity) });
        for i in 0..10_000u64 {
            b.now += 777;
            b.arrive(i % 3, Width::ONE);
            b.compare(i % 1000 == 0);
            b.finish(0);
            b.compare(false);
        }
    }
}

#[test]
fn a_level_that_is_resized_for_ever_gives_its_memory_back() {
    let mut b = Both::new(Shape { queues: 64, limit: 2, flows: 40, ..plain(Fidelity::Corrected) });
    let mut r = Random(3);
    for round in 0..60u32 {
        let queues = if round % 2 == 0 { 16 } else { 64 };
        b.configure(Config { discipline: discipline(queues, 4, 50), ..b.config });
        b.compare(true);
        for _ in 0..150 {
            b.now += 500_000;
            if r.below(2) == 0 {
                b.arrive(r.next(), Width::ONE);
            } else if !b.running.is_empty() {
                b.finish(0);
            } else {
                continue;
            }
            b.compare(false);
        }
        while !b.running.is_empty() {
            b.now += 1;
            b.finish(0);
            b.compare(false);
        }
    }
}
