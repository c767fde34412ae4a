//! No call of a level allocates once it has been made: arriving, waiting, being refused, finishing, releasing,
//! cancelling, granting, moving the limit, asking.
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Finished, Level, Refusal};
use maitred::shuffle::Deck;
use maitred::ticket::{State, TicketId, Width};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as asked of us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as asked of us.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as asked of us.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as asked of us.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread in a call.
fn allocations(call: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    call();
    ALLOCATIONS.get() - before
}

struct World {
    level: Level,
    cx: Context,
    deck: Deck,
    now: u64,
}

fn world(discipline: Discipline, limit: u32, fidelity: Fidelity, tick: u64) -> World {
    let arena = Arena::new(ArenaSize { tickets: 256, queues: 256, levels: 1, threads: 1 });
    let cx = Context::new(&arena).unwrap();
    let level = Level::new(&arena, 0, Config { discipline, limit }, fidelity, tick).unwrap();
    World { level, cx, deck: Deck::new(64, 8).unwrap(), now: 0 }
}

const QUEUES: Discipline = Discipline::Queue { queues: 64, hand_size: 8, queue_length_limit: 2 };

impl World {
    fn arrive(&mut self, flow: u64, width: Width) -> Result<(TicketId, State), Refusal> {
        self.now += 700;
        let hash = flow.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hand = self.deck.deal(hash);
        // Half of the callers have no hand, which is then dealt in the call.
        let hand = flow.is_multiple_of(2).then_some(&hand);
        self.level.arrive(&mut self.cx, hash, hand, width, self.now).outcome.map(|a| (a.id, a.state))
    }

    fn finish(&mut self, id: TicketId) -> Finished {
        self.now += 700;
        self.level.finish(&mut self.cx, id, self.now).unwrap()
    }

    /// All kinds of calls, and how they can end.
    fn story(&mut self) -> Seen {
        let mut seen = Seen::default();
        let mut tickets = [None; 256];
        for (i, place) in tickets.iter_mut().enumerate() {
            let lingers = i % 5 == 0;
            let width = Width {
                initial_seats: 1 + (i % 3) as u32,
                final_seats: if lingers { 9 } else { 0 },
                additional_latency: if lingers { 1000 } else { 0 },
            };
            match self.arrive(i as u64 % 37, width) {
                Ok((id, State::Running)) => (seen.ran, *place) = (seen.ran + 1, Some(id)),
                Ok((id, _)) => (seen.waited, *place) = (seen.waited + 1, Some(id)),
                Err(_) => seen.refused += 1,
            }
        }
        for place in tickets.iter_mut().step_by(7) {
            if let Some(id) = place.take_if(|id| self.state(*id) == State::Waiting) {
                self.level.cancel(&mut self.cx, id, self.now).unwrap();
                seen.cancelled += 1;
            }
        }
        self.level.set_limit(&mut self.cx, 40, self.now);
        self.level.set_limit(&mut self.cx, 6, self.now);
        black_box(self.level.take_demand(&mut self.cx, self.now));
        black_box(self.level.occupancy(&mut self.cx));
        black_box(self.level.totals());
        let runs = |w: &World, t: &Option<TicketId>| t.is_some_and(|id| w.state(id) == State::Running);
        while let Some(id) = tickets.iter_mut().find(|t| runs(self, t)).and_then(Option::take) {
            if let Finished::Lingers(_) = self.finish(id) {
                self.level.release(&mut self.cx, id, self.now).unwrap();
                seen.lingered += 1;
            }
            assert!(self.level.finish(&mut self.cx, id, self.now).is_err());
        }
        seen
    }

    fn state(&self, id: TicketId) -> State {
        self.level.poll(&self.cx, id)
    }
}

#[derive(Default, Debug)]
struct Seen {
    ran: u32,
    waited: u32,
    refused: u32,
    cancelled: u32,
    lingered: u32,
}

#[test]
fn no_call_allocates_whatever_becomes_of_it() {
    for fidelity in [Fidelity::Corrected, Fidelity::Kubernetes] {
        for tick in [0, 1000] {
            let mut world = world(QUEUES, 6, fidelity, tick);
            // Some things are made at their first use.
            world.story();
            let mut seen = Seen::default();
            assert_eq!(allocations(|| seen = world.story()), 0, "{fidelity:?}");
            let Seen { ran, waited, refused, cancelled, lingered } = seen;
            assert!([ran, waited, refused, cancelled, lingered].iter().all(|n| *n > 0), "{seen:?}");
        }
    }
}

#[test]
fn no_call_allocates_in_a_level_without_queues() {
    for discipline in [Discipline::Reject, Discipline::Exempt] {
        let mut world = world(discipline, 6, Fidelity::Corrected, 0);
        world.story();
        assert_eq!(allocations(|| _ = world.story()), 0, "{discipline:?}");
    }
}

/// Were it not counted, the others would say nothing.
#[test]
fn an_allocation_is_counted() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
    let mut world = world(QUEUES, 6, Fidelity::Corrected, 0);
    let more = Discipline::Queue { queues: 128, hand_size: 8, queue_length_limit: 2 };
    let config = Config { discipline: more, limit: 6 };
    assert!(allocations(|| world.level.configure(&mut world.cx, &config, 0).unwrap()) > 0);
}
