//! Rules of the reference that no recorded trace reaches, on the sequential model.
#![cfg(not(loom))]

mod model;

use model::{Config, Discipline, Fidelity, Model, Outcome, work};

const MS: u64 = 1_000_000;

/// Hands of one card: hash h goes to queue h.
fn level(queues: u32, limit: u32) -> Model {
    Model::new(config(queues, limit))
}

fn config(queues: u32, limit: u32) -> Config {
    let discipline = match queues {
        0 => Discipline::Reject,
        _ => Discipline::Queue { queues, hand_size: 1, queue_length_limit: 5 },
    };
    Config { discipline, limit, fidelity: Fidelity::Kubernetes }
}

#[test]
fn an_excess_queue_emptied_by_a_cancel_stays() {
    let mut level = level(2, 0);
    level.arrive(0, 1, 1, (1, 0, 0));
    level.reconfigure(0, config(1, 0));
    level.cancel(0, 1);
    assert_eq!(level.queues().len(), 2);
}

#[test]
fn the_first_queue_emptied_goes_wherever_it_stands_and_those_behind_move_up() {
    let mut level = level(3, 2);
    level.arrive(0, 1, 0, (1, 0, 0));
    level.arrive(0, 2, 2, (1, 0, 0));
    level.arrive(0, 3, 2, (1, 0, 0));
    level.reconfigure(0, config(2, 2));
    level.finish(MS, 1);
    // What waits in queue 2 is within reach of the hands now, as queue 1.
    assert_eq!((level.queues().len(), level.granted()), (2, &[3][..]));
    assert_eq!(level.arrive(MS, 4, 1, (1, 0, 0)), (Outcome::Wait, 1));
    assert_eq!(level.queues()[1].waiting, [4]);
}

/// Queue 0 goes after it was granted last, so that the next look starts at the new queue 0. A look that grants nobody
/// is remembered then: after growth the next one starts behind the queues that were there.
#[test]
fn a_look_that_grants_nobody_counts_only_from_before_the_first_queue() {
    let granted_last = |looks: bool| {
        let mut level = level(2, 2);
        level.arrive(0, 1, 1, (1, 0, 0));
        level.arrive(0, 2, 0, (1, 0, 0));
        level.reconfigure(0, config(1, 2));
        level.finish(MS, 2);
        assert_eq!((level.queues().len(), level.robin()), (1, -1));
        if looks {
            level.arrive(MS, 3, 0, (2, 0, 0));
            assert_eq!(level.granted(), [], "it does not fit beside request 1");
        }
        level.robin()
    };
    assert_eq!((granted_last(false), granted_last(true)), (-1, 0));

    let mut other = level(2, 2);
    other.arrive(0, 1, 0, (1, 0, 0));
    other.arrive(0, 2, 1, (2, 0, 0));
    assert_eq!((other.granted(), other.robin()), (&[][..], 0), "it does not fit, and the place is kept");
}

#[test]
fn who_waits_when_a_level_stops_queueing_is_still_granted_and_newcomers_may_pass() {
    let mut level = level(1, 2);
    level.arrive(0, 1, 0, (1, 0, 0));
    level.arrive(0, 2, 0, (2, 0, 0));
    level.reconfigure(0, config(0, 2));
    assert_eq!(level.arrive(0, 3, 0, (1, 0, 0)), (Outcome::Run, -1));
    assert_eq!(level.arrive(0, 4, 0, (1, 0, 0)), (Outcome::ConcurrencyLimit, -1));
    level.finish(MS, 1);
    assert_eq!(level.granted(), []);
    level.finish(MS, 3);
    assert_eq!(level.granted(), [2]);
    level.finish(MS, 2);
    assert!(level.queues().is_empty());
    assert_eq!(level.robin(), -1);
}

#[test]
fn requests_that_came_past_the_queues_have_no_part_in_r() {
    let mut level = level(0, 4);
    level.arrive(0, 1, 0, (3, 0, 0));
    level.reconfigure(10 * MS, config(1, 4));
    assert_eq!(level.r(), 0);
    level.arrive(10 * MS, 2, 0, (1, 0, 0));
    level.finish(20 * MS, 1);
    assert_eq!(level.r(), work(1.0, 10 * MS as i64));
}

/// 8 seats for 3 ns are 2 units of work. Held by 7 seats these last 2 ns, which counted again would be 1 unit.
#[test]
fn a_request_whose_final_seats_are_cut_is_charged_for_the_work_it_came_with() {
    let mut level = level(1, 7);
    level.arrive(0, 1, 0, (1, 8, 3));
    let [clip] = level.clipped() else { panic!("it is cut to 7") };
    assert_eq!((clip.final_seats, clip.latency_ns), (7, 2));
    assert_eq!(level.queues()[0].next_dispatch_r, work(1.0, 3 * MS as i64) + 2);
}
