//! Models of a level: a few calls in two or three threads, in every order that the memory model allows and the bound
//! on preemptions leaves. Each is named for what it shows.
//!
//! `MAITRED_LOOM_BOUND`: preemptions explored, 2 unless given. `MAITRED_LOOM_SECONDS`: when a model is cut short, 4 unless
//! given. Each prints how many orders it explored, and whether those were all.
#![cfg(loom)]

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use loom::thread::{self, JoinHandle};
use maitred::fidelity::Fidelity;
use maitred::level::{Admitted, Arena, ArenaSize, Arrival, Config, Context, Discipline, Level, Refusal};
use maitred::shuffle::Deck;
use maitred::ticket::{State, TicketId, Width};

fn setting<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|x| x.parse().ok()).unwrap_or(default)
}

fn explore(name: &str, story: impl Fn() + Send + Sync + 'static) {
    let cap = Duration::from_secs(setting("MAITRED_LOOM_SECONDS", 4));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(setting("MAITRED_LOOM_BOUND", 2));
    builder.max_branches = 10_000;
    // How often the time is looked at.
    builder.checkpoint_interval = 100;
    builder.max_duration = Some(cap);
    let explored = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let count = explored.clone();
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        story();
    });
    let all = if begun.elapsed() < cap { "exhausted" } else { "cut short" };
    println!("{name}: explored {}, {all}", explored.load(Relaxed));
}

