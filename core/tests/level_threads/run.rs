//! One run: threads that arrive, finish, cancel, release, resize and reshape at random, on their own tickets and on
//! those of others, and log it.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Finished, Level, Refusal, Step};
use maitred::shuffle::Deck;
use maitred::ticket::{State, TicketId, Width};

use crate::random::Random;

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub threads: usize,
    pub config: Config,
    pub fidelity: Fidelity,
    /// Seats of a request, at most.
    pub widest: u32,
    /// Some have additional latency.
    pub lingering: bool,
    /// The limit changes.
    pub resized: bool,
    /// The queues change.
    pub reshaped: bool,
    /// Requests that a thread has open, at most.
    pub in_flight: usize,
    pub operations: usize,
    pub by_steps: bool,
    /// Threads cancel and finish requests of others, too.
    pub offered: bool,
}

/// What a thread asked, where it was granted or done.
#[derive(Debug, Clone, Copy)]
pub enum Asked {
    Arrive {
        hash: u64,
        width: Width,
        outcome: Result<TicketId, Refusal>,
        queue: Option<u32>,
    },
    Finish(TicketId),
    Release(TicketId),
    Cancel(TicketId),
    Configure(Config),
    /// Something that comes to nothing: a cancel that is too late.
    Nothing,
}

#[derive(Debug, Clone)]
pub struct Event {
    pub asked: Asked,
    pub now: u64,
    /// The steps that the call made, with whom they granted. One at most is the event; the others are grants left over.
    pub steps: Vec<(Step, Vec<TicketId>)>,
}

impl Event {
    /// The step that is the event, unless it went without one.
    pub fn step(&self) -> Option<u64> {
        self.steps.iter().rev().map(|s| s.0).find(|s| !s.leftover).map(|s| s.version)
    }
}

pub struct Run {
    pub shape: Shape,
    /// For each queue, in the end, `next_dispatch_r`.
    pub charged: Vec<u64>,
    pub events: Vec<Event>,
}

impl Run {
    pub fn steps(&self) -> usize {
        self.events.iter().map(|e| e.steps.len()).sum()
    }
}

/// What the threads share beside the level.
struct World {
    shape: Shape,
    level: Level,
    begun: Instant,
    /// Tickets that anybody may cancel or finish.
    offered: [AtomicU64; 16],
    /// The configuration as arrivals know it: queues 32 | hand size 32.
    known: AtomicU64,
    /// Seconds that taken statistics cover.
    observed: Mutex<f64>,
    admitted: AtomicU64,
    ended: AtomicU64,
    /// Seats of which some thread knows that they are taken.
    held: AtomicU64,
}

struct Worker<'a> {
    world: &'a World,
    number: usize,
    cx: Context,
    random: Random,
    mine: Vec<TicketId>,
    lingering: Vec<(TicketId, u64)>,
    seats: HashMap<TicketId, u64>,
    widths: HashMap<TicketId, Width>,
    decks: HashMap<(u32, u32), Deck>,
    log: Vec<Event>,
}

pub fn run(shape: Shape, seed: u64) -> Run {
    let tickets = shape.threads * (shape.in_flight + 64) + 64;
    let arena = Arena::new(ArenaSize { tickets, queues: 1 << 13, levels: 1, threads: shape.threads + 1 });
    let level = Level::new(&arena, 0, shape.config, shape.fidelity, 0).unwrap();
    let level = if shape.by_steps { level.always_by_steps() } else { level };
    let world = World {
        shape,
        level,
        begun: Instant::now(),
        offered: Default::default(),
        known: AtomicU64::new(known(shape.config)),
        observed: Mutex::new(0.0),
        admitted: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        held: AtomicU64::new(0),
    };
    let mut events = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..shape.threads)
            .map(|number| {
                let worker = Worker {
                    world: &world,
                    number,
                    cx: context(&arena),
                    random: Random(seed << 8 | number as u64),
                    mine: Vec::new(),
                    lingering: Vec::new(),
                    seats: HashMap::new(),
                    widths: HashMap::new(),
                    decks: HashMap::new(),
                    log: Vec::new(),
                };
                scope.spawn(move || worker.work())
            })
            .collect();
        workers.into_iter().flat_map(|w| w.join().unwrap()).collect::<Vec<_>>()
    });
    world.is_at_rest(&arena, &mut events);
    world.gives_all_tickets_back(&arena, &mut events);
    let cx = &mut context(&arena);
    let charged = (0..).map_while(|i| world.level.queue(cx, i)).map(|q| q.next_dispatch_r).collect();
    Run { shape, charged, events }
}

