//! One priority level: admit, finish, grant.
//!
//! One word answers what every arrival asks: is a seat free, and is nobody waiting? While that is so, a request costs
//! one exchange of its queue's word and one of the level's. When somebody waits, each event is a *step*: a snapshot, the
//! `rules` on copies, and one multi-word exchange that makes the outcome happen whole (`operation`). Whoever finds a
//! step half done finishes it, so a suspended thread stops nobody.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the events, readable top to bottom: first without a step, else with one |
//! | `word`, `record` | what the words say, and the records they point to |
//! | `rules` | what is decided |
//! | `transaction` | snapshot, copies, commit |
//! | `operation` | the multi-word exchange and its helping |
//! | `queue`, `waiting` | the scan over queues, the list in a queue |
//! | `virtual_time` | R and the demand statistics |
//! | `context` | what threads bring and levels share |
//!
//! A level can be used alone, as here; the engine adds objects, classification, borrowing and clocks.
//!
//! ```
//! use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Level};
//! use maitred::{fidelity::Fidelity, shuffle::Deck, ticket::{State, Width}};
//!
//! let arena = Arena::new(ArenaSize::default());
//! let queue = Discipline::Queue { queues: 64, hand_size: 8, queue_length_limit: 50 };
//! let level = Level::new(&arena, 0, Config { discipline: queue, limit: 1 }, Fidelity::Corrected, 0)?;
//! let mut cx = Context::new(&arena)?; // one a thread
//! let hand = Deck::new(64, 8).unwrap().deal(7);
//!
//! let first = level.arrive(&mut cx, 7, Some(&hand), Width::ONE, 0).outcome.unwrap();
//! let second = level.arrive(&mut cx, 7, Some(&hand), Width::ONE, 10).outcome.unwrap();
//! assert_eq!((first.state, second.state), (State::Running, State::Waiting));
//! level.finish(&mut cx, first.id, 20).unwrap(); // grants the second
//! assert_eq!(level.poll(&cx, second.id), State::Running);
//! # level.finish(&mut cx, second.id, 30).unwrap();
//! # Ok::<(), maitred::level::OutOfCells>(())
//! ```

#[macro_use]
mod points;
mod configure;
mod context;
mod inspect;
mod operation;
mod queue;
mod record;
mod rules;
mod transaction;
pub(crate) mod virtual_time;
mod waiting;
mod word;

use std::sync::Arc;

use crossbeam_utils::CachePadded;

pub(crate) use configure::cells_of_new;
pub(crate) use context::Extras;
pub use context::{Arena, ArenaSize, Context, Step};
pub use inspect::{Occupancy, QueueState, RequestState, Totals};
#[cfg(maitred_points)]
pub use points::{Point, hook};
pub use record::OutOfCells;

use crate::borrow::PeriodDemand;
use crate::fidelity::Fidelity;
use crate::shuffle::Hand;
use crate::sync::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::ticket::{NOT_CLIPPED, State, StateWord, Ticket, TicketId, Width};
use queue::Segments;
use record::{Header, Mode, NONE, Queue};
use rules::{Leaver, Newcomer, Placed, Undo, leave_queue, prepare_to_wait, total_work};
use transaction::{Stale, Transaction};
use virtual_time::Load;
use word::{CellRef, Form, MAX_ARRIVALS, MAX_FREE, Packed, form, is_operation};

/// What a level does with a request that cannot run at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Discipline {
    /// There is none: everything runs. A level is exempt for good or never.
    Exempt,
    /// Refuses it.
    Reject,
    /// Lets it wait in one of the queues of its flow's hand.
    Queue {
        /// 1 or more; with none it is refused.
        queues: u32,
        /// 1 to `queues`; with them as [`Deck::new`](crate::shuffle::Deck::new) accepts. If it does not, everybody
        /// shares the first queue.
        hand_size: u8,
        /// Requests that may wait in one queue.
        queue_length_limit: u32,
    },
}

/// The numbers of a level; all can change while requests are in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// What happens to requests that cannot run at once.
    pub discipline: Discipline,
    /// Seats; without meaning for an exempt level.
    pub limit: u32,
}

/// Why a level refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// All seats are taken and the chosen queue is full.
    QueueFull,
    /// The width does not fit, and the level does not queue.
    ConcurrencyLimit,
    /// The arena has no ticket left.
    OutOfTickets,
}

