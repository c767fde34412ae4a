//! Seat demand over time: what the allocation of limits will look at.

/// Time-weighted statistics of one number.
#[derive(Debug, Clone)]
pub struct Demand {
    since_ns: u64,
    value: f64,
    seconds: f64,
    integral: f64,
    integral_of_square: f64,
    least: f64,
    greatest: f64,
}

impl Demand {
    pub fn starting_at(now: u64) -> Self {
        Self {
            since_ns: now,
            value: 0.0,
            seconds: 0.0,
            integral: 0.0,
            integral_of_square: 0.0,
            least: 0.0,
            greatest: 0.0,
        }
    }

    /// The number is `value` from `now` on.
    pub fn set(&mut self, now: u64, value: f64) {
        self.integrate(now);
        self.value = value;
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Seconds, average, deviation, least, greatest. Average and deviation are NaN when no time has passed.
    pub fn statistics(&self, now: u64) -> [f64; 5] {
        let mut all = self.clone();
        all.integrate(now);
        let (average, deviation) = if all.seconds > 0.0 {
            let average = all.integral / all.seconds;
            // Rounding may leave a negative variance, whose root is the NaN that the reference answers, too.
            (average, (all.integral_of_square / all.seconds - average * average).sqrt())
        } else {
            (f64::NAN, f64::NAN)
        };
        [all.seconds, average, deviation, all.least, all.greatest]
    }

    fn integrate(&mut self, now: u64) {
        let ns = now - self.since_ns;
        // Seconds and rest apart, as the reference converts a duration: the last bits depend on it.
        let dt = (ns / 1_000_000_000) as f64 + (ns % 1_000_000_000) as f64 / 1e9;
        self.since_ns = now;
        self.seconds += dt;
        self.integral += self.value * dt;
        self.integral_of_square += self.value * self.value * dt;
    }
}
