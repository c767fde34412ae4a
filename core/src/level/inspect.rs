//! Looking at a level without changing it: for dumps, metrics and tests.

use super::queue::live_slots;
use super::record::{GROUP, NONE};
use super::transaction::{Stale, Transaction};
use super::{Context, Level};
use crate::sync::Ordering::Acquire;
use crate::ticket::{Link, NOT_CLIPPED, State, TicketId, Width};

/// What a level holds, at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Occupancy {
    /// Current limit, seats.
    pub limit: u32,
    /// Seats held by running and lingering requests.
    pub seats_in_use: u32,
    /// Requests waiting.
    pub waiting: u32,
    /// Seats they wait for (with the reference's miscount, if the level is to have its faults).
    pub seats_waiting: u64,
    /// Queues with waiting or running requests.
    pub active_queues: u32,
    /// Queues there are; more than configured while surplus ones drain.
    pub queues: u32,
    /// Progress meter, 1/100 000 000 seat-second.
    pub r: u64,
    /// When R was that; nanoseconds.
    pub at: u64,
    /// Hands dealt, ever.
    pub arrivals: u64,
}

/// One queue, at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueState {
    /// Virtual time up to which it has been served; units of R.
    pub next_dispatch_r: u64,
    /// Running requests that came from it.
    pub running: u32,
    /// Waiting requests.
    pub waiting: u32,
    /// Work of those, units of R.
    pub work: u64,
}

/// Requests of a level, by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Granted their seats, at once or later.
    pub dispatched: u64,
    /// Ended; their seats may linger. `dispatched - finished` run now.
    pub finished: u64,
    /// Left while they waited.
    pub cancelled: u64,
    /// Refused: queue full.
    pub queue_full: u64,
    /// Refused: no seat, and the level does not queue.
    pub concurrency_limit: u64,
    /// Refused: no ticket left.
    pub out_of_tickets: u64,
}

/// One request of a level, at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestState {
    /// Its ticket.
    pub id: TicketId,
    /// Waiting, running or lingering.
    pub state: State,
    /// Position of its queue, if it came through one that still is.
    pub queue: Option<u32>,
    /// Its width; as the grant left it, if it was granted.
    pub width: Width,
    /// Whether its final seats were cut to the limit at the grant.
    pub clipped: bool,
    /// When it was granted; nanoseconds. Without meaning while it waits.
    pub granted_at: u64,
}

impl Level {
    /// What the level holds now.
    pub fn occupancy(&self, cx: &mut Context) -> Occupancy {
        self.look(cx, |tx| {
            let h = &tx.h;
            Ok(Occupancy {
                limit: h.limit,
                seats_in_use: h.in_use,
                waiting: h.waiting,
                seats_waiting: h.waiting_seats + h.leaked_seats,
                active_queues: h.active,
                queues: h.live,
                r: h.clock.r,
                at: h.clock.at,
                arrivals: h.arrivals,
            })
        })
    }

    /// Whether nobody is in the level. Whoever came before the answer is seen; who comes later sees all that the caller did
    /// before asking.
    pub(crate) fn is_idle(&self, cx: &mut Context) -> bool {
        // A step, not a look: it changes the word that arrivals change, so they come in an order.
        self.step(cx, |tx| Ok(tx.h.in_use == 0 && tx.h.waiting == 0))
    }

    /// The queue at a position now, if there is one.
    pub fn queue(&self, cx: &mut Context, position: u32) -> Option<QueueState> {
        self.look(cx, |tx| {
            if position >= tx.h.live {
                return Ok(None);
            }
            let slot = tx.slot_at(position)?;
            let q = tx.peek(slot)?;
            Ok(Some(QueueState {
                next_dispatch_r: q.next_dispatch_r,
                running: q.running,
                waiting: q.waiting,
                work: if q.waiting > 0 { q.work } else { 0 },
            }))
        })
    }

    /// Position just after which the scan for the next queue to grant begins; `None`: before the first queue.
    pub fn last_granted(&self, cx: &mut Context) -> Option<u32> {
        self.look(cx, |tx| {
            let Transaction { h, .. } = tx;
            let before = tx.position_of(h.last.min(h.slots)) + h.last.saturating_sub(h.slots);
            Ok(before.checked_sub(1))
        })
    }

    /// Tickets that wait in the queue at a position, oldest first. Allocates.
    pub fn waiting_in(&self, cx: &mut Context, position: u32) -> Vec<TicketId> {
        self.look(cx, |tx| {
            if position >= tx.h.live {
                return Ok(Vec::new());
            }
            let q = tx.peek(tx.slot_at(position)?)?;
            let mut tickets = Vec::new();
            let mut next = q.head;
            for _ in 0..q.waiting {
                let ticket = tx.ticket(next)?;
                tickets.push(TicketId::new(next, ticket.state().generation()));
                next = Link(ticket.next.load(Acquire)).index();
            }
            Ok(tickets)
        })
    }

    /// All requests that the level holds, in no order. Allocates, and looks at every ticket of the arena: for dumps.
    pub fn requests(&self, cx: &mut Context) -> Vec<RequestState> {
        self.look(cx, |tx| {
            let tickets = 0..self.arena.tickets.used();
            tickets.filter_map(|index| self.request_at(tx, index).transpose()).collect()
        })
    }

    /// The request that the ticket in place `index` stands for, if it is one of this level's.
    pub(crate) fn request(&self, cx: &mut Context, index: u32) -> Option<RequestState> {
        self.look(cx, |tx| self.request_at(tx, index))
    }

    fn request_at(&self, tx: &Transaction, index: u32) -> Result<Option<RequestState>, Stale> {
        let ticket = tx.ticket(index)?;
        let state = ticket.state();
        if state.state() == State::Free || ticket.level.load(Acquire) != self.id {
            return Ok(None);
        }
        let place = ticket.place.load(Acquire);
        let slot = (place >> 32) as u32;
        let current = slot != NONE && slot < tx.h.slots && tx.peek(slot)?.removals == place as u32;
        Ok(Some(RequestState {
            id: TicketId::new(index, state.generation()),
            state: state.state(),
            queue: current.then(|| tx.position_of(slot)),
            width: ticket.granted_width(state),
            clipped: state.clip() != NOT_CLIPPED,
            granted_at: ticket.start.load(Acquire),
        }))
    }

    /// Requests counted since the level was made.
    pub fn totals(&self) -> Totals {
        let [dispatched, finished, cancelled, queue_full, concurrency_limit, out_of_tickets] =
            self.arena.counters.read(self.id);
        Totals { dispatched, finished, cancelled, queue_full, concurrency_limit, out_of_tickets }
    }
}

impl Transaction<'_> {
    /// Live slots before this one.
    fn position_of(&self, slot: u32) -> u32 {
        (0..slot.div_ceil(GROUP)).map(|gi| live_slots(gi, &self.group_now(gi), slot).count_ones()).sum()
    }
}
