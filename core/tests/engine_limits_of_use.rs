//! The engine at the edges of its contract: wrong handles, small memory, odd options and times, other threads' calls.
#![cfg(not(loom))]

mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use maitred::api::{Objects, builtin};
use maitred::engine::{ADJUSTMENT_PERIOD, Admission, Engine, Options, Rejection, Ticker};
use maitred::fidelity::Fidelity;
use maitred::level::ArenaSize;
use maitred::ticket::{State, TicketId, Width};
use world::{Kind, engine, engine_with, exempt, objects, row, small, to, within};

const QUEUES: Kind = Kind::Queue(8, 2, 50);

fn hold(engine: &Engine, level: &str) -> TicketId {
    let admitted = engine.submit(&to(level, "alice"), Width::ONE, engine.now()).outcome.unwrap();
    assert_eq!(admitted.state, State::Running);
    admitted.id
}

#[test]
fn a_handle_of_another_engine_is_refused_and_ends_nobodys_request() {
    let [(a, _), (b, _)] = [(); 2].map(|()| engine(100, Fidelity::Corrected));
    for engine in [&a, &b] {
        engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    }
    let (of_a, of_b) = (hold(&a, "l"), hold(&b, "l"));
    assert_eq!(b.finish(of_a, 1), Err(Rejection::BadTicket));
    assert_eq!(b.cancel(of_a, Rejection::Cancelled, 1), Err(Rejection::BadTicket));
    assert_eq!(b.poll(of_a), State::Free);
    assert_eq!(b.granted_at(of_a), None);
    assert_eq!(b.poll(of_b), State::Running);
}

#[test]
fn any_number_may_be_tried_as_a_handle() {
    let (engine, _) = engine(100, Fidelity::Corrected);
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    let held = hold(&engine, "l");
    for bits in
        (0..64).map(|shift| 1 << shift).chain([0, 1, u64::MAX, u64::MAX >> 1, held.to_bits() ^ 1 << 30])
    {
        let id = TicketId::from_bits(bits);
        assert_eq!(engine.finish(id, 1), Err(Rejection::BadTicket), "{bits:x}");
        assert_eq!(engine.cancel(id, Rejection::TimedOut, 1), Err(Rejection::BadTicket), "{bits:x}");
        assert_eq!(engine.poll(id), State::Free, "{bits:x}");
    }
    engine.finish(held, 1).unwrap();
    assert_eq!(engine.finish(held, 1), Err(Rejection::BadTicket));
    assert_eq!(engine.cancel(held, Rejection::Cancelled, 1), Err(Rejection::BadTicket));
}

#[test]
fn a_flow_of_another_engine_is_resolved_anew() {
    let (a, _) = engine(100, Fidelity::Corrected);
    let (b, _) = engine(100, Fidelity::Corrected);
    a.apply(&objects(&[row("a", 10, QUEUES), row("m", 10, QUEUES)])).unwrap();
    b.apply(&objects(&[row("m", 10, QUEUES), row("z", 10, Kind::Reject)])).unwrap();
    let flow = a.resolve(&to("m", "alice"));
    let (handed, direct) = (b.submit_flow(&flow, Width::ONE, 0), b.submit(&to("m", "alice"), Width::ONE, 0));
    assert_eq!((handed.schema, handed.level), (direct.schema, direct.level));
}

#[test]
fn tickets_that_one_thread_gave_back_are_there_for_the_others() {
    let (engine, _) =
        engine_with(Options { arena: ArenaSize { tickets: 4, ..small(256).arena }, ..small(256) });
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    let round = || {
        let held: Vec<_> = (0..4).map(|_| engine.submit(&to("l", "alice"), Width::ONE, 0).outcome).collect();
        held.iter().flatten().for_each(|h| engine.finish(h.id, 0).unwrap());
        held.iter().filter(|h| h.is_ok()).count()
    };
    std::thread::scope(|s| {
        let (go_on, wait) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let round = &round;
        s.spawn(move || {
            tell.send(round()).unwrap();
            let _ = wait.recv();
        });
        assert_eq!(told.recv(), Ok(4));
        assert_eq!(round(), 4, "the other thread lives, but holds no request");
        drop(go_on);
    });
}