macro_rules! models {
    ($($(#[$doc:meta])* fn $name:ident() $story:block)*) => {
        $($(#[$doc])* #[test] fn $name() { explore(stringify!($name), || $story) })*
    };
}

/// A level with one-card hands, so that the caller names the queue.
#[derive(Clone)]
struct Stage {
    level: Arc<Level>,
    deck: Deck,
}

const ONE: Width = Width::ONE;
const TWO: Width = Width::seats(2);

fn queueing(queues: u32, queue_length_limit: u32) -> Discipline {
    Discipline::Queue { queues, hand_size: 1, queue_length_limit }
}

fn stage<const N: usize>(queues: u32, limit: u32, queue_length_limit: u32) -> (Stage, [Context; N]) {
    stage_with(queues, limit, queue_length_limit, Fidelity::Corrected, |level| level)
}

fn stage_with<const N: usize>(
    queues: u32,
    limit: u32,
    queue_length_limit: u32,
    fidelity: Fidelity,
    form: impl Fn(Level) -> Level,
) -> (Stage, [Context; N]) {
    let arena = Arena::new(ArenaSize { tickets: 6, queues: 4, levels: 1, threads: 3 });
    let config = Config { discipline: queueing(queues, queue_length_limit), limit };
    let level = Arc::new(form(Level::new(&arena, 0, config, fidelity, 0).unwrap()));
    let contexts = std::array::from_fn(|_| Context::new(&arena).unwrap());
    (Stage { level, deck: Deck::new(queues, 1).unwrap() }, contexts)
}

impl Stage {
    fn arrive(&self, cx: &mut Context, queue: u64, width: Width, now: u64) -> Arrival {
        let hand = self.deck.deal(queue);
        self.level.arrive(cx, queue, Some(&hand), width, now)
    }

    fn admit(&self, cx: &mut Context, queue: u64, width: Width, now: u64) -> Admitted {
        self.arrive(cx, queue, width, now).outcome.expect("nothing speaks against it")
    }

    /// Sets the scene: this request must run at once.
    fn run(&self, cx: &mut Context, queue: u64, width: Width, now: u64) -> TicketId {
        let admitted = self.admit(cx, queue, width, now);
        assert_eq!(admitted.state, State::Running);
        admitted.id
    }

    /// Sets the scene: this request must wait.
    fn wait(&self, cx: &mut Context, queue: u64, width: Width, now: u64) -> TicketId {
        let admitted = self.admit(cx, queue, width, now);
        assert_eq!(admitted.state, State::Waiting);
        admitted.id
    }

    fn finish(&self, cx: &mut Context, id: TicketId, now: u64) {
        self.level.finish(cx, id, now).expect("it runs");
    }

    /// Another thread does something, and hands its context back with the answer.
    fn meanwhile<T: 'static>(
        &self,
        mut cx: Context,
        act: impl FnOnce(&Stage, &mut Context) -> T + 'static,
    ) -> JoinHandle<(T, Context)> {
        let stage = self.clone();
        thread::spawn(move || {
            let answer = act(&stage, &mut cx);
            (answer, cx)
        })
    }

    fn runs(&self, cx: &Context, id: TicketId) -> bool {
        self.level.poll(cx, id) == State::Running
    }

    /// Seats in use, and requests waiting.
    fn held(&self, cx: &mut Context) -> (u32, u32) {
        let o = self.level.occupancy(cx);
        (o.seats_in_use, o.waiting)
    }

    /// Whoever still is there runs and ends, one after the other; then nothing may be left of anything.
    fn come_to_rest(&self, cx: &mut Context, now: u64, mut left: Vec<TicketId>) {
        while !left.is_empty() {
            let before = left.len();
            left.retain(|&id| self.level.finish(cx, id, now).is_err());
            assert!(left.len() < before, "nobody of {left:?} runs though seats are free");
        }
        let o = self.level.occupancy(cx);
        assert_eq!((o.seats_in_use, o.waiting, o.seats_waiting, o.active_queues), (0, 0, 0, 0), "{o:?}");
        for position in 0..o.queues {
            let q = self.level.queue(cx, position).unwrap();
            assert_eq!((q.running, q.waiting, q.work), (0, 0, 0), "queue {position}: {q:?}");
        }
        assert_eq!(self.level.requests(cx), []);
        let t = self.level.totals();
        assert_eq!(t.dispatched, t.finished);
    }
}

// The multi-word exchange

fn two_steps(first: u64, second: u64) {
    let (s, [mut cx, other]) = stage_with(2, 4, 4, Fidelity::Corrected, Level::always_by_steps);
    let theirs = s.meanwhile(other, move |s, cx| s.run(cx, second, ONE, 1));
    let a = s.run(&mut cx, first, ONE, 1);
    let (b, _) = theirs.join().unwrap();
    assert_eq!(s.held(&mut cx), (2, 0));
    assert_eq!(s.level.occupancy(&mut cx).arrivals, 2);
    s.come_to_rest(&mut cx, 2, vec![a, b]);
}

models! {
    fn of_two_steps_on_one_queue_both_happen_once() { two_steps(0, 0) }

    fn of_two_steps_on_two_queues_both_happen_once() { two_steps(0, 1) }

    fn a_grant_from_one_queue_to_another_happens_whole_beside_a_step_on_the_other() {
        let (s, [mut cx, other]) = stage(2, 1, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let b = s.wait(&mut cx, 1, ONE, 2);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 1, ONE, 3).id);
        s.finish(&mut cx, a, 3);
        let (c, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, b) && !s.runs(&cx, c), "in order of arrival");
        assert_eq!(s.held(&mut cx), (1, 1));
        s.come_to_rest(&mut cx, 4, vec![b, c]);
    }

    fn a_step_and_an_arrival_without_one_in_the_same_queue_both_happen_once() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 0, ONE, 3));
        let wide = s.wait(&mut cx, 0, TWO, 2);
        let (b, _) = theirs.join().unwrap();
        let overtook = b.state == State::Running;
        assert_eq!(s.held(&mut cx), if overtook { (2, 1) } else { (1, 2) });
        s.finish(&mut cx, a, 4);
        assert_eq!(s.runs(&cx, wide), !overtook);
        s.come_to_rest(&mut cx, 5, vec![b.id, wide]);
    }

    fn a_helper_that_comes_late_does_not_revive_a_step_that_failed() {
        let (s, [mut cx, second, third]) = stage(2, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        // The end of `a` moves the clock under the step; the third only helps.
        let theirs = s.meanwhile(second, move |s, cx| s.finish(cx, a, 3));
        let helper = s.meanwhile(third, |s, cx| s.held(cx));
        let wide = s.admit(&mut cx, 1, TWO, 2).id;
        theirs.join().unwrap();
        helper.join().unwrap();
        assert!(s.runs(&cx, wide));
        s.come_to_rest(&mut cx, 4, vec![wide]);
    }

    fn a_breaker_of_a_step_that_then_helps_it_finds_it_over() {
        let (s, [mut cx, other]) = stage(2, 2, 4);
        let a = s.run(&mut cx, 1, ONE, 1);
        let theirs = s.meanwhile(other, move |s, cx| {
            s.finish(cx, a, 3);
            s.held(cx)
        });
        let wide = s.admit(&mut cx, 0, TWO, 2).id;
        theirs.join().unwrap();
        assert!(s.runs(&cx, wide));
        s.come_to_rest(&mut cx, 4, vec![wide]);
    }
}

// Seats are given once, and somebody gives them

