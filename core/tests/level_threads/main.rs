//! Many threads on one level, and what must hold while they work and when they are done.
//!
//! Each thread logs what it asked and was answered, and every step of the level has a number. So afterwards a run in which
//! each event is a step replays exactly through the sequential model ([`replay`]); and one that also takes the short way,
//! where events have no order to go by, is held against the invariants ([`audit`]).
//!
//! `MAITRED_STRESS_SECONDS` (10) is the time for all of it, `MAITRED_SEED` (1) where the seeds begin. Built with
//! `--cfg maitred_points`, threads also yield at random at the labelled points.
#![cfg(not(loom))]

mod audit;
#[path = "../model/mod.rs"]
mod model;
mod random;
mod replay;
mod run;
#[path = "../watch/mod.rs"]
mod watch;

use std::time::{Duration, Instant};

use maitred::fidelity::Fidelity;
use maitred::level::{Config, Discipline};
use run::{Run, Shape};

fn queue(queues: u32, hand_size: u8, queue_length_limit: u32) -> Discipline {
    Discipline::Queue { queues, hand_size, queue_length_limit }
}

/// Shapes in which something differs that the protocol cares about: one queue or many, short or long lines, narrow or
/// wider than the level, seats that linger, limits and queues that come and go.
fn shapes() -> Vec<Shape> {
    let plain = Shape {
        threads: 2,
        config: Config { discipline: queue(1, 1, 3), limit: 1 },
        fidelity: Fidelity::Corrected,
        widest: 1,
        lingering: false,
        resized: false,
        reshaped: false,
        in_flight: 8,
        operations: 1500,
        by_steps: false,
        offered: true,
    };
    let of = |threads, discipline, limit, widest| Shape {
        threads,
        config: Config { discipline, limit },
        widest,
        ..plain
    };
    let kubernetes = Fidelity::Kubernetes;
    vec![
        of(2, queue(1, 1, 3), 1, 1),
        Shape { offered: false, ..of(3, queue(2, 1, 50), 2, 1) },
        Shape { offered: false, ..of(4, queue(8, 3, 4), 3, 3) },
        Shape { offered: false, lingering: true, ..of(4, queue(3, 2, 9), 4, 2) },
        of(2, queue(64, 8, 50), 16, 1),
        Shape { in_flight: 1, ..of(2, queue(64, 8, 50), 3, 1) },
        Shape { lingering: true, ..of(8, queue(4, 2, 6), 4, 2) },
        Shape { resized: true, ..of(4, queue(8, 8, 1), 6, 8) },
        Shape { lingering: true, resized: true, fidelity: kubernetes, ..of(3, queue(70, 4, 50), 8, 10) },
        Shape { reshaped: true, ..of(3, queue(20, 3, 5), 4, 2) },
        Shape { reshaped: true, resized: true, lingering: true, ..of(4, queue(3, 2, 4), 3, 5) },
        Shape { reshaped: true, lingering: true, fidelity: kubernetes, ..of(4, queue(5, 2, 4), 3, 3) },
        Shape { reshaped: true, in_flight: 1, ..of(4, queue(4, 1, 4), 2, 1) },
        Shape { operations: 600, ..of(4, queue(1100, 5, 10), 5, 2) },
        Shape { resized: true, ..of(2, queue(6, 2, 3), 0, 2) },
        Shape { lingering: true, resized: true, ..of(4, Discipline::Reject, 5, 6) },
        Shape { lingering: true, ..of(4, Discipline::Exempt, 0, 1000) },
    ]
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// Runs all shapes round and round for half of the time, each run with a seed of its own.
fn stress(by_steps: bool, check: impl Fn(&Run)) {
    #[cfg(maitred_points)]
    maitred::level::hook(random::dawdle);
    let time = Duration::from_millis(number("MAITRED_STRESS_SECONDS", 10) * 500);
    let mut seed = number("MAITRED_SEED", 1);
    let begun = Instant::now();
    let (mut events, mut steps) = (0, 0);
    let mut runs = 0;
    'all: loop {
        for (i, shape) in shapes().into_iter().enumerate() {
            // Each shape at least once.
            if runs >= shapes().len() && begun.elapsed() > time {
                break 'all;
            }
            let shape = Shape { by_steps, ..shape };
            println!("shape {i} seed {seed}");
            let _watch = watch::watch(format!("shape {i} seed {seed}"));
            let run = run::run(shape, seed);
            events += run.events.len();
            steps += run.steps();
            check(&run);
            runs += 1;
            seed += 1;
        }
    }
    println!("{runs} runs, {events} events, {steps} steps");
    assert!(steps > 0);
}

#[test]
fn where_each_event_is_a_step_the_run_replays_exactly_in_the_sequential_model() {
    stress(true, replay::replay);
}

#[test]
fn with_the_short_way_seats_are_kept_and_nobody_overtakes_or_is_forgotten_or_refused_too_soon() {
    stress(false, audit::audit);
}