#[test]
fn without_tickets_every_request_is_refused_for_want_of_them() {
    let (engine, _) =
        engine_with(Options { arena: ArenaSize { tickets: 0, ..small(256).arena }, ..small(256) });
    assert_eq!(engine.admit(&exempt(), Width::ONE).unwrap_err(), Rejection::OutOfTickets);
}

#[test]
fn threads_past_the_bound_are_served_too() {
    let (engine, _) =
        engine_with(Options { arena: ArenaSize { threads: 1, ..small(256).arena }, ..small(256) });
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..1000).for_each(|_| drop(engine.admit(&to("l", "alice"), Width::ONE).unwrap())));
        }
    });
}

#[test]
fn two_levels_are_enough_for_the_mandatory_ones_and_one_is_an_error() {
    let with = |levels| {
        Engine::new(Options { arena: ArenaSize { levels, ..small(64).arena }, ..small(64) }).map(drop)
    };
    assert!(with(2).is_ok());
    assert!(with(1).is_err());
    assert!(with(0).is_err());
}

#[test]
fn a_level_too_many_is_a_fault_and_changes_nothing() {
    let (engine, _) = engine_with(small(256));
    let names = ["a", "b", "c", "d", "e"];
    let rows = names.map(|name| row(name, 10, QUEUES));
    let faults = engine.apply(&objects(&rows)).unwrap_err().0;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].to_string().contains("ArenaSize::levels"), "{}", faults[0]);
    engine.apply(&objects(&rows[..4])).unwrap();
}

#[test]
fn options_out_of_all_bounds_are_brought_within_them() {
    let all = usize::MAX;
    let options = Options {
        server_concurrency_limit: u32::MAX,
        cached_flows: 4,
        wait_limit: u64::MAX,
        clock_lag: u64::MAX,
        arena: ArenaSize { tickets: 100, queues: all, levels: all, threads: all },
        ..Options::default()
    };
    let engine = Engine::new(options.clone()).unwrap();
    engine.apply(&builtin::suggested()).unwrap();
    drop(engine.admit(&to("x", "alice"), Width::ONE).unwrap());
    let nothing = ArenaSize { tickets: 0, queues: 0, levels: 0, threads: 0 };
    assert!(Engine::new(Options { cached_flows: 0, arena: nothing, ..options }).is_err());
}

#[test]
fn a_refused_set_of_objects_keeps_no_memory() {
    let (engine, _) = engine_with(small(700));
    for _ in 0..3 {
        let too_much =
            objects(&[row("a", 10, Kind::Queue(512, 2, 5)), row("z", 10, Kind::Queue(4096, 2, 5))]);
        let faults = engine.apply(&too_much).unwrap_err().0;
        assert_eq!(faults.len(), 1, "{faults:?}");
    }
    engine
        .apply(&objects(&[row("m", 10, Kind::Queue(16, 2, 5)), row("n", 10, Kind::Queue(512, 2, 5))]))
        .unwrap();
}

#[test]
fn a_refused_set_of_objects_does_not_let_levels_grow_that_are_there() {
    let (engine, _) = engine_with(small(700));
    engine.apply(&objects(&[row("a", 10, Kind::Queue(16, 2, 5))])).unwrap();
    let larger = row("a", 10, Kind::Queue(512, 2, 5));
    engine.apply(&objects(&[larger, row("z", 10, Kind::Queue(4096, 2, 5))])).unwrap_err();
    engine
        .apply(&objects(&[row("a", 10, Kind::Queue(16, 2, 5)), row("b", 10, Kind::Queue(512, 2, 5))]))
        .unwrap();
}

#[test]
fn memory_of_a_large_level_that_is_gone_goes_to_the_next_large_one() {
    let (engine, _) = engine_with(small(700));
    engine.apply(&objects(&[row("a", 10, Kind::Queue(512, 2, 5))])).unwrap();
    engine.apply(&Objects::default()).unwrap();
    for names in [["b", "c"], ["d", "e"], ["g", "f"]] {
        let [small, large] = names.map(String::from);
        let rows = [row(&small, 10, Kind::Queue(16, 2, 5)), row(&large, 10, Kind::Queue(512, 2, 5))];
        engine.apply(&objects(&rows)).unwrap();
        engine.apply(&Objects::default()).unwrap();
    }
}

