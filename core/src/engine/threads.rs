//! The calling thread's part of an engine: its context and its counters, made on its first call.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::outcome::{OUTCOMES, Outcome, ROWS};
use crate::counters::Counters;
use crate::level::{Arena, ArenaSize, Context, Extras, OutOfCells};
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Number of the next engine of this process.
static NEXT: std::sync::LazyLock<AtomicU64> = std::sync::LazyLock::new(|| AtomicU64::new(1));

thread_local! {
    /// Contexts of this thread. Given back when the thread ends, or with its first call to an engine that is new to it
    /// after their own has gone.
    static CONTEXTS: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
}

/// A thread's context of one engine.
struct Own {
    engine: u64,
    alive: Weak<()>,
    cx: Context,
}

/// All threads of an engine.
pub(super) struct Threads {
    engine: u64,
    arena: Arc<Arena>,
    outcomes: Counters<OUTCOMES>,
    alive: Arc<()>,
    /// For threads past the arena's number, and for those that are ending: they take turns. The only lock that a
    /// request can meet, and only there.
    shared: Mutex<Context>,
}

impl Threads {
    /// Fails as [`Context::new`].
    pub(super) fn new(size: ArenaSize) -> Result<Self, OutOfCells> {
        // Relaxed: only to be different.
        let engine = NEXT.fetch_add(1, Relaxed);
        let extras = Extras {
            // The shared one.
            contexts: 1,
            tags: ROWS,
            // Spread, so that a ticket of one engine is for long no ticket of another.
            first_generation: engine.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 27,
        };
        let arena = Arena::with(size, &extras);
        let outcomes = Counters::new(ROWS, arena.contexts());
        let shared = Context::new(&arena)?;
        outcomes.enlist(shared.number());
        Ok(Threads { engine, arena, outcomes, alive: Arc::new(()), shared: Mutex::new(shared) })
    }

    /// A number that no other engine of the process has; from 1.
    pub(super) fn engine(&self) -> u64 {
        self.engine
    }

    pub(super) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Calls `f` with the calling thread's context.
    #[inline]
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Context) -> T) -> T {
        let mut f = Some(f);
        let own = CONTEXTS.try_with(|contexts| {
            let mut contexts = contexts.try_borrow_mut().ok()?;
            let at = match contexts.iter().position(|own| own.engine == self.engine) {
                Some(at) => at,
                None => self.enlist(&mut contexts)?,
            };
            f.take().map(|f| f(&mut contexts[at].cx))
        });
        match own {
            Ok(Some(done)) => done,
            _ => {
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                // It was not called yet: only the arms above that give nothing lead here.
                (f.take().expect("called once"))(&mut shared)
            }
        }
    }

    /// Counts in a row of the flow schemas.
    #[inline]
    pub(super) fn count(&self, cx: &Context, row: u32, what: Outcome, n: u64) {
        self.outcomes.add(cx.number(), row, what.index(), n);
    }

    /// Takes a grant back that the level has counted.
    pub(super) fn uncount_grant(&self, cx: &Context, row: u32) {
        self.arena.grants.add(cx.number(), row, 0, 1u64.wrapping_neg());
    }

    /// What was counted in a row, and the grants.
    pub(super) fn counted(&self, row: u32) -> ([u64; OUTCOMES], u64) {
        let [grants] = self.arena.grants.read(row);
        (self.outcomes.read(row), grants)
    }

    /// Bytes of address space reserved.
    pub(super) fn bytes(&self) -> usize {
        self.arena.bytes() + self.outcomes.bytes()
    }

    #[cold]
    fn enlist(&self, contexts: &mut Vec<Own>) -> Option<usize> {
        contexts.retain(|own| own.alive.strong_count() > 0);
        let cx = Context::new(&self.arena).ok()?;
        self.outcomes.enlist(cx.number());
        contexts.push(Own { engine: self.engine, alive: Arc::downgrade(&self.alive), cx });
        Some(contexts.len() - 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Barrier, mpsc};

    use super::*;

    fn threads(threads: usize) -> Threads {
        Threads::new(ArenaSize { tickets: 8, queues: 8, levels: 2, threads }).unwrap()
    }

    #[test]
    fn each_thread_up_to_the_bound_has_a_context_of_its_own() {
        let all = threads(2);
        let shared = all.shared.lock().unwrap().number();
        let number = || all.with(|cx| cx.number());
        let (came, go) = (Barrier::new(3), Barrier::new(3));
        std::thread::scope(|s| {
            let holders = [(); 2].map(|()| {
                s.spawn(|| {
                    let number = number();
                    came.wait();
                    go.wait();
                    number
                })
            });
            came.wait();
            assert_eq!(s.spawn(number).join().unwrap(), shared, "the third takes turns");
            go.wait();
            let [a, b] = holders.map(|holder| holder.join().unwrap());
            assert!(a != b && a != shared && b != shared);
        });
        let later = std::thread::scope(|s| s.spawn(number).join().unwrap());
        assert_ne!(later, shared, "threads that ended gave theirs back");
    }

    #[test]
    fn the_memory_of_an_engine_that_is_gone_goes_though_several_threads_knew_it() {
        let (old, new) = (Arc::new(threads(4)), Arc::new(threads(4)));
        let memory = Arc::downgrade(old.arena());
        let (tell, told) = mpsc::channel();
        let workers = [(); 2].map(|()| {
            let (go_on, wait) = mpsc::channel::<()>();
            let (tell, old, new) = (tell.clone(), old.clone(), new.clone());
            let worker = std::thread::spawn(move || {
                old.with(|_| ());
                drop(old);
                tell.send(()).unwrap();
                wait.recv().unwrap();
                new.with(|_| ());
                tell.send(()).unwrap();
                let _ = wait.recv();
            });
            (go_on, worker)
        });
        (0..2).for_each(|_| told.recv().unwrap());
        drop(old);
        workers.iter().for_each(|(go_on, _)| go_on.send(()).unwrap());
        (0..2).for_each(|_| told.recv().unwrap());
        assert!(memory.upgrade().is_none(), "both threads live, and have turned to the new engine");
        for (go_on, worker) in workers {
            drop(go_on);
            worker.join().unwrap();
        }
    }
}
