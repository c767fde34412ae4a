//! The calling thread's part of an engine: its context, made on its first call.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use crate::level::{Arena, Context};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// Number of the next engine of this process.
static NEXT: std::sync::LazyLock<AtomicU64> = std::sync::LazyLock::new(|| AtomicU64::new(1));

thread_local! {
    /// Contexts of this thread, each with the number of its engine. Given back when the thread ends.
    static CONTEXTS: RefCell<Vec<(u64, Context)>> = const { RefCell::new(Vec::new()) };
}

/// All threads of an engine.
pub(super) struct Threads {
    engine: u64,
    arena: Arc<Arena>,
    /// For threads past the arena's number, and for those that are ending: they take turns. The only lock that a
    /// request can meet, and only there.
    shared: Mutex<Context>,
}

impl Threads {
    /// Fails as [`Context::new`].
    pub(super) fn new(arena: &Arc<Arena>) -> Result<Self, crate::level::OutOfCells> {
        Ok(Threads {
            // Relaxed: only to be different.
            engine: NEXT.fetch_add(1, Relaxed),
            arena: arena.clone(),
            shared: Mutex::new(Context::new(arena)?),
        })
    }

    /// Calls `f` with the calling thread's context.
    #[inline]
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Context) -> T) -> T {
        let mut f = Some(f);
        let own = CONTEXTS.try_with(|contexts| {
            let mut contexts = contexts.try_borrow_mut().ok()?;
            let at = match contexts.iter().position(|c| c.0 == self.engine) {
                Some(at) => at,
                None => self.enlist(&mut contexts)?,
            };
            f.take().map(|f| f(&mut contexts[at].1))
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

    #[cold]
    fn enlist(&self, contexts: &mut Vec<(u64, Context)>) -> Option<usize> {
        // Engines that are gone live on in the contexts of their threads alone.
        contexts.retain(|(_, cx)| !cx.is_orphan());
        contexts.push((self.engine, Context::new(&self.arena).ok()?));
        Some(contexts.len() - 1)
    }
}