/// A request that a level took in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// Its ticket.
    pub id: TicketId,
    /// [`State::Running`] or [`State::Waiting`].
    pub state: State,
}

/// The answer to an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// What became of the request.
    pub outcome: Result<Admitted, Refusal>,
    /// Position of the queue that was chosen, if one was (also for a request that it refused).
    pub queue: Option<u32>,
}

/// The answer to the end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finished {
    /// Its seats are free.
    Released,
    /// Its seats stay taken; whoever minds the time calls [`Level::release`] after so many nanoseconds.
    Lingers(u64),
}

/// The handle names no ticket of this level in the state that the call asks for. Nothing has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadTicket;

impl std::fmt::Display for BadTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no request with this ticket is there, or it is not in the state that was asked for")
    }
}

impl std::error::Error for BadTicket {}

/// A priority level. All methods may be called from any thread, each with a [`Context`] of its own.
///
/// None blocks; none allocates but [`new`](Level::new) and [`configure`](Level::configure). Times are nanoseconds; a
/// time before one already seen counts as that one.
pub struct Level {
    word: CachePadded<AtomicU64>,
    /// Clock record, while the level is packed.
    clock: CachePadded<AtomicU64>,
    /// Header record. While the level is packed its limit and configuration are right, and its version.
    header: CachePadded<AtomicU64>,
    /// [`Shape`]: what an arrival that needs no step deals by. A stale one costs a stale choice of queue.
    shape: AtomicU64,
    queues: Segments<AtomicU64>,
    groups: Segments<AtomicU64>,
    arena: Arc<Arena>,
    id: u32,
    exempt: bool,
    fidelity: Fidelity,
    /// The clock of a packed level may lag by so many nanoseconds.
    tick: u64,
    /// For tests: every event is a step, so all of them have a version.
    never_packed: bool,
}

impl Level {
    /// Seats up to which the packed form reckons.
    #[inline]
    fn capacity(&self, limit: u32) -> u32 {
        if self.exempt { MAX_FREE } else { limit }
    }

    /// Which level of its engine this is.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// A request arrives at `now`: it runs, waits, or is refused.
    ///
    /// `hash` is its flow's, and `hand` what the deck for this level's number of queues deals for it; without a hand, or
    /// with one of another deck, it is dealt here. A width that is not valid is refused as [`Refusal::ConcurrencyLimit`].
    pub fn arrive(
        &self,
        cx: &mut Context,
        hash: u64,
        hand: Option<&Hand>,
        width: Width,
        now: u64,
    ) -> Arrival {
        self.arrive_tagged(cx, hash, hand, width, now, u32::MAX)
    }

    /// The same, for a host that counts grants by tag ([`Arena::grants`]).
    pub(crate) fn arrive_tagged(
        &self,
        cx: &mut Context,
        hash: u64,
        hand: Option<&Hand>,
        width: Width,
        now: u64,
        tag: u32,
    ) -> Arrival {
        let refused = |why| Arrival { outcome: Err(why), queue: None };
        if !width.is_valid() {
            return refused(Refusal::ConcurrencyLimit);
        }
        let Some(index) = cx.take_ticket() else {
            self.count(cx, Refusal::OutOfTickets.into());
            return refused(Refusal::OutOfTickets);
        };
        let ticket = self.arena.tickets.get(index).expect("a free place is in the slab");
        // Relaxed: a free place belongs to whoever took it.
        let generation = StateWord(ticket.state.load(Relaxed)).generation();
        let id = TicketId::new(index, generation);
        ticket.set_width(width);
        ticket.level.store(self.id, Release);
        ticket.tag.store(tag, Release);
        ticket.arrival.store(now, Release);

        let undo = match self.arrive_at_once(cx, ticket, generation, hand, width, now) {
            Attempt::Done(queue) => {
                let running = Admitted { id, state: State::Running };
                cx.note_grant(id);
                self.count_dispatch(cx, tag);
                return Arrival { outcome: Ok(running), queue };
            }
            Attempt::Step(undo) => undo,
        };
        let newcomer = Newcomer { ticket: id, width, hash, hand, undo };
        let placed = self.arrive_by_step(cx, ticket, &newcomer, now);
        let outcome = match placed.outcome {
            Ok(state) => Ok(Admitted { id, state }),
            Err(why) => {
                self.free_ticket(cx, index);
                self.count(cx, why.into());
                Err(why)
            }
        };
        Arrival { outcome, queue: placed.queue }
    }

