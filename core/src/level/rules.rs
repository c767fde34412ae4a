//! The rules of a level, as plain sequential code on a step's copies. What is decided is decided here.
//!
//! Source of the rules: design, section 3; vectors `queueset`. Each function is one event.

use super::operation::Kind;
use super::record::{Header, Mode, NONE};
use super::transaction::{Stale, Transaction};
use super::virtual_time::{ESTIMATED_SERVICE, work};
use super::{Config, Discipline, Refusal};
use crate::fidelity::Fidelity;
use crate::shuffle::{Deck, Hand};
use crate::sync::Ordering::{Acquire, Release};
use crate::ticket::{NOT_CLIPPED, State, StateWord, TicketId, Width, clip, not_started};

/// A request as it arrives: its ticket is prepared, and nobody else has seen it.
pub(super) struct Newcomer<'a> {
    pub(super) ticket: TicketId,
    pub(super) width: Width,
    pub(super) hash: u64,
    pub(super) hand: Option<&'a Hand>,
    /// What an attempt without a step has already done to a queue, to be taken back.
    pub(super) undo: Option<Undo>,
}

#[derive(Clone, Copy)]
pub(super) struct Undo {
    pub(super) slot: u32,
    pub(super) activated: bool,
}

/// What became of it, and the position of the queue that was chosen.
pub(super) struct Placed {
    pub(super) outcome: Result<State, Refusal>,
    pub(super) queue: Option<u32>,
}

/// A running request as it ends.
#[derive(Clone, Copy)]
pub(super) struct Leaver {
    /// As granted.
    pub(super) width: Width,
    /// Queue slot, or [`NONE`].
    pub(super) slot: u32,
    /// How often that slot had been removed when the request arrived.
    pub(super) removals: u32,
    pub(super) start: u64,
}

impl Leaver {
    /// What the queue was charged too much at the grant; wraps.
    pub(super) fn overcharge(&self, now: u64) -> u64 {
        let served = now.saturating_sub(self.start) as i64;
        work(self.width.initial_seats, ESTIMATED_SERVICE.saturating_sub(served))
    }
}

/// Work that a request is charged for at its grant.
pub(super) fn total_work(width: Width) -> u64 {
    let main = work(width.initial_seats, ESTIMATED_SERVICE);
    if width.additional_latency == 0 {
        return main;
    }
    main.wrapping_add(work(width.final_seats, width.additional_latency as i64))
}

