//! Random numbers that are the same for a seed for ever, and what is drawn from them.

use std::f64::consts::TAU;

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and no library's next version changes what it gives.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for each (seed, name, number), so that a flow sees the same traffic whatever other flows there
    /// are.
    pub fn new(seed: u64, name: &str, number: u64) -> Random {
        // FNV-1a.
        let named = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Random(mix(seed) ^ mix(named).rotate_left(21) ^ mix(number.wrapping_add(1)).rotate_left(42))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Above 0, up to 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }

    /// Normally distributed with mean 0 and deviation 1.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How spans of time are distributed; nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always this.
    Constant(u64),
    /// Exponential with this mean.
    Exponential(u64),
    /// Each from the first to the second is as likely.
    Uniform(u64, u64),
    /// Log-normal, by its median and what one in a hundred exceeds.
    LogNormal { median: u64, p99: u64 },
}

/// Standard deviations by which a normal distribution's 99th percentile exceeds its mean.
const DEVIATIONS_TO_P99: f64 = 2.326_347_874_040_841;

impl Distribution {
    /// One span.
    pub fn sample(self, random: &mut Random) -> u64 {
        let drawn = match self {
            Distribution::Constant(span) => return span,
            Distribution::Exponential(mean) => random.exponential(mean as f64),
            Distribution::Uniform(least, most) => least as f64 + random.unit() * (most - least) as f64,
            Distribution::LogNormal { median, p99 } => {
                median as f64 * (deviation(median, p99) * random.normal()).exp()
            }
        };
        drawn.round() as u64
    }

    /// The mean, nanoseconds.
    pub fn mean(self) -> f64 {
        match self {
            Distribution::Constant(span) | Distribution::Exponential(span) => span as f64,
            Distribution::Uniform(least, most) => (least as f64 + most as f64) / 2.0,
            Distribution::LogNormal { median, p99 } => {
                median as f64 * (deviation(median, p99).powi(2) / 2.0).exp()
            }
        }
    }
}

/// Of the logarithm.
fn deviation(median: u64, p99: u64) -> f64 {
    (p99 as f64 / median as f64).ln() / DEVIATIONS_TO_P99
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 40_000;

    fn drawn(distribution: Distribution) -> Vec<u64> {
        let mut random = Random::new(7, "drawn", 0);
        let mut all: Vec<_> = (0..N).map(|_| distribution.sample(&mut random)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn what_is_drawn_has_the_mean_that_is_told() {
        for distribution in [
            Distribution::Constant(1_000_000),
            Distribution::Exponential(1_000_000),
            Distribution::Uniform(500_000, 2_500_000),
            Distribution::LogNormal { median: 1_000_000, p99: 5_000_000 },
        ] {
            let mean = drawn(distribution).iter().sum::<u64>() as f64 / N as f64;
            assert!((mean / distribution.mean() - 1.0).abs() < 0.02, "{distribution:?}: {mean}");
        }
    }

    #[test]
    fn a_log_normal_distribution_has_the_quantiles_that_are_given() {
        let all = drawn(Distribution::LogNormal { median: 1_000_000, p99: 5_000_000 });
        assert!((all[N / 2] as f64 / 1e6 - 1.0).abs() < 0.03, "{}", all[N / 2]);
        assert!((all[N * 99 / 100] as f64 / 5e6 - 1.0).abs() < 0.06, "{}", all[N * 99 / 100]);
    }

    #[test]
    fn an_exponential_distribution_has_its_deviation() {
        let all = drawn(Distribution::Exponential(1_000_000));
        assert!((all[N / 2] as f64 / 1e6 - 2_f64.ln()).abs() < 0.02);
    }

    #[test]
    fn streams_differ_by_seed_name_and_number_and_repeat() {
        let first = |seed, name, number| Random::new(seed, name, number).next();
        let all = [first(1, "a", 0), first(2, "a", 0), first(1, "b", 0), first(1, "a", 1)];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one));
        }
        assert_eq!(first(1, "a", 0), all[0]);
    }
}
