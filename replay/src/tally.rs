//! Counts what becomes of requests, by flow schema, in bounded memory.

use std::collections::HashMap;

use hdrhistogram::Histogram;

use crate::play::{Fate, Refusal};
use crate::playback::Observer;

/// Counts of some requests.
#[derive(Debug, Clone)]
pub struct Count {
    /// Requests that ran.
    pub dispatched: u64,
    /// Requests that did not, by reason.
    pub refused: [u64; Refusal::ALL.len()],
    /// Sum of the waits of those that ran.
    pub wait_ns: u128,
    /// The longest of them.
    pub longest_wait_ns: u64,
    /// Seats times the time for which they were held.
    pub seat_ns: u128,
    /// Waits in microseconds, to two digits.
    waits: Option<Box<Histogram<u64>>>,
}

impl Default for Count {
    fn default() -> Self {
        Self { waits: Some(Box::new(histogram())), ..Self::without_quantiles() }
    }
}

fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 100_000_000, 2).expect("the bounds are legal");
    histogram.auto(true);
    histogram
}

impl Count {
    fn without_quantiles() -> Self {
        Self { dispatched: 0, refused: [0; _], wait_ns: 0, longest_wait_ns: 0, seat_ns: 0, waits: None }
    }

    /// Counts a request.
    pub fn add(&mut self, fate: &Fate) {
        match fate.outcome {
            Err(refusal) => self.refused[refusal as usize] += 1,
            Ok(wait_ns) => {
                let class = &fate.arrival.class;
                self.dispatched += 1;
                self.wait_ns += u128::from(wait_ns);
                self.longest_wait_ns = self.longest_wait_ns.max(wait_ns);
                // A request that lingers keeps the more of its two widths all the time.
                let lingers = class.final_seats > 0 && class.latency_ns > 0;
                let seats =
                    if lingers { class.initial_seats.max(class.final_seats) } else { class.initial_seats };
                let held = u128::from(fate.arrival.service_ns)
                    + u128::from(if lingers { class.latency_ns } else { 0 });
                self.seat_ns += u128::from(seats) * held;
                if let Some(waits) = &mut self.waits {
                    // The histogram grows by itself; it can only run out of memory.
                    let _ = waits.record(wait_ns / 1000);
                }
            }
        }
    }

    /// Counts what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.dispatched += other.dispatched;
        self.refused.iter_mut().zip(other.refused).for_each(|(sum, count)| *sum += count);
        self.wait_ns += other.wait_ns;
        self.longest_wait_ns = self.longest_wait_ns.max(other.longest_wait_ns);
        self.seat_ns += other.seat_ns;
        if let (Some(waits), Some(others)) = (&mut self.waits, &other.waits) {
            let _ = waits.add(&**others);
        }
    }

    /// Requests that did not run.
    pub fn refused(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// The wait in seconds that this part of the requests that ran did not exceed; 0 when none ran.
    pub fn wait_quantile(&self, part: f64) -> f64 {
        let longest = self.longest_wait_ns as f64 / 1e9;
        match &self.waits {
            Some(waits) if self.dispatched > 0 => (waits.value_at_quantile(part) as f64 / 1e6).min(longest),
            _ => 0.0,
        }
    }
}

/// Limits of a level over time.
#[derive(Debug, Clone, Copy, Default)]
pub struct LimitOverTime {
    /// Seats times the time for which the level had them.
    pub seat_ns: u128,
    /// The least limit.
    pub least: u64,
    /// The greatest.
    pub greatest: u64,
    now: u64,
    since: u64,
}

impl LimitOverTime {
    fn until(&mut self, now: u64) {
        self.seat_ns += u128::from(self.now) * u128::from(now.saturating_sub(self.since));
        self.since = now;
    }
}

/// Counts all requests of a play.
#[derive(Debug, Default)]
pub struct Tally {
    /// By schema.
    pub schemas: Vec<Count>,
    /// By level; `None` of one that has no limit.
    pub limits: Vec<Option<LimitOverTime>>,
    /// By hash, of the flows that are watched.
    pub flows: HashMap<u64, Count>,
    /// The end of the play.
    pub end: u64,
}

impl Tally {
    /// A tally of so many schemas, and of the flows with these hashes.
    pub fn new(schemas: usize, flows: impl Iterator<Item = u64>) -> Self {
        Self {
            schemas: vec![Count::default(); schemas],
            limits: Vec::new(),
            flows: flows.map(|hash| (hash, Count::without_quantiles())).collect(),
            end: 0,
        }
    }

    /// Ends the tally at this moment.
    pub fn finish(&mut self, now: u64) {
        self.end = now;
        self.limits.iter_mut().flatten().for_each(|limit| limit.until(now));
    }
}

impl Observer for Tally {
    fn fate(&mut self, _now: u64, fate: &Fate) {
        self.schemas[fate.arrival.class.schema as usize].add(fate);
        if let Some(count) = self.flows.get_mut(&fate.arrival.class.flow) {
            count.add(fate);
        }
    }

    fn limit(&mut self, now: u64, level: usize, seats: u64) {
        if level >= self.limits.len() {
            self.limits.resize(level + 1, None);
        }
        match &mut self.limits[level] {
            Some(limit) => {
                limit.until(now);
                limit.now = seats;
                limit.least = limit.least.min(seats);
                limit.greatest = limit.greatest.max(seats);
            }
            none => {
                let limit =
                    LimitOverTime { least: seats, greatest: seats, now: seats, since: now, seat_ns: 0 };
                *none = Some(limit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::Arrival;
    use crate::record::Class;

    fn fate(outcome: Result<u64, Refusal>) -> Fate {
        let class = Class { initial_seats: 2, final_seats: 3, latency_ns: 10, ..Class::default() };
        Fate { arrival: Arrival { at: 0, class, service_ns: 90, tag: 0 }, outcome }
    }

    #[test]
    fn quantiles_are_of_those_that_ran() {
        let mut count = Count::default();
        (1..=100).for_each(|ms| count.add(&fate(Ok(ms * 1_000_000))));
        count.add(&fate(Err(Refusal::QueueFull)));
        for (part, seconds) in [(0.5, 0.050), (0.9, 0.090), (0.99, 0.099)] {
            let quantile = count.wait_quantile(part);
            assert!((quantile - seconds).abs() <= 0.01 * seconds, "{part}: {quantile}");
        }
        assert_eq!((count.dispatched, count.refused(), count.wait_ns), (100, 1, 5_050_000_000));
    }

    #[test]
    fn seats_are_held_after_the_end_too() {
        let mut count = Count::default();
        count.add(&fate(Ok(0)));
        assert_eq!(count.seat_ns, 3 * 100);
    }

    #[test]
    fn a_limit_counts_for_as_long_as_it_held() {
        let mut tally = Tally::new(1, std::iter::empty());
        tally.limit(0, 0, 5);
        tally.limit(10, 0, 2);
        tally.finish(15);
        let limit = tally.limits[0].unwrap();
        assert_eq!((limit.seat_ns, limit.least, limit.greatest), (5 * 10 + 2 * 5, 2, 5));
    }
}
