//! Tickets: one admitted or waiting request each, in a slab of fixed size.
//!
//! A ticket's life is its state word: generation 37 | clipped seats 24 | state 3. The generation grows each time the
//! place is used anew, so a handle of an earlier use matches nothing. 2^37 uses of one place at a million a second last
//! a day and a half; a stale handle would have to be used at just that moment to be taken for another's.

use std::fmt;

use crate::sync::{AtomicU32, AtomicU64, Ordering, Zeroed, zeroed_slice};
use crate::wait::Signal;
use Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Seats that a request takes, and for how long after its end.
///
/// A request takes the larger of the two numbers of seats when it is granted. At its end the caller is done; if
/// there is additional latency, the seats come back only after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Width {
    /// Seats while the request runs; at least 1, at most [`Width::MAX_SEATS`].
    pub initial_seats: u32,
    /// Seats during the additional latency, at most [`Width::MAX_SEATS`].
    pub final_seats: u32,
    /// Nanoseconds after the end of the request during which its seats stay taken.
    pub additional_latency: u64,
}

impl Width {
    /// One seat, back at once at the end: what most requests take.
    pub const ONE: Width = Width { initial_seats: 1, final_seats: 0, additional_latency: 0 };

    /// The most seats that a request may ask for.
    pub const MAX_SEATS: u32 = NOT_CLIPPED - 1;

    /// So many seats while the request runs.
    pub const fn seats(initial_seats: u32) -> Width {
        Width { initial_seats, final_seats: 0, additional_latency: 0 }
    }

    /// The larger of initial and final seats: what a grant takes.
    pub const fn max_seats(self) -> u32 {
        if self.initial_seats > self.final_seats { self.initial_seats } else { self.final_seats }
    }

    /// Whether the engine can seat it: 1 to [`Width::MAX_SEATS`] seats, an additional latency below 2^62 ns.
    pub const fn is_valid(self) -> bool {
        self.initial_seats >= 1 && self.max_seats() <= Self::MAX_SEATS && self.additional_latency < 1 << 62
    }
}

impl Default for Width {
    fn default() -> Self {
        Self::ONE
    }
}

/// Names one ticket of one engine, once: after the ticket has ended the name means nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TicketId(u64);

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 37;
const GENERATION: u64 = (1 << GENERATION_BITS) - 1;
const CLIP_BITS: u32 = 24;

/// Tickets that a slab can hold at most.
pub(crate) const MAX_TICKETS: usize = (1 << INDEX_BITS) - 1;

impl TicketId {
    pub(crate) fn new(index: u32, generation: u64) -> Self {
        TicketId(generation << INDEX_BITS | index as u64)
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32 & ((1 << INDEX_BITS) - 1)
    }

    #[inline]
    pub(crate) fn generation(self) -> u64 {
        self.0 >> INDEX_BITS
    }

    /// As a number, for handles that cross a language boundary.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Any number is accepted; one that names no living ticket is refused wherever it is used.
    pub fn from_bits(bits: u64) -> Self {
        TicketId(bits)
    }
}

impl fmt::Debug for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ticket {}.{}", self.index(), self.generation())
    }
}

/// What a ticket is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Ended, or never was.
    Free = 0,
    /// In its queue.
    Waiting = 1,
    /// Holds its seats.
    Running = 2,
    /// Ended for its caller; its seats stay taken for the additional latency.
    Lingering = 3,
}

/// Final seats were not cut.
pub(crate) const NOT_CLIPPED: u32 = (1 << CLIP_BITS) - 1;

/// A ticket's state word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateWord(pub(crate) u64);

impl StateWord {
    pub(crate) fn new(generation: u64, clip: u32, state: State) -> Self {
        StateWord((generation & GENERATION) << (CLIP_BITS + 3) | (clip as u64) << 3 | state as u64)
    }

    #[inline]
    pub(crate) fn generation(self) -> u64 {
        self.0 >> (CLIP_BITS + 3)
    }

    /// The limit to which final seats were cut at the grant.
    #[inline]
    pub(crate) fn clip(self) -> u32 {
        (self.0 >> 3) as u32 & NOT_CLIPPED
    }

