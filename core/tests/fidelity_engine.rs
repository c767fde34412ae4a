//! Each row of the table of differences from the reference ([`Fidelity`]), in both fidelities, through the engine.
#![cfg(not(loom))]

mod world;

use maitred::dump::{Dump, LevelDump};
use maitred::engine::{ADJUSTMENT_PERIOD, Engine, Rejection};
use maitred::fidelity::Fidelity;
use maitred::ticket::{State, TicketId, Width};
use maitred::time::Manual;
use world::{Kind, Row, exempt, objects, row, to};

const MS: u64 = 1_000_000;

/// What the story answers as the reference decides, and corrected.
#[derive(Debug, PartialEq)]
struct Both<T> {
    kubernetes: T,
    corrected: T,
}

struct World {
    engine: Engine,
    clock: Manual,
}

fn both<T>(seats: u32, rows: &[Row], story: impl Fn(&World) -> T) -> Both<T> {
    let told = |fidelity| {
        let (engine, clock) = world::engine(seats, fidelity);
        engine.apply(&objects(rows)).unwrap();
        story(&World { engine, clock })
    };
    Both { kubernetes: told(Fidelity::Kubernetes), corrected: told(Fidelity::Corrected) }
}

/// A level with all seats of the server, but for what rounding up gives others.
fn alone(kind: Kind) -> [Row; 1] {
    [row("l", 1_000_000, kind)]
}

/// As many queues, each flow in one of them.
fn queues(queues: i32, length: i32) -> Kind {
    Kind::Queue(queues, 1, length)
}

fn seats(seats: u32) -> Width {
    Width::seats(seats)
}

fn lingering(seats: u32, latency: u64) -> Width {
    Width { initial_seats: 1, final_seats: seats, additional_latency: latency }
}

impl World {
    fn try_submit(&self, user: &str, width: Width, now: u64) -> Result<(TicketId, State), Rejection> {
        self.engine.submit(&to("l", user), width, now).outcome.map(|a| (a.id, a.state))
    }

    fn submit(&self, width: Width, now: u64) -> TicketId {
        self.try_submit("alice", width, now).unwrap().0
    }

    fn answer(&self, width: Width, now: u64) -> Result<State, Rejection> {
        self.try_submit("alice", width, now).map(|a| a.1)
    }

    fn finish(&self, id: TicketId, now: u64) {
        self.engine.finish(id, now).unwrap();
    }

    fn level(&self) -> LevelDump {
        let Dump { levels, .. } = self.engine.dump();
        levels.into_iter().find(|level| &*level.name == "l").unwrap()
    }

    /// A user whose flow is in that queue of as many.
    fn user_of(&self, queue: u32) -> String {
        let users = (0..).map(|i| format!("user-{i}"));
        let in_it =
            |user: &String| self.engine.resolve(&to("l", user)).flow().hand.unwrap().cards() == [queue];
        users.into_iter().find(in_it).unwrap()
    }
}

#[test]
fn a_reject_level_without_seats_runs_one_at_a_time_or_nobody() {
    // Without shares it has no seats at any time.
    let answers = both(10, &[row("l", 0, Kind::Reject)], |w| {
        assert_eq!(w.level().seats.current, 0);
        [0, 1].map(|now| w.answer(Width::ONE, now))
    });
    let refused = Err(Rejection::ConcurrencyLimit);
    assert_eq!(answers.kubernetes, [Ok(State::Running), refused]);
    assert_eq!(answers.corrected, [refused, refused]);
}

#[test]
fn at_a_small_server_limit_a_level_with_shares_has_no_seat_or_one() {
    let names = ["l", "m", "n", "o"];
    let rows = names.map(|name| Row { lendable: 100, ..row(name, 1, queues(8, 5)) });
    let answers = both(2, &rows, |w| {
        let dump = w.engine.dump();
        let limits: Vec<_> =
            dump.levels.iter().filter(|l| names.contains(&&*l.name)).map(|l| l.seats.current).collect();
        let first =
            names.map(|name| w.engine.submit(&to(name, "alice"), Width::ONE, 0).outcome.unwrap().state);
        (limits.contains(&0), first.contains(&State::Waiting))
    });
    assert_eq!(answers, Both { kubernetes: (true, true), corrected: (false, false) });
}

#[test]
fn where_each_level_must_have_a_seat_the_sum_may_pass_the_servers_and_is_told() {
    // Exempt requests take what there is.
    let rows = ["l", "m", "n"].map(|name| Row { lendable: 100, ..row(name, 1, queues(8, 5)) });
    let answers = both(1, &rows, |w| {
        for _ in 0..50 {
            w.engine.submit(&exempt(), Width::ONE, 0).outcome.unwrap();
        }
        w.engine.tick(ADJUSTMENT_PERIOD);
        let dump = w.engine.dump();
        let currents = |exempt| {
            let levels = dump.levels.iter().filter(move |l| (l.kind == "Exempt") == exempt);
            levels.map(|l| l.seats.current).sum::<u64>()
        };
        let nominal: u64 = dump.levels.iter().map(|l| l.seats.nominal).sum();
        assert_eq!(dump.over_committed_seats, currents(true) + currents(false) - nominal);
        currents(false)
    });
    // Catch-all lends nothing.
    assert_eq!(answers, Both { kubernetes: 1, corrected: 4 });
}

