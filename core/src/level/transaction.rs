//! One step of a level in the making: a snapshot, the copies that the rules change, and the commit.
//!
//! All that is read after the level's word holds if the commit's exchange of that word succeeds. Where something
//! read does not fit together the level has moved on: [`Stale`], and the step starts again.

use arrayvec::ArrayVec;

use super::context::{Context, Step};
use super::operation::{Address, Entry, Kind, MAX_ENTRIES};
use super::queue::slots_of;
use super::record::{GROUP, Group, Header, Mode, Queue, before};
use super::virtual_time::Load;
use super::word::{self, CellRef, Form, MAX_ARRIVALS, MAX_FREE, Packed};
use super::{Level, Shape};
use crate::sync::Ordering::Acquire;
use crate::ticket::{Ticket, TicketId};

/// Queues that one step may change.
pub(super) const MAX_QUEUES: usize = 6;

/// Ticket words that one step may change: what queues, groups, header, clock and shape leave of the entries.
const MAX_TICKET_WORDS: usize = MAX_ENTRIES - 2 * MAX_QUEUES - 3;

/// The level has moved on since the snapshot.
#[derive(Debug)]
pub(super) struct Stale;

struct TouchedQueue {
    slot: u32,
    seen: CellRef,
    was: Queue,
    now: Queue,
}

struct TouchedGroup {
    index: u32,
    seen: CellRef,
    now: Group,
    /// Its least queue rose or left.
    rescan: bool,
}

/// Kept by the context from step to step.
#[derive(Default)]
pub(super) struct Scratch {
    queues: ArrayVec<TouchedQueue, MAX_QUEUES>,
    groups: ArrayVec<TouchedGroup, MAX_QUEUES>,
    tickets: ArrayVec<Entry, MAX_TICKET_WORDS>,
    /// With the tags by which they are counted: once granted, a ticket is its owner's, and may be another's soon.
    granted: ArrayVec<(TicketId, u32), MAX_TICKET_WORDS>,
}

pub(super) struct Transaction<'a> {
    pub(super) level: &'a Level,
    cx: &'a mut Context,
    /// The level's word.
    seen: u64,
    was_packed: bool,
    header_seen: CellRef,
    clock_seen: CellRef,
    /// The header as it will be.
    pub(super) h: Header,
}

impl<'a> Transaction<'a> {
    pub(super) fn begin(level: &'a Level, cx: &'a mut Context) -> Self {
        let s = &mut *cx.scratch;
        s.queues.clear();
        s.groups.clear();
        s.tickets.clear();
        s.granted.clear();
        let cells = &level.arena.cells;
        loop {
            let seen = level.settled(cx, &level.word);
            let header_seen = CellRef::from_bits(level.settled(cx, &level.header));
            let mut h = cells.header(header_seen);
            if level.header.load(Acquire) != header_seen.bits() {
                continue;
            }
            let clock_seen = CellRef::from_bits(level.settled(cx, &level.clock));
            let was_packed = match word::form(seen) {
                Form::Packed(p) => {
                    h.clock = cells.clock(clock_seen);
                    if level.clock.load(Acquire) != clock_seen.bits() {
                        continue;
                    }
                    let seats = level.capacity(h.limit);
                    unpack(&mut h, p, seats);
                    true
                }
                _ => {
                    if level.word.load(Acquire) != seen {
                        continue;
                    }
                    false
                }
            };
            return Transaction { level, cx, seen, was_packed, header_seen, clock_seen, h };
        }
    }

    /// Seats in use and waiting, as the demand statistics count them.
    pub(super) fn demand(&self) -> u64 {
        self.h.in_use as u64 + self.h.waiting_seats + self.h.leaked_seats
    }

    /// Moves the clock to `now`, under the load that has been.
    pub(super) fn advance(&mut self, now: u64) {
        let load = Load {
            requested: self.h.in_use.saturating_sub(self.h.off_queue_seats) as u64 + self.h.waiting_seats,
            limit: self.h.limit,
            active: self.h.active,
            demand: self.demand(),
        };
        self.h.clock.advance(now, load);
    }

    /// Takes note of the demand of this moment.
    pub(super) fn observe(&mut self) {
        let demand = self.demand();
        self.h.clock.observe(demand);
    }

    // ---- queues

    fn touched(&self, slot: u32) -> Option<usize> {
        self.cx.scratch.queues.iter().position(|t| t.slot == slot)
    }