fn finish_against_arrival(queues: u32, queue_length_limit: u32, form: impl Fn(Level) -> Level) {
    let (s, [mut cx, other]) = stage_with(queues, 1, queue_length_limit, Fidelity::Corrected, form);
    let a = s.run(&mut cx, 0, ONE, 1);
    let theirs = s.meanwhile(other, move |s, cx| s.admit(cx, queues as u64 - 1, ONE, 3).id);
    s.finish(&mut cx, a, 4);
    let (b, _) = theirs.join().unwrap();
    assert!(s.runs(&cx, b), "a seat is free, and it waits");
    assert_eq!(s.held(&mut cx), (1, 0));
    s.come_to_rest(&mut cx, 5, vec![b]);
}

models! {
    fn an_arrival_beside_a_finish_in_its_queue_runs_in_the_end() {
        finish_against_arrival(1, 4, |level| level);
    }

    fn an_arrival_beside_a_finish_in_another_queue_runs_in_the_end() {
        finish_against_arrival(2, 4, |level| level);
    }

    fn an_arrival_beside_a_finish_runs_in_the_end_with_steps_alone() {
        finish_against_arrival(1, 4, Level::always_by_steps);
    }

    fn a_queue_is_full_only_while_as_many_wait_as_may() {
        let (s, [mut cx, other]) = stage(1, 1, 1);
        let a = s.run(&mut cx, 0, ONE, 1);
        let b = s.wait(&mut cx, 0, ONE, 2);
        let theirs = s.meanwhile(other, |s, cx| s.arrive(cx, 0, ONE, 3).outcome);
        s.finish(&mut cx, a, 4);
        let (c, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, b));
        let mut left = vec![b];
        match c {
            Ok(c) => {
                assert_eq!(c.state, State::Waiting);
                left.push(c.id);
            }
            Err(why) => assert_eq!(why, Refusal::QueueFull),
        }
        assert_eq!(s.held(&mut cx), (1, left.len() as u32 - 1));
        s.come_to_rest(&mut cx, 5, left);
    }

    fn a_cancelled_request_gives_its_place_back_at_once() {
        let (s, [mut cx, other]) = stage(1, 1, 1);
        let a = s.run(&mut cx, 0, ONE, 1);
        let b = s.wait(&mut cx, 0, ONE, 2);
        let theirs = s.meanwhile(other, move |s, cx| {
            s.level.cancel(cx, b, 3).unwrap();
            s.admit(cx, 0, ONE, 3).id
        });
        s.level.set_limit(&mut cx, 1, 3);
        let (c, _) = theirs.join().unwrap();
        s.come_to_rest(&mut cx, 4, vec![a, c]);
    }

    fn of_two_arrivals_for_one_seat_one_runs_and_one_waits() {
        let (s, [mut cx, other]) = stage(1, 1, 4);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 0, ONE, 3).id);
        let a = s.admit(&mut cx, 0, ONE, 3).id;
        let (b, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, a) != s.runs(&cx, b));
        assert_eq!(s.held(&mut cx), (1, 1));
        s.come_to_rest(&mut cx, 4, vec![a, b]);
    }

    fn of_two_arrivals_at_a_packed_level_for_one_seat_one_runs_and_one_waits() {
        let (s, [mut cx, other]) = stage(2, 2, 4);
        let first = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 1, ONE, 3).id);
        let a = s.admit(&mut cx, 0, ONE, 3).id;
        let (b, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, a) != s.runs(&cx, b));
        assert_eq!(s.held(&mut cx), (2, 1));
        s.come_to_rest(&mut cx, 4, vec![first, a, b]);
    }

    fn a_level_without_queues_gives_its_last_seat_once() {
        let arena = Arena::new(ArenaSize { tickets: 6, queues: 2, levels: 1, threads: 2 });
        let config = Config { discipline: Discipline::Reject, limit: 2 };
        let level = Arc::new(Level::new(&arena, 0, config, Fidelity::Corrected, 0).unwrap());
        let (mut cx, mut other) = (Context::new(&arena).unwrap(), Context::new(&arena).unwrap());
        let first = level.arrive(&mut cx, 0, None, ONE, 1).outcome.unwrap().id;
        let beside = level.clone();
        let theirs = thread::spawn(move || beside.arrive(&mut other, 0, None, ONE, 2).outcome);
        let a = level.arrive(&mut cx, 0, None, ONE, 2).outcome;
        let b = theirs.join().unwrap();
        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        assert_eq!(a.err().or(b.err()), Some(Refusal::ConcurrencyLimit));
        for id in [first, a.or(b).unwrap().id] {
            level.finish(&mut cx, id, 3).unwrap();
        }
        assert_eq!(level.occupancy(&mut cx).seats_in_use, 0);
    }

    fn the_cancel_of_a_wide_head_lets_the_next_run() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let wide = s.wait(&mut cx, 0, TWO, 2);
        let narrow = s.wait(&mut cx, 0, ONE, 2);
        let theirs = s.meanwhile(other, move |s, cx| s.level.cancel(cx, wide, 3).is_ok());
        s.finish(&mut cx, a, 4);
        let (cancelled, _) = theirs.join().unwrap();
        assert_eq!(s.runs(&cx, wide), !cancelled);
        assert_eq!(s.runs(&cx, narrow), cancelled);
        s.come_to_rest(&mut cx, 5, if cancelled { vec![narrow] } else { vec![wide, narrow] });
    }
}

