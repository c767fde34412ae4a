//! Metrics and dumps of an engine: what they say, and that it is true.
#![cfg(not(loom))]

mod world;

use maitred::api::Objects;
use maitred::dump::LevelDump;
use maitred::engine::{ADJUSTMENT_PERIOD, Engine, Options, Rejection};
use maitred::fidelity::Fidelity;
use maitred::level::ArenaSize;
use maitred::metrics::{FlowMetrics, LevelMetrics};
use maitred::ticket::{TicketId, Width};
use world::{Kind, engine, engine_with, exempt, objects, row, small, to};

const ONE_QUEUE: Kind = Kind::Queue(1, 1, 3);
const SECOND: u64 = 1_000_000_000;

/// A level of one queue that has as many seats as asked for, beside the mandatory ones.
fn one_level(seats: u32) -> (Engine, maitred::time::Manual) {
    let (engine, clock) = engine(seats, Fidelity::Corrected);
    // All but all of the shares: catch-all has five.
    engine.apply(&objects(&[row("l", 100_000, ONE_QUEUE)])).unwrap();
    assert_eq!(level(&engine, "l").seats.current, u64::from(seats));
    (engine, clock)
}

fn level(engine: &Engine, name: &str) -> LevelDump {
    engine.dump().levels.into_iter().find(|level| &*level.name == name).unwrap()
}

fn flow(engine: &Engine, level: &str, schema: &str) -> FlowMetrics {
    let flows = engine.metrics().flows;
    flows.into_iter().find(|f| (&*f.priority_level, &*f.flow_schema) == (level, schema)).unwrap()
}

fn level_metrics(engine: &Engine, name: &str) -> LevelMetrics {
    engine.metrics().levels.into_iter().find(|level| &*level.priority_level == name).unwrap()
}

fn submit(engine: &Engine, level: &str, now: u64) -> Result<TicketId, Rejection> {
    engine.submit(&to(level, "alice"), Width::ONE, now).outcome.map(|admitted| admitted.id)
}

#[test]
fn requests_are_counted_by_level_and_schema_from_arrival_to_end() {
    let (engine, _) = one_level(1);
    let runs = submit(&engine, "l", 0).unwrap();
    let waits: Vec<_> = (1..=3).map(|s| submit(&engine, "l", s * SECOND).unwrap()).collect();
    assert_eq!(submit(&engine, "l", 4 * SECOND), Err(Rejection::QueueFull));
    let f = flow(&engine, "l", "l");
    assert_eq!((f.arrived, f.dispatched, f.finished), (5, 1, 0));
    assert_eq!((f.executing(), f.waiting(), f.rejected(Rejection::QueueFull)), (1, 3, 1));

    engine.cancel(waits[1], Rejection::TimedOut, 12 * SECOND).unwrap();
    engine.cancel(waits[2], Rejection::Cancelled, 13 * SECOND).unwrap();
    engine.finish(runs, 20 * SECOND).unwrap();
    let f = flow(&engine, "l", "l");
    assert_eq!((f.dispatched, f.finished), (2, 1), "a grant counts at once, though nobody has asked for it");
    assert_eq!((f.rejected(Rejection::TimedOut), f.rejected(Rejection::Cancelled)), (1, 1));
    assert_eq!((f.executing(), f.waiting()), (1, 0));

    engine.finish(waits[0], 50 * SECOND).unwrap();
    let f = flow(&engine, "l", "l");
    assert_eq!((f.dispatched, f.finished, f.rejected_in_all()), (2, 2, 3));
    assert_eq!((f.wait_seconds, f.service_seconds, f.rejected_wait_seconds), (19.0, 50.0, 20.0));
}

#[test]
fn requests_that_never_came_to_a_level_are_counted_with_their_reason() {
    let (engine, _) = one_level(1);
    let refused = engine.submit(&to("l", "alice"), Width::seats(0), 0).outcome;
    assert_eq!(refused.unwrap_err(), Rejection::BadArgument);
    engine.close();
    assert_eq!(submit(&engine, "l", 0), Err(Rejection::Closed));
    let f = flow(&engine, "l", "l");
    assert_eq!((f.arrived, f.rejected(Rejection::BadArgument), f.rejected(Rejection::Closed)), (2, 1, 1));
    assert_eq!((f.executing(), f.waiting()), (0, 0));
    assert!(engine.metrics().closed && engine.dump().closed);
}

