//! The clock of a level: its progress meter R, and the statistics of its seat demand.
//!
//! Both move together, once at the start of each event, for both are sums over time of what the level held meanwhile.
//! R counts 1/100 000 000 of a seat-second and wraps. Rules: design, "Virtual time"; vectors `queueset`, `integrator`.

use crate::borrow::{Moments, PeriodDemand};

/// Service time that a request is charged for before its own is known: 3 ms, in nanoseconds.
pub(crate) const ESTIMATED_SERVICE: i64 = 3_000_000;

/// R and the demand moments, at a time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) r: u64,
    /// When all of this was right: nanoseconds.
    pub(crate) at: u64,
    /// Demand since the statistics began.
    pub(crate) moments: Moments,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// What decides how fast a level's clock runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Seats that requests of live queues hold or wait for.
    pub(crate) requested: u64,
    pub(crate) limit: u32,
    pub(crate) active: u32,
    /// Seats in use and waiting.
    pub(crate) demand: u64,
}

impl Clock {
    pub(crate) fn encode(&self) -> [u64; 7] {
        [
            self.r,
            self.at,
            self.moments.seconds.to_bits(),
            self.moments.integral.to_bits(),
            self.moments.integral_of_squares.to_bits(),
            self.min,
            self.max,
        ]
    }

    pub(crate) fn decode(w: [u64; 7]) -> Self {
        Clock {
            r: w[0],
            at: w[1],
            moments: Moments {
                seconds: f64::from_bits(w[2]),
                integral: f64::from_bits(w[3]),
                integral_of_squares: f64::from_bits(w[4]),
            },
            min: w[5],
            max: w[6],
        }
    }

    /// Whether moving to `now` under `demand` would change anything, for a clock that may lag by `tick` nanoseconds.
    #[inline]
    pub(crate) fn is_due(&self, now: u64, tick: u64, demand: u64) -> bool {
        now > self.at.saturating_add(tick) || tick == 0 && (demand > self.max || demand < self.min)
    }

    /// Moves to `now`, under the load that has been since the last move. A time before that changes nothing.
    pub(crate) fn advance(&mut self, now: u64, load: Load) {
        self.observe(load.demand);
        if now <= self.at {
            return;
        }
        let ns = now - self.at;
        self.at = now;
        if load.active > 0 {
            let share = load.requested.min(load.limit as u64) as f64 / load.active as f64;
            self.r = self.r.wrapping_add(round_positive(share * ns as f64 / 10.0));
        }
        self.moments = self.moments.after(ns, load.demand as f64);
    }

    /// Takes note of a demand of this moment.
    #[inline]
    pub(crate) fn observe(&mut self, demand: u64) {
        self.min = self.min.min(demand);
        self.max = self.max.max(demand);
    }

    /// The statistics of the period that ends now; they start anew, at the demand of now.
    pub(crate) fn restart(&mut self, demand: u64) -> PeriodDemand {
        let period = PeriodDemand::new(self.moments, self.min as f64, self.max as f64);
        (self.moments, self.min, self.max) = (Moments::default(), demand, demand);
        period
    }
}

/// Rounds half up; `x` is not negative.
#[inline]
fn round_positive(x: f64) -> u64 {
    let whole = x as u64;
    whole + (x - whole as f64 >= 0.5) as u64
}

/// `seats` for `ns` nanoseconds (may be negative), in units of R, rounded half away from zero; wraps like R.
#[inline]
pub(crate) fn work(seats: u32, ns: i64) -> u64 {
    let exact = seats as i128 * ns as i128;
    // Below 2^50 the integer gives what doubles give, faster.
    if exact.unsigned_abs() < 1 << 50 {
        let x = exact as i64;
        return (if x >= 0 { (x + 5) / 10 } else { (x - 5) / 10 }) as u64;
    }
    (seats as f64 * ns as f64 / 10.0).round() as i64 as u64
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn work_rounds_halves_away_from_zero() {
        assert_eq!(work(1, 5), 1);
        assert_eq!(work(1, 4), 0);
        assert_eq!(work(3, -5) as i64, -2);
        assert_eq!(work(1, -4) as i64, 0);
    }

    #[test]
    fn work_of_a_million_seats_for_an_hour_is_what_doubles_give() {
        let (seats, ns) = (1_000_003u32, 3_600_000_000_007i64);
        assert_eq!(work(seats, ns), (seats as f64 * ns as f64 / 10.0).round() as u64);
    }

    #[test]
    fn the_clock_stands_when_nobody_is_active_but_demand_is_measured() {
        let mut c = Clock::default();
        c.advance(2_000_000_000, Load { requested: 3, limit: 5, active: 0, demand: 3 });
        assert_eq!((c.r, c.moments.integral, c.moments.integral_of_squares, c.max), (0, 6.0, 18.0, 3));
    }

    #[test]
    fn a_clock_that_is_told_an_earlier_time_stays() {
        let mut c = Clock { at: 10, ..Clock::default() };
        c.advance(5, Load { requested: 1, limit: 1, active: 1, demand: 0 });
        assert_eq!((c.at, c.r), (10, 0));
    }
}