    /// While nobody waits and the width fits: no step is needed.
    #[inline]
    fn arrive_at_once(
        &self,
        cx: &mut Context,
        ticket: &Ticket,
        generation: u64,
        hand: Option<&Hand>,
        width: Width,
        now: u64,
    ) -> Attempt {
        let seats = width.max_seats();
        let running = StateWord::new(generation, NOT_CLIPPED, State::Running);
        let fits = |p: Packed| p.free() >= seats && p.arrivals() < MAX_ARRIVALS;
        loop {
            let Form::Packed(p) = form(self.settled(cx, &self.word)) else { return Attempt::Step(None) };
            if !fits(p) {
                return Attempt::Step(None);
            }
            let Some((r, at)) = self.advance_clock(cx, p, now) else { continue };
            let shape = Shape(self.shape.load(Acquire));
            ticket.start.store(now.max(at), Release);
            if !shape.queues() {
                ticket.place.store((NONE as u64) << 32, Release);
                ticket.state.store(running.0, Release);
                if self.exchange(p, p.seat(seats)) {
                    return Attempt::Done(None);
                }
                continue;
            }
            // A hand of another deck, or positions that are not slots: the step knows what to do.
            let Some(position) = hand.and_then(|hand| shape.choose(hand, p.arrivals())) else {
                return Attempt::Step(None);
            };
            let slot = position;
            let Some((seen, mut q)) = self.read_queue(cx, slot) else { continue };
            if q.waiting > 0 || !q.is_live() {
                // The level's word, or its shape, has changed since.
                continue;
            }
            let activated = q.running == 0;
            if activated || record::before(q.next_dispatch_r, r) {
                q.next_dispatch_r = r;
            }
            q.next_dispatch_r = q.next_dispatch_r.wrapping_add(total_work(width));
            q.running = q.running.wrapping_add(1);
            ticket.place.store((slot as u64) << 32 | q.removals as u64, Release);
            ticket.state.store(running.0, Release);
            if !self.exchange_queue(cx, slot, seen, &q) {
                continue;
            }
            point!(ArrivedInQueue);
            // The queue has it; now the seats. Nothing else may be done first, lest a free seat be passed over.
            let mut p = p;
            loop {
                if self.exchange(p, p.seat_queued(seats, activated, slot)) {
                    return Attempt::Done(Some(position));
                }
                p = match form(self.settled(cx, &self.word)) {
                    Form::Packed(p) if fits(p) || cfg!(maitred_mutant = "arrive_without_looking_again") => p,
                    _ => return Attempt::Step(Some(Undo { slot, activated })),
                };
            }
        }
    }

    fn arrive_by_step(&self, cx: &mut Context, ticket: &Ticket, n: &Newcomer, now: u64) -> Placed {
        prepare_to_wait(ticket, n.ticket.generation());
        let mut placed = self.step(cx, |tx| tx.arrive(now, n));
        if placed.queue.is_none() && placed.outcome.is_ok() {
            // It runs, and nobody else has heard of it.
            let running = StateWord::new(n.ticket.generation(), NOT_CLIPPED, State::Running);
            ticket.state.store(running.0, Release);
        } else if placed.outcome == Ok(State::Waiting) && ticket.state().state() == State::Running {
            // Granted by a step that made the grants which its own had no room for.
            placed.outcome = Ok(State::Running);
        }
        placed
    }

