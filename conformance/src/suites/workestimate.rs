//! Seats and additional latency of requests.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use maitred::estimate::{ObjectStats, Request, WorkEstimator};
use serde::Deserialize;

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct Case {
    r: Option<[String; 6]>,
    q: String,
    st: Stats,
    w: u64,
    m: u64,
    g: [bool; 3],
    o: (u32, u32, u64),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stats {
    Known(u64, i64),
    Unknown(String),
}

impl Stats {
    fn get(&self) -> Result<ObjectStats> {
        Ok(match self {
            // Sizes that are not positive are not known.
            Stats::Known(count, average) => {
                ObjectStats::Known { count: *count, average_bytes: u64::try_from(*average).unwrap_or(0) }
            }
            Stats::Unknown(why) => match why.as_str() {
                "stale" => ObjectStats::Stale,
                "not-found" => ObjectStats::NotFound,
                "error" => ObjectStats::Failed,
                _ => bail!("unknown object statistics {why}"),
            },
        })
    }
}

/// Every data line is a case.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, case) in vectors::data::<Case>(path)? {
        let stats = case.st.get().with_context(|| format!("{}:{line}", path.display()))?;
        let [by_size, watch_lists, consistent_reads] = case.g;
        let estimator = WorkEstimator {
            watches_cost_as_lists: watch_lists,
            consistent_reads_from_cache: consistent_reads,
            ..if by_size { WorkEstimator::default() } else { WorkEstimator::by_count() }
        };
        let request = case.r.as_ref().map(|[verb, api_group, resource, subresource, namespace, name]| {
            Request { verb, api_group, resource, subresource, namespace, name }
        });
        let max_seats = (case.m > 0).then_some(case.m);
        let got = estimator.estimate(request.as_ref(), case.q.as_bytes(), max_seats, |_| stats, |_| case.w);
        let got = (got.initial_seats, got.final_seats, got.additional_latency);
        outcome.check(|| format!("line {line}: {:?} ?{}", case.r, case.q), &case.o, &got);
    }
    Ok(outcome)
}
