//! Smoothing of seat demand. Each period tests both steps, the integrator's and the update of the statistics, bit by
//! bit; the second gets the recorded results of the first, so that each is tested by itself, and then our own.

use std::path::Path;

use maitred::borrow::{Integrator, PeriodDemand, SeatDemandStats};
use serde::Deserialize;

use super::integrator::{Results, results};
use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
struct Story {
    p: Vec<Period>,
}

#[derive(Deserialize)]
struct Period {
    d: u64,
    set: Option<Vec<(u64, f64)>>,
    int: Results,
    out: (i64, f64, f64, f64),
}

/// Every data line, one level's story, is a case.
pub fn run(path: &Path) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, story) in vectors::data::<Story>(path)? {
        let mut start = 0;
        let mut integrator = Integrator::new(start);
        let (mut apart, mut together) = (SeatDemandStats::default(), SeatDemandStats::default());
        let (mut expected, mut got) = (Vec::new(), Vec::new());
        for period in &story.p {
            for &(after, demand) in period.set.iter().flatten() {
                integrator.set(start + after, demand);
            }
            start += period.d;
            let ours = integrator.reset(start);
            apart.update(&recorded(&period.int));
            together.update(&ours);
            expected.push((period.int, period.out, period.out));
            got.push((results(&ours), figures(&apart), figures(&together)));
        }
        outcome.check(|| format!("line {line}: {} periods", story.p.len()), &expected, &got);
    }
    Ok(outcome)
}

fn recorded(int: &Results) -> PeriodDemand {
    let [seconds, average, deviation, min, max] = int.map(|number| number.unwrap_or(f64::NAN));
    PeriodDemand { seconds, average, deviation, min, max }
}

fn figures(stats: &SeatDemandStats) -> (i64, f64, f64, f64) {
    (stats.high_watermark, stats.average, stats.deviation, stats.smoothed)
}
