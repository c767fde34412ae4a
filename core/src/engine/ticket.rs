//! What a caller holds of a request.

use std::fmt;

use super::{Engine, Rejection};
use crate::level::Admitted;
use crate::ticket::{State, TicketId};

/// A request that was not refused.
#[derive(Debug)]
#[must_use = "dropped, the request ends"]
pub enum Admission<'a> {
    /// It has its seats.
    Running(Ticket<'a>),
    /// It is in its queue.
    Waiting(Waiting<'a>),
}

impl<'a> Admission<'a> {
    pub(super) fn new(engine: &'a Engine, admitted: Admitted) -> Self {
        match admitted.state {
            State::Running => Admission::Running(Ticket { engine, id: admitted.id }),
            _ => Admission::Waiting(Waiting { engine, id: admitted.id }),
        }
    }

    /// Waits, if it must, as long as the engine's limit allows. Blocks the thread. Fails as [`Waiting::wait`].
    pub fn wait(self) -> Result<Ticket<'a>, Rejection> {
        match self {
            Admission::Running(ticket) => Ok(ticket),
            Admission::Waiting(waiting) => waiting.wait(),
        }
    }
}

/// A running request. Dropped or [finished](Ticket::finish), it gives its seats back and whoever is next is granted. It may
/// end on another thread than it began on. One that is forgotten ([`std::mem::forget`]) keeps its seats for good.
#[must_use = "dropped, the request ends"]
pub struct Ticket<'a> {
    engine: &'a Engine,
    id: TicketId,
}

impl Ticket<'_> {
    /// The request has ended. Reads the clock once; neither blocks nor allocates.
    pub fn finish(self) {}

    /// The same at a time, nanoseconds, that the caller has read from the engine's clock.
    pub fn finish_at(self, now: u64) {
        let (engine, id) = (self.engine, self.id);
        std::mem::forget(self);
        // Nobody else can have ended it but through its number, and then there is nothing left to do.
        let _ = engine.finish(id, now);
    }

    /// Its number, for the calls by number. If the request is ended through it, dropping the ticket does nothing.
    pub fn id(&self) -> TicketId {
        self.id
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let _ = self.engine.finish(self.id, self.engine.now());
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, running", self.id)
    }
}

/// A request that waits for its turn. Dropped, it gives up its place.
#[must_use = "dropped, the request gives up its place"]
pub struct Waiting<'a> {
    engine: &'a Engine,
    id: TicketId,
}

impl<'a> Waiting<'a> {
    /// Blocks until the request runs, or until the engine's limit on waiting ([`wait_limit`](super::Options::wait_limit), from
    /// now). Then it is refused as [`Rejection::TimedOut`]; as [`Rejection::Cancelled`] if somebody cancels it by its number.
    pub fn wait(self) -> Result<Ticket<'a>, Rejection> {
        let limit = self.engine.options.wait_limit;
        let deadline = self.engine.now().saturating_add(limit);
        self.wait_until(deadline)
    }

    /// Blocks until the request runs, or until the engine's clock reads `deadline`, nanoseconds; never longer than
    /// [`MAX_WAIT`](super::MAX_WAIT) from now. Refused as [`wait`](Waiting::wait) is. Does not allocate; sleeps in the system.
    pub fn wait_until(self, deadline: u64) -> Result<Ticket<'a>, Rejection> {
        let engine = self.engine;
        let deadline = deadline.min(engine.now().saturating_add(super::MAX_WAIT));
        let remaining = || deadline.checked_sub(engine.now()).filter(|left| *left > 0);
        if let Some(ticket) = engine.arena().tickets.get(self.id.index()) {
            ticket.signal.wait(|| engine.state_of(self.id) != State::Waiting, remaining);
        }
        self.settle(Rejection::TimedOut)
    }

    /// Takes the ticket if the request runs by now; else it goes on waiting. Never blocks.
    pub fn poll(self) -> Result<Ticket<'a>, Waiting<'a>> {
        if self.engine.state_of(self.id) == State::Running { Ok(self.granted()) } else { Err(self) }
    }

    /// Gives up the place. If the request has been granted meanwhile it runs, and here is its ticket. Never blocks.
    pub fn cancel(self) -> Option<Ticket<'a>> {
        self.settle(Rejection::Cancelled).ok()
    }

    /// Its number.
    pub fn id(&self) -> TicketId {
        self.id
    }

    /// A cancel that races with a grant has one winner.
    fn settle(self, why: Rejection) -> Result<Ticket<'a>, Rejection> {
        let (engine, id) = (self.engine, self.id);
        if engine.state_of(id) != State::Running && engine.cancel(id, why, engine.now()).is_ok() {
            std::mem::forget(self);
            return Err(why);
        }
        match engine.state_of(id) {
            State::Running => Ok(self.granted()),
            _ => {
                // Somebody has ended it through its number.
                std::mem::forget(self);
                Err(Rejection::Cancelled)
            }
        }
    }

    fn granted(self) -> Ticket<'a> {
        let (engine, id) = (self.engine, self.id);
        std::mem::forget(self);
        Ticket { engine, id }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let now = self.engine.now();
        if self.engine.cancel(self.id, Rejection::Cancelled, now).is_err() {
            let _ = self.engine.finish(self.id, now);
        }
    }
}

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, waiting", self.id)
    }
}
