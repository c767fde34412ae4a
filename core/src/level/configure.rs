//! Making a level, and giving it new numbers while it works.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::context::{Arena, Context};
use super::queue::Segments;
use super::record::{GROUP, Group, Header, OutOfCells, Queue};
use super::rules::set_discipline;
use super::transaction::{Stale, Transaction};
use super::word::{self, CellRef};
use super::{Config, Discipline, Level, Shape};
use crate::fidelity::Fidelity;
use crate::sync::{AtomicU64, Ordering::Relaxed};

impl Level {
    /// A level at rest, at time 0. Allocates; fails if the arena has no cells left for its queues.
    ///
    /// `id` must be unique among the levels of the arena. `tick`: how many nanoseconds the level's clock may lag while
    /// nobody waits. 0 makes every decision exact; 1000 saves most decisions the write of a shared line, and moves the
    /// order of service by no more than that time.
    pub fn new(
        arena: &Arc<Arena>,
        id: u32,
        config: Config,
        fidelity: Fidelity,
        tick: u64,
    ) -> Result<Level, OutOfCells> {
        let mut h = Header { limit: config.limit, last: 1, ..Header::default() };
        set_discipline(&mut h, config.discipline);
        (h.live, h.slots) = (h.desired, h.desired);
        let (wide, _) = arena.cells.take(2, 0)?;
        let (queues, groups) = match cells_for(arena, 0, h.slots.max(1)) {
            Ok(words) => words,
            Err(e) => {
                arena.cells.give(wide, []);
                return Err(e);
            }
        };
        arena.cells.put_header(wide[0], &h);
        arena.cells.put_clock(wide[1], &h.clock);
        let level = Level {
            word: CachePadded::new(AtomicU64::new(word::version(0))),
            clock: CachePadded::new(AtomicU64::new(wide[1].bits())),
            header: CachePadded::new(AtomicU64::new(wide[0].bits())),
            shape: AtomicU64::new(Shape::new(0, 0, false).follow(&h).0),
            queues: Segments::new(queues),
            groups: Segments::new(groups),
            arena: arena.clone(),
            id,
            exempt: config.discipline == Discipline::Exempt,
            fidelity,
            tick,
            never_packed: false,
        };
        Ok(level)
    }

    /// The same level, with a step for every event, so that each has a version: for models and replays.
    pub fn always_by_steps(mut self) -> Self {
        self.never_packed = true;
        self
    }

    /// The same level, with another progress meter R to begin with: for tests of its wrap.
    pub fn starting_at_r(self, cx: &mut Context, r: u64) -> Self {
        self.step(cx, |tx| {
            tx.h.clock.r = r;
            Ok(())
        });
        self
    }

    /// Makes room for the queues of a discipline, so that [`configure`](Level::configure) with it will not fail for want
    /// of memory. Allocates.
    pub fn reserve(&self, cx: &mut Context, discipline: Discipline) -> Result<(), OutOfCells> {
        self.make_slots(self.slots_at_worst(cx, discipline))
    }

    /// Cells that [`reserve`](Level::reserve) would take.
    pub(crate) fn lacks(&self, cx: &mut Context, discipline: Discipline) -> usize {
        self.cells_up_to(self.slots_at_worst(cx, discipline))
    }

