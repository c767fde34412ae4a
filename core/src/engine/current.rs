//! The snapshot in force: read without a lock and without a write that others see, replaced while it is read, and freed
//! when nobody reads it any more, by whoever replaces or ticks. No request ever frees one.
//!
//! Each reader says in a word of its own what it reads, then looks whether that is still in force. Whoever replaces it does
//! so first and looks at the words then. All of this is sequentially consistent, so one of them sees the other.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use super::snapshot::Snapshot;
use crate::sync::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Release, SeqCst},
};

pub(super) struct Current {
    /// Never null once the engine has been made.
    snapshot: AtomicPtr<Snapshot>,
    /// What each context reads now.
    reading: Box<[CachePadded<AtomicPtr<Snapshot>>]>,
    /// Readers that may take their time, and may come one inside the other.
    lookers: AtomicUsize,
    /// Out of force, and perhaps still read. Only for those who replace and free, one at a time.
    retired: Mutex<Vec<Retired>>,
}

struct Retired(*mut Snapshot);

// SAFETY: a box that only the list has, but for readers, and a snapshot is `Send` and `Sync`.
unsafe impl Send for Retired {}

impl Current {
    pub(super) fn new(readers: usize) -> Self {
        Current {
            snapshot: AtomicPtr::new(ptr::null_mut()),
            reading: (0..readers).map(|_| CachePadded::new(AtomicPtr::new(ptr::null_mut()))).collect(),
            lookers: AtomicUsize::new(0),
            retired: Mutex::default(),
        }
    }

    /// Calls `f` with what is in force. `reader` must be the caller's alone, and `f` must not read by it again.
    #[inline]
    pub(super) fn read<T>(&self, reader: u32, f: impl FnOnce(&Snapshot) -> T) -> T {
        let reading = &self.reading[reader as usize];
        let mut at = self.snapshot.load(Acquire);
        loop {
            reading.store(at, SeqCst);
            let now = self.snapshot.load(SeqCst);
            if now == at {
                break;
            }
            at = now;
        }
        // SAFETY: never null since the engine was made; it was in force after `reading` said so, and until that changes
        // `free_unread` keeps it.
        let answer = f(unsafe { &*at });
        // Release: all reads are over.
        reading.store(ptr::null_mut(), Release);
        answer
    }

    /// The same for readers without a word of their own. Writes what others see.
    pub(super) fn look<T>(&self, f: impl FnOnce(&Snapshot) -> T) -> T {
        struct Looking<'a>(&'a AtomicUsize);
        impl Drop for Looking<'_> {
            fn drop(&mut self) {
                // Release: all reads are over.
                self.0.fetch_sub(1, Release);
            }
        }
        self.lookers.fetch_add(1, SeqCst);
        let _looking = Looking(&self.lookers);
        // SAFETY: never null since the engine was made; nothing is freed while somebody looks.
        f(unsafe { &*self.snapshot.load(SeqCst) })
    }

    /// Puts a snapshot in force.
    pub(super) fn replace(&self, next: Box<Snapshot>) {
        let old = self.snapshot.swap(Box::into_raw(next), SeqCst);
        if !old.is_null() {
            self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(Retired(old));
        }
        self.free_unread();
    }

    /// Frees snapshots that are out of force and that nobody reads.
    pub(super) fn free_unread(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        if retired.is_empty() || self.lookers.load(SeqCst) > 0 {
            return;
        }
        retired.retain(|old| {
            let read = self.reading.iter().any(|reading| reading.load(SeqCst) == old.0);
            if !read {
                // SAFETY: it came from a box, here for the last time. It is out of force; who read it then has stopped, and who
                // meant to has seen that it is out of force.
                drop(unsafe { Box::from_raw(old.0) });
            }
            read
        });
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        self.free_unread();
        let last = self.snapshot.load(Acquire);
        if !last.is_null() {
            // SAFETY: it came from a box, and nobody can read it any more.
            drop(unsafe { Box::from_raw(last) });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{
        api::Objects,
        flow::FlowHasher,
        policy::{Policy, Resolver},
    };

    fn snapshot(generation: u64) -> Box<Snapshot> {
        let policy = Policy::compile(&Objects::default(), 1).unwrap();
        let resolver = Resolver::new(policy, FlowHasher::Kubernetes, 2);
        Box::new(Snapshot { generation, resolver, levels: Box::default(), rows: vec![7; 100].into() })
    }

    fn retired(current: &Current) -> usize {
        current.retired.lock().unwrap().len()
    }

    #[test]
    fn what_is_read_stays_until_it_is_not_and_is_freed_by_the_next_who_frees() {
        let current = Current::new(2);
        current.replace(snapshot(1));
        current.read(0, |old| {
            current.replace(snapshot(2));
            assert_eq!((retired(&current), old.generation, old.rows[99]), (1, 1, 7));
            current.read(1, |new| assert_eq!(new.generation, 2));
        });
        current.free_unread();
        assert_eq!(retired(&current), 0);
        current.look(|old| {
            current.look(|_| current.replace(snapshot(3)));
            current.free_unread();
            assert_eq!((retired(&current), old.generation), (1, 2));
        });
        current.replace(snapshot(4));
        assert_eq!(retired(&current), 0);
    }

    #[test]
    fn readers_beside_a_writer_see_whole_snapshots_and_later_ones_later() {
        let current = Current::new(3);
        current.replace(snapshot(1));
        std::thread::scope(|s| {
            for reader in 0..3 {
                let current = &current;
                s.spawn(move || {
                    let mut last = 0;
                    while last < 300 {
                        let see = |s: &Snapshot| (s.generation, s.rows.iter().all(|row| *row == 7));
                        let (generation, whole) =
                            if reader < 2 { current.read(reader, see) } else { current.look(see) };
                        assert!(whole && generation >= last);
                        last = generation;
                    }
                });
            }
            (2..=300).for_each(|generation| current.replace(snapshot(generation)));
        });
        current.free_unread();
        assert_eq!(retired(&current), 0);
    }
}
