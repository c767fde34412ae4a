//! Threads admit, wait, time out, cancel, finish and linger, while another replaces objects, changes the server's limit and
//! ticks. At rest everything is as it was.
//!
//! `MAITRED_SEED` chooses the story (each run prints its own), `MAITRED_STEPS` its length: steps of each worker, 100 000 if not
//! given. Nothing waits for a time to be right; a run that stands still is ended with a dump.
#![cfg(not(loom))]

#[path = "../world/mod.rs"]
mod world;

mod changer;
mod random;
mod watchdog;
mod worker;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use maitred::api::Objects;
use maitred::engine::{Engine, Options, Rejection, Ticket};
use maitred::fidelity::Fidelity;
use maitred::level::ArenaSize;
use maitred::ticket::{TicketId, Width};
use random::Random;

const WORKERS: usize = 5;
/// Fewer than there are threads: some take turns at one context.
const OWN_CONTEXTS: usize = 4;
const TICKETS: usize = 400;
/// How many times a worker starts anew on a fresh thread.
const LIVES: u64 = 8;

/// What all threads know.
struct World<'a> {
    engine: &'a Engine,
    /// Tickets that one thread got and another ends.
    handed_on: Mutex<Vec<Ticket<'a>>>,
    /// Tickets that the changer has seen in a level of another name than their schema's. Requests on their way to a level
    /// that has just gone may be seen so; none that was admitted.
    misplaced: Mutex<HashSet<u64>>,
    /// Steps made, for the watchdog.
    steps: AtomicU64,
    /// Workers that still work.
    working: AtomicUsize,
    /// Counts up when workers are to end all that they hold; and how many have.
    cleanings: AtomicU64,
    cleaned: AtomicUsize,
    tally: Mutex<Tally>,
}

/// What the workers were told.
#[derive(Default)]
struct Tally {
    arrived: u64,
    finished: u64,
    rejected: HashMap<Rejection, u64>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.arrived += other.arrived;
        self.finished += other.finished;
        other.rejected.into_iter().for_each(|(why, n)| *self.rejected.entry(why).or_default() += n);
    }

    fn rejected(&mut self, why: Rejection) {
        *self.rejected.entry(why).or_default() += 1;
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|given| given.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn while_everything_changes_every_request_ends_once_and_nothing_is_lost() {
    for (i, fidelity) in [Fidelity::Corrected, Fidelity::Kubernetes].into_iter().enumerate() {
        let seed = from_environment("MAITRED_SEED").unwrap_or(20_260_131) + i as u64;
        let steps = from_environment("MAITRED_STEPS").unwrap_or(100_000);
        println!("MAITRED_SEED={seed} MAITRED_STEPS={steps} {fidelity:?}");
        run(seed, steps, fidelity);
    }
}

fn run(seed: u64, steps: u64, fidelity: Fidelity) {
    let engine = Engine::new(Options {
        server_concurrency_limit: 40,
        fidelity,
        cached_flows: 64,
        // Five places besides those of the mandatory levels, for six levels that come and go: places are used anew.
        arena: ArenaSize { tickets: TICKETS, queues: 1024, levels: 7, threads: OWN_CONTEXTS },
        clock_lag: if seed.is_multiple_of(2) { 0 } else { 1000 },
        ..Options::default()
    })
    .unwrap();
    let world = World {
        engine: &engine,
        handed_on: Mutex::default(),
        misplaced: Mutex::default(),
        steps: AtomicU64::new(0),
        working: AtomicUsize::new(WORKERS),
        cleanings: AtomicU64::new(0),
        cleaned: AtomicUsize::new(0),
        tally: Mutex::default(),
    };
    std::thread::scope(|s| {
        let watchdog = watchdog::start(s, &world);
        let changer = s.spawn(|| changer::run(&world, Random::new(seed)));
        let workers: Vec<_> = (1..=WORKERS as u64)
            .map(|number| {
                let world = &world;
                s.spawn(move || {
                    worker::run(world, &Random::new(seed.wrapping_mul(1000) + number), steps / LIVES)
                })
            })
            .collect();
        let ended = workers.into_iter().map(|worker| worker.join()).collect::<Result<Vec<_>, _>>();
        let seen = changer.join();
        drop(watchdog);
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        println!("{:?}", seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    drop(world.handed_on.into_inner().unwrap());
    all_is_at_rest(&engine);
    all_was_counted(&engine, world.tally.into_inner().unwrap());
    all_tickets_are_back(&engine);
}

fn all_is_at_rest(engine: &Engine) {
    engine.tick(u64::MAX - 1);
    let dump = engine.dump();
    assert_eq!(dump.requests, [], "{dump}");
    for level in &dump.levels {
        let held = (level.seats_in_use, level.waiting, level.active_queues, level.active.len());
        assert_eq!(held, (0, 0, 0, 0), "{dump}");
        // But for what the reference counts too much.
        assert!(level.seats_waiting == 0 || engine.options().fidelity == Fidelity::Kubernetes, "{dump}");
        assert_eq!(level.totals.dispatched, level.totals.finished, "{dump}");
    }
    let applied = engine.apply(&Objects::default()).unwrap();
    assert!(applied.levels.draining.is_empty());
    let left = engine.dump();
    assert!(left.levels.iter().all(|level| ["exempt", "catch-all"].contains(&&*level.name)), "{left}");
}

fn all_was_counted(engine: &Engine, tally: Tally) {
    let flows = engine.metrics().flows;
    let sum = |of: fn(&maitred::metrics::FlowMetrics) -> u64| flows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|f| f.arrived), tally.arrived);
    assert_eq!((sum(|f| f.dispatched), sum(|f| f.finished)), (tally.finished, tally.finished));
    for why in Rejection::ALL {
        let counted: u64 = flows.iter().map(|f| f.rejected(why)).sum();
        assert_eq!(counted, tally.rejected.get(&why).copied().unwrap_or(0), "{why:?}");
    }
    assert!(flows.iter().all(|f| f.executing() == 0 && f.waiting() == 0));
    println!("{} requests, {} ran, {:?}", tally.arrived, tally.finished, tally.rejected);
}

fn all_tickets_are_back(engine: &Engine) {
    let tickets = std::iter::from_fn(|| engine.admit(&world::exempt(), Width::ONE).ok());
    let there = tickets.collect::<Vec<_>>().len();
    assert!(there >= TICKETS, "{there}");
    assert_eq!(engine.dump().requests.len(), 0);
}

impl World<'_> {
    /// Looks at a request that was admitted.
    fn is_in_its_place(&self, id: TicketId) {
        let misplaced = self.misplaced.lock().unwrap().contains(&id.to_bits());
        assert!(!misplaced, "{id:?} was admitted to a level that is not its own");
    }

    fn step(&self) {
        self.steps.fetch_add(1, SeqCst);
    }
}