impl Transaction<'_> {
    pub(super) fn arrive(&mut self, now: u64, n: &Newcomer) -> Result<Placed, Stale> {
        let work = total_work(n.width);
        if let Some(undo) = n.undo {
            self.h.active = self.h.active.wrapping_add(undo.activated as u32);
            let q = self.queue(undo.slot)?;
            q.running = q.running.wrapping_sub(1);
            q.next_dispatch_r = q.next_dispatch_r.wrapping_sub(work);
            q.bound();
        }
        self.advance(now);
        if self.h.mode == Mode::Queue { self.arrive_queued(n, work) } else { self.arrive_unqueued(n) }
    }

    fn arrive_unqueued(&mut self, n: &Newcomer) -> Result<Placed, Stale> {
        let seats = n.width.max_seats();
        if !self.fits(seats) {
            return Ok(Placed { outcome: Err(Refusal::ConcurrencyLimit), queue: None });
        }
        let ticket = self.ticket(n.ticket.index())?;
        ticket.place.store((NONE as u64) << 32, Release);
        ticket.start.store(self.h.clock.at, Release);
        self.h.in_use += seats;
        self.h.off_queue_seats += seats;
        self.note_grant(n.ticket, ticket.tag.load(Acquire));
        Ok(Placed { outcome: Ok(State::Running), queue: None })
    }

    fn arrive_queued(&mut self, n: &Newcomer, work: u64) -> Result<Placed, Stale> {
        let (position, slot) = self.choose_queue(n)?;
        let queue = Some(position);
        let q = *self.queue(slot)?;
        let seats_free = self.h.in_use < self.h.limit;
        let blocked = match self.level.fidelity {
            Fidelity::Kubernetes => !seats_free,
            Fidelity::Corrected => !seats_free || q.waiting > 0,
        };
        if blocked && q.waiting >= self.h.queue_length_limit {
            return Ok(Placed { outcome: Err(Refusal::QueueFull), queue });
        }
        let r = self.h.clock.r;
        if !q.is_active() {
            self.queue(slot)?.next_dispatch_r = r;
        }
        let index = n.ticket.index();
        self.ticket(index)?.work.store(work, Release);
        self.enqueue(slot, index, work, r)?;
        self.h.waiting += 1;
        self.h.waiting_seats += n.width.max_seats() as u64;
        self.queue(slot)?.bound();
        self.observe();
        self.grant_all()?;
        let state = if self.granted(index) { State::Running } else { State::Waiting };
        Ok(Placed { outcome: Ok(state), queue })
    }

    /// The queue of the hand with the least work waiting; the first seen of several, from an offset that each arrival
    /// moves on.
    fn choose_queue(&mut self, n: &Newcomer) -> Result<(u32, u32), Stale> {
        let (desired, hand_size) = (self.h.desired, self.h.hand_size as u32);
        let dealt;
        let cards = match n.hand {
            Some(hand) if hand.deck_size() == desired && hand.hand_size() == hand_size => hand.cards(),
            // Resolved for another number of queues than there is now.
            _ => match Deck::new(desired, hand_size) {
                Ok(deck) => {
                    dealt = deck.deal(n.hash);
                    dealt.cards()
                }
                // Nobody can be dealt such a hand.
                Err(_) => &[0],
            },
        };
        let offset = (self.h.arrivals % cards.len() as u64) as usize;
        self.h.arrivals += 1;
        let mut best: Option<(u64, u32, u32)> = None;
        for &position in cards[offset..].iter().chain(&cards[..offset]) {
            let slot = self.slot_at(position)?;
            let q = self.peek(slot)?;
            let waiting = if q.waiting > 0 { q.work } else { 0 };
            if best.is_none_or(|(least, ..)| waiting < least) {
                best = Some((waiting, position, slot));
            }
        }
        best.map(|(_, position, slot)| (position, slot)).ok_or(Stale)
    }

    /// Whether so many seats can be taken now. A request wider than the limit runs alone.
    fn fits(&self, seats: u32) -> bool {
        let h = &self.h;
        // Four thousand million seats are more than the level can count.
        let Some(then) = h.in_use.checked_add(seats) else { return false };
        match (h.mode, self.level.fidelity) {
            (Mode::Exempt, _) => true,
            _ if seats <= h.limit => then <= h.limit,
            (Mode::Reject, Fidelity::Corrected) if h.limit == 0 => false,
            // The reference looks at running requests alone.
            (_, Fidelity::Kubernetes) => h.in_use == h.lingering_seats,
            (_, Fidelity::Corrected) => h.in_use == 0,
        }
    }

    /// Grants whoever is next, as long as seats are free and the next one fits. Nobody overtakes.
    pub(super) fn grant_all(&mut self) -> Result<(), Stale> {
        while self.h.waiting > 0 && self.h.in_use < self.h.limit {
            let Some(slot) = self.next_to_grant()? else { return Err(Stale) };
            let q = self.peek(slot)?;
            let head = q.head;
            let ticket = self.ticket(head)?;
            let width = ticket.width();
            if !self.fits(width.max_seats()) {
                self.rewind_last()?;
                return Ok(());
            }
            if !self.has_room(slot) {
                self.h.pending = true;
                return Ok(());
            }
            self.grant(slot, head, width)?;
        }
        Ok(())
    }

    fn grant(&mut self, slot: u32, head: u32, width: Width) -> Result<(), Stale> {
        self.dequeue(slot)?;
        let cut = width.final_seats > self.h.limit;
        let granted = if cut { clip(width, self.h.limit) } else { width };
        let seats = granted.max_seats();
        let work = self.ticket(head)?.work.load(Acquire);
        let q = self.queue(slot)?;
        q.running = q.running.wrapping_add(1);
        q.next_dispatch_r = q.next_dispatch_r.wrapping_add(work);
        q.bound();
        self.h.last = slot + 1;
        self.h.waiting -= 1;
        self.h.waiting_seats = self.h.waiting_seats.saturating_sub(width.max_seats() as u64);
        self.h.in_use = self.h.in_use.checked_add(seats).ok_or(Stale)?;
        if self.level.fidelity == Fidelity::Kubernetes {
            self.h.leaked_seats += (width.max_seats() - seats) as u64;
        }
        self.observe();
        let state = StateWord(self.read(Kind::State, head)?);
        let start = self.read(Kind::Start, head)?;
        let running =
            StateWord::new(state.generation(), if cut { self.h.limit } else { NOT_CLIPPED }, State::Running);
        // The start time first: who sees the ticket run must see since when.
        if cfg!(maitred_mutant = "state_before_start") {
            self.write(Kind::State, head, state.0, running.0);
        }
        self.write(Kind::Start, head, start, self.h.clock.at);
        self.write(Kind::State, head, state.0, running.0);
        self.note_grant(TicketId::new(head, state.generation()), self.ticket(head)?.tag.load(Acquire));
        Ok(())
    }

    /// A scan that grants nobody leaves the reference's scan position where it was, save that from before the first
    /// queue it comes to the last one.
    fn rewind_last(&mut self) -> Result<(), Stale> {
        let gaps = self.h.live != self.h.slots;
        let at_none =
            self.h.last == 0 || gaps && self.last_live_below(self.h.last.min(self.h.slots)).is_none();
        if at_none {
            self.h.last = self.last_live_below(self.h.slots).map_or(0, |slot| slot + 1);
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, now: u64, l: &Leaver, queue_done: Option<bool>) -> Result<(), Stale> {
        self.advance(now);
        let lingers = l.width.additional_latency > 0;
        let seats = l.width.max_seats();
        match queue_done {
            // An attempt without a step has changed the queue already.
            Some(deactivated) => self.h.active = self.h.active.wrapping_sub(deactivated as u32),
            None if l.slot != NONE => {
                let now = self.h.clock.at;
                let q = self.queue(l.slot)?;
                leave_queue(q, l, now);
                q.bound();
            }
            None => {}
        }
        if lingers {
            if self.tracks_lingering() {
                self.h.lingering_seats += seats;
            }
        } else {
            self.h.in_use = self.h.in_use.saturating_sub(seats);
            if l.slot == NONE {
                self.h.off_queue_seats = self.h.off_queue_seats.saturating_sub(seats);
            } else {
                self.remove_if_surplus(l.slot)?;
            }
        }
        if cfg!(maitred_mutant = "finish_without_looking_again") && queue_done.is_some() {
            return Ok(());
        }
        self.grant_all()
    }

    /// The additional latency of a request has passed.
    pub(super) fn release(&mut self, now: u64, l: &Leaver) -> Result<(), Stale> {
        self.advance(now);
        let seats = l.width.max_seats();
        self.h.in_use = self.h.in_use.saturating_sub(seats);
        if self.tracks_lingering() {
            self.h.lingering_seats = self.h.lingering_seats.saturating_sub(seats);
        }
        // Its queue may have gone meanwhile, and the slot with it.
        if l.slot < self.h.slots && self.peek(l.slot)?.removals == l.removals {
            let q = self.queue(l.slot)?;
            q.lingering_seats = q.lingering_seats.saturating_sub(seats);
            self.remove_if_surplus(l.slot)?;
        } else {
            self.h.off_queue_seats = self.h.off_queue_seats.saturating_sub(seats);
        }
        self.grant_all()
    }

    /// A waiting request leaves. False if it does not wait (any more).
    pub(super) fn cancel(&mut self, now: u64, id: TicketId) -> Result<bool, Stale> {
        let index = id.index();
        let ticket = self.ticket(index)?;
        let state = StateWord(self.read(Kind::State, index)?);
        if state.generation() != id.generation() || state.state() != State::Waiting {
            return Ok(false);
        }
        self.advance(now);
        let slot = (ticket.place.load(Acquire) >> 32) as u32;
        let seats = ticket.width().max_seats();
        self.unlink(slot, index)?;
        self.queue(slot)?.bound();
        self.h.waiting = self.h.waiting.checked_sub(1).ok_or(Stale)?;
        self.h.waiting_seats = self.h.waiting_seats.saturating_sub(seats as u64);
        let ended = StateWord::new(id.generation(), NOT_CLIPPED, State::Free);
        self.write(Kind::State, index, state.0, ended.0);
        if self.level.fidelity == Fidelity::Corrected {
            self.grant_all()?;
        }
        Ok(true)
    }

    /// New numbers. Queues that are missing must have been made (see `Level::configure`).
    pub(super) fn configure(&mut self, now: u64, c: &Config) -> Result<(), Stale> {
        self.advance(now);
        self.h.limit = c.limit;
        set_discipline(&mut self.h, c.discipline);
        if self.h.live < self.h.desired {
            let more = self.h.desired - self.h.live;
            self.h.slots += more;
            self.h.live += more;
        }
        self.grant_all()
    }

    /// A queue too many goes once nothing is left in it.
    fn remove_if_surplus(&mut self, slot: u32) -> Result<(), Stale> {
        // The slot of a queue that is gone may have been given up.
        if self.h.live <= self.h.desired || slot >= self.h.slots {
            return Ok(());
        }
        let q = *self.queue(slot)?;
        let held = self.level.fidelity == Fidelity::Corrected && q.lingering_seats > 0;
        if q.is_active() || !q.is_live() || held {
            return Ok(());
        }
        self.h.live -= 1;
        // Its lingering seats belong to no queue from now on.
        self.h.off_queue_seats += q.lingering_seats;
        let q = self.queue(slot)?;
        q.lingering_seats = 0;
        q.removals = q.removals.wrapping_add(1);
        Ok(())
    }

    /// Whether a rule asks how many of the seats in use only linger.
    fn tracks_lingering(&self) -> bool {
        self.level.fidelity == Fidelity::Kubernetes && self.h.mode != Mode::Exempt
    }
}

