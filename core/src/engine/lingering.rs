//! Finished requests whose seats stay taken for a while.
//!
//! Finishing threads push them on a stack that nobody pops but whoever ticks, who takes all at once and keeps them in
//! order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::sync::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::ticket::{Slab, State, TicketId};

const EMPTY: u64 = u64::MAX;

/// Where finishing threads leave them.
pub(super) struct Inbox(AtomicU64);

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox(AtomicU64::new(EMPTY))
    }

    /// Leaves a ticket, due at `due`.
    pub(super) fn push(&self, slab: &Slab, index: u32, due: u64) {
        let Some(ticket) = slab.get(index) else { return };
        // The wait has been accounted for; the word serves anew.
        ticket.arrival.store(due, Release);
        let mut head = self.0.load(Relaxed);
        loop {
            ticket.chain.store(head, Release);
            // Release: with it go the two words above. Nobody pops single ones, so a repeated head does no harm.
            match self.0.compare_exchange(head, index as u64, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Acquire) == EMPTY
    }
}

/// Those that were taken out.
#[derive(Default)]
pub(super) struct Due {
    /// Time, order of finishing, ticket.
    heap: BinaryHeap<Reverse<(u64, u64, TicketBits)>>,
    seen: u64,
}

type TicketBits = u64;

impl Due {
    /// Takes in all that were left since the last time.
    pub(super) fn collect(&mut self, inbox: &Inbox, slab: &Slab) {
        // Acquire: the tickets' words.
        let mut at = inbox.0.swap(EMPTY, AcqRel);
        let mut batch = Vec::new();
        while let Some(ticket) = (at != EMPTY).then(|| slab.get(at as u32)).flatten() {
            let state = ticket.state();
            if state.state() == State::Lingering {
                batch.push((ticket.arrival.load(Acquire), TicketId::new(at as u32, state.generation())));
            }
            at = ticket.chain.load(Acquire);
        }
        for (due, id) in batch.into_iter().rev() {
            self.heap.push(Reverse((due, self.seen, id.to_bits())));
            self.seen += 1;
        }
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((due, ..))| *due)
    }

    /// The next that is due at `now`, with its time.
    pub(super) fn pop(&mut self, now: u64) -> Option<(u64, TicketId)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((due, _, bits))| (due, TicketId::from_bits(bits)))
    }
}