// A ticket ends once

models! {
    fn a_cancel_beside_a_grant_has_one_winner() {
        let (s, [mut cx, other]) = stage(1, 1, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let b = s.wait(&mut cx, 0, ONE, 2);
        let theirs = s.meanwhile(other, move |s, cx| s.level.cancel(cx, b, 3).is_ok());
        s.finish(&mut cx, a, 4);
        let (cancelled, _) = theirs.join().unwrap();
        assert_eq!(s.runs(&cx, b), !cancelled);
        s.come_to_rest(&mut cx, 5, if cancelled { vec![] } else { vec![b] });
    }

    fn two_cancels_of_one_request_have_one_winner() {
        let (s, [mut cx, other]) = stage(1, 1, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let b = s.wait(&mut cx, 0, ONE, 2);
        let theirs = s.meanwhile(other, move |s, cx| s.level.cancel(cx, b, 3).is_ok());
        let mine = s.level.cancel(&mut cx, b, 3).is_ok();
        assert!(mine != theirs.join().unwrap().0);
        s.come_to_rest(&mut cx, 5, vec![a]);
    }

    fn two_finishes_of_one_request_have_one_winner() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, move |s, cx| s.level.finish(cx, a, 3).is_ok());
        let mine = s.level.finish(&mut cx, a, 3).is_ok();
        assert!(mine != theirs.join().unwrap().0);
        s.come_to_rest(&mut cx, 5, vec![]);
    }

    fn a_handle_that_is_over_never_ends_the_next_user_of_the_place() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, move |s, cx| s.level.finish(cx, a, 3).is_ok());
        if s.level.finish(&mut cx, a, 3).is_ok() {
            // In the place of `a`: this context has no other at hand.
            let b = s.run(&mut cx, 0, ONE, 4);
            assert!(!theirs.join().unwrap().0 && s.runs(&cx, b));
            s.come_to_rest(&mut cx, 5, vec![b]);
        } else {
            assert!(theirs.join().unwrap().0);
            s.come_to_rest(&mut cx, 5, vec![]);
        }
    }

    /// Whoever sees it run sees since when: its queue is charged for the time that it took.
    fn the_finish_of_a_request_just_granted_is_charged_for_its_time() {
        let (s, [mut cx, other]) = stage(1, 1, 4);
        let a = s.run(&mut cx, 0, ONE, 0);
        let b = s.wait(&mut cx, 0, ONE, 0);
        let theirs = s.meanwhile(other, move |s, cx| s.level.finish(cx, b, 2_001_000).is_ok());
        s.finish(&mut cx, a, 1000);
        if !theirs.join().unwrap().0 {
            s.finish(&mut cx, b, 2_001_000);
        }
        // 1 µs and 2 ms of one seat.
        assert_eq!(s.level.queue(&mut cx, 0).unwrap().next_dispatch_r, 200_100);
        s.come_to_rest(&mut cx, 2_002_000, vec![]);
    }

    fn two_releases_of_one_request_have_one_winner() {
        let (s, [mut cx, other]) = stage(1, 1, 4);
        let a = s.run(&mut cx, 0, Width { initial_seats: 1, final_seats: 1, additional_latency: 5 }, 1);
        s.finish(&mut cx, a, 2);
        let b = s.wait(&mut cx, 0, ONE, 3);
        let theirs = s.meanwhile(other, move |s, cx| s.level.release(cx, a, 7).is_ok());
        let mine = s.level.release(&mut cx, a, 7).is_ok();
        assert!(mine != theirs.join().unwrap().0);
        s.come_to_rest(&mut cx, 8, vec![b]);
    }
}

