//! Seat demand over time: what a level wanted in a period, and the smoothed figure that borrowing goes by.
//!
//! Demand is seats in use plus seats waiting. Doubles, added up in the reference's order, so that results agree to
//! the last bit. Sources of the rules: `vectors/integrator.jsonl` and `vectors/seatdemand.jsonl`.

/// How much of the old smoothed demand a period leaves standing; the rest comes from the period's envelope.
const SMOOTHING: f64 = 0.977;
/// 1 − [`SMOOTHING`] as the nearest double, which the subtraction of doubles would miss.
const SMOOTHING_COMPLEMENT: f64 = 0.023;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Integrals over a span of time of the powers 0, 1 and 2 of a value that stays constant in each step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// ∫ dt: length of the span, seconds.
    pub seconds: f64,
    /// ∫ x dt.
    pub integral: f64,
    /// ∫ x² dt.
    pub integral_of_squares: f64,
}

impl Moments {
    /// The moments after `x` was held for another `nanoseconds`.
    #[inline]
    pub fn after(self, nanoseconds: u64, x: f64) -> Moments {
        // Whole seconds and the rest apart: one division of the sum would round differently.
        let whole = (nanoseconds / NANOS_PER_SECOND) as f64;
        let dt = whole + (nanoseconds % NANOS_PER_SECOND) as f64 / NANOS_PER_SECOND as f64;
        Moments {
            seconds: self.seconds + dt,
            integral: self.integral + x * dt,
            integral_of_squares: self.integral_of_squares + x * x * dt,
        }
    }

    /// Time-weighted average, and standard deviation around it.
    ///
    /// Both are not-a-number for a span of no length; the deviation also where rounding makes the variance negative.
    pub fn average_and_deviation(self) -> (f64, f64) {
        if self.seconds <= 0.0 {
            return (f64::NAN, f64::NAN);
        }
        let average = self.integral / self.seconds;
        // The square root of a negative number is not-a-number, as is wanted here.
        (average, (self.integral_of_squares / self.seconds - average * average).sqrt())
    }
}

/// What a value did in a period. See [`Integrator`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeriodDemand {
    /// Length of the period, seconds.
    pub seconds: f64,
    /// Time-weighted average; not-a-number for a period of no length.
    pub average: f64,
    /// Time-weighted standard deviation; not-a-number for a period of no length, or where rounding makes the variance
    /// negative.
    pub deviation: f64,
    /// Least value in the period.
    pub min: f64,
    /// Greatest value in the period.
    pub max: f64,
}

impl PeriodDemand {
    /// The results for a period with these moments and extremes: for those who integrate by themselves.
    pub fn new(moments: Moments, min: f64, max: f64) -> PeriodDemand {
        let (average, deviation) = moments.average_and_deviation();
        PeriodDemand { seconds: moments.seconds, average, deviation, min, max }
    }

    /// A period of no length in which the value was `x`: what a level that was just made has to tell.
    pub fn empty(x: f64) -> PeriodDemand {
        PeriodDemand::new(Moments::default(), x, x)
    }
}

/// Integrates a value over time, one period after another.
///
/// Starts at value 0 with extremes 0. All times are nanoseconds of one clock; a time before the latest one counts as
/// the latest. Single-threaded; every call is a few floating-point operations.
#[derive(Debug, Clone)]
pub struct Integrator {
    latest: u64,
    x: f64,
    moments: Moments,
    min: f64,
    max: f64,
}

impl Integrator {
    /// One that starts integrating at `now`.
    pub fn new(now: u64) -> Integrator {
        Integrator { latest: now, x: 0.0, moments: Moments::default(), min: 0.0, max: 0.0 }
    }

    /// The value since the latest call that changed it.
    pub fn value(&self) -> f64 {
        self.x
    }

    /// The value is `x` from `now` on.
    pub fn set(&mut self, now: u64, x: f64) {
        self.advance(now);
        self.x = x;
        if x < self.min {
            self.min = x;
        }
        if x > self.max {
            self.max = x;
        }
    }

    /// The value changes by `delta` at `now`.
    pub fn add(&mut self, now: u64, delta: f64) {
        self.set(now, self.x + delta);
    }

    /// Results of the period so far; it goes on.
    pub fn results(&mut self, now: u64) -> PeriodDemand {
        self.advance(now);
        PeriodDemand::new(self.moments, self.min, self.max)
    }

    /// Results of the period up to `now`, where a new one begins with the value of now as both extremes.
    pub fn reset(&mut self, now: u64) -> PeriodDemand {
        let results = self.results(now);
        self.moments = Moments::default();
        (self.min, self.max) = (self.x, self.x);
        results
    }

    // Rounds at each step, also at those that only read, as the reference does.
    fn advance(&mut self, now: u64) {
        let now = now.max(self.latest);
        self.moments = self.moments.after(now - self.latest, self.x);
        self.latest = now;
    }
}

/// A level's seat demand as borrowing sees it, updated once a period.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SeatDemandStats {
    /// Greatest demand of the last period, seats, halves rounded away from zero.
    pub high_watermark: i64,
    /// Average demand of the last period that had a length, seats.
    pub average: f64,
    /// Deviation of that period, seats; 0 where it was not-a-number.
    pub deviation: f64,
    /// Smoothed envelope: follows average + deviation at once when it rises, slowly when it falls. Seats.
    pub smoothed: f64,
}

impl SeatDemandStats {
    /// Takes in a period. One of no length moves the high watermark only.
    pub fn update(&mut self, period: &PeriodDemand) {
        self.high_watermark = period.max.round() as i64;
        // Not `<= 0.0` alone: a period that is not-a-number long tells nothing either.
        if period.seconds <= 0.0 || period.seconds.is_nan() {
            return;
        }
        self.average = period.average;
        self.deviation = if period.deviation.is_nan() { 0.0 } else { period.deviation };
        let envelope = self.average + self.deviation;
        self.smoothed = envelope.max(SMOOTHING * self.smoothed + SMOOTHING_COMPLEMENT * envelope);
    }
}
