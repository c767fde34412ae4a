//! Counts what becomes of requests.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use maitred::engine::Rejection;

/// Counts of some requests. Times are nanoseconds.
#[derive(Debug, Clone)]
pub struct Count {
    /// Requests that were sent.
    pub offered: u64,
    /// Those that got their seats.
    pub dispatched: u64,
    /// Those of them that came to their end.
    pub finished: u64,
    /// Those that were turned away, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Seats times the time for which they were held.
    pub seat_ns: u128,
    wait_ns: u128,
    longest_wait: u64,
    /// Waits to three digits.
    waits: Histogram<u64>,
}

impl Default for Count {
    fn default() -> Self {
        let mut waits = Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("the bounds are legal");
        waits.auto(true);
        Count {
            offered: 0,
            dispatched: 0,
            finished: 0,
            rejected: BTreeMap::new(),
            seat_ns: 0,
            wait_ns: 0,
            longest_wait: 0,
            waits,
        }
    }
}

impl Count {
    /// A request got its seats.
    pub fn dispatched(&mut self, wait: u64) {
        self.dispatched += 1;
        self.wait_ns += u128::from(wait);
        self.longest_wait = self.longest_wait.max(wait);
        // The histogram grows by itself; it can only run out of memory.
        let _ = self.waits.record(wait);
    }

    /// A request was turned away.
    pub fn rejected(&mut self, why: Rejection) {
        *self.rejected.entry(why.reason()).or_default() += 1;
    }

    /// Requests that were turned away.
    pub fn all_rejected(&self) -> u64 {
        self.rejected.values().sum()
    }

    /// Counts what `other` counted.
    pub fn merge(&mut self, other: &Count) {
        self.offered += other.offered;
        self.dispatched += other.dispatched;
        self.finished += other.finished;
        for (why, count) in &other.rejected {
            *self.rejected.entry(why).or_default() += count;
        }
        self.seat_ns += other.seat_ns;
        self.wait_ns += other.wait_ns;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        let _ = self.waits.add(&other.waits);
    }

    /// The wait that this part of the requests that got seats did not exceed; 0 when none did.
    pub fn wait_quantile(&self, part: f64) -> u64 {
        self.waits.value_at_quantile(part).min(self.longest_wait)
    }

    /// The longest wait.
    pub fn longest_wait(&self) -> u64 {
        self.longest_wait
    }

    /// The mean wait; 0 when none got seats.
    pub fn mean_wait(&self) -> f64 {
        if self.dispatched == 0 { 0.0 } else { self.wait_ns as f64 / self.dispatched as f64 }
    }
}

/// The limit of a level over time.
#[derive(Debug, Clone, Default)]
pub struct LimitOverTime {
    /// Seats now.
    pub now: u32,
    /// The least limit.
    pub least: u32,
    /// The greatest.
    pub greatest: u32,
    /// By epoch: seats times the time for which the level had them.
    pub seat_ns: Vec<u128>,
    since: u64,
}

impl LimitOverTime {
    /// From time 0 on it has so many seats.
    pub fn starting(seats: u32) -> Self {
        LimitOverTime { now: seats, least: seats, greatest: seats, seat_ns: vec![0], since: 0 }
    }

    /// It has had its seats up to now.
    fn up_to(&mut self, now: u64) {
        if let Some(epoch) = self.seat_ns.last_mut() {
            *epoch += u128::from(self.now) * u128::from(now - self.since);
        }
        self.since = now;
    }

    /// From now on it has so many.
    pub fn set(&mut self, now: u64, seats: u32) {
        self.up_to(now);
        self.now = seats;
        self.least = self.least.min(seats);
        self.greatest = self.greatest.max(seats);
    }

    /// An epoch ends and another begins.
    pub fn turn(&mut self, now: u64) {
        self.up_to(now);
        self.seat_ns.push(0);
    }

    /// Ends the last epoch.
    pub fn end(&mut self, now: u64) {
        self.up_to(now);
    }
}