#[test]
fn levels_leave_the_threads_their_memory() {
    let (engine, _) =
        engine_with(Options { arena: ArenaSize { threads: 60, ..small(512).arena }, ..small(512) });
    let grown = |queues| engine.apply(&objects(&[row("a", 10, Kind::Queue(queues, 2, 5))])).is_ok();
    assert!(grown(512));
    assert!(!grown(1024), "there are cells for so many, but they are the threads'");
}

#[test]
fn a_limit_that_rounds_to_nought_holds_from_the_first_request() {
    let seats = 2;
    let (engine, _) = engine(seats, Fidelity::Kubernetes);
    let mut rows = ["a", "b", "c", "d"].map(|name| row(name, 1, QUEUES));
    rows.iter_mut().for_each(|row| row.lendable = 100);
    engine.apply(&objects(&rows)).unwrap();
    let specs = engine.inspect(|r| r.policy().level_specs());
    let (limits, ..) = maitred::borrow::Limits::at_rest(Fidelity::Kubernetes, seats, &specs);
    let nought: Vec<_> = rows.iter().filter(|row| limits.level(&row.name).unwrap().current == 0).collect();
    assert!(!nought.is_empty(), "the case is one");
    for row in nought {
        let state = engine.submit(&to(&row.name, "alice"), Width::ONE, 0).outcome.unwrap().state;
        assert_eq!(state, State::Waiting, "{}", row.name);
    }
}

#[test]
fn a_cancel_by_number_wakes_the_thread_that_waits() {
    within(10, || {
        let engine = Engine::new(Options { server_concurrency_limit: 1, ..Options::default() }).unwrap();
        engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
        let mut running = Vec::new();
        let waiting = loop {
            match engine.admit(&to("l", "alice"), Width::ONE).unwrap() {
                Admission::Running(ticket) => running.push(ticket),
                Admission::Waiting(waiting) => break waiting,
            }
        };
        let id = waiting.id();
        std::thread::scope(|s| {
            let waiter = s.spawn(move || waiting.wait().map(drop));
            // Whether the thread sleeps by now does not matter; mostly it does.
            (0..2000).for_each(|_| std::thread::yield_now());
            engine.cancel(id, Rejection::Cancelled, engine.now()).unwrap();
            assert_eq!(waiter.join().unwrap(), Err(Rejection::Cancelled));
        });
    });
}

#[test]
fn a_ticker_gives_seats_back_in_time_though_others_look_at_what_is_due() {
    within(20, || {
        let engine = Arc::new(Engine::new(Options::default()).unwrap());
        engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
        let _ticker = Ticker::start(engine.clone()).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            let looker = s.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    engine.next_due();
                }
            });
            let width = Width { initial_seats: 1, final_seats: 1, additional_latency: 100_000 };
            for _ in 0..200 {
                let id = engine.submit(&to("l", "alice"), width, engine.now()).outcome.unwrap().id;
                let ended = engine.now();
                engine.finish(id, ended).unwrap();
                while engine.poll(id) == State::Lingering {
                    assert!(engine.now() < ended + 5_000_000_000, "nobody gave the seats back");
                    std::thread::yield_now();
                }
            }
            done.store(true, Ordering::Relaxed);
            looker.join().unwrap();
        });
    });
}

#[test]
fn new_objects_do_not_put_off_the_next_adjustment() {
    let (engine, clock) = engine(100, Fidelity::Corrected);
    clock.set(ADJUSTMENT_PERIOD - 1);
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    engine.set_server_concurrency_limit(50);
    assert_eq!(engine.next_due(), ADJUSTMENT_PERIOD);
    assert!(engine.tick(ADJUSTMENT_PERIOD).adjusted.is_some());
    assert_eq!(engine.next_due(), 2 * ADJUSTMENT_PERIOD);
}

