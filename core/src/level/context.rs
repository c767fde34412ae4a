//! What levels share (the arena), and what a thread brings along (its context).

use std::sync::{Arc, Mutex, PoisonError};

use arrayvec::ArrayVec;

use super::EVENTS;
use super::operation::Descriptor;
use super::record::{Cells, OutOfCells};
use super::transaction::{MAX_QUEUES, Scratch};
use super::word::{CellRef, MAX_CELLS, MAX_SLOTS};
use crate::counters::Counters;
use crate::sync::{Ordering::Acquire, zeroed_slice};
use crate::ticket::{MAX_TICKETS, Slab, TicketId};

/// Free places that a thread keeps at hand, so that admitting and finishing touch no common stock.
const TICKET_CACHE: usize = 16;

/// Sizes of an [`Arena`]. All of it is reserved at once; the system backs only what has been used. A number out of its
/// bounds counts as the nearest within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaSize {
    /// Requests that may wait, run or linger at the same time, at least; 128 bytes each. At most about 2^24. Each thread
    /// keeps up to 16 free tickets at hand, for which there is memory besides, so a few more requests may find room.
    pub tickets: usize,
    /// Queues of all levels together, each level's rounded up to a power of two; some 72 bytes each. At most about 3.9
    /// million.
    pub queues: usize,
    /// Levels at the same time, at most 2^16.
    pub levels: usize,
    /// Threads at the same time; about 2 KiB each, and in an engine what they count. 1 to 4095.
    pub threads: usize,
}

const MAX_LEVELS: usize = 1 << 16;

impl ArenaSize {
    pub(crate) fn bounded(self) -> Self {
        ArenaSize {
            tickets: self.tickets.min(MAX_TICKETS),
            queues: self.queues.min(MAX_CELLS),
            levels: self.levels.min(MAX_LEVELS),
            // One slot is left for a context that threads share.
            threads: self.threads.clamp(1, MAX_SLOTS - 1),
        }
    }
}

impl Default for ArenaSize {
    fn default() -> Self {
        ArenaSize { tickets: 1 << 17, queues: 1 << 18, levels: 1 << 12, threads: 1 << 10 }
    }
}

/// The memory that all levels of an engine share: cells, tickets, descriptors. Fixed when it is made.
pub struct Arena {
    pub(crate) cells: Cells,
    pub(crate) tickets: Slab,
    pub(super) descriptors: Box<[Descriptor]>,
    /// A row a level.
    pub(super) counters: Counters<EVENTS>,
    /// Grants: a row a tag.
    pub(crate) grants: Counters<1>,
    slots: Mutex<Slots>,
}

/// What an engine asks of its arena beyond sizes.
#[derive(Default)]
pub(crate) struct Extras {
    /// Contexts besides those of the threads.
    pub(crate) contexts: usize,
    /// Tags by which grants are counted.
    pub(crate) tags: usize,
    /// Generation of the first ticket in each place.
    pub(crate) first_generation: u64,
}

#[derive(Default)]
struct Slots {
    free: Vec<u32>,
    fresh: u32,
}

impl Arena {
    /// Reserves memory of the given sizes. Allocates.
    pub fn new(size: ArenaSize) -> Arc<Arena> {
        Arena::with(size, &Extras::default())
    }

    pub(crate) fn with(size: ArenaSize, extras: &Extras) -> Arc<Arena> {
        let size = size.bounded();
        let contexts = (size.threads + extras.contexts).min(MAX_SLOTS);
        // A group cell for each sixteen queues, and some more for levels whose last group is not full.
        let narrow = size.queues + size.queues / 16 + size.levels;
        // No thread may keep the last free tickets from the others.
        let at_hand = if size.tickets > 0 { contexts * TICKET_CACHE } else { 0 };
        Arc::new(Arena {
            cells: Cells::new((2 * size.levels, narrow), (contexts * SPARE_WIDE, contexts * SPARE_NARROW)),
            tickets: Slab::new(size.tickets + at_hand, extras.first_generation),
            descriptors: zeroed_slice(contexts),
            counters: Counters::new(size.levels, contexts),
            grants: Counters::new(extras.tags, contexts),
            slots: Mutex::default(),
        })
    }

    /// Bytes of address space reserved.
    pub fn bytes(&self) -> usize {
        let counters = self.counters.bytes() + self.grants.bytes();
        self.cells.bytes() + self.tickets.bytes() + size_of_val(&*self.descriptors) + counters
    }

    /// Requests that may wait, run or linger at the same time; with the tickets that threads have at hand.
    pub fn ticket_capacity(&self) -> usize {
        self.tickets.capacity()
    }