    /// A running request has ended. Its seats come back, or linger; whoever is next is granted.
    ///
    /// A second call for the same ticket, and one for a ticket that waits, changes nothing.
    pub fn finish(&self, cx: &mut Context, id: TicketId, now: u64) -> Result<Finished, BadTicket> {
        let ticket = self.own(id)?;
        let state = ticket.state();
        if state.generation() != id.generation() || state.state() != State::Running {
            return Err(BadTicket);
        }
        let width = ticket.granted_width(state);
        let lingers = width.additional_latency > 0;
        let place = ticket.place.load(Acquire);
        let leaver = Leaver {
            width,
            slot: (place >> 32) as u32,
            removals: place as u32,
            start: ticket.start.load(Acquire),
        };
        let next = if lingers { State::Lingering } else { State::Free };
        let claimed = StateWord::new(state.generation(), state.clip(), next);
        // AcqRel: the one exchange that ends it; whoever loses is told.
        ticket.state.compare_exchange(state.0, claimed.0, AcqRel, Acquire).map_err(|_| BadTicket)?;
        point!(FinishClaimed);

        if let Attempt::Step(queue_done) = self.finish_at_once(cx, &leaver, now) {
            self.step(cx, |tx| tx.finish(now, &leaver, queue_done));
        }
        self.count(cx, Event::Finished);
        if lingers {
            return Ok(Finished::Lingers(width.additional_latency));
        }
        self.free_ticket(cx, id.index());
        Ok(Finished::Released)
    }

    #[inline]
    fn finish_at_once(&self, cx: &mut Context, l: &Leaver, now: u64) -> Attempt<(), bool> {
        if l.width.additional_latency > 0 && self.lingering_needs_step() {
            return Attempt::Step(None);
        }
        let seats = if l.width.additional_latency > 0 { 0 } else { l.width.max_seats() };
        loop {
            let Form::Packed(p) = form(self.settled(cx, &self.word)) else { return Attempt::Step(None) };
            let Some((_, at)) = self.advance_clock(cx, p, now) else { continue };
            if l.slot == NONE {
                match p.unseat(seats, false) {
                    Some(to) if self.exchange(p, to) => return Attempt::Done(()),
                    Some(_) => continue,
                    None => return Attempt::Step(None),
                }
            }
            let Some((seen, mut q)) = self.read_queue(cx, l.slot) else { continue };
            if q.waiting > 0 {
                continue;
            }
            leave_queue(&mut q, l, now.max(at));
            if !self.exchange_queue(cx, l.slot, seen, &q) {
                continue;
            }
            point!(FinishedInQueue);
            let deactivated = q.running == 0;
            let mut p = p;
            loop {
                match p.unseat(seats, deactivated) {
                    Some(to) if self.exchange(p, to) => return Attempt::Done(()),
                    Some(_) => {}
                    None => return Attempt::Step(Some(deactivated)),
                }
                p = match form(self.settled(cx, &self.word)) {
                    Form::Packed(p) => p,
                    _ => return Attempt::Step(Some(deactivated)),
                };
            }
        }
    }

    /// The additional latency of a finished request has passed: its seats come back.
    pub fn release(&self, cx: &mut Context, id: TicketId, now: u64) -> Result<(), BadTicket> {
        let ticket = self.own(id)?;
        let state = ticket.state();
        if state.generation() != id.generation() || state.state() != State::Lingering {
            return Err(BadTicket);
        }
        let place = ticket.place.load(Acquire);
        let leaver = Leaver {
            width: ticket.granted_width(state),
            slot: (place >> 32) as u32,
            removals: place as u32,
            start: 0,
        };
        let freed = StateWord::new(state.generation(), state.clip(), State::Free);
        ticket.state.compare_exchange(state.0, freed.0, AcqRel, Acquire).map_err(|_| BadTicket)?;
        self.step(cx, |tx| tx.release(now, &leaver));
        self.free_ticket(cx, id.index());
        Ok(())
    }

    /// A waiting request gives up its place. If it has been granted meanwhile the grant stands, and this is refused.
    pub fn cancel(&self, cx: &mut Context, id: TicketId, now: u64) -> Result<(), BadTicket> {
        self.own(id)?;
        if !self.step(cx, |tx| tx.cancel(now, id)) {
            return Err(BadTicket);
        }
        self.count(cx, Event::Cancelled);
        self.free_ticket(cx, id.index());
        Ok(())
    }

    /// Sets the concurrency limit. Requests that run keep their seats; waiting ones are granted what is new.
    pub fn set_limit(&self, cx: &mut Context, limit: u32, now: u64) {
        self.step(cx, |tx| {
            tx.advance(now);
            tx.h.limit = limit;
            tx.grant_all()
        });
    }

    /// What a ticket is doing now; [`State::Free`] if it is none of this level's any more.
    pub fn poll(&self, cx: &Context, id: TicketId) -> State {
        // A step under way may have granted it without having said so yet.
        self.settled(cx, &self.word);
        match self.own(id) {
            Ok(ticket) => {
                let state = ticket.state();
                if state.generation() == id.generation() { state.state() } else { State::Free }
            }
            Err(BadTicket) => State::Free,
        }
    }

