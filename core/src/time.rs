//! Clocks. Time enters the engine here and nowhere else: a `u64` of nanoseconds since the engine was made.

use std::sync::Arc;
use std::time::Instant;

use crate::sync::{AtomicU64, Ordering};

/// A source of time. Calls come from all threads, up to once a decision, so reading must be cheap and must not block.
pub trait Clock: Send + Sync + 'static {
    /// Nanoseconds since some fixed moment. It may stand still; where it steps back, the engine keeps the later time.
    fn now(&self) -> u64;
}

/// The system's monotonic clock, counted from when this value was made.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// A clock that reads zero now.
    pub fn new() -> Self {
        Monotonic(Instant::now())
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> u64 {
        // 2^64 ns are 584 years.
        self.0.elapsed().as_nanos() as u64
    }
}

/// A clock that moves only when told: for tests, replays and simulations. Clones share the time.
#[derive(Debug, Clone, Default)]
pub struct Manual(Arc<AtomicU64>);

impl Manual {
    /// A clock that reads `now` nanoseconds.
    pub fn at(now: u64) -> Self {
        Manual(Arc::new(AtomicU64::new(now)))
    }

    /// Sets the time.
    pub fn set(&self, now: u64) {
        // Relaxed: the time orders nothing; whoever needs order passes it along with the time.
        self.0.store(now, Ordering::Relaxed);
    }
}

impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
