//! The engine as a host uses it.
#![cfg(not(loom))]

use maitred::api::{Objects, builtin};
use maitred::classify::{Request, Target};
use maitred::engine::{ADJUSTMENT_PERIOD, Admission, Engine, Options, Rejection};
use maitred::fidelity::Fidelity;
use maitred::flow::flow_hash;
use maitred::ticket::{State, Width};
use maitred::time::Manual;

const GROUPS: [&str; 1] = ["system:authenticated"];

fn list<'a>(user: &'a str) -> Request<'a> {
    Request::new(user, &GROUPS, "list", Target::resource("", "pods", "")).in_namespace("shop")
}

fn engine(seats: u32, fidelity: Fidelity) -> (Engine, Manual) {
    let clock = Manual::default();
    let options = Options { server_concurrency_limit: seats, fidelity, clock_lag: 0, ..Options::default() };
    let engine = Engine::with_clock(options, clock.clone()).unwrap();
    engine.apply(&builtin::suggested()).unwrap();
    (engine, clock)
}

fn level_of(engine: &Engine, request: &Request<'_>) -> String {
    engine.inspect(|r| {
        let policy = r.policy();
        policy.levels()[policy.classify(request).level as usize].name.to_string()
    })
}

#[test]
fn a_new_engine_has_the_mandatory_levels_alone() {
    let engine = Engine::new(Options::default()).unwrap();
    assert_eq!(level_of(&engine, &list("alice")), "catch-all");
    let masters = ["system:masters"];
    let admin = Request::new("admin", &masters, "get", Target::path("/"));
    assert_eq!(level_of(&engine, &admin), "exempt");
    assert!(matches!(engine.admit(&admin, Width::seats(1000)), Ok(Admission::Running(_))));
}

#[test]
fn requests_run_wait_and_run_in_turn() {
    let (engine, _) = engine(6, Fidelity::Corrected);
    assert_eq!(level_of(&engine, &list("alice")), "global-default");
    let mut running = Vec::new();
    let waiting = loop {
        match engine.admit(&list("alice"), Width::ONE).unwrap() {
            Admission::Running(ticket) => running.push(ticket),
            Admission::Waiting(waiting) => break waiting,
        }
    };
    assert!(!running.is_empty());
    let waiting = waiting.poll().unwrap_err();
    running.pop();
    assert!(waiting.poll().is_ok());
}

#[test]
fn a_dropped_waiter_gives_its_place_to_the_next() {
    let (engine, _) = engine(6, Fidelity::Corrected);
    let mut running = Vec::new();
    let first = loop {
        match engine.admit(&list("alice"), Width::ONE).unwrap() {
            Admission::Running(ticket) => running.push(ticket),
            Admission::Waiting(waiting) => break waiting,
        }
    };
    let Admission::Waiting(second) = engine.admit(&list("alice"), Width::ONE).unwrap() else {
        panic!("waits")
    };
    drop(first);
    running.pop();
    assert_eq!(engine.poll(second.id()), State::Running);
}

#[test]
fn a_waiter_past_its_deadline_is_told_that_it_timed_out() {
    let (engine, clock) = engine(6, Fidelity::Corrected);
    let mut running = Vec::new();
    let waiting = loop {
        match engine.admit(&list("alice"), Width::ONE).unwrap() {
            Admission::Running(ticket) => running.push(ticket),
            Admission::Waiting(waiting) => break waiting,
        }
    };
    clock.set(5);
    assert_eq!(waiting.wait_until(5).unwrap_err(), Rejection::TimedOut);
}