    /// The demand statistics since the last call (or since the level was made), up to `now`; they start anew.
    pub fn take_demand(&self, cx: &mut Context, now: u64) -> PeriodDemand {
        self.step(cx, |tx| {
            tx.advance(now);
            tx.observe();
            let demand = tx.demand();
            Ok(tx.h.clock.restart(demand))
        })
    }

    // ---- machinery

    /// Makes one step, again until the level did not move meanwhile, and then the grants it left over.
    fn step<T>(&self, cx: &mut Context, mut rule: impl FnMut(&mut Transaction) -> Result<T, Stale>) -> T {
        loop {
            point!(StepBegins);
            let mut tx = Transaction::begin(self, cx);
            if tx.h.pending {
                // Somebody's step had no room for them; they come before anything else.
                let _ = tx.grant_pending();
                continue;
            }
            let Ok(done) = rule(&mut tx) else { continue };
            let mut pending = tx.h.pending;
            if tx.commit().is_err() {
                continue;
            }
            while pending {
                let tx = Transaction::begin(self, cx);
                pending = tx.h.pending;
                if pending {
                    let _ = tx.grant_pending();
                }
            }
            return done;
        }
    }

    /// A step that changes nothing.
    fn look<T>(&self, cx: &mut Context, view: impl Fn(&Transaction) -> Result<T, Stale>) -> T {
        loop {
            let tx = Transaction::begin(self, cx);
            if let Ok(seen) = view(&tx)
                && tx.is_current()
            {
                return seen;
            }
        }
    }

    /// Moves the clock of a packed level to `now` if it is due; gives R, and the time it is right for. `None` if the
    /// level moved on.
    #[inline]
    fn advance_clock(&self, cx: &mut Context, p: Packed, now: u64) -> Option<(u64, u64)> {
        point!(LevelRead);
        let w = self.clock.load(Acquire);
        if is_operation(w) {
            self.help(cx, w);
            return None;
        }
        let seen = CellRef::from_bits(w);
        let cells = &self.arena.cells;
        if self.tick > 0 {
            let reading = cells.clock_reading(seen);
            if now <= reading.1.saturating_add(self.tick) {
                // A record that was being filled anew hangs on another word by now.
                return (self.clock.load(Acquire) == w).then_some(reading);
            }
        }
        let mut clock = cells.clock(seen);
        if self.clock.load(Acquire) != w {
            return None;
        }
        let h = self.header.load(Acquire);
        if is_operation(h) {
            self.help(cx, h);
            return None;
        }
        let (limit, leak) = cells.limit_and_leak(CellRef::from_bits(h));
        if self.header.load(Acquire) != h {
            return None;
        }
        let in_use = self.capacity(limit).saturating_sub(p.free());
        let demand = in_use as u64 + leak;
        if !clock.is_due(now, self.tick, demand) {
            return Some((clock.r, clock.at));
        }
        clock.advance(now, Load { requested: in_use as u64, limit, active: p.active(), demand });
        let to = cx.spares.clock.next();
        cells.put_clock(to, &clock);
        point!(ClockReady);
        // AcqRel: publishes the record. Fails where somebody else moved it, or the level is packed no more.
        if self.clock.compare_exchange(w, to.bits(), AcqRel, Acquire).is_err() {
            return None;
        }
        cx.spares.clock = seen;
        Some((clock.r, clock.at))
    }

    /// A queue's record, whole. `None` if an operation had it.
    #[inline]
    fn read_queue(&self, cx: &Context, slot: u32) -> Option<(CellRef, Queue)> {
        let word = self.queues.get(slot);
        let w = word.load(Acquire);
        if is_operation(w) {
            self.help(cx, w);
            return None;
        }
        let seen = CellRef::from_bits(w);
        let q = self.arena.cells.queue(seen);
        (word.load(Acquire) == w).then_some((seen, q))
    }