// The level changes its form while others still act on the one that they saw

enum Beside {
    Arrival,
    Finish,
    EndOfLatency,
    NewLimit,
    Demand,
    MoreQueues,
}

/// A wide request comes and must wait, so the level is packed no more; or the only one that waits gives up.
fn change_of_form(packed: bool, beside: Beside) {
    let (s, [mut cx, other]) = stage(2, 3, 4);
    let (a, mut left) = (s.run(&mut cx, 0, ONE, 1), vec![]);
    let latency = if matches!(beside, Beside::EndOfLatency) { 1 } else { 0 };
    let b = s.run(&mut cx, 1, Width { additional_latency: latency, final_seats: latency as u32, ..ONE }, 1);
    if latency > 0 {
        s.finish(&mut cx, b, 1);
    }
    let wide = Width::seats(3);
    let there = (!packed).then(|| s.wait(&mut cx, 0, wide, 2));
    let theirs = s.meanwhile(other, move |s, cx| match beside {
        Beside::Arrival => vec![a, b, s.admit(cx, 1, ONE, 4).id],
        Beside::Finish => {
            s.finish(cx, b, 4);
            vec![a]
        }
        Beside::EndOfLatency => {
            s.level.release(cx, b, 4).unwrap();
            vec![a]
        }
        Beside::NewLimit => {
            s.level.set_limit(cx, 2, 4);
            vec![a, b]
        }
        Beside::Demand => {
            s.level.take_demand(cx, 4);
            vec![a, b]
        }
        Beside::MoreQueues => {
            let config = Config { discipline: queueing(3, 4), limit: 3 };
            s.level.configure(cx, &config, 4).unwrap();
            vec![a, b]
        }
    });
    match there {
        Some(wide) => s.level.cancel(&mut cx, wide, 3).unwrap(),
        None => left.push(s.wait(&mut cx, 0, wide, 3)),
    }
    let (others, _) = theirs.join().unwrap();
    left.extend(others);
    let (seats, waiting) = s.held(&mut cx);
    assert_eq!(seats + waiting, left.len() as u32, "each has its seat or waits");
    if there.is_some() {
        assert_eq!(waiting, 0, "seats are free");
    }
    s.come_to_rest(&mut cx, 5, left);
}

/// Packed, then not, then packed again; between the two an idle thread may think that nothing happened.
fn two_changes_of_form(queue: u64) {
    let (s, [mut cx, other]) = stage(2, 2, 4);
    let a = s.run(&mut cx, 0, ONE, 1);
    let theirs = s.meanwhile(other, move |s, cx| s.admit(cx, queue, ONE, 4).id);
    let wide = s.wait(&mut cx, 0, TWO, 2);
    s.level.cancel(&mut cx, wide, 3).unwrap();
    let (b, _) = theirs.join().unwrap();
    assert!(s.runs(&cx, b));
    assert_eq!(s.held(&mut cx), (2, 0));
    s.come_to_rest(&mut cx, 5, vec![a, b]);
}

