//! Requests by number, for hosts that keep numbers: other languages, simulations.
//!
//! The engine holds no reference to the caller here, and nothing ends by itself: each request that was admitted must be
//! finished or cancelled, once. A wrong, stale or doubled number is refused and does nothing.

use super::outcome::Outcome;
use super::snapshot::{Snapshot, Target};
use super::{Engine, Rejection, ResolvedFlow};
use crate::classify::Request;
use crate::fidelity::Fidelity;
use crate::level::{Admitted, Context, Finished};
use crate::sync::Ordering::Acquire;
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
    /// A request arrives at `now`. As [`admit`](Engine::admit), for those who keep numbers.
    pub fn submit<G: AsRef<[u8]>>(&self, request: &Request<'_, G>, width: Width, now: u64) -> Handed {
        self.threads.with(|cx| self.place_by(cx, width, now, |s| s.target(request)))
    }

    /// A request of a resolved flow arrives at `now`. As [`admit_flow`](Engine::admit_flow), for those who keep numbers.
    #[inline]
    pub fn submit_flow(&self, flow: &ResolvedFlow, width: Width, now: u64) -> Handed {
        self.threads.with(|cx| {
            let target = flow.target();
            // Acquire: the levels of that generation have been made.
            if self.generation.load(Acquire) == target.generation
                && let Some(handed) = self.place(cx, target, width, now)
            {
                return handed;
            }
            self.place_by(cx, width, now, |s| flow.with_request(|request| s.target(request)))
        })
    }

    /// A request arrives at `now` that was classified before, by a policy of the same objects: of the flow schema with this
    /// index in [`Policy::schemas`](crate::policy::Policy::schemas), of the flow with this
    /// [hash](crate::flow::flow_hash). For hosts that keep requests in that form; deals the hand anew each time.
    ///
    /// Refused as [`Rejection::BadArgument`] where there is no such schema. Any thread may call. Neither blocks nor
    /// allocates.
    pub fn submit_hashed(&self, schema: u32, hash: u64, width: Width, now: u64) -> Handed {
        let unknown = Handed { schema, level: 0, outcome: Err(Rejection::BadArgument) };
        self.threads.with(|cx| {
            self.try_place_by(cx, width, now, |s| s.target_of_hash(schema, hash)).unwrap_or(unknown)
        })
    }

    fn place_by(
        &self,
        cx: &mut Context,
        width: Width,
        now: u64,
        target: impl Fn(&Snapshot) -> Target,
    ) -> Handed {
        self.try_place_by(cx, width, now, |s| Some(target(s))).expect("there is always a target")
    }

    /// Seats a request where the objects in force say; again only if new ones came meanwhile and took the level out of
    /// force. None where they say nothing.
    #[inline]
    fn try_place_by(
        &self,
        cx: &mut Context,
        width: Width,
        now: u64,
        target: impl Fn(&Snapshot) -> Option<Target>,
    ) -> Option<Handed> {
        loop {
            let target = self.current.read(cx.number(), &target)?;
            if let Some(handed) = self.place(cx, &target, width, now) {
                return Some(handed);
            }
        }
    }

    /// A running request has ended at `now`. Whoever is next in its level is granted.
    ///
    /// Refused as [`Rejection::BadTicket`], without effect, for a request that waits, has ended or never was. Any thread may
    /// call. Neither blocks nor allocates; costs a few atomic operations, and more for each request that is granted.
    pub fn finish(&self, id: TicketId, now: u64) -> Result<(), Rejection> {
        let ticket = self.arena().tickets.get(id.index()).ok_or(Rejection::BadTicket)?;
        let seats = self.level_of(id).ok_or(Rejection::BadTicket)?;
        // First the state: who sees the ticket run sees since when.
        if !ticket.state().is(id, State::Running) {
            return Err(Rejection::BadTicket);
        }
        let (row, arrival, start) =
            (ticket.tag.load(Acquire), ticket.arrival.load(Acquire), ticket.start.load(Acquire));
        self.threads.with(|cx| {
            let finished = seats.level.finish(cx, id, now).map_err(|_| Rejection::BadTicket)?;
            self.threads.count(cx, row, Outcome::Finished, 1);
            self.threads.count(cx, row, Outcome::Waited, start.saturating_sub(arrival));
            self.threads.count(cx, row, Outcome::Served, now.saturating_sub(start));
            if let Finished::Lingers(ns) = finished {
                self.inbox.push(&self.arena().tickets, id.index(), now.saturating_add(ns));
                self.ticker.notify();
            }
            Ok(())
        })
    }

    /// A waiting request gives up its place at `now`: because it waited too long ([`Rejection::TimedOut`]), or for another
    /// reason, which counts as [`Rejection::Cancelled`] whatever is given. A thread that waits for it is woken.
    ///
    /// Refused as [`Rejection::BadTicket`], without effect, if it does not wait: if it has been granted meanwhile it runs,
    /// and must be finished. Any thread may call. Neither blocks nor allocates.
    pub fn cancel(&self, id: TicketId, why: Rejection, now: u64) -> Result<(), Rejection> {
        let ticket = self.arena().tickets.get(id.index()).ok_or(Rejection::BadTicket)?;
        let seats = self.level_of(id).ok_or(Rejection::BadTicket)?;
        let (row, arrival) = (ticket.tag.load(Acquire), ticket.arrival.load(Acquire));
        let why = match (self.options.fidelity, why) {
            // The reference does not tell the two apart.
            (Fidelity::Kubernetes, _) | (_, Rejection::TimedOut) => Rejection::TimedOut,
            (Fidelity::Corrected, _) => Rejection::Cancelled,
        };
        self.threads.with(|cx| {
            seats.level.cancel(cx, id, now).map_err(|_| Rejection::BadTicket)?;
            if why == Rejection::TimedOut {
                seats.turned_away(now);
            }
            self.threads.count(cx, row, Outcome::WaitedInVain, now.saturating_sub(arrival));
            self.threads.count(cx, row, Outcome::Rejected(why), 1);
            Ok(())
        })
    }

    /// What a request is doing now; [`State::Free`] if it has ended, or the number is none of this engine's. Neither blocks
    /// nor allocates.
    pub fn poll(&self, id: TicketId) -> State {
        self.state_of(id)
    }

    /// When a running request was granted its seats, nanoseconds; none if it does not run. Neither blocks nor allocates.
    pub fn granted_at(&self, id: TicketId) -> Option<u64> {
        let ticket = self.arena().tickets.get(id.index())?;
        let runs = || ticket.state().is(id, State::Running);
        // The state before: who sees the ticket run sees since when. And after: it is still the same one's.
        let at = runs().then(|| ticket.start.load(Acquire));
        at.filter(|_| runs())
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
}