    fn read_queue(&self, slot: u32) -> Result<(CellRef, Queue), Stale> {
        let word = self.level.queues.get(slot);
        loop {
            let w = word.load(Acquire);
            if word::is_operation(w) {
                // Of this level's next operation, or of the one before a suspended installer noticed: either way the
                // snapshot may be old.
                self.level.help(self.cx, w);
                return Err(Stale);
            }
            let seen = CellRef::from_bits(w);
            let queue = self.level.arena.cells.queue(seen);
            if cfg!(maitred_mutant = "unchecked_read") || word.load(Acquire) == w {
                return Ok((seen, queue));
            }
        }
    }

    /// A queue as it is now in this step, to look at.
    pub(super) fn peek(&self, slot: u32) -> Result<Queue, Stale> {
        if slot >= self.h.slots {
            return Err(Stale);
        }
        match self.touched(slot) {
            Some(k) => Ok(self.cx.scratch.queues[k].now),
            None => self.read_queue(slot).map(|r| r.1),
        }
    }

    /// A queue to change.
    pub(super) fn queue(&mut self, slot: u32) -> Result<&mut Queue, Stale> {
        if slot >= self.h.slots {
            return Err(Stale);
        }
        let k = match self.touched(slot) {
            Some(k) => k,
            None => {
                let (seen, was) = self.read_queue(slot)?;
                self.cx.scratch.queues.push(TouchedQueue { slot, seen, was, now: was });
                self.cx.scratch.queues.len() - 1
            }
        };
        Ok(&mut self.cx.scratch.queues[k].now)
    }

    /// Finish tag of a queue that waits.
    pub(super) fn tag(&self, slot: u32) -> Result<u64, Stale> {
        let q = self.peek(slot)?;
        // A group that says otherwise was read before or after.
        if q.waiting == 0 { Err(Stale) } else { Ok(q.tag()) }
    }

    /// Whether another queue, with a waiter of it granted, can still be part of this step.
    pub(super) fn has_room(&self, slot: u32) -> bool {
        let s = &self.cx.scratch;
        s.tickets.remaining_capacity() >= 2
            && (self.touched(slot).is_some() || s.queues.remaining_capacity() >= 1)
    }

    // ---- groups

    pub(super) fn touches_group(&self, gi: u32) -> bool {
        self.cx.scratch.queues.iter().any(|t| t.slot / GROUP == gi)
    }

    fn read_group(&self, gi: u32) -> (CellRef, Group) {
        // Groups are written, never installed: the word always names a record.
        let seen = CellRef::from_bits(self.level.groups.get(gi).load(Acquire));
        (seen, self.level.arena.cells.group(seen))
    }

    /// A group with what this step has changed: who waits and who is removed; its least tag may be old.
    pub(super) fn group_now(&self, gi: u32) -> Group {
        let mut group = match self.cx.scratch.groups.iter().find(|g| g.index == gi) {
            Some(g) => g.now,
            None => self.read_group(gi).1,
        };
        for t in self.cx.scratch.queues.iter().filter(|t| t.slot / GROUP == gi) {
            set_bit(&mut group.waiting, t.slot, t.now.waiting > 0);
            set_bit(&mut group.removed, t.slot, !t.now.is_live());
        }
        group
    }

    fn group(&mut self, gi: u32) -> usize {
        match self.cx.scratch.groups.iter().position(|g| g.index == gi) {
            Some(k) => k,
            None => {
                let (seen, now) = self.read_group(gi);
                self.cx.scratch.groups.push(TouchedGroup { index: gi, seen, now, rescan: false });
                self.cx.scratch.groups.len() - 1
            }
        }
    }

