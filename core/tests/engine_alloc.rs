//! From classify to finish nothing allocates, and nothing is freed, on a thread that the engine knows.
#![cfg(not(loom))]

mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use maitred::api::Objects;
use maitred::engine::{Admission, Engine, Options, Rejection};
use maitred::ticket::{State, TicketId, Width};
use world::{Kind, engine_with, exempt, objects, row, small, to};

struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending counts no more.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: hands every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the pointer came from `alloc` above, so from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often the calling thread's allocator is called, to allocate or to free.
fn calls(run: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    run();
    CALLS.get() - before
}

const FEW_FLOWS: usize = 16;

/// A level with four seats, and three that are there for requests to be refused or let through.
fn world() -> Engine {
    let options = Options { server_concurrency_limit: 4, cached_flows: FEW_FLOWS, ..small(512) };
    let (engine, _) = engine_with(options);
    let rows = [row("l", 1_000_000, Kind::Queue(64, 2, 4)), row("r", 0, Kind::Reject)];
    engine.apply(&objects(&rows)).unwrap();
    engine.register_thread();
    engine
}

fn user(i: u64) -> [u8; 8] {
    i.to_le_bytes()
}

fn submit(engine: &Engine, user: &[u8], width: Width) -> Result<TicketId, Rejection> {
    let request = maitred::classify::Request::new(
        user,
        &world::GROUPS,
        "list",
        maitred::classify::Target::resource("", "pods", ""),
    )
    .in_namespace("l");
    engine.submit(&request, width, engine.now()).outcome.map(|admitted| admitted.id)
}

#[test]
fn the_counter_counts() {
    assert_eq!(calls(|| drop(black_box(Box::new(1_u64)))), 2);
}

#[test]
fn requests_by_attributes_run_and_end_without_allocating_whether_their_flow_is_known_or_not() {
    let engine = world();
    let round = |users: std::ops::Range<u64>| {
        for i in users {
            drop(engine.admit(&to("l", std::str::from_utf8(&user(i)).unwrap()), Width::ONE).unwrap());
            drop(engine.admit(&exempt(), Width::seats(3)).unwrap());
            assert_eq!(engine.admit(&to("r", "alice"), Width::ONE).unwrap_err(), Rejection::ConcurrencyLimit);
        }
    };
    round(0..1);
    assert_eq!(calls(|| round(0..1)), 0, "known");
    assert_eq!(calls(|| (0..100).for_each(|i| round(i..i + 1))), 0, "more flows than are kept");
}

#[test]
fn requests_of_a_resolved_flow_run_and_end_without_allocating_also_when_it_is_behind() {
    let engine = world();
    let mut flow = engine.resolve(&to("l", "alice"));
    let round = |flow: &_| (0..1000).for_each(|_| drop(engine.admit_flow(flow, Width::ONE).unwrap()));
    round(&flow);
    assert_eq!(calls(|| round(&flow)), 0);
    engine.apply(&objects(&[row("l", 1_000_000, Kind::Queue(32, 4, 8))])).unwrap();
    assert_eq!(calls(|| round(&flow)), 0, "behind");
    assert_eq!(calls(|| assert!(engine.refresh(&mut flow))), 0);
    assert_eq!(calls(|| round(&flow)), 0, "refreshed");
}

#[test]
fn waiting_granting_giving_up_and_being_refused_do_not_allocate() {
    let engine = world();
    let round = || {
        let mut ids = [None; 64];
        for (i, id) in ids.iter_mut().enumerate() {
            *id = submit(&engine, &user(i as u64 % 5), Width::seats(1 + i as u32 % 3)).ok();
        }
        let waits = |id: &&TicketId| engine.poll(**id) == State::Waiting;
        let all = || ids.iter().flatten();
        assert!(all().filter(waits).count() > 10 && all().count() < 64, "some wait, some were refused");
        for (i, id) in all().enumerate().filter(|(_, id)| engine.poll(**id) == State::Waiting) {
            let why = if i % 2 == 0 { Rejection::TimedOut } else { Rejection::Cancelled };
            if i % 3 == 0 {
                engine.cancel(*id, why, engine.now()).unwrap();
            }
        }
        // Each end grants others.
        while let Some(id) = all().find(|id| engine.poll(**id) == State::Running) {
            engine.finish(*id, engine.now()).unwrap();
            assert_eq!(engine.finish(*id, engine.now()), Err(Rejection::BadTicket));
        }
        assert!(all().all(|id| engine.poll(*id) == State::Free));
    };
    round();
    assert_eq!(calls(round), 0);
}

#[test]
fn waiting_tickets_are_kept_asked_dropped_and_waited_for_without_allocating() {
    let engine = world();
    let round = || {
        let mut running = [const { None }; 4];
        for place in &mut running {
            *place = Some(engine.admit(&to("l", "alice"), Width::ONE).unwrap().wait().unwrap());
        }
        let wait = || match engine.admit(&to("l", "bob"), Width::ONE).unwrap() {
            Admission::Waiting(waiting) => waiting,
            Admission::Running(_) => panic!("all seats are taken"),
        };
        drop(wait());
        assert!(wait().cancel().is_none());
        assert_eq!(wait().wait_until(engine.now()).unwrap_err(), Rejection::TimedOut);
        let waiting = wait().poll().unwrap_err();
        running[0] = None;
        waiting.wait().unwrap().finish();
    };
    round();
    assert_eq!(calls(round), 0);
}

#[test]
fn an_end_with_seats_that_linger_does_not_allocate() {
    let engine = world();
    let width = Width { initial_seats: 1, final_seats: 1, additional_latency: 10 };
    let round = || {
        for i in 0..3 {
            let id = submit(&engine, &user(i), width).unwrap();
            engine.finish(id, engine.now()).unwrap();
        }
    };
    round();
    engine.tick(u64::MAX - 1);
    assert_eq!(calls(round), 0);
    assert_eq!(engine.tick(u64::MAX - 1).released, 3);
}

#[test]
fn objects_that_another_thread_replaced_are_not_freed_by_requests() {
    let engine = world();
    let round = || (0..2000).for_each(|_| drop(engine.admit(&to("l", "alice"), Width::ONE).unwrap()));
    round();
    for _ in 0..4 {
        std::thread::scope(|s| {
            s.spawn(|| {
                engine.apply(&Objects::default()).unwrap();
                engine.apply(&objects(&[row("l", 1_000_000, Kind::Queue(64, 6, 8))])).unwrap();
            });
        });
        assert_eq!(calls(round), 0);
    }
}
