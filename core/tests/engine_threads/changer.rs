//! The thread that changes everything: objects, the server's limit, time. And looks, when it has changed nothing for a
//! while, whether the levels keep to their limits.

use std::sync::atomic::Ordering::SeqCst;

use maitred::api::Objects;
use maitred::fidelity::Fidelity;

use super::random::Random;
use super::world::{Kind, Row, objects, row};
use super::{WORKERS, World};

pub const LEVELS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
/// Seats of a request that is wider than any level.
pub const WIDE: u32 = 1000;

/// What it did, to see that it did something.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "printed")]
pub struct Seen {
    applied: u64,
    refused: u64,
    removed: usize,
    draining: usize,
    adjusted: u64,
    quiet_looks: u64,
    wide_alone: u64,
    /// Requests seen on their way to a level that had gone.
    misplaced: usize,
}

pub fn run(world: &World<'_>, mut random: Random) -> Seen {
    let mut seen = Seen::default();
    while world.working.load(SeqCst) > 0 {
        for _ in 0..random.below(60) {
            change(world, &mut random, &mut seen);
            note_misplaced(world, &mut seen);
            world.step();
        }
        look_while_nothing_changes(world, &mut seen);
    }
    assert!(seen.applied > 0 && seen.removed > 0 && seen.draining > 0, "{seen:?}");
    seen
}

fn change(world: &World<'_>, random: &mut Random, seen: &mut Seen) {
    let engine = world.engine;
    match random.below(8) {
        0..=4 => match engine.apply(&any_objects(random)) {
            Ok(applied) => {
                seen.applied += 1;
                seen.removed += applied.levels.removed.len();
                seen.draining += applied.levels.draining.len();
            }
            // No place or no memory while others drain.
            Err(_) => seen.refused += 1,
        },
        5 => drop(engine.set_server_concurrency_limit(random.below(200) as u32)),
        _ => seen.adjusted += u64::from(engine.tick(engine.now()).adjusted.is_some()),
    }
    engine.metrics();
}

/// Up to four levels of the six, each of any kind.
fn any_objects(random: &mut Random) -> Objects {
    let mut names = LEVELS.to_vec();
    for _ in 0..2 + random.below(3) {
        names.swap_remove(random.below(names.len() as u64) as usize);
    }
    let rows: Vec<Row> = names.into_iter().map(|name| any_row(name, random)).collect();
    objects(&rows)
}

fn any_row(name: &str, random: &mut Random) -> Row {
    let kind = match random.below(5) {
        0 => Kind::Reject,
        1 => Kind::Queue(1, 1, 1 + random.below(20) as i32),
        _ => {
            let queues = 1 + random.below(64) as i32;
            Kind::Queue(queues, 1 + random.below(queues.min(8) as u64) as i32, 1 + random.below(8) as i32)
        }
    };
    let shares = random.below(50) as i32;
    Row { lendable: random.below(101) as i32, by_user: !random.one_in(4), ..row(name, shares, kind) }
}

/// Schemas lead to the level of their name.
fn note_misplaced(world: &World<'_>, seen: &mut Seen) {
    let dump = world.engine.dump();
    let misplaced = dump.requests.iter().filter(|request| request.priority_level != request.flow_schema);
    let before = world.misplaced.lock().unwrap().len();
    world.misplaced.lock().unwrap().extend(misplaced.map(|request| request.ticket));
    seen.misplaced += world.misplaced.lock().unwrap().len() - before;
}

/// When all that ran before has ended, and limits stay, seats in use keep to them.
fn look_while_nothing_changes(world: &World<'_>, seen: &mut Seen) {
    let engine = world.engine;
    // The first time levels drain, and go; the second time limits stay.
    if all_end_what_they_hold(world).is_none() || all_end_what_they_hold(world) != Some(false) {
        return;
    }
    // What lingers since then ends before its time.
    if engine.tick(engine.now() + 1_000_000).adjusted.is_some() {
        return;
    }
    for _ in 0..20 {
        if engine.tick(engine.now()).adjusted.is_some() {
            return;
        }
        let dump = engine.dump();
        for level in dump.levels.iter().filter(|level| level.kind != "Exempt") {
            let (seats, limit) = (u64::from(level.seats_in_use), level.seats.current);
            // The reference lets wide requests run beside seats that linger.
            if seats > limit && engine.options().fidelity == Fidelity::Corrected {
                // One that is wider than the limit, alone.
                assert!(
                    alone(level.seats_in_use, limit),
                    "{} holds {seats} of {limit} seats\n{dump}",
                    level.name
                );
                seen.wide_alone += 1;
            }
        }
        seen.quiet_looks += 1;
        world.step();
    }
}

/// Has all workers end all that they hold, and says whether limits changed meanwhile. None if a worker works no more.
fn all_end_what_they_hold(world: &World<'_>) -> Option<bool> {
    let cleaned = world.cleaned.load(SeqCst);
    world.cleanings.fetch_add(1, SeqCst);
    let mut adjusted = false;
    while world.cleaned.load(SeqCst) < cleaned + WORKERS {
        adjusted |= world.engine.tick(world.engine.now()).adjusted.is_some();
        std::thread::yield_now();
        if world.working.load(SeqCst) < WORKERS {
            return None;
        }
    }
    Some(adjusted)
}

/// Widths that workers ask for: 1, 3 and [`WIDE`]; and 2 are left where final seats were cut.
fn alone(seats: u32, limit: u64) -> bool {
    [1, 2, 3, WIDE].contains(&seats) && u64::from(seats) > limit
}