#[test]
fn a_schema_that_turns_to_another_level_is_counted_there_from_then_on_and_its_old_counts_stay() {
    let (engine, _) = one_level(10);
    let before = submit(&engine, "l", 0).unwrap();
    let mut turned = objects(&[row("l", 10, ONE_QUEUE), row("m", 10, ONE_QUEUE)]);
    turned.flow_schemas[0].spec.priority_level_configuration.name = "m".into();
    engine.apply(&turned).unwrap();
    submit(&engine, "l", 1).unwrap();
    engine.finish(before, 2).unwrap();
    let (old, new) = (flow(&engine, "l", "l"), flow(&engine, "m", "l"));
    assert_eq!((old.dispatched, old.finished, old.executing()), (1, 1, 0));
    assert_eq!((new.dispatched, new.finished, new.executing()), (1, 0, 1));
    engine.apply(&Objects::default()).unwrap();
    assert_eq!(flow(&engine, "l", "l"), old, "counters stay when their objects go");
}

#[test]
fn threads_that_have_ended_are_still_counted() {
    let (engine, _) =
        engine_with(Options { arena: ArenaSize { threads: 2, ..small(64).arena }, ..small(64) });
    for _ in 0..5 {
        std::thread::scope(|s| {
            s.spawn(|| drop(engine.admit(&exempt(), Width::ONE).unwrap())).join().unwrap()
        });
    }
    let f = flow(&engine, "exempt", "exempt");
    assert_eq!((f.arrived, f.dispatched, f.finished), (5, 5, 5));
}

#[test]
fn levels_show_their_limits_and_demand() {
    let (engine, _) = engine(100, Fidelity::Corrected);
    let mut lends = row("lends", 3, ONE_QUEUE);
    lends.lendable = 50;
    engine.apply(&objects(&[lends, row("l", 2, ONE_QUEUE)])).unwrap();
    let l = level_metrics(&engine, "lends");
    assert_eq!((l.nominal_limit_seats, l.lower_limit_seats, l.upper_limit_seats), (30, 15, 130));
    assert_eq!(l.current_limit_seats, level(&engine, "lends").seats.current);
    let held: Vec<_> = (0..8).map(|_| submit(&engine, "lends", 0).unwrap()).collect();
    engine.tick(ADJUSTMENT_PERIOD);
    let l = level_metrics(&engine, "lends");
    assert_eq!((l.demand_seats_high_watermark, l.demand_seats_average, l.demand_seats_stdev), (8, 8.0, 0.0));
    assert_eq!((l.demand_seats_smoothed, l.seats_in_use, l.retry_after_seconds), (8.0, 8, 1));
    let m = engine.metrics();
    let sum = |seats: fn(&LevelMetrics) -> u64| m.levels.iter().map(seats).sum::<u64>();
    // By a seat that rounding has made.
    assert_eq!(m.over_committed_seats, sum(|l| l.current_limit_seats) - sum(|l| l.nominal_limit_seats));
    assert_eq!(m.server_concurrency_limit, 100);
    assert!(m.seat_fair_frac > 0.0 && m.memory_bytes > 1 << 20);
    engine.set_server_concurrency_limit(200);
    assert_eq!(level_metrics(&engine, "lends").nominal_limit_seats, 60);
    held.into_iter().for_each(|id| engine.finish(id, ADJUSTMENT_PERIOD).unwrap());
}

#[test]
fn a_dump_tells_each_request_with_its_schema_width_state_and_time() {
    let (engine, clock) = one_level(2);
    let width = Width { initial_seats: 1, final_seats: 2, additional_latency: SECOND };
    let lingers = engine.submit(&to("l", "alice"), width, SECOND).outcome.unwrap().id;
    engine.finish(lingers, 2 * SECOND).unwrap();
    let waits = submit(&engine, "l", 2 * SECOND + 5).unwrap();
    let runs = engine.submit(&exempt(), Width::seats(7), 3).outcome.unwrap().id;
    clock.set(2 * SECOND + 10);
    let dump = engine.dump();
    let told: Vec<_> = dump
        .requests
        .iter()
        .map(|r| (r.ticket, &*r.priority_level, &*r.flow_schema, r.state, r.since, r.until))
        .collect();
    assert_eq!(
        told,
        [
            (runs.to_bits(), "exempt", "exempt", "running", 3, None),
            (lingers.to_bits(), "l", "l", "lingering", SECOND, Some(3 * SECOND)),
            (waits.to_bits(), "l", "l", "waiting", 2 * SECOND + 5, None),
        ]
    );
    let widths: Vec<_> = dump.requests.iter().map(|r| (r.initial_seats, r.final_seats, r.queue)).collect();
    assert_eq!(widths, [(7, 0, None), (1, 2, Some(0)), (1, 0, Some(0))]);
    let l = level(&engine, "l");
    assert_eq!((l.kind, l.seats_in_use, l.waiting, l.queues, l.active_queues), ("Queue", 2, 1, 1, 1));
    assert_eq!((l.active[0].position, l.active[0].waiting, l.active[0].running), (0, 1, 0));
    assert!(l.active[0].work > 0);
}

