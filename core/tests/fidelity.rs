//! Each row of the table of differences from the reference that a single level decides, in both fidelities.
//!
//! The two rows about limits (at least one seat, what exempt requests hold) are decided where limits are allocated.
#![cfg(not(loom))]

mod model;

use model::{Config, Discipline, Ejection, Fidelity, Model, Outcome, Totals};

const MS: u64 = 1_000_000;

/// What the story answers as the reference decides, and corrected.
struct Both<T> {
    kubernetes: T,
    corrected: T,
}

fn both<T>(discipline: Discipline, limit: u32, story: impl Fn(&mut Model) -> T) -> Both<T> {
    let told = |fidelity| story(&mut Model::new(Config { discipline, limit, fidelity }));
    Both { kubernetes: told(Fidelity::Kubernetes), corrected: told(Fidelity::Corrected) }
}

fn queue(queue_length_limit: u32) -> Discipline {
    queues(1, queue_length_limit)
}

/// Hands of one card: hash h goes to queue h.
fn queues(queues: u32, queue_length_limit: u32) -> Discipline {
    Discipline::Queue { queues, hand_size: 1, queue_length_limit }
}

#[test]
fn a_reject_level_without_seats_runs_one_at_a_time_or_nobody() {
    let story = |level: &mut Model| [1, 2].map(|id| level.arrive(0, id, 0, (1, 0, 0)).0);
    let answers = both(Discipline::Reject, 0, story);
    assert_eq!(answers.kubernetes, [Outcome::Run, Outcome::ConcurrencyLimit]);
    assert_eq!(answers.corrected, [Outcome::ConcurrencyLimit; 2]);
}

#[test]
fn a_queueing_level_without_seats_lets_wait_in_both() {
    let answers = both(queue(5), 0, |level| level.arrive(0, 1, 0, (1, 0, 0)).0);
    assert_eq!((answers.kubernetes, answers.corrected), (Outcome::Wait, Outcome::Wait));
}

#[test]
fn behind_a_wide_request_that_blocks_with_a_seat_free_a_queue_grows_without_bound_or_is_full() {
    let answers = both(queue(2), 2, |level| {
        level.arrive(0, 1, 0, (1, 0, 0));
        level.arrive(0, 2, 0, (2, 0, 0));
        assert_eq!(level.seats_in_use(), 1, "a seat is free");
        [3, 4].map(|id| level.arrive(0, id, 0, (1, 0, 0)).0)
    });
    assert_eq!(answers.kubernetes, [Outcome::Wait, Outcome::Wait]);
    assert_eq!(answers.corrected, [Outcome::Wait, Outcome::QueueFull]);
}

#[test]
fn after_final_seats_are_cut_the_count_of_waiting_seats_leaks_or_is_exact() {
    let answers = both(queue(5), 1, |level| {
        level.arrive(0, 1, 0, (1, 0, 0));
        level.arrive(0, 2, 0, (1, 3, MS));
        level.finish(MS, 1);
        let [clip] = level.clipped() else {
            panic!("one request is cut to one seat, for three times as long")
        };
        assert_eq!((clip.final_seats, clip.latency_ns), (1, 3 * MS));
        assert_eq!(level.waiting(), 0);
        level.seats_waiting()
    });
    assert_eq!((answers.kubernetes, answers.corrected), (2, 0));
}

#[test]
fn a_request_wider_than_the_limit_looks_at_running_requests_or_at_seats_in_use() {
    let answers = both(queue(5), 2, |level| {
        level.arrive(0, 1, 0, (1, 1, 10 * MS));
        let release = level.finish(MS, 1).expect("it lingers");
        let (outcome, _) = level.arrive(2 * MS, 2, 0, (3, 0, 0));
        let seats = level.seats_in_use();
        level.release(release, 1);
        (outcome, seats, level.granted().to_vec())
    });
    assert_eq!(answers.kubernetes, (Outcome::Run, 4, vec![]));
    assert_eq!(answers.corrected, (Outcome::Wait, 1, vec![2]));
}

#[test]
fn when_a_wide_request_gives_up_those_behind_it_wait_for_the_next_event_or_are_granted() {
    for give_up in [Model::cancel, Model::time_out] {
        let answers = both(queue(5), 2, |level| {
            level.arrive(0, 1, 0, (1, 0, 0));
            level.arrive(0, 2, 0, (2, 0, 0));
            level.arrive(0, 3, 0, (1, 0, 0));
            give_up(level, MS, 2);
            level.granted().to_vec()
        });
        assert_eq!((answers.kubernetes, answers.corrected), (vec![], vec![3]));
    }
}

#[test]
fn a_queue_is_removed_under_a_lingering_request_or_when_its_seats_are_free() {
    let answers = both(queues(3, 5), 4, |level| {
        level.arrive(0, 1, 0, (1, 1, 10 * MS));
        level.arrive(0, 2, 0, (1, 0, 0));
        level.arrive(0, 3, 1, (1, 0, 0));
        level.reconfigure(0, Config { discipline: queues(1, 5), ..level.config() });
        let release = level.finish(MS, 1).expect("it lingers");
        level.finish(2 * MS, 2);
        let while_lingering = level.queues().len();
        level.release(release, 1);
        let survivor = level.queues()[level.queues().len() - 2].running.contains(&3);
        assert!(survivor, "the queue of the request that runs is there");
        assert_eq!(level.seats_in_use(), 1);
        (while_lingering, level.queues().len())
    });
    // The reference would take out a second, wrong queue at the release.
    assert_eq!(answers.kubernetes, (2, 2));
    assert_eq!(answers.corrected, (3, 2));
}

#[test]
fn time_out_and_cancellation_have_one_reason_or_two() {
    let answers = both(queue(5), 0, |level| {
        level.arrive(0, 1, 0, (1, 0, 0));
        level.arrive(0, 2, 0, (1, 0, 0));
        (level.time_out(MS, 1), level.cancel(MS, 2), level.totals())
    });
    let totals = |timed_out, cancelled| Totals { rejected: 2, timed_out, cancelled };
    assert_eq!(answers.kubernetes, (Ejection::TimedOut, Ejection::TimedOut, totals(2, 0)));
    assert_eq!(answers.corrected, (Ejection::TimedOut, Ejection::Cancelled, totals(1, 1)));
}
