//! A place for one entry of the flow cache: readers never wait, and never see half of an entry.
//!
//! A sequence lock without the lock's waiting: `version` is odd while somebody writes. A reader that finds it odd, or
//! changed when it has read, has simply found nothing; so has a writer that finds it odd. Nobody ever retries, so a
//! writer that is descheduled for good costs one slot of the cache and stops nobody.

use std::array;

use crate::sync::{AtomicU64, Ordering, fence};

/// Words of one entry: `K` of its key, `V` of its value. Empty at first: version 0 is only ever seen on an empty slot.
pub(super) struct Slot<const K: usize, const V: usize> {
    version: AtomicU64,
    key: [AtomicU64; K],
    value: [AtomicU64; V],
}

impl<const K: usize, const V: usize> Slot<K, V> {
    pub(super) fn empty() -> Self {
        let words = |_| AtomicU64::new(0);
        Slot { version: AtomicU64::new(0), key: array::from_fn(words), value: array::from_fn(words) }
    }

    /// The value, if the slot holds one and the key begins with `key`, word for word.
    ///
    /// The caller sees to it that two different keys differ within the shorter one.
    #[inline]
    pub(super) fn find(&self, key: &[u64]) -> Option<[u64; V]> {
        // Acquire: pairs with the Release store at the end of `put`; the entry read below is at least that new.
        let version = self.version.load(Ordering::Acquire);
        if version == 0 || !version.is_multiple_of(2) {
            return None;
        }
        if self.key.iter().zip(key).any(|(ours, &theirs)| ours.load(Ordering::Relaxed) != theirs) {
            return None;
        }
        let value = array::from_fn(|i| self.value[i].load(Ordering::Relaxed));
        // Acquire fence: pairs with the Release fence in `put`. If any word above came from a later `put`, that one's
        // odd version is visible to the load below.
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some(value)
    }

    /// How often the slot was written; 0 while it is empty.
    #[inline]
    pub(super) fn writes(&self) -> u64 {
        // Relaxed: only a hint for choosing which slot to overwrite.
        self.version.load(Ordering::Relaxed).div_ceil(2)
    }

    /// Replaces the entry, unless another thread is doing so; then that one's entry is as good as ours.
    #[inline]
    pub(super) fn put(&self, key: &[u64], value: [u64; V]) {
        let version = self.version.load(Ordering::Relaxed);
        // Acquire: orders our writes behind those of the writer before us, whose Release store made it even.
        let claimed = version.is_multiple_of(2)
            && self
                .version
                .compare_exchange(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !claimed {
            return;
        }
        // Release fence: pairs with the Acquire fence in `find`. Whoever sees a word written below sees the odd version.
        fence(Ordering::Release);
        for (word, &new) in self.key.iter().zip(key) {
            word.store(new, Ordering::Relaxed);
        }
        for (word, new) in self.value.iter().zip(value) {
            word.store(new, Ordering::Relaxed);
        }
        // Release: publishes the entry; pairs with the Acquire load in `find`.
        self.version.store(version + 2, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::{sync::Arc, thread};

    use super::*;

    /// An entry whose value is told by its key.
    fn put(slot: &Slot<1, 2>, key: u64) {
        slot.put(&[key], [key + 10, key + 20]);
    }

    fn check(slot: &Slot<1, 2>, key: u64) -> bool {
        let found = slot.find(&[key]);
        assert!(found.is_none_or(|value| value == [key + 10, key + 20]), "{key}: {found:?}");
        found.is_some()
    }

    #[test]
    fn a_reader_racing_a_writer_finds_the_whole_old_or_new_entry_or_nothing() {
        loom::model(|| {
            let slot = Arc::new(Slot::empty());
            put(&slot, 1);
            let writer = {
                let slot = slot.clone();
                thread::spawn(move || put(&slot, 2))
            };
            check(&slot, 1);
            check(&slot, 2);
            writer.join().unwrap();
            assert!(check(&slot, 2), "nobody else wrote");
        });
    }

    #[test]
    fn two_racing_writers_leave_one_whole_entry() {
        loom::model(|| {
            let slot = Arc::new(Slot::empty());
            let writers = [1, 2].map(|key| {
                let slot = slot.clone();
                thread::spawn(move || put(&slot, key))
            });
            check(&slot, 1);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            assert!(check(&slot, 1) != check(&slot, 2));
        });
    }

    #[test]
    fn a_writer_that_never_ends_stops_nobody() {
        loom::model(|| {
            let slot: Slot<1, 2> = Slot::empty();
            put(&slot, 1);
            let stalled = slot.version.load(Ordering::Relaxed) + 1;
            slot.version.store(stalled, Ordering::Relaxed);
            assert!(!check(&slot, 1));
            put(&slot, 2);
            assert!(!check(&slot, 2));
        });
    }
}