    #[inline]
    fn exchange_queue(&self, cx: &mut Context, slot: u32, seen: CellRef, q: &Queue) -> bool {
        let to = cx.spares.queues[0].next();
        self.arena.cells.put_queue(to, q);
        point!(QueueReady);
        // AcqRel: publishes the record.
        let done = self.queues.get(slot).compare_exchange(seen.bits(), to.bits(), AcqRel, Acquire).is_ok();
        if done {
            cx.spares.queues[0] = seen;
        }
        done
    }

    #[inline]
    fn exchange(&self, from: Packed, to: Packed) -> bool {
        point!(LevelReady);
        // AcqRel: seats given back are given back after all that was done with them.
        self.word.compare_exchange(from.bits(), to.bits(), AcqRel, Acquire).is_ok()
    }

    /// Whether the end of a request with additional latency must be a step: the packed form does not say how many seats
    /// only linger, and a rule of the reference asks.
    fn lingering_needs_step(&self) -> bool {
        self.fidelity == Fidelity::Kubernetes && !self.exempt
    }

    fn own(&self, id: TicketId) -> Result<&Ticket, BadTicket> {
        let ticket = self.arena.tickets.get(id.index()).ok_or(BadTicket)?;
        if ticket.level.load(Acquire) == self.id { Ok(ticket) } else { Err(BadTicket) }
    }

    fn wake(&self, index: u32) {
        if let Some(ticket) = self.arena.tickets.get(index) {
            ticket.signal.notify();
        }
    }

    /// Ends a ticket's generation and gives its place back.
    fn free_ticket(&self, cx: &mut Context, index: u32) {
        let Some(ticket) = self.arena.tickets.get(index) else { return };
        // Relaxed: the ticket has ended, by an exchange of ours.
        let generation = StateWord(ticket.state.load(Relaxed)).generation();
        // Release: whoever reads the new generation sees that all of the old is over.
        ticket.state.store(StateWord::new(generation.wrapping_add(1), NOT_CLIPPED, State::Free).0, Release);
        cx.give_ticket(index);
    }

    #[inline]
    fn count(&self, cx: &mut Context, event: Event) {
        self.arena.counters.add(cx.slot, self.id, event as usize, 1);
    }

    fn count_dispatch(&self, cx: &mut Context, tag: u32) {
        self.count(cx, Event::Dispatched);
        self.arena.grants.add(cx.slot, tag, 0, 1);
    }
}

/// What a level counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Dispatched,
    Finished,
    Cancelled,
    QueueFull,
    ConcurrencyLimit,
    OutOfTickets,
}

pub(crate) const EVENTS: usize = 6;

impl From<Refusal> for Event {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::QueueFull => Event::QueueFull,
            Refusal::ConcurrencyLimit => Event::ConcurrencyLimit,
            Refusal::OutOfTickets => Event::OutOfTickets,
        }
    }
}

/// How a try without a step ended.
enum Attempt<T = Option<u32>, U = Undo> {
    Done(T),
    /// A step must do it; perhaps with something of the try to be carried along.
    Step(Option<U>),
}

/// Queues 24 | hand size 4 | whether positions are slots 1 | how often this has changed 35.
///
/// Changed only by steps, as a written word. No queues: the level does not queue.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape(u64);

const SHAPE_CHANGES: u64 = (1 << 35) - 1;

impl Shape {
    fn new(queues: u32, hand_size: u32, dense: bool) -> Self {
        Shape((queues as u64) << 40 | (hand_size as u64) << 36 | (dense as u64) << 35)
    }

    /// The shape that a header asks for, as a word that was never there before; itself if that is what it is.
    fn follow(self, h: &Header) -> Self {
        let queues = if h.mode == Mode::Queue { h.desired } else { 0 };
        let to = Shape::new(queues, h.hand_size as u32, h.live == h.slots);
        if to.0 == self.0 & !SHAPE_CHANGES {
            return self;
        }
        Shape(to.0 | (self.0 + 1) & SHAPE_CHANGES)
    }

    #[inline]
    fn queues(self) -> bool {
        self.0 >> 40 > 0
    }

    /// The card that is first in turn, if the hand is of this shape and the card's position is its slot.
    #[inline]
    fn choose(self, hand: &Hand, arrivals: u32) -> Option<u32> {
        let cards = hand.cards();
        let fits = Shape::new(hand.deck_size(), cards.len() as u32, true).0 == self.0 & !SHAPE_CHANGES;
        fits.then(|| cards[arrivals as usize % cards.len()])
    }
}