    /// Queues that there is room for.
    pub(crate) fn room(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Slots for a discipline, though all surplus queues go before it is in force.
    fn slots_at_worst(&self, cx: &mut Context, discipline: Discipline) -> u32 {
        self.look(cx, |tx| {
            let live = tx.h.live.min(tx.h.desired);
            Ok(slots_for(&Header { live, ..tx.h }, discipline))
        })
    }

    /// Makes it a level at rest that begins at `now`, as [`new`](Level::new) does. False if somebody is in it; then it has no
    /// seats and no queues from now on, and can be asked again. Allocates where it lacks room; one call at a time.
    pub(crate) fn renew(&self, cx: &mut Context, config: &Config, now: u64) -> Result<bool, OutOfCells> {
        let mut wanted = Header::default();
        set_discipline(&mut wanted, config.discipline);
        let slots = wanted.desired;
        self.make_slots(slots)?;
        // Each queue's word changes, so that whoever saw the level as it was can put nothing into it any more.
        if !self.step(cx, |tx| tx.shut()) || !self.remove_idle_queues(cx) {
            return Ok(false);
        }
        self.tidy(cx);
        self.revive(cx, slots);
        Ok(self.step(cx, |tx| {
            if !tx.is_at_rest() || tx.h.live > 0 {
                return Ok(false);
            }
            let mut h = Header { limit: config.limit, last: 1, version: tx.h.version, ..wanted };
            (h.live, h.slots) = (slots, slots);
            h.clock.at = now.max(tx.h.clock.at);
            tx.h = h;
            Ok(true)
        }))
    }

    /// Whether all queues were idle, and are gone.
    fn remove_idle_queues(&self, cx: &mut Context) -> bool {
        while self.look(cx, |tx| Ok(tx.h.live > 0)) {
            let removed = self.step(cx, |tx| {
                let mut removed = 0;
                while removed < STEPWISE && tx.h.live > 0 {
                    let slot = tx.last_live_below(tx.h.slots).ok_or(Stale)?;
                    let q = tx.queue(slot)?;
                    if q.is_active() || q.lingering_seats > 0 {
                        break;
                    }
                    *q = Queue { removals: q.removals.wrapping_add(1), ..Queue::default() };
                    tx.h.live -= 1;
                    tx.h.slots = slot;
                    tx.h.last = tx.h.last.min(slot);
                    removed += 1;
                }
                Ok(removed)
            });
            if removed == 0 {
                return false;
            }
        }
        true
    }

    /// Closes gaps that removed queues have left, where idle queues can move: then arrivals need no step again.
    pub fn tidy(&self, cx: &mut Context) {
        if self.look(cx, |tx| Ok(tx.h.live < tx.h.slots)) {
            self.close_gaps(cx);
        }
    }

    /// New numbers, at `now`. Nothing in flight is dropped. Queues grow at once, at the end; surplus ones go as their
    /// last request does.
    ///
    /// Allocates when there are more queues than ever. One call at a time a level; any number of other calls beside it.
    /// On an error nothing has changed.
    pub fn configure(&self, cx: &mut Context, config: &Config, now: u64) -> Result<(), OutOfCells> {
        self.tidy(cx);
        loop {
            let slots = self.look(cx, |tx| Ok(slots_for(&tx.h, config.discipline)));
            self.make_slots(slots)?;
            self.revive(cx, slots);
            let done = self.step(cx, |tx| {
                // A queue may have gone meanwhile.
                let enough = slots_for(&tx.h, config.discipline) <= slots;
                if enough {
                    tx.configure(now, config)?;
                }
                Ok(enough)
            });
            if done {
                return Ok(());
            }
        }
    }

    /// Makes words for slots below `slots`, each pointing to the record of a queue that nobody has used.
    fn make_slots(&self, slots: u32) -> Result<(), OutOfCells> {
        let wanted = self.cells_up_to(slots);
        let left = self.arena.cells.left_narrow();
        if wanted > left {
            return Err(OutOfCells { wanted, left });
        }
        while (self.queues.len() as u32) < slots {
            let len = self.queues.len() as u32;
            let (queues, groups) = cells_for(&self.arena, len, 2 * len)?;
            let more_groups = (2 * len).div_ceil(GROUP) > self.groups.len() as u32;
            let (mut queues, mut groups) = (Some(queues), Some(groups));
            self.queues.grow(2 * len as usize, |_| queues.take().expect("it doubles once"));
            if more_groups {
                let n = self.groups.len() * 2;
                self.groups.grow(n, |_| groups.take().expect("it doubles once"));
            }
        }
        Ok(())
    }

    /// Cells for slots below `slots` that there are no words for yet.
    pub(crate) fn cells_up_to(&self, slots: u32) -> usize {
        let there = self.queues.len() as u32;
        let then = there as usize * slots.max(there).div_ceil(there).next_power_of_two() as usize;
        (then - there as usize) + then.div_ceil(GROUP as usize).saturating_sub(self.groups.len())
    }

    /// Slots that lie past those in use, but were used and removed before: they start anew.
    fn revive(&self, cx: &mut Context, end: u32) {
        let mut from = 0;
        while let Some(next) = self.step(cx, |tx| {
            let start = tx.h.slots;
            tx.h.slots = end.max(start);
            let (mut revived, mut next) = (0, None);
            for slot in start.max(from)..end {
                if tx.peek(slot)?.is_live() {
                    continue;
                }
                if revived == STEPWISE {
                    next = Some(slot);
                    break;
                }
                revived += 1;
                let q = tx.queue(slot)?;
                *q = Queue { removals: q.removals.wrapping_add(1), ..Queue::default() };
            }
            tx.h.slots = start;
            Ok(next)
        }) {
            from = next;
        }
    }

    /// Idle queues move into the gap before them, and slots at the end whose queues are gone are given up. So a level
    /// that is resized for ever does not grow for ever. Positions stay as they are.
    fn close_gaps(&self, cx: &mut Context) {
        let mut gap = 0;
        while let Some(next) = self.step(cx, |tx| tx.close_gap(gap)) {
            gap = next;
        }
    }
}

impl Transaction<'_> {
    /// Closes the first gap at or after slot `from` whose next queue is idle, and says where to look on.
    fn close_gap(&mut self, from: u32) -> Result<Option<u32>, Stale> {
        let end = self.last_live_below(self.h.slots).map_or(0, |slot| slot + 1);
        if end < self.h.slots {
            // The scan for the next queue begins after the last one there is, if it would begin past it.
            self.h.last = self.h.last.min(end);
            self.h.slots = end;
        }
        let mut gap = from;
        while gap < end {
            if self.peek(gap)?.is_live() {
                gap += 1;
                continue;
            }
            // There is one, for the slot before `end` is live.
            let mut slot = gap + 1;
            while !self.peek(slot)?.is_live() {
                slot += 1;
            }
            let q = self.peek(slot)?;
            if q.is_active() || q.lingering_seats > 0 {
                gap = slot + 1;
                continue;
            }
            let there = self.queue(gap)?;
            *there = Queue {
                removals: there.removals.wrapping_add(1),
                next_dispatch_r: q.next_dispatch_r,
                ..Queue::default()
            };
            *self.queue(slot)? = Queue { removals: q.removals.wrapping_add(1), ..Queue::default() };
            // The scan for the next queue still begins after the same one.
            if self.h.last == slot + 1 {
                self.h.last = gap + 1;
            } else if self.h.last > gap && self.h.last <= slot {
                self.h.last = gap;
            }
            return Ok(Some(gap + 1));
        }
        Ok(None)
    }
}