    /// Brings the groups of all touched queues up to date.
    fn settle_groups(&mut self) -> Result<(), Stale> {
        for k in 0..self.cx.scratch.queues.len() {
            let TouchedQueue { slot, was, now, .. } = self.cx.scratch.queues[k];
            let (waited, waits) = (was.waiting > 0, now.waiting > 0);
            let same_tag = waited == waits && (!waits || was.tag() == now.tag());
            if same_tag && was.is_live() == now.is_live() {
                continue;
            }
            let g = self.group(slot / GROUP);
            let group = &mut self.cx.scratch.groups[g];
            set_bit(&mut group.now.waiting, slot, waits);
            set_bit(&mut group.now.removed, slot, !now.is_live());
            let alone = group.now.waiting.count_ones() == 1;
            let (tag, least) = (now.tag(), group.now.tag);
            if waits && (alone || before(tag, least) || tag == least && slot <= group.now.slot) {
                (group.now.tag, group.now.slot) = (tag, slot);
            } else if waited && group.now.slot == slot {
                group.rescan = true;
            }
        }
        for g in 0..self.cx.scratch.groups.len() {
            let TouchedGroup { index, now, rescan, .. } = self.cx.scratch.groups[g];
            if !rescan {
                continue;
            }
            let mut least: Option<(u64, u32)> = None;
            for slot in slots_of(index, now.waiting) {
                let tag = self.tag(slot)?;
                if least.is_none_or(|(t, _)| before(tag, t)) {
                    least = Some((tag, slot));
                }
            }
            if let Some((tag, slot)) = least {
                (self.cx.scratch.groups[g].now.tag, self.cx.scratch.groups[g].now.slot) = (tag, slot);
            }
        }
        Ok(())
    }

    // ---- tickets