#[test]
fn a_dump_reads_as_tables_and_serializes() {
    let (engine, clock) = one_level(1);
    submit(&engine, "l", 0).unwrap();
    submit(&engine, "l", 0).unwrap();
    clock.set(1_500_000_000);
    let text = engine.dump().to_string();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let starts = |cells: &[&str]| lines.iter().any(|line| line.starts_with(cells));
    assert!(starts(&["LEVEL", "KIND", "NOMINAL", "MIN", "MAX", "CURRENT"]), "{text}");
    assert!(starts(&["l", "Queue", "1", "1", "2", "1", "1", "1", "1", "1", "1", "0", "0"]), "{text}");
    assert!(starts(&["l", "0", "1", "1"]), "{text}");
    assert!(
        lines.iter().any(|line| line.contains(&"waiting") && line.ends_with(&["1.500000", "s"])),
        "{text}"
    );
    let json = serde_json::to_value(engine.dump()).unwrap();
    assert_eq!(json["levels"][2]["seats"]["current"], 1);
    assert_eq!(json["requests"].as_array().unwrap().len(), 2);
    assert_eq!(serde_json::to_value(engine.metrics()).unwrap()["flows"][0]["flow_schema"], "exempt");
}

#[test]
fn a_level_drains_visibly_and_its_share_comes_back_with_the_tick_after() {
    let (engine, _) = engine(100, Fidelity::Corrected);
    engine.apply(&objects(&[row("a", 45, ONE_QUEUE), row("b", 50, ONE_QUEUE)])).unwrap();
    let held = submit(&engine, "a", 0).unwrap();
    engine.apply(&objects(&[row("b", 50, ONE_QUEUE)])).unwrap();
    assert!(level(&engine, "a").draining);
    assert_eq!(level(&engine, "b").seats.nominal, 50);
    engine.finish(held, 1).unwrap();
    let tick = engine.tick(2);
    assert!(tick.adjusted.is_some());
    assert!(engine.dump().levels.iter().all(|level| &*level.name != "a"));
    let b = level(&engine, "b").seats;
    assert_eq!(b.nominal, 91);
    assert!(b.current >= 90, "{b:?}");
    assert_eq!(flow(&engine, "a", "a").finished, 1);
}

/// Forty requests of seven flows, and the ends of four: the level after it, and the order of the grants.
fn story(engine: &Engine, name: &str, from: u64) -> (LevelDump, Vec<usize>) {
    let user = |i: u64| format!("user-{}", i % 7);
    let answers = (0..40).map(|i| engine.submit(&to(name, &user(i)), Width::ONE, from + i).outcome);
    let ids: Vec<TicketId> = answers.map(|admitted| admitted.unwrap().id).collect();
    engine.note_grants();
    (0..4).for_each(|i| engine.finish(ids[i], from + 100 + i as u64).unwrap());
    let granted = engine.take_grants();
    let order = granted.iter().map(|granted| ids.iter().position(|id| id == granted).unwrap());
    (level(engine, name), order.collect())
}

#[test]
fn a_level_in_a_place_that_another_had_decides_as_one_in_a_fresh_place() {
    let told = |used: bool| {
        let (engine, _) = engine_with(Options {
            server_concurrency_limit: 4,
            fidelity: Fidelity::Kubernetes,
            // A place for one level besides the mandatory ones.
            arena: ArenaSize { levels: 3, ..small(512).arena },
            ..small(512)
        });
        if used {
            engine.apply(&objects(&[row("old", 100_000, Kind::Queue(64, 6, 50))])).unwrap();
            story(&engine, "old", 0);
            // An end may grant another.
            while let Some(request) = engine.dump().requests.first() {
                let id = TicketId::from_bits(request.ticket);
                engine.finish(id, 1000).or_else(|_| engine.cancel(id, Rejection::TimedOut, 1000)).unwrap();
            }
        }
        engine.apply(&Objects::default()).unwrap();
        engine.apply(&objects(&[row("new", 100_000, Kind::Queue(8, 2, 50))])).unwrap();
        story(&engine, "new", 5 * SECOND)
    };
    let (used, fresh) = (told(true), told(false));
    assert_eq!(used.0.queues, 8);
    assert_eq!(used, fresh);
    assert!(!used.1.is_empty());
}