fn context(arena: &Arc<Arena>) -> Context {
    let mut cx = Context::new(arena).unwrap();
    cx.granted = Some(Vec::new());
    cx.steps = Some(Vec::new());
    cx
}

fn known(config: Config) -> u64 {
    match config.discipline {
        Discipline::Queue { queues, hand_size, .. } => u64::from(queues) << 32 | u64::from(hand_size),
        _ => 0,
    }
}

impl World {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn offer(&self, random: &mut Random) -> &AtomicU64 {
        &self.offered[random.below(self.offered.len() as u64) as usize]
    }

    /// Invariants 2 and 4.
    fn is_at_rest(&self, arena: &Arc<Arena>, events: &mut Vec<Event>) {
        assert_eq!(self.admitted.load(Acquire), self.ended.load(Acquire), "each ticket ends once");
        let mut cx = context(arena);
        let o = self.level.occupancy(&mut cx);
        assert_eq!((o.seats_in_use, o.waiting, o.active_queues), (0, 0, 0), "{o:?}");
        if self.shape.fidelity == Fidelity::Corrected {
            assert_eq!(o.seats_waiting, 0, "{o:?}");
        }
        for position in 0..o.queues {
            let q = self.level.queue(&mut cx, position).unwrap();
            assert_eq!((q.running, q.waiting, q.work), (0, 0, 0), "queue {position}: {q:?}");
            assert_eq!(self.level.waiting_in(&mut cx, position), []);
        }
        assert_eq!(self.level.requests(&mut cx), []);
        let rest = self.level.take_demand(&mut cx, o.at).seconds;
        let observed = *self.observed.lock().unwrap() + rest;
        assert!((observed - o.at as f64 / 1e9).abs() < 1e-9, "statistics cover {observed} s of {} ns", o.at);
        let t = self.level.totals();
        assert_eq!(t.dispatched, t.finished);
        assert_eq!(t.finished + t.cancelled, self.ended.load(Acquire));
        let steps = cx.steps.take().unwrap().into_iter().map(|s| (s, Vec::new())).collect();
        events.push(Event { asked: Asked::Nothing, now: o.at, steps });
    }

    /// As many requests as there are tickets can come, and each is granted. (It is the last part of the log, too.)
    fn gives_all_tickets_back(&self, arena: &Arc<Arena>, events: &mut Vec<Event>) {
        let n = arena.ticket_capacity() as u32;
        let discipline = match self.shape.config.discipline {
            Discipline::Queue { .. } => Discipline::Queue { queues: 1, hand_size: 1, queue_length_limit: n },
            other => other,
        };
        let mut last = Worker {
            world: self,
            number: usize::MAX,
            cx: context(arena),
            random: Random(0),
            mine: Vec::new(),
            lingering: Vec::new(),
            seats: HashMap::new(),
            widths: HashMap::new(),
            decks: HashMap::new(),
            log: Vec::new(),
        };
        last.configure(Config { discipline, limit: n });
        for _ in 0..n {
            last.arrive(Width::ONE);
        }
        assert_eq!(last.mine.len(), n as usize, "tickets");
        last.come_to_rest();
        events.append(&mut last.log);
    }
}

