//! Rare states of a level, one thread: what is past the end of something, late, or too much.
#![cfg(not(loom))]

use std::sync::Arc;

use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Finished, Level, Refusal};
use maitred::ticket::{TicketId, Width};

const MS: u64 = 1_000_000;

fn queues(queues: u32) -> Discipline {
    Discipline::Queue { queues, hand_size: 1, queue_length_limit: 5 }
}

struct World {
    level: Level,
    cx: Context,
}

fn world(discipline: Discipline, limit: u32, fidelity: Fidelity) -> World {
    let arena: Arc<Arena> = Arena::new(ArenaSize { tickets: 512, queues: 64, levels: 1, threads: 1 });
    let cx = Context::new(&arena).unwrap();
    World { level: Level::new(&arena, 0, Config { discipline, limit }, fidelity, 0).unwrap(), cx }
}

impl World {
    /// Hands of one card: flow f goes to queue f.
    fn arrive(&mut self, now: u64, flow: u64, width: Width) -> Result<TicketId, Refusal> {
        self.level.arrive(&mut self.cx, flow, None, width, now).outcome.map(|a| a.id)
    }

    fn configure(&mut self, now: u64, discipline: Discipline, limit: u32) {
        self.level.configure(&mut self.cx, &Config { discipline, limit }, now).unwrap();
    }
}

/// The reference removes a queue under a lingering request. Here its slot, too, is gone when the seats come back.
#[test]
fn seats_come_back_from_a_request_whose_queue_and_slot_are_gone() {
    let mut w = world(queues(4), 4, Fidelity::Kubernetes);
    let lingering =
        w.arrive(0, 3, Width { final_seats: 1, additional_latency: 9 * MS, ..Width::ONE }).unwrap();
    let other = w.arrive(0, 3, Width::ONE).unwrap();
    w.configure(0, queues(2), 4);
    assert_eq!(w.level.finish(&mut w.cx, lingering, MS), Ok(Finished::Lingers(9 * MS)));
    w.level.finish(&mut w.cx, other, MS).unwrap();
    assert_eq!(w.level.occupancy(&mut w.cx).queues, 3, "queue 3 is gone");
    w.level.tidy(&mut w.cx);
    assert_eq!(w.level.occupancy(&mut w.cx).seats_in_use, 1);
    w.level.release(&mut w.cx, lingering, 10 * MS).unwrap();
    assert_eq!(w.level.occupancy(&mut w.cx).seats_in_use, 0);
}

/// A queue is charged for the service that its request had by the level's time, not by that of a caller behind it.
#[test]
fn an_end_before_the_time_of_the_level_counts_as_at_that_time() {
    let charged = |now, waiter: bool| {
        let mut w = world(queues(2), 1, Fidelity::Corrected);
        let first = w.arrive(0, 0, Width::ONE).unwrap();
        if waiter {
            w.arrive(0, 1, Width::ONE).unwrap();
        }
        w.level.set_limit(&mut w.cx, 1, 2 * MS);
        w.level.finish(&mut w.cx, first, now).unwrap();
        w.level.queue(&mut w.cx, 0).unwrap().next_dispatch_r
    };
    for waiter in [false, true] {
        assert_eq!(charged(MS, waiter), charged(2 * MS, waiter), "with a waiter: {waiter}");
        assert_ne!(charged(3 * MS, waiter), charged(2 * MS, waiter));
    }
}

#[test]
fn more_seats_than_a_level_can_count_are_refused_and_nothing_is_lost() {
    let widest = Width::seats(Width::MAX_SEATS);
    let mut w = world(Discipline::Exempt, 0, Fidelity::Corrected);
    let tickets: Vec<_> = (0..256).map(|_| w.arrive(0, 0, widest).unwrap()).collect();
    assert_eq!(w.arrive(0, 0, widest), Err(Refusal::ConcurrencyLimit));
    for id in tickets {
        w.level.finish(&mut w.cx, id, 1).unwrap();
    }
    assert_eq!(w.level.occupancy(&mut w.cx).seats_in_use, 0);
    assert!(w.arrive(1, 0, widest).is_ok());
}

/// It would be a configuration that was never checked.
#[test]
fn with_queues_that_nobody_can_be_dealt_a_hand_of_requests_still_come_and_go() {
    for (queues, hand_size) in [(0, 1), (2, 0), (2, 3), (1 << 10, 15)] {
        let arena = Arena::new(ArenaSize { tickets: 8, queues: 1 << 10, levels: 1, threads: 1 });
        let discipline = Discipline::Queue { queues, hand_size, queue_length_limit: 1 };
        let config = Config { discipline, limit: 1 };
        let mut w = World {
            cx: Context::new(&arena).unwrap(),
            level: Level::new(&arena, 0, config, Fidelity::Corrected, 0).unwrap(),
        };
        let id = w.arrive(0, 7, Width::ONE).unwrap();
        let second = w.arrive(0, 7, Width::ONE);
        assert_eq!(second.is_ok(), queues > 0, "{queues} queues");
        w.level.finish(&mut w.cx, id, 1).unwrap();
        if let Ok(id) = second {
            w.level.finish(&mut w.cx, id, 1).unwrap();
        }
        assert_eq!(w.level.occupancy(&mut w.cx).seats_in_use, 0);
    }
}