/// A running request leaves its queue.
pub(super) fn leave_queue(q: &mut super::record::Queue, l: &Leaver, now: u64) {
    q.running = q.running.wrapping_sub(1);
    q.next_dispatch_r = q.next_dispatch_r.wrapping_sub(l.overcharge(now));
    if l.width.additional_latency > 0 {
        q.lingering_seats = q.lingering_seats.wrapping_add(l.width.max_seats());
    }
}

/// The part of a header that says what a level does with requests.
pub(super) fn set_discipline(h: &mut Header, d: Discipline) {
    match d {
        Discipline::Exempt => (h.mode, h.desired) = (Mode::Exempt, 0),
        Discipline::Reject | Discipline::Queue { queues: 0, .. } => (h.mode, h.desired) = (Mode::Reject, 0),
        Discipline::Queue { queues, hand_size, queue_length_limit } => {
            (h.mode, h.desired) = (Mode::Queue, queues);
            (h.hand_size, h.queue_length_limit) = (hand_size, queue_length_limit);
        }
    }
}

/// `start` of a ticket that is about to wait.
pub(super) fn prepare_to_wait(ticket: &crate::ticket::Ticket, generation: u64) {
    ticket.start.store(not_started(generation), Release);
    ticket.state.store(StateWord::new(generation, NOT_CLIPPED, State::Waiting).0, Release);
}