#[test]
fn a_waiting_thread_is_woken_by_the_grant() {
    let engine = Engine::new(Options { server_concurrency_limit: 6, ..Options::default() }).unwrap();
    engine.apply(&builtin::suggested()).unwrap();
    let mut running = Vec::new();
    let waiting = loop {
        match engine.admit(&list("alice"), Width::ONE).unwrap() {
            Admission::Running(ticket) => running.push(ticket),
            Admission::Waiting(waiting) => break waiting,
        }
    };
    std::thread::scope(|s| {
        let waiter = s.spawn(move || waiting.wait().is_ok());
        running.pop();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn seats_linger_for_the_additional_latency_and_come_back_by_the_tick() {
    let (engine, _) = engine(6, Fidelity::Corrected);
    let width = Width { initial_seats: 1, final_seats: 1, additional_latency: 1000 };
    let id = engine.submit(&list("alice"), width, 0).outcome.unwrap().id;
    engine.finish(id, 10).unwrap();
    assert_eq!(engine.poll(id), State::Lingering);
    assert_eq!(engine.next_due(), 1010);
    assert_eq!(engine.tick(1009).released, 0);
    assert_eq!(engine.tick(1010).released, 1);
    assert_eq!(engine.poll(id), State::Free);
    assert_eq!(engine.finish(id, 2000), Err(Rejection::BadTicket));
}

#[test]
fn unused_seats_are_lent_at_the_adjustment_and_change_with_the_servers_limit() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let held: Vec<_> =
        (0..30).map(|_| engine.submit(&list("alice"), Width::ONE, 0).outcome.unwrap()).collect();
    assert!(held.iter().all(|h| h.state == State::Running));
    let adjusted = engine.tick(ADJUSTMENT_PERIOD).adjusted.expect("ten seconds have passed");
    assert_eq!(adjusted.over_committed, 0);
    engine.set_server_concurrency_limit(6);
    assert_eq!(
        engine.submit(&list("alice"), Width::ONE, ADJUSTMENT_PERIOD).outcome.unwrap().state,
        State::Waiting
    );
}

#[test]
fn a_faulty_set_of_objects_changes_nothing() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let mut objects = builtin::suggested();
    objects.flow_schemas[0].spec.matching_precedence = 0;
    objects.priority_levels[0].metadata.name = "Bad_Name".into();
    let faults = engine.apply(&objects).unwrap_err().0;
    assert!(faults.len() >= 2, "{faults:?}");
    assert_eq!(level_of(&engine, &list("alice")), "global-default");
}

#[test]
fn a_level_that_is_gone_drains_and_its_requests_end_as_they_began() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let id = engine.submit(&list("alice"), Width::ONE, 0).outcome.unwrap().id;
    let applied = engine.apply(&Objects::default()).unwrap();
    assert!(applied.levels.draining.iter().any(|name| &**name == "global-default"));
    assert_eq!(engine.poll(id), State::Running);
    engine.finish(id, 5).unwrap();
    engine.tick(ADJUSTMENT_PERIOD);
    let again = engine.apply(&builtin::suggested()).unwrap();
    assert!(again.levels.added.iter().any(|name| &**name == "global-default"));
}

#[test]
fn a_resolved_flow_follows_new_objects() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let mut flow = engine.resolve(&list("alice"));
    let before = engine.submit_flow(&flow, Width::ONE, 0);
    engine.finish(before.outcome.unwrap().id, 1).unwrap();
    engine.apply(&Objects::default()).unwrap();
    let after = engine.submit_flow(&flow, Width::ONE, 2);
    let name = |level: u32| engine.inspect(|r| r.policy().levels()[level as usize].name.to_string());
    assert_eq!(name(after.level), "catch-all");
    assert!(engine.refresh(&mut flow));
    assert!(!engine.refresh(&mut flow));
}

#[test]
fn a_level_begins_with_what_the_first_division_gives_it() {
    let (engine, _) = engine(6, Fidelity::Kubernetes);
    let seats = |name: &str| engine.with_limits(|limits| limits.level(name).unwrap().current);
    assert_eq!(seats("global-default"), 0);
    assert!(matches!(engine.admit(&list("alice"), Width::ONE), Ok(Admission::Waiting(_))));
}

#[test]
fn a_request_that_was_classified_and_hashed_before_is_seated_alike() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let (schema, level) = engine.inspect(|r| {
        let classified = r.policy().classify(&list("alice"));
        (classified.schema, classified.level)
    });
    let handed = engine.submit_hashed(schema, flow_hash("global-default", "alice"), Width::ONE, 0);
    assert_eq!((handed.schema, handed.level), (schema, level));
    engine.finish(handed.outcome.unwrap().id, 1).unwrap();
    let unknown = engine.submit_hashed(1_000_000, 0, Width::ONE, 2);
    assert_eq!(unknown.outcome.unwrap_err(), Rejection::BadArgument);
}

#[test]
fn a_closed_engine_refuses_newcomers_and_lets_runners_end() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let ticket = engine.admit(&list("alice"), Width::ONE).unwrap();
    engine.close();
    assert_eq!(engine.admit(&list("alice"), Width::ONE).unwrap_err(), Rejection::Closed);
    drop(ticket);
}

#[test]
fn a_width_of_no_seats_is_a_bad_argument() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    assert_eq!(engine.admit(&list("alice"), Width::seats(0)).unwrap_err(), Rejection::BadArgument);
    assert_eq!(engine.admit(&list("alice"), Width::seats(u32::MAX)).unwrap_err(), Rejection::BadArgument);
}

#[test]
fn more_queues_than_the_memory_bound_are_a_fault_with_the_number_in_it() {
    let (engine, _) = engine(600, Fidelity::Corrected);
    let mut objects = builtin::suggested();
    let level = &mut objects.priority_levels[0];
    let queuing = level.spec.limited.as_mut().unwrap().limit_response.queuing.as_mut().unwrap();
    (queuing.queues, queuing.hand_size) = (10_000_000, 2);
    let faults = engine.apply(&objects).unwrap_err().0;
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].path, "spec.limited.limitResponse.queuing.queues");
    let said = faults[0].to_string();
    assert!(said.contains("10000000") && said.contains("are left"), "{said}");
}