    /// Whether the ticket of that name is in that state.
    #[inline]
    pub(crate) fn is(self, id: TicketId, state: State) -> bool {
        self.generation() == id.generation() && self.state() == state
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match self.0 & 7 {
            1 => State::Waiting,
            2 => State::Running,
            3 => State::Lingering,
            _ => State::Free,
        }
    }
}

/// A link of the list in which tickets wait: tag 40 | index 24. The tag grows with each change, so no link is ever
/// twice the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link(pub(crate) u64);

/// A link to nothing.
pub(crate) const NO_LINK: u32 = (1 << INDEX_BITS) - 1;

impl Link {
    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 as u32 & NO_LINK
    }

    #[inline]
    pub(crate) fn to(self, index: u32) -> Self {
        Link(((self.0 >> INDEX_BITS) + 1) << INDEX_BITS | index as u64)
    }
}

/// `start` of a ticket that has not been granted; no time is so large, and no two generations share it.
#[inline]
pub(crate) fn not_started(generation: u64) -> u64 {
    1 << 63 | generation
}

/// One place of the slab. First what each request writes, then what waiting and lingering add.
#[repr(C, align(128))]
pub(crate) struct Ticket {
    /// [`StateWord`].
    pub(crate) state: AtomicU64,
    /// When it was granted, nanoseconds; [`not_started`] before.
    pub(crate) start: AtomicU64,
    /// initial seats 32 | final seats 32.
    pub(crate) seats: AtomicU64,
    pub(crate) additional_latency: AtomicU64,
    /// queue slot 32 | removals of that slot when it arrived 32.
    pub(crate) place: AtomicU64,
    /// Which level; and by which tag its host counts it.
    pub(crate) level: AtomicU32,
    pub(crate) tag: AtomicU32,
    /// When it was handed in; while it lingers, when that ends. Nanoseconds.
    pub(crate) arrival: AtomicU64,
    /// Next in the list of free places, or of lingering tickets.
    pub(crate) chain: AtomicU64,
    pub(crate) next: AtomicU64,
    pub(crate) prev: AtomicU64,
    pub(crate) work: AtomicU64,
    pub(crate) arrival_r: AtomicU64,
    pub(crate) signal: Signal,
}

// SAFETY: atomic integers only.
unsafe impl Zeroed for Ticket {
    #[cfg(loom)]
    fn zeroed() -> Self {
        let w = || AtomicU64::new(0);
        Ticket {
            state: w(),
            start: w(),
            seats: w(),
            additional_latency: w(),
            place: w(),
            level: AtomicU32::new(0),
            tag: AtomicU32::new(0),
            chain: w(),
            arrival: w(),
            next: w(),
            prev: w(),
            work: w(),
            arrival_r: w(),
            signal: Signal::new(),
        }
    }
}

impl Ticket {
    #[inline]
    pub(crate) fn state(&self) -> StateWord {
        // Acquire: pairs with the release of whoever set the state; its other words are then seen too.
        StateWord(self.state.load(Acquire))
    }

    #[inline]
    pub(crate) fn width(&self) -> Width {
        let seats = self.seats.load(Acquire);
        Width {
            initial_seats: (seats >> 32) as u32,
            final_seats: seats as u32,
            additional_latency: self.additional_latency.load(Acquire),
        }
    }

    /// The width that the grant left it, if its final seats were cut then: the latency is stretched so that the work
    /// stays the same.
    #[inline]
    pub(crate) fn granted_width(&self, state: StateWord) -> Width {
        let width = self.width();
        if state.clip() == NOT_CLIPPED { width } else { clip(width, state.clip()) }
    }

    #[inline]
    pub(crate) fn set_width(&self, width: Width) {
        // Release: a helper that sees a field of this use must see, looking again, that the level's word moved on.
        self.seats.store((width.initial_seats as u64) << 32 | width.final_seats as u64, Release);
        self.additional_latency.store(width.additional_latency, Release);
    }
}