#[test]
fn behind_a_wide_request_that_blocks_with_a_seat_free_a_queue_grows_without_bound_or_is_full() {
    let answers = both(2, &alone(queues(1, 2)), |w| {
        w.submit(Width::ONE, 0);
        w.submit(seats(2), 0);
        assert_eq!((w.level().seats.current, w.level().seats_in_use), (2, 1), "a seat is free");
        [0, 0].map(|now| w.answer(Width::ONE, now))
    });
    assert_eq!(answers.kubernetes, [Ok(State::Waiting), Ok(State::Waiting)]);
    assert_eq!(answers.corrected, [Ok(State::Waiting), Err(Rejection::QueueFull)]);
}

#[test]
fn after_final_seats_are_cut_the_count_of_waiting_seats_leaks_or_is_exact() {
    let answers = both(1, &alone(queues(1, 5)), |w| {
        let first = w.submit(Width::ONE, 0);
        w.submit(lingering(3, MS), 0);
        w.finish(first, MS);
        let cut = w.engine.dump().requests;
        assert_eq!((cut[0].final_seats, cut[0].additional_latency), (1, 3 * MS));
        assert_eq!(w.level().waiting, 0);
        w.level().seats_waiting
    });
    assert_eq!((answers.kubernetes, answers.corrected), (2, 0));
}

#[test]
fn a_request_wider_than_the_limit_looks_at_running_requests_or_at_seats_in_use() {
    let answers = both(2, &alone(queues(1, 5)), |w| {
        let first = w.submit(lingering(1, 10 * MS), 0);
        w.finish(first, MS);
        let wide = w.submit(seats(3), 2 * MS);
        let at_first = (w.engine.poll(wide), w.level().seats_in_use);
        w.engine.tick(11 * MS);
        (at_first, w.engine.poll(wide))
    });
    assert_eq!(answers.kubernetes, ((State::Running, 4), State::Running));
    assert_eq!(answers.corrected, ((State::Waiting, 1), State::Running));
}

#[test]
fn when_a_wide_request_gives_up_those_behind_it_wait_for_the_next_event_or_are_granted() {
    for why in [Rejection::TimedOut, Rejection::Cancelled] {
        let answers = both(2, &alone(queues(1, 5)), |w| {
            w.submit(Width::ONE, 0);
            let wide = w.submit(seats(2), 0);
            let behind = w.submit(Width::ONE, 0);
            w.engine.cancel(wide, why, MS).unwrap();
            w.engine.poll(behind)
        });
        assert_eq!(answers, Both { kubernetes: State::Waiting, corrected: State::Running });
    }
}

#[test]
fn a_queue_is_removed_under_a_lingering_request_or_when_its_seats_are_free() {
    let answers = both(4, &alone(queues(3, 5)), |w| {
        let [a, b] = [w.user_of(0), w.user_of(1)];
        let lingers = w.try_submit(&a, lingering(1, 10 * MS), 0).unwrap().0;
        let other = w.try_submit(&a, Width::ONE, 0).unwrap().0;
        let stays = w.try_submit(&b, Width::ONE, 0).unwrap().0;
        w.engine.apply(&objects(&alone(queues(1, 5)))).unwrap();
        w.finish(lingers, MS);
        w.finish(other, 2 * MS);
        let while_lingering = w.level().queues;
        w.engine.tick(11 * MS);
        assert_eq!((w.level().seats_in_use, w.engine.poll(stays)), (1, State::Running));
        (while_lingering, w.level().queues)
    });
    // The reference would crash, or take out a wrong queue, at the release.
    assert_eq!(answers, Both { kubernetes: (2, 2), corrected: (3, 2) });
}

#[test]
fn limits_are_over_committed_while_exempt_requests_hold_seats_or_what_is_left_is_divided() {
    let rows = ["l", "m"].map(|name| Row { lendable: 50, ..row(name, 50, queues(8, 5)) });
    let answers = both(100, &rows, |w| {
        for _ in 0..30 {
            w.engine.submit(&exempt(), Width::ONE, 0).outcome.unwrap();
        }
        w.clock.set(ADJUSTMENT_PERIOD);
        w.engine.tick(ADJUSTMENT_PERIOD);
        let metrics = w.engine.metrics();
        let sum: u64 = metrics.levels.iter().map(|level| level.current_limit_seats).sum();
        let nominal: u64 = metrics.levels.iter().map(|level| level.nominal_limit_seats).sum();
        assert_eq!(metrics.over_committed_seats, sum - nominal.min(sum));
        // Beyond the seat that rounding may make.
        metrics.over_committed_seats / 30
    });
    assert_eq!(answers, Both { kubernetes: 1, corrected: 0 });
}

#[test]
fn time_out_and_cancellation_have_one_reason_or_two() {
    let answers = both(1, &alone(queues(1, 5)), |w| {
        w.submit(Width::ONE, 0);
        let waits = [w.submit(Width::ONE, 0), w.submit(Width::ONE, 0)];
        w.engine.cancel(waits[0], Rejection::TimedOut, MS).unwrap();
        w.engine.cancel(waits[1], Rejection::Cancelled, MS).unwrap();
        w.level().totals.rejected.into_iter().collect::<Vec<_>>()
    });
    assert_eq!(answers.kubernetes, [("time-out", 2)]);
    assert_eq!(answers.corrected, [("cancelled", 1), ("time-out", 1)]);
}
