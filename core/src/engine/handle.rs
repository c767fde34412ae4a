//! Requests by number, for hosts that keep numbers: other languages, simulations.
//!
//! The engine holds no reference to the caller here, and nothing ends by itself: each request that was admitted must be
//! finished or cancelled, once. A wrong, stale or doubled number is refused and does nothing.

use super::{Engine, Outcome, Rejection, ResolvedFlow, WAITED, counter};
use crate::classify::Request;
use crate::fidelity::Fidelity;
use crate::level::{Admitted, Finished};
use crate::sync::Ordering::{Acquire, Release};
use crate::ticket::{State, TicketId, Width};

/// The answer to a request that was handed in.
#[derive(Debug, Clone, Copy)]
pub struct Handed {
    /// Index of its flow schema in the policy by which it was decided.
    pub schema: u32,
    /// Index of its priority level there.
    pub level: u32,
    /// What became of it.
    pub outcome: Result<Admitted, Rejection>,
}

impl Engine {
    /// A request arrives at `now`.
    pub fn submit<G: AsRef<[u8]>>(&self, request: &Request<'_, G>, width: Width, now: u64) -> Handed {
        // The snapshot is held until the request is seated, so its levels cannot have gone.
        self.with_snapshot(|s| self.place(&s.target(request), width, now))
    }

    /// A request of a resolved flow arrives at `now`.
    #[inline]
    pub fn submit_flow(&self, flow: &ResolvedFlow, width: Width, now: u64) -> Handed {
        loop {
            let target = flow.target();
            // Acquire: the levels of that generation have been made.
            if self.generation.load(Acquire) != target.generation {
                return self.with_snapshot(|s| {
                    self.place(&flow.with_request(|request| s.target(request)), width, now)
                });
            }
            let handed = self.place(target, width, now);
            // If objects changed just now, the level may have gone and its place be another's.
            if self.generation.load(Acquire) == target.generation
                || self.is_tenant(target.place, target.tenancy)
            {
                return handed;
            }
            if let Ok(admitted) = handed.outcome {
                let _ = self.cancel(admitted.id, Rejection::Cancelled, now);
                let _ = self.finish(admitted.id, now);
            }
        }
    }

    fn is_tenant(&self, place: u32, tenancy: u32) -> bool {
        self.seats(place).is_some_and(|seats| seats.tenancy.load(Acquire) == tenancy)
    }

    /// A running request has ended. Whoever is next in its level is granted.
    ///
    /// Refused as [`Rejection::BadTicket`] for a request that waits, has ended or never was.
    pub fn finish(&self, id: TicketId, now: u64) -> Result<(), Rejection> {
        let ticket = self.arena.tickets.get(id.index()).ok_or(Rejection::BadTicket)?;
        let seats = self.level_of(id).ok_or(Rejection::BadTicket)?;
        let (row, arrival, start) =
            (ticket.schema.load(Acquire), ticket.arrival.load(Acquire), ticket.start.load(Acquire));
        self.threads.with(|cx| {
            let finished = seats.level.finish(cx, id, now).map_err(|_| Rejection::BadTicket)?;
            let (me, counts) = (cx.number(), &self.outcomes);
            if row & WAITED != 0 {
                counts.add(me, row & !WAITED, Outcome::Dispatched as usize, 1);
            }
            let row = row & !WAITED;
            counts.add(me, row, Outcome::Finished as usize, 1);
            counts.add(me, row, Outcome::Waited as usize, start.saturating_sub(arrival));
            counts.add(me, row, Outcome::Served as usize, now.saturating_sub(start));
            if let Finished::Lingers(ns) = finished
                && self.inbox.push(&self.arena.tickets, id.index(), now.saturating_add(ns))
            {
                self.ticker.notify();
            }
            Ok(())
        })
    }

    /// A waiting request gives up its place, because it waited too long ([`Rejection::TimedOut`]) or for another reason.
    ///
    /// Refused as [`Rejection::BadTicket`] if it has been granted meanwhile: then it runs, and must be finished.
    pub fn cancel(&self, id: TicketId, why: Rejection, now: u64) -> Result<(), Rejection> {
        let ticket = self.arena.tickets.get(id.index()).ok_or(Rejection::BadTicket)?;
        let seats = self.level_of(id).ok_or(Rejection::BadTicket)?;
        let row = ticket.schema.load(Acquire) & !WAITED;
        let why = match self.options.fidelity {
            // The reference does not tell the two apart.
            Fidelity::Kubernetes => Rejection::TimedOut,
            Fidelity::Corrected => why,
        };
        self.threads.with(|cx| {
            seats.level.cancel(cx, id, now).map_err(|_| Rejection::BadTicket)?;
            if why == Rejection::TimedOut {
                seats.turned_away(now);
            }
            self.outcomes.add(cx.number(), row, counter(why), 1);
            Ok(())
        })
    }

    /// What a request is doing now.
    pub fn poll(&self, id: TicketId) -> State {
        self.state_of(id)
    }

    /// When a running request was granted its seats; nanoseconds.
    pub fn granted_at(&self, id: TicketId) -> Option<u64> {
        let ticket = self.arena.tickets.get(id.index())?;
        let at = ticket.start.load(Acquire);
        let state = ticket.state();
        (state.generation() == id.generation() && state.state() == State::Running).then_some(at)
    }

    /// From now on the calling thread notes which requests its calls grant, for [`take_grants`](Engine::take_grants). May
    /// allocate with each grant: for simulations and tests.
    pub fn note_grants(&self) {
        self.threads.with(|cx| cx.granted.get_or_insert_default().clear());
    }

    /// The requests that the calling thread's calls granted since the last time, in order, with those that ran at once.
    pub fn take_grants(&self) -> Vec<TicketId> {
        self.threads.with(|cx| cx.granted.as_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Counts the grant of a request that had waited, once; whoever owns the ticket calls this.
    pub(super) fn count_grant(&self, id: TicketId) {
        let Some(ticket) = self.arena.tickets.get(id.index()) else { return };
        let row = ticket.schema.load(Acquire);
        if row & WAITED != 0 {
            ticket.schema.store(row & !WAITED, Release);
            self.threads
                .with(|cx| self.outcomes.add(cx.number(), row & !WAITED, Outcome::Dispatched as usize, 1));
        }
    }
}