    pub(super) fn ticket(&self, index: u32) -> Result<&'a Ticket, Stale> {
        let level: &'a Level = self.level;
        level.arena.tickets.get(index).ok_or(Stale)
    }

    /// A ticket word as it is now in this step.
    pub(super) fn read(&self, kind: Kind, ticket: u32) -> Result<u64, Stale> {
        let at = Address::new(kind, ticket);
        if let Some(e) = self.cx.scratch.tickets.iter().find(|e| e.at == at) {
            return Ok(e.new);
        }
        let t = self.ticket(ticket)?;
        Ok(match kind {
            Kind::Next => &t.next,
            Kind::Prev => &t.prev,
            Kind::Start => &t.start,
            _ => &t.state,
        }
        .load(Acquire))
    }

    /// Will write a ticket word that reads `old`.
    pub(super) fn write(&mut self, kind: Kind, ticket: u32, old: u64, new: u64) {
        let at = Address::new(kind, ticket);
        let tickets = &mut self.cx.scratch.tickets;
        match tickets.iter_mut().find(|e| e.at == at) {
            Some(e) => e.new = new,
            None => tickets.push(Entry { at, old, new }),
        }
    }

    pub(super) fn note_grant(&mut self, ticket: TicketId, tag: u32) {
        self.cx.scratch.granted.push((ticket, tag));
    }

    pub(super) fn granted(&self, index: u32) -> bool {
        self.cx.scratch.granted.iter().any(|g| g.0.index() == index)
    }

    // ---- commit

    /// Whether the level still is as the snapshot says: enough for a step that changes nothing.
    pub(super) fn is_current(&self) -> bool {
        self.level.word.load(Acquire) == self.seen
            && (!self.was_packed || self.level.header.load(Acquire) == self.header_seen.bits())
    }

    /// Makes the grants that a step had no room for.
    pub(super) fn grant_pending(mut self) -> Result<(), Stale> {
        self.h.pending = false;
        self.grant_all()?;
        self.commit_as(true)
    }

    /// Makes the step happen, whole, or not at all: then the level has moved on.
    pub(super) fn commit(self) -> Result<(), Stale> {
        self.commit_as(false)
    }

    /// `leftover`: it only makes grants that an earlier one had no room for.
    fn commit_as(mut self, leftover: bool) -> Result<(), Stale> {
        for t in &self.cx.scratch.queues {
            let change = t.now.is_active() as i32 - t.was.is_active() as i32;
            self.h.active = self.h.active.wrapping_add_signed(change);
        }
        self.settle_groups()?;
        self.observe();
        self.h.version += 1;
        let packed = self.packed();

        let (level, cx) = (self.level, self.cx);
        let cells = &level.arena.cells;
        let mut installed: ArrayVec<Entry, { MAX_QUEUES + 2 }> = ArrayVec::new();
        let mut written: ArrayVec<Entry, MAX_ENTRIES> = ArrayVec::new();

        let header = cx.spares.header.next();
        cells.put_header(header, &self.h);
        let header =
            Entry { at: Address::new(Kind::Header, 0), old: self.header_seen.bits(), new: header.bits() };
        let moves_clock = self.was_packed || packed.is_some();
        let clock = cx.spares.clock.next();
        if moves_clock {
            cells.put_clock(clock, &self.h.clock);
        }
        let clock =
            Entry { at: Address::new(Kind::Clock, 0), old: self.clock_seen.bits(), new: clock.bits() };
        if self.was_packed && cfg!(not(maitred_mutant = "header_not_installed")) {
            installed.push(header);
        } else {
            written.push(header);
        }
        if moves_clock {
            // Also where the level becomes packed: an arrival that read the level's word when it last was may move the
            // clock as late as now.
            if !self.was_packed && cfg!(maitred_mutant = "clock_not_installed") {
                written.push(clock);
            } else {
                installed.push(clock);
            }
        }
        let scratch = &*cx.scratch;
        for (t, spare) in scratch.queues.iter().zip(&cx.spares.queues) {
            let to = if cfg!(maitred_mutant = "repeating_words") {
                CellRef::new(spare.cell() as u32)
            } else {
                spare.next()
            };
            cells.put_queue(to, &t.now);
            installed.push(Entry {
                at: Address::new(Kind::Queue, t.slot),
                old: t.seen.bits(),
                new: to.bits(),
            });
        }
        for (g, spare) in scratch.groups.iter().zip(&cx.spares.groups) {
            cells.put_group(spare.next(), &g.now);
            written.push(Entry {
                at: Address::new(Kind::Group, g.index),
                old: g.seen.bits(),
                new: spare.next().bits(),
            });
        }
        let shape = Shape(level.shape.load(Acquire));
        let to = shape.follow(&self.h);
        if to != shape {
            written.push(Entry { at: Address::new(Kind::Shape, 0), old: shape.0, new: to.0 });
        }
        written.try_extend_from_slice(&scratch.tickets).expect("the capacities add up");
        let to = packed.map_or(word::version(self.h.version), Packed::bits);
        if !level.operate(cx, self.seen, to, &installed, &written) {
            return Err(Stale);
        }

        // The displaced cells are this thread's spares now.
        cx.spares.header = self.header_seen;
        if moves_clock {
            cx.spares.clock = self.clock_seen;
        }
        let Scratch { queues, groups, granted, .. } = &mut *cx.scratch;
        for (t, spare) in queues.iter().zip(&mut cx.spares.queues) {
            *spare = t.seen;
        }
        for (g, spare) in groups.iter().zip(&mut cx.spares.groups) {
            *spare = g.seen;
        }
        let granted = std::mem::take(granted);
        if let Some(steps) = &mut cx.steps {
            steps.push(Step {
                version: self.h.version,
                leftover,
                grants: granted.len(),
                seats_in_use: self.h.in_use,
                limit: self.h.limit,
                waiting: self.h.waiting,
                pending: self.h.pending,
                at: self.h.clock.at,
                r: self.h.clock.r,
            });
        }
        for (ticket, tag) in granted {
            cx.note_grant(ticket);
            level.count_dispatch(cx, tag);
        }
        Ok(())
    }

    /// The level's word after this step, if the packed form can say it all.
    fn packed(&self) -> Option<Packed> {
        let h = &self.h;
        let seats = self.level.capacity(h.limit);
        let all_queued = h.mode == Mode::Queue && h.live == h.desired && h.off_queue_seats == 0;
        let none_queued = h.mode != Mode::Queue && h.live == 0 && h.off_queue_seats == h.in_use;
        let fits = h.waiting == 0
            && !h.pending
            && h.in_use <= seats
            && seats - h.in_use <= MAX_FREE
            && h.slots <= word::MAX_QUEUES
            && h.active <= word::MAX_QUEUES
            && h.lingering_seats == 0
            && (all_queued || none_queued);
        let arrivals = (h.arrivals % h.hand_size.max(1) as u64) as u32;
        (fits && !self.level.never_packed).then(|| Packed::new(seats - h.in_use, h.active, arrivals, h.last))
    }
}

/// Fills in what the packed word knows better than the header record.
fn unpack(h: &mut Header, p: Packed, seats: u32) {
    h.in_use = seats.saturating_sub(p.free());
    h.active = p.active();
    h.last = p.last();
    h.off_queue_seats = if h.mode == Mode::Queue { 0 } else { h.in_use };
    // Hands dealt since the record was made. What the packed word started from is known by the same rule.
    let hand = h.hand_size.max(1) as u64;
    h.arrivals += (p.arrivals() as u64).wrapping_sub(h.arrivals % hand) & MAX_ARRIVALS as u64;
}

fn set_bit(bits: &mut u16, slot: u32, on: bool) {
    let bit = 1 << (slot % GROUP);
    *bits = if on { *bits | bit } else { *bits & !bit };
}
