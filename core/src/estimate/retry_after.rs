//! After how many seconds a refused request should come back.
//!
//! The wait doubles while many requests are refused and shrinks by a second at a time when few are. Source of the
//! rule: `vectors/dropped.jsonl`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use crate::sync::{AtomicU64, Ordering::Relaxed};

/// The longest wait, seconds.
const LONGEST: u64 = 32;

/// Seconds whose refusals are remembered: more than the longest wait looks back on, and a power of two.
const REMEMBERED: usize = 64;

/// Refusals of one second. Layout (bit 0 first): refusals 24 | second 40. A count that is full stays there: a few
/// hundred in a second already mean the longest wait.
#[derive(Clone, Copy)]
struct Tally(u64);

impl Tally {
    const COUNT_BITS: u32 = 24;
    const FULL: u64 = (1 << Self::COUNT_BITS) - 1;
    const SECONDS: u64 = u64::MAX >> Self::COUNT_BITS;

    fn second(self) -> u64 {
        self.0 >> Self::COUNT_BITS
    }

    fn count(self) -> u64 {
        self.0 & Self::FULL
    }

    /// With one refusal more in `second`; those of an earlier second are forgotten.
    fn counted(self, second: u64) -> Tally {
        match self {
            _ if self.second() != second => Tally(second << Self::COUNT_BITS | 1),
            _ if self.count() == Self::FULL => self,
            _ => Tally(self.0 + 1),
        }
    }
}

/// The wait now and when it was last doubled. Layout (bit 0 first): wait 8 | second 56.
#[derive(Clone, Copy)]
struct Wait(u64);

impl Wait {
    fn new(seconds: u64, raised_at: u64) -> Wait {
        Wait(raised_at << 8 | seconds)
    }

    fn seconds(self) -> u64 {
        self.0 & 0xff
    }

    fn raised_at(self) -> u64 {
        self.0 >> 8
    }

    /// The wait from the second `now` on, when `refused` were refused in the `seconds` before it.
    fn next(self, now: u64, refused: u64) -> Wait {
        let seconds = self.seconds();
        if now - self.raised_at().min(now) >= seconds && refused >= 3 * seconds {
            Wait::new((2 * seconds).min(LONGEST), now)
        } else if refused < seconds && seconds > 1 {
            Wait::new(seconds - 1, self.raised_at())
        } else {
            self
        }
    }
}

/// Retry-After of one priority level.
///
/// Any thread may call; no call blocks, waits for another or allocates. Counts are exact in one thread; between
/// threads a refusal at the turn of a second may count to either second. Takes half a kilobyte.
pub struct RetryAfter {
    /// The latest second in which something was refused.
    latest: AtomicU64,
    wait: AtomicU64,
    /// By second, modulo their number.
    tallies: [AtomicU64; REMEMBERED],
}

// All orderings are relaxed: each word is whole in itself, and none publishes anything but itself.
impl RetryAfter {
    /// One that has seen no refusals: the wait is one second.
    pub fn new() -> RetryAfter {
        RetryAfter {
            latest: AtomicU64::new(0),
            wait: AtomicU64::new(Wait::new(1, 0).0),
            tallies: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Forgets everything: for another level in the same place.
    pub(crate) fn reset(&self) {
        self.latest.store(0, Relaxed);
        self.wait.store(Wait::new(1, 0).0, Relaxed);
        self.tallies.iter().for_each(|tally| tally.store(0, Relaxed));
    }

    /// Notes that a request was refused in the second `now`, counted from 1970.
    ///
    /// The first one in a second also sets the wait, by the refusals of the seconds before. A time before the latest
    /// one that was seen counts as the latest.
    pub fn record(&self, now: u64) {
        let now = now.min(Tally::SECONDS);
        let latest = self.latest.fetch_max(now, Relaxed);
        self.count(now.max(latest));
        if now > latest {
            self.reconsider(now);
        }
    }

    /// Seconds after which a request that is refused now should come back: 1 to 32.
    pub fn seconds(&self) -> u64 {
        Wait(self.wait.load(Relaxed)).seconds()
    }

    fn tally(&self, second: u64) -> &AtomicU64 {
        &self.tallies[second as usize % REMEMBERED]
    }

    fn count(&self, second: u64) {
        let _ =
            self.tally(second).fetch_update(Relaxed, Relaxed, |tally| Some(Tally(tally).counted(second).0));
    }

    fn reconsider(&self, now: u64) {
        let _ = self.wait.fetch_update(Relaxed, Relaxed, |wait| {
            let wait = Wait(wait);
            let window = now.saturating_sub(wait.seconds())..now;
            let tallies = window.map(|second| (second, Tally(self.tally(second).load(Relaxed))));
            let refused =
                tallies.filter(|(second, tally)| tally.second() == *second).map(|(_, tally)| tally.count());
            Some(wait.next(now, refused.sum()).0)
        });
    }
}

impl Default for RetryAfter {
    fn default() -> RetryAfter {
        RetryAfter::new()
    }
}

impl fmt::Debug for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryAfter").field("seconds", &self.seconds()).finish_non_exhaustive()
    }
}

/// Retry-After of many priority levels, by name.
///
/// Any thread may call. Looking a level up takes a shared lock; hold on to a [`level`](RetryAfterTracker::level) to go
/// without. Only the first refusal of a level allocates.
#[derive(Debug, Default)]
pub struct RetryAfterTracker(RwLock<HashMap<Box<str>, Arc<RetryAfter>>>);

impl RetryAfterTracker {
    /// One that has seen no refusals.
    pub fn new() -> RetryAfterTracker {
        RetryAfterTracker::default()
    }

    /// The level with this name, made if it is new.
    pub fn level(&self, name: &str) -> Arc<RetryAfter> {
        if let Some(level) = self.known(name, Arc::clone) {
            return level;
        }
        let mut levels = self.0.write().unwrap_or_else(PoisonError::into_inner);
        levels.entry(name.into()).or_default().clone()
    }

    /// Notes that a request of the level `name` was refused in the second `now`, counted from 1970.
    pub fn record(&self, name: &str, now: u64) {
        if self.known(name, |level| level.record(now)).is_none() {
            self.level(name).record(now);
        }
    }

    /// Seconds after which a request of the level `name` that is refused now should come back: 1 to 32.
    pub fn seconds(&self, name: &str) -> u64 {
        self.known(name, |level| level.seconds()).unwrap_or(1)
    }

    fn known<T>(&self, name: &str, of: impl FnOnce(&Arc<RetryAfter>) -> T) -> Option<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).map(of)
    }
}
