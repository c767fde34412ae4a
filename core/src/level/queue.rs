//! Where a level's queues are: slots, positions, and the scan for the next queue to grant.
//!
//! A queue lives in a slot and keeps it. Its *position*, which the dealer speaks of, is how many live slots come before
//! it. The two are the same until a surplus queue is removed; new queues always come after all live ones.

use std::sync::OnceLock;

use super::record::{GROUP, Group, before};
use super::transaction::{Stale, Transaction};

/// An array that grows by doubling and never moves, so that others may use it meanwhile.
pub(super) struct Segments<T> {
    first: Box<[T]>,
    more: [OnceLock<Box<[T]>>; 24],
}

impl<T> Segments<T> {
    pub(super) fn new(first: Box<[T]>) -> Self {
        assert!(first.len().is_power_of_two());
        Segments { first, more: [const { OnceLock::new() }; 24] }
    }

    pub(super) fn len(&self) -> usize {
        self.first.len() << self.more.iter().take_while(|s| s.get().is_some()).count()
    }

    /// Doubles until there are `n`. Allocates; one caller at a time.
    pub(super) fn grow(&self, n: usize, mut make: impl FnMut(usize) -> Box<[T]>) {
        while self.len() < n {
            let len = self.len();
            let at = (len / self.first.len()).trailing_zeros() as usize;
            let _ = self.more[at].set(make(len));
        }
    }

    #[inline]
    pub(super) fn get(&self, i: u32) -> &T {
        match self.first.get(i as usize) {
            Some(x) => x,
            None => self.get_more(i as usize),
        }
    }

    #[cold]
    fn get_more(&self, i: usize) -> &T {
        let k = (i / self.first.len()).ilog2();
        let segment = self.more[k as usize].get().expect("slots in use have been made");
        &segment[i - (self.first.len() << k)]
    }
}

/// The live slots among the sixteen of group `gi`, when `slots` were ever used.
pub(super) fn live_slots(gi: u32, group: &Group, slots: u32) -> u16 {
    let used = slots.saturating_sub(gi * GROUP).min(GROUP);
    !group.removed & ((1u32 << used) - 1) as u16
}

/// Slot of the `n`th set bit.
pub(super) fn nth_bit(mut bits: u16, n: u32) -> u32 {
    for _ in 0..n {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros()
}

impl Transaction<'_> {
    /// The slot of the queue at a position.
    pub(super) fn slot_at(&self, position: u32) -> Result<u32, Stale> {
        if self.h.live == self.h.slots {
            return Ok(position);
        }
        let mut left = position;
        for gi in 0..self.h.slots.div_ceil(GROUP) {
            let live = live_slots(gi, &self.group_now(gi), self.h.slots);
            if left < live.count_ones() {
                return Ok(gi * GROUP + nth_bit(live, left));
            }
            left -= live.count_ones();
        }
        Err(Stale)
    }

    /// The last live slot below `end`.
    pub(super) fn last_live_below(&self, end: u32) -> Option<u32> {
        (0..end.div_ceil(GROUP)).rev().find_map(|gi| {
            let live = live_slots(gi, &self.group_now(gi), end);
            (live != 0).then(|| gi * GROUP + live.ilog2())
        })
    }

    /// The queue to grant next: the least tag among queues with waiters, the first after the last granted one if
    /// several have it.
    pub(super) fn next_to_grant(&mut self) -> Result<Option<u32>, Stale> {
        let slots = self.h.slots;
        let groups = slots.div_ceil(GROUP);
        let start = if self.h.last >= slots { 0 } else { self.h.last };
        let (first_group, first_bit) = (start / GROUP, start % GROUP);
        let mut best: Option<(u64, u32)> = None;
        // The first group twice: its slots from `start` on, and at the end those before it.
        for k in 0..=groups {
            let gi = (first_group + k) % groups.max(1);
            let group = self.group_now(gi);
            let whole = first_bit == 0 || k != 0 && k != groups;
            let bits = match k {
                0 => group.waiting & (u16::MAX << first_bit),
                _ if k == groups => group.waiting & !(u16::MAX << first_bit),
                _ => group.waiting,
            };
            if bits == 0 {
                continue;
            }
            if whole && !self.touches_group(gi) {
                better(&mut best, group.tag, group.slot);
                continue;
            }
            for slot in slots_of(gi, bits) {
                let tag = self.tag(slot)?;
                better(&mut best, tag, slot);
            }
        }
        match best {
            Some((_, slot)) if slot >= slots => Err(Stale),
            other => Ok(other.map(|b| b.1)),
        }
    }
}

/// The slots that `bits` of group `gi` name, ascending.
pub(super) fn slots_of(gi: u32, mut bits: u16) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
        Some(gi * GROUP + bit)
    })
}

#[inline]
fn better(best: &mut Option<(u64, u32)>, tag: u64, slot: u32) {
    if best.is_none_or(|(least, _)| before(tag, least)) {
        *best = Some((tag, slot));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_in_place() {
        let s = Segments::new((0..4u32).collect());
        s.grow(33, |len| (len as u32..2 * len as u32).collect());
        assert_eq!(s.len(), 64);
        assert!((0..64).all(|i| *s.get(i) == i));
    }

    #[test]
    fn live_slots_are_those_used_and_not_removed() {
        let g = Group { removed: 0b10, ..Group::default() };
        assert_eq!(live_slots(1, &g, 16 + 3), 0b101);
        assert_eq!(live_slots(1, &g, 16), 0);
        assert_eq!(nth_bit(0b1010_0100, 2), 7);
    }
}