/// Queues that one step of many makes or removes.
const STEPWISE: u32 = 4;

/// Cells that a new level takes for its queues.
pub(crate) fn cells_of_new(queues: u32) -> usize {
    let queues = queues.max(1).next_power_of_two();
    (queues + queues.div_ceil(GROUP)) as usize
}

impl Transaction<'_> {
    fn is_at_rest(&self) -> bool {
        let h = &self.h;
        h.in_use == 0 && h.waiting == 0 && h.active == 0
    }

    /// Shuts a level at rest: no seats, no queues for newcomers.
    fn shut(&mut self) -> Result<bool, Stale> {
        let shut = self.is_at_rest();
        if shut {
            self.h.limit = 0;
            set_discipline(&mut self.h, Discipline::Reject);
        }
        Ok(shut)
    }
}

/// Slots in use once the level has the queues that a configuration wants.
fn slots_for(h: &Header, discipline: Discipline) -> u32 {
    let mut then = *h;
    set_discipline(&mut then, discipline);
    h.slots + then.desired.saturating_sub(h.live)
}

type Words = Box<[AtomicU64]>;

/// Words for slots `from..to` (and the groups that begin there), their number a power of two where they are the first.
fn cells_for(arena: &Arena, from: u32, to: u32) -> Result<(Words, Words), OutOfCells> {
    let first = from == 0;
    let round = |n: u32| if first { n.next_power_of_two() } else { n };
    let queues = round(to - from);
    let groups =
        if first { queues.div_ceil(GROUP) } else { (from + queues).div_ceil(GROUP) - from.div_ceil(GROUP) };
    let (_, narrow) = arena.cells.take(0, (queues + groups) as usize)?;
    let (q, g) = narrow.split_at(queues as usize);
    // A cell of a level that is gone holds old words.
    for cell in q {
        arena.cells.put_queue(*cell, &Queue::default());
    }
    for cell in g {
        arena.cells.put_group(*cell, &Group::default());
    }
    let words = |cells: &[CellRef]| cells.iter().map(|c| AtomicU64::new(c.bits())).collect();
    Ok((words(q), words(g)))
}

impl Drop for Level {
    fn drop(&mut self) {
        let narrow = (0..self.queues.len() as u32)
            .map(|i| self.queues.get(i))
            .chain((0..self.groups.len() as u32).map(|i| self.groups.get(i)))
            .map(|w| CellRef::from_bits(w.load(Relaxed)));
        let wide = [&*self.header, &*self.clock].map(|w| CellRef::from_bits(w.load(Relaxed)));
        self.arena.cells.give(wide, narrow.collect::<Vec<_>>());
    }
}