    /// Contexts that there can be.
    pub(crate) fn contexts(&self) -> usize {
        self.descriptors.len()
    }

    fn take_slot(&self) -> Option<u32> {
        let mut s = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = s.free.pop() {
            return Some(slot);
        }
        ((s.fresh as usize) < self.descriptors.len()).then(|| {
            s.fresh += 1;
            s.fresh - 1
        })
    }

    fn give_slot(&self, slot: u32) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).free.push(slot);
    }
}

/// Spare cells of a context.
const SPARE_WIDE: usize = 2;
const SPARE_NARROW: usize = 2 * MAX_QUEUES;

/// The cells of this thread that no word points to.
pub(super) struct Spares {
    pub(super) header: CellRef,
    pub(super) clock: CellRef,
    pub(super) queues: [CellRef; MAX_QUEUES],
    pub(super) groups: [CellRef; MAX_QUEUES],
}

/// A thread's part of the machinery: its spare cells, its descriptor, its scratch space and some free tickets.
///
/// Made once a thread (this allocates and takes a short lock), given back when dropped. A thread that dies without
/// that loses its context and nothing else.
pub struct Context {
    pub(super) arena: Arc<Arena>,
    pub(super) slot: u32,
    pub(super) sequence: u64,
    pub(super) spares: Spares,
    pub(super) scratch: Box<Scratch>,
    tickets: ArrayVec<u32, TICKET_CACHE>,
    /// If set, the tickets that this context's calls granted, in order: for tests, replays and simulations (it may
    /// allocate). Whoever reads it clears it.
    pub granted: Option<Vec<TicketId>>,
    /// If set, the steps that this context's calls made, in order: for tests and replays (it may allocate). Whoever
    /// reads it clears it.
    pub steps: Option<Vec<Step>>,
}

/// One step of a level: a change that was more than seating a request, or unseating one, while nobody waits.
///
/// The steps of a level are numbered in the order in which they happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Its number.
    pub version: u64,
    /// It made only grants that the step before had no room for.
    pub leftover: bool,
    /// How many tickets it granted.
    pub grants: usize,
    /// The level afterwards: seats held by running and lingering requests,
    pub seats_in_use: u32,
    /// the limit,
    pub limit: u32,
    /// requests waiting,
    pub waiting: u32,
    /// whether there are grants that it had no room for,
    pub pending: bool,
    /// the time, nanoseconds,
    pub at: u64,
    /// and R, 1/100 000 000 seat-second.
    pub r: u64,
}

impl Context {
    /// A context for one thread. Fails if the arena's threads or cells are all taken.
    pub fn new(arena: &Arc<Arena>) -> Result<Context, OutOfCells> {
        let none = OutOfCells { wanted: 1, left: 0 };
        let slot = arena.take_slot().ok_or(none)?;
        let (wide, narrow) = match arena.cells.take_spares(SPARE_WIDE, SPARE_NARROW) {
            Ok(cells) => cells,
            Err(e) => {
                arena.give_slot(slot);
                return Err(e);
            }
        };
        arena.counters.enlist(slot);
        arena.grants.enlist(slot);
        Ok(Context {
            arena: arena.clone(),
            slot,
            // The slot's last user may have left its number there.
            sequence: arena.descriptors[slot as usize].status.load(Acquire) >> 2,
            spares: Spares {
                header: wide[0],
                clock: wide[1],
                queues: std::array::from_fn(|i| narrow[i]),
                groups: std::array::from_fn(|i| narrow[MAX_QUEUES + i]),
            },
            scratch: Box::default(),
            tickets: ArrayVec::new(),
            granted: None,
            steps: None,
        })
    }

    /// Which of the arena's threads it is: for counters of one writer.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.slot
    }

    #[inline]
    pub(super) fn take_ticket(&mut self) -> Option<u32> {
        self.tickets.pop().or_else(|| self.arena.tickets.take())
    }

    #[inline]
    pub(super) fn give_ticket(&mut self, index: u32) {
        if let Err(full) = self.tickets.try_push(index) {
            self.arena.tickets.give(full.element());
        }
    }

    #[inline]
    pub(super) fn note_grant(&mut self, ticket: TicketId) {
        if let Some(granted) = &mut self.granted {
            granted.push(ticket);
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        for index in self.tickets.drain(..) {
            self.arena.tickets.give(index);
        }
        let s = &self.spares;
        self.arena.cells.give_spares([s.header, s.clock], s.queues.into_iter().chain(s.groups));
        self.arena.give_slot(self.slot);
    }
}