/// Cuts final seats to a limit.
pub(crate) fn clip(width: Width, limit: u32) -> Width {
    let work = if width.additional_latency > 0 {
        crate::level::virtual_time::work(width.final_seats, width.additional_latency as i64)
    } else {
        0
    };
    Width {
        final_seats: limit,
        additional_latency: if limit == 0 { 0 } else { (work as f64 / limit as f64 * 10.0) as u64 },
        ..width
    }
}

/// All tickets of an engine.
pub(crate) struct Slab {
    tickets: Box<[Ticket]>,
    /// Places never used yet begin here.
    fresh: AtomicU32,
    /// Free places: tag 32 | index 32; a stack linked by `chain`.
    free: AtomicU64,
    /// Generation of the first ticket in each place. Where slabs begin differently, none knows the other's tickets.
    first_generation: u64,
}

const EMPTY: u32 = u32::MAX;

impl Slab {
    pub(crate) fn new(capacity: usize, first_generation: u64) -> Self {
        Slab {
            tickets: zeroed_slice(capacity.min(MAX_TICKETS)),
            fresh: AtomicU32::new(0),
            free: AtomicU64::new(EMPTY as u64),
            first_generation,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.tickets)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.tickets.len()
    }

    /// Places that have ever been used come first: so many.
    pub(crate) fn used(&self) -> u32 {
        self.fresh.load(Acquire)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Ticket> {
        self.tickets.get(index as usize)
    }

    /// A place from the common stock.
    pub(crate) fn take(&self) -> Option<u32> {
        let mut head = self.free.load(Acquire);
        while head as u32 != EMPTY {
            let index = head as u32;
            let next = self.tickets[index as usize].chain.load(Acquire);
            // The tag makes the exchange fail if the stack has been touched, though the same place be on top again.
            match self.free.compare_exchange(head, retag(head, next as u32), AcqRel, Acquire) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
        let mut fresh = self.fresh.load(Relaxed);
        while (fresh as usize) < self.tickets.len() {
            // Relaxed: a place never used has nothing to show.
            match self.fresh.compare_exchange(fresh, fresh + 1, Relaxed, Relaxed) {
                Ok(_) => {
                    let begins = StateWord::new(self.first_generation, NOT_CLIPPED, State::Free);
                    self.tickets[fresh as usize].state.store(begins.0, Release);
                    return Some(fresh);
                }
                Err(now) => fresh = now,
            }
        }
        None
    }

    /// Gives a place back to the common stock.
    pub(crate) fn give(&self, index: u32) {
        let mut head = self.free.load(Acquire);
        loop {
            self.tickets[index as usize].chain.store(head & 0xFFFF_FFFF, Release);
            match self.free.compare_exchange(head, retag(head, index), AcqRel, Acquire) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

#[inline]
fn retag(head: u64, index: u32) -> u64 {
    ((head >> 32).wrapping_add(1)) << 32 | index as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_state_word_says_generation_clip_and_state() {
        for state in [State::Free, State::Waiting, State::Running, State::Lingering] {
            let w = StateWord::new(GENERATION, NOT_CLIPPED - 1, state);
            assert_eq!((w.generation(), w.clip(), w.state()), (GENERATION, NOT_CLIPPED - 1, state));
        }
        assert_eq!(StateWord::new(GENERATION + 1, 0, State::Free).generation(), 0);
    }

    #[test]
    fn a_changed_link_is_a_new_word_though_it_point_to_the_same() {
        let a = Link(0).to(5);
        assert_eq!(a.index(), 5);
        assert_ne!(a.to(5), a);
    }

    #[test]
    fn a_slab_hands_each_place_out_once_and_says_when_it_is_empty() {
        let slab = Slab::new(3, 0);
        let mut got: Vec<_> = std::iter::from_fn(|| slab.take()).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2]);
        slab.give(1);
        assert_eq!((slab.take(), slab.take()), (Some(1), None));
    }

    #[test]
    fn cutting_final_seats_keeps_their_work() {
        let w = clip(Width { initial_seats: 1, final_seats: 10, additional_latency: 1000 }, 4);
        assert_eq!((w.final_seats, w.additional_latency), (4, 2500));
    }
}