impl Worker<'_> {
    fn work(mut self) -> Vec<Event> {
        for _ in 0..self.world.shape.operations {
            self.one();
        }
        self.come_to_rest();
        self.log
    }

    fn one(&mut self) {
        let shape = self.world.shape;
        match self.random.below(100) {
            0..=39 if self.mine.len() < shape.in_flight => {
                let width = self.width();
                self.arrive(width);
            }
            40..=79 if !self.mine.is_empty() => {
                let k = self.random.below(self.mine.len() as u64) as usize;
                self.attend(k);
            }
            80..=86 if !self.mine.is_empty() => {
                let k = self.random.below(self.mine.len() as u64) as usize;
                self.cancel(self.mine[k]);
            }
            87..=93 => {
                let offered = self.world.offer(&mut self.random).load(Acquire);
                if offered != 0 {
                    let id = TicketId::from_bits(offered);
                    if self.random.one_in(2) {
                        self.cancel(id)
                    } else {
                        self.finish(id)
                    };
                }
            }
            94..=96 => self.release(),
            97 if shape.resized => {
                let limit = match self.random.below(6) {
                    0 => 60,
                    _ => self.random.below(2 * u64::from(shape.config.limit) + 2) as u32,
                };
                self.set_limit(limit);
            }
            // One thread reshapes; and now and then, for between two changes levels come to rest.
            // It is no event of the model.
            97 if !shape.by_steps => self.take_demand(),
            98 if shape.reshaped && self.number == 0 && self.random.one_in(3) => self.reshape(),
            99 => {
                // A ticket that never was, and one that is over.
                let nobody = TicketId::from_bits(self.random.next());
                assert_eq!(self.world.level.poll(&self.cx, nobody), State::Free);
                self.finish(nobody);
            }
            _ => {}
        }
    }

    fn width(&mut self) -> Width {
        let Shape { widest, lingering, .. } = self.world.shape;
        let seats = |random: &mut Random| 1 + random.below(widest.into()) as u32;
        let mut width = Width::seats(seats(&mut self.random));
        if lingering && self.random.one_in(3) {
            width.final_seats = seats(&mut self.random);
            width.additional_latency = self.random.below(2) * 5000;
        }
        width
    }

    /// Does it, and logs it.
    fn log(&mut self, now: u64, call: impl FnOnce(&Level, &mut Context, u64) -> Asked) {
        let asked = call(&self.world.level, &mut self.cx, now);
        let mut granted = self.cx.granted.as_mut().unwrap().drain(..);
        let steps = self.cx.steps.as_mut().unwrap().drain(..);
        let steps: Vec<_> = steps.map(|s| (s, granted.by_ref().take(s.grants).collect())).collect();
        // Seated without a step.
        let rest: Vec<_> = granted.collect();
        let at_once = matches!(asked, Asked::Arrive { outcome: Ok(id), .. } if rest == [id]);
        assert!(rest.is_empty() || at_once && steps.is_empty(), "{rest:?} in {asked:?}");
        self.log.push(Event { asked, now, steps });
    }

    fn now(&mut self) -> u64 {
        let now = self.world.now();
        // Clocks of threads differ.
        if self.random.one_in(4) { now.saturating_sub(2000) } else { now }
    }

    fn arrive(&mut self, width: Width) {
        let hash = self.random.below(1 << 40);
        let known = self.world.known.load(Acquire);
        let (queues, hand_size) = ((known >> 32) as u32, known as u32);
        let hand = (queues > 0).then(|| {
            let deck = self.decks.entry((queues, hand_size));
            deck.or_insert_with(|| Deck::new(queues, hand_size).unwrap()).deal(hash)
        });
        let now = self.now();
        let mut admitted = None;
        self.log(now, |level, cx, now| {
            let arrival = level.arrive(cx, hash, hand.as_ref(), width, now);
            admitted = arrival.outcome.ok();
            let outcome = arrival.outcome.map(|a| a.id);
            Asked::Arrive { hash, width, outcome, queue: arrival.queue }
        });
        let Some(admitted) = admitted else { return };
        self.world.admitted.fetch_add(1, AcqRel);
        if admitted.state == State::Running {
            self.hold(admitted.id, width);
        }
        self.widths.insert(admitted.id, width);
        self.mine.push(admitted.id);
        if self.world.shape.offered && self.random.one_in(2) {
            self.world.offer(&mut self.random).store(admitted.id.to_bits(), Release);
        }
    }

    /// Invariant 1 as it can be seen from outside: who surely runs never holds more than the limit.
    fn hold(&mut self, id: TicketId, width: Width) {
        let Shape { config, offered, .. } = self.world.shape;
        // Where others may end it before it is counted, this cannot be seen.
        if offered || self.seats.contains_key(&id) || self.number == usize::MAX {
            return;
        }
        let seats = u64::from(width.max_seats());
        let held = self.world.held.fetch_add(seats, AcqRel) + seats;
        assert!(held <= config.limit.into(), "{held} seats of {}", config.limit);
        self.seats.insert(id, seats);
    }

    fn let_go(&mut self, id: TicketId) {
        if let Some(seats) = self.seats.remove(&id) {
            self.world.held.fetch_sub(seats, AcqRel);
        }
    }

    /// Looks after one of its own requests: ends it if it runs.
    fn attend(&mut self, k: usize) {
        let id = self.mine[k];
        match self.world.level.poll(&self.cx, id) {
            State::Running => {
                self.hold(id, self.widths[&id]);
                if self.random.one_in(2) {
                    return;
                }
                self.finish(id);
                self.mine.swap_remove(k);
            }
            State::Waiting => {}
            State::Lingering | State::Free => _ = self.mine.swap_remove(k),
        }
    }

    fn finish(&mut self, id: TicketId) {
        if self.widths.get(&id).is_none_or(|width| width.additional_latency == 0) {
            self.let_go(id);
        }
        let now = self.now();
        let mut finished = None;
        self.log(now, |level, cx, now| {
            finished = level.finish(cx, id, now).ok();
            if finished.is_some() { Asked::Finish(id) } else { Asked::Nothing }
        });
        match finished {
            Some(Finished::Released) => _ = self.world.ended.fetch_add(1, AcqRel),
            Some(Finished::Lingers(ns)) => self.lingering.push((id, ns)),
            None => {}
        }
    }

    fn release(&mut self) {
        let Some((id, _)) = self.lingering.pop() else { return };
        self.let_go(id);
        let now = self.now();
        self.log(now, |level, cx, now| {
            level.release(cx, id, now).unwrap();
            assert!(level.release(cx, id, now).is_err(), "released twice");
            Asked::Release(id)
        });
        self.world.ended.fetch_add(1, AcqRel);
    }

    fn cancel(&mut self, id: TicketId) {
        let now = self.now();
        let mut won = false;
        self.log(now, |level, cx, now| {
            won = level.cancel(cx, id, now).is_ok();
            if won { Asked::Cancel(id) } else { Asked::Nothing }
        });
        if won {
            self.world.ended.fetch_add(1, AcqRel);
            assert!(self.world.level.cancel(&mut self.cx, id, now).is_err(), "cancelled twice");
            self.log_nothing(now);
        }
    }

    fn log_nothing(&mut self, now: u64) {
        self.log(now, |_, _, _| Asked::Nothing);
    }

    fn take_demand(&mut self) {
        let now = self.now();
        let mut seconds = 0.0;
        self.log(now, |level, cx, now| {
            seconds = level.take_demand(cx, now).seconds;
            Asked::Nothing
        });
        *self.world.observed.lock().unwrap() += seconds;
    }

    fn set_limit(&mut self, limit: u32) {
        let now = self.now();
        // A change of the limit alone, of a level whose queues another thread may be changing.
        self.log(now, |level, cx, now| {
            level.set_limit(cx, limit, now);
            Asked::Configure(Config { limit, discipline: Discipline::Exempt })
        });
    }

    fn reshape(&mut self) {
        let Discipline::Queue { queues, queue_length_limit, .. } = self.world.shape.config.discipline else {
            return;
        };
        let discipline = match self.random.below(2 * u64::from(queues) + 2) as u32 {
            0 => Discipline::Reject,
            queues => Discipline::Queue {
                queues,
                hand_size: 1 + self.random.below(queues.min(4).into()) as u8,
                queue_length_limit: 1 + self.random.below(2 * u64::from(queue_length_limit)) as u32,
            },
        };
        let limit = 1 + self.random.below(2 * u64::from(self.world.shape.config.limit)) as u32;
        self.configure(Config { discipline, limit });
    }

    fn configure(&mut self, config: Config) {
        let now = self.now();
        self.log(now, |level, cx, now| {
            level.configure(cx, &config, now).unwrap();
            Asked::Configure(config)
        });
        self.world.known.store(known(config), Release);
    }

    /// Ends all that is its own. Whoever waits must be granted by somebody; where the limit is 0 nobody is, and it gives
    /// up.
    fn come_to_rest(&mut self) {
        let mut since = Instant::now();
        while !self.mine.is_empty() || !self.lingering.is_empty() {
            let before = self.mine.len() + self.lingering.len();
            while !self.lingering.is_empty() {
                self.release();
            }
            for k in (0..self.mine.len()).rev() {
                let id = self.mine[k];
                self.attend(k);
                if self.mine.get(k) == Some(&id) && self.world.level.occupancy(&mut self.cx).limit == 0 {
                    self.cancel(id);
                }
            }
            if self.world.shape.fidelity == Fidelity::Kubernetes && since.elapsed() > Duration::from_millis(5)
            {
                // After a cancel the reference grants nobody before the next event.
                let limit = self.world.level.occupancy(&mut self.cx).limit;
                self.set_limit(limit);
            }
            if self.mine.len() + self.lingering.len() < before {
                since = Instant::now();
            }
            if since.elapsed() > Duration::from_secs(60) {
                let o = self.world.level.occupancy(&mut self.cx);
                panic!("nobody grants {:?}: {o:?}", self.mine);
            }
            std::thread::yield_now();
        }
    }
}