#[test]
fn a_tick_at_the_end_of_time_ends() {
    within(10, || {
        let (engine, clock) = engine(100, Fidelity::Corrected);
        engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
        clock.set(u64::MAX);
        let held = hold(&engine, "l");
        engine.tick(u64::MAX);
        engine.tick(u64::MAX);
        engine.finish(held, u64::MAX).unwrap();
    });
}

#[test]
fn a_clock_that_goes_back_does_no_harm() {
    let (engine, clock) = engine(10, Fidelity::Corrected);
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    clock.set(5 * ADJUSTMENT_PERIOD);
    let held = hold(&engine, "l");
    engine.tick(engine.now());
    clock.set(3);
    engine.tick(engine.now());
    let width = Width { additional_latency: 10, final_seats: 1, ..Width::ONE };
    let lingers = engine.submit(&to("l", "bob"), width, 3).outcome.unwrap().id;
    engine.finish(lingers, 2).unwrap();
    engine.finish(held, 1).unwrap();
    assert_eq!(engine.poll(lingers), State::Lingering);
    engine.tick(12);
    assert_eq!(engine.poll(lingers), State::Free);
}

#[test]
fn exempt_seats_past_counting_are_refused_and_none_is_lost() {
    let (engine, _) =
        engine_with(Options { arena: ArenaSize { tickets: 1000, ..small(64).arena }, ..small(64) });
    let wide = Width::seats(Width::MAX_SEATS);
    let answers: Vec<_> = (0..300).map(|_| engine.submit(&exempt(), wide, 0).outcome).collect();
    let admitted: Vec<_> = answers.iter().flatten().collect();
    assert!(admitted.len() >= 200);
    assert!(answers.iter().filter_map(|a| a.err()).all(|why| why == Rejection::ConcurrencyLimit));
    admitted.iter().for_each(|a| engine.finish(a.id, 1).unwrap());
    let again = (0..admitted.len()).filter(|_| engine.submit(&exempt(), wide, 2).outcome.is_ok()).count();
    assert_eq!(again, admitted.len());
}

#[test]
fn a_server_without_seats_seats_nobody_and_recovers() {
    let (engine, _) = engine(0, Fidelity::Corrected);
    engine.apply(&objects(&[row("l", 10, QUEUES), row("r", 10, Kind::Reject)])).unwrap();
    let waiting = engine.submit(&to("l", "alice"), Width::ONE, 0).outcome.unwrap();
    assert_eq!(waiting.state, State::Waiting);
    let refused = engine.submit(&to("r", "alice"), Width::ONE, 0).outcome;
    assert_eq!(refused.unwrap_err(), Rejection::ConcurrencyLimit);
    engine.set_server_concurrency_limit(10);
    assert_eq!(engine.poll(waiting.id), State::Running);
}

#[test]
fn a_request_that_waits_in_a_level_that_is_gone_is_granted_in_its_turn() {
    let (engine, _) = engine(2, Fidelity::Corrected);
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    let mut ids = Vec::new();
    while ids.last().is_none_or(|&id| engine.poll(id) == State::Running) {
        ids.push(engine.submit(&to("l", "alice"), Width::ONE, 0).outcome.unwrap().id);
    }
    engine.apply(&Objects::default()).unwrap();
    let waiting = *ids.last().unwrap();
    assert_eq!(engine.poll(waiting), State::Waiting);
    engine.finish(ids[0], 1).unwrap();
    assert_eq!(engine.poll(waiting), State::Running);
}

#[test]
fn seats_that_linger_in_a_level_that_is_gone_come_back() {
    let (engine, _) = engine(10, Fidelity::Corrected);
    engine.apply(&objects(&[row("l", 10, QUEUES)])).unwrap();
    let width = Width { additional_latency: 1000, final_seats: 1, ..Width::ONE };
    let id = engine.submit(&to("l", "alice"), width, 0).outcome.unwrap().id;
    engine.finish(id, 10).unwrap();
    let applied = engine.apply(&Objects::default()).unwrap();
    assert_eq!(applied.levels.draining.len(), 1);
    assert_eq!(engine.tick(1010).released, 1);
    let applied = engine.apply(&Objects::default()).unwrap();
    assert_eq!((applied.levels.draining.len(), engine.poll(id)), (0, State::Free));
}