models! {
    fn an_arrival_while_the_level_ceases_to_be_packed_is_placed_once() { change_of_form(true, Beside::Arrival) }
    fn an_arrival_while_the_level_becomes_packed_is_placed_once() { change_of_form(false, Beside::Arrival) }
    fn a_finish_while_the_level_ceases_to_be_packed_counts_once() { change_of_form(true, Beside::Finish) }
    fn a_finish_while_the_level_becomes_packed_counts_once() { change_of_form(false, Beside::Finish) }
    fn a_release_while_the_level_ceases_to_be_packed_counts_once() {
        change_of_form(true, Beside::EndOfLatency)
    }
    fn a_release_while_the_level_becomes_packed_counts_once() {
        change_of_form(false, Beside::EndOfLatency)
    }
    fn a_new_limit_while_the_level_ceases_to_be_packed_holds() { change_of_form(true, Beside::NewLimit) }
    fn a_new_limit_while_the_level_becomes_packed_holds() { change_of_form(false, Beside::NewLimit) }
    fn a_reading_of_demand_while_the_level_ceases_to_be_packed_moves_nobody() {
        change_of_form(true, Beside::Demand)
    }
    fn a_reading_of_demand_while_the_level_becomes_packed_moves_nobody() {
        change_of_form(false, Beside::Demand)
    }
    fn queues_that_come_while_the_level_ceases_to_be_packed_move_nobody() {
        change_of_form(true, Beside::MoreQueues)
    }
    fn queues_that_come_while_the_level_becomes_packed_move_nobody() {
        change_of_form(false, Beside::MoreQueues)
    }
    fn an_arrival_in_the_queue_of_two_changes_of_form_runs_once() { two_changes_of_form(0) }
    fn an_arrival_beside_two_changes_of_form_runs_once() { two_changes_of_form(1) }

    fn a_finish_beside_the_grant_that_empties_the_queues_leaves_nobody_waiting() {
        let (s, [mut cx, other]) = stage(2, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let b = s.run(&mut cx, 1, ONE, 1);
        let c = s.wait(&mut cx, 0, ONE, 2);
        let theirs = s.meanwhile(other, move |s, cx| s.finish(cx, b, 3));
        s.finish(&mut cx, a, 4);
        theirs.join().unwrap();
        assert!(s.runs(&cx, c));
        assert_eq!(s.held(&mut cx), (1, 0));
        s.come_to_rest(&mut cx, 5, vec![c]);
    }
}

// New numbers while requests come and go

models! {
    fn an_arrival_beside_a_raise_of_the_limit_runs_in_the_end() {
        let (s, [mut cx, other]) = stage(1, 1, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 0, ONE, 3).id);
        s.level.set_limit(&mut cx, 2, 3);
        let (b, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, b));
        assert_eq!(s.held(&mut cx), (2, 0));
        s.come_to_rest(&mut cx, 4, vec![a, b]);
    }

    fn no_seat_is_given_past_a_limit_that_was_lowered_before() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        // A seat goes and one comes: the packed word of before and after the new limit may look alike.
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 0, ONE, 3));
        s.level.set_limit(&mut cx, 1, 3);
        let late = s.admit(&mut cx, 0, ONE, 3);
        let (b, _) = theirs.join().unwrap();
        assert_eq!(late.state, State::Waiting);
        let running = 1 + (b.state == State::Running) as u32;
        assert_eq!(s.held(&mut cx), (running, 3 - running));
        s.come_to_rest(&mut cx, 4, vec![a, b.id, late.id]);
    }

    fn an_arrival_beside_the_coming_of_a_queue_runs_once() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 0, ONE, 3).id);
        s.level.configure(&mut cx, &Config { discipline: queueing(2, 4), limit: 2 }, 3).unwrap();
        let (b, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, b));
        assert_eq!(s.level.occupancy(&mut cx).queues, 2);
        s.come_to_rest(&mut cx, 4, vec![a, b]);
    }

    fn an_arrival_beside_the_going_of_its_queue_runs_once() {
        let (s, [mut cx, other]) = stage(2, 2, 4);
        let a = s.run(&mut cx, 1, ONE, 1);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 1, ONE, 3).id);
        s.level.configure(&mut cx, &Config { discipline: queueing(1, 4), limit: 2 }, 3).unwrap();
        s.finish(&mut cx, a, 3);
        let (b, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, b));
        s.come_to_rest(&mut cx, 4, vec![b]);
        s.level.tidy(&mut cx);
        assert!(s.level.occupancy(&mut cx).queues <= 2);
    }

    fn an_arrival_beside_the_tidying_of_gaps_is_not_lost() {
        let (s, [mut cx, other]) = stage(2, 2, 4);
        let first = s.run(&mut cx, 1, ONE, 1);
        s.finish(&mut cx, first, 1);
        let theirs = s.meanwhile(other, |s, cx| s.admit(cx, 1, ONE, 3).id);
        s.level.configure(&mut cx, &Config { discipline: queueing(1, 4), limit: 2 }, 3).unwrap();
        let a = s.admit(&mut cx, 0, ONE, 3).id;
        s.finish(&mut cx, a, 3);
        s.level.tidy(&mut cx);
        let (b, _) = theirs.join().unwrap();
        assert!(s.runs(&cx, b));
        s.come_to_rest(&mut cx, 4, vec![b]);
    }

    fn a_reading_of_the_demand_beside_an_arrival_takes_no_seat_and_misses_none() {
        let (s, [mut cx, other]) = stage(1, 2, 4);
        let a = s.run(&mut cx, 0, ONE, 1);
        let theirs = s.meanwhile(other, |s, cx| s.run(cx, 0, ONE, 3));
        s.level.take_demand(&mut cx, 2);
        let (b, _) = theirs.join().unwrap();
        assert_eq!(s.held(&mut cx), (2, 0));
        assert_eq!(s.level.take_demand(&mut cx, 5).max, 2.0);
        s.come_to_rest(&mut cx, 6, vec![a, b]);
    }
}
