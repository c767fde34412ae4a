//! What a replay or a simulation tells, as data. The fields are documented in `docs/output.md` and stay as they are.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::log::{BadLine, Seen};
use crate::moment::to_text;
use crate::plan::Plan;
use crate::play::Refusal;
use crate::tally::{Count, LimitOverTime, Tally};
use maitred::level::Discipline;

/// What a replay tells.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The log itself.
    pub log: LogReport,
    /// How it was played.
    pub settings: Settings,
    /// By flow schema: those of the objects that exist, in their effective order.
    pub per_schema: Vec<SchemaReport>,
    /// By priority level.
    pub per_level: Vec<LevelReport>,
    /// All together.
    pub total: Figures,
    /// The flows with the most requests.
    pub top_flows: Vec<FlowReport>,
    /// No flow that is not among `top_flows` has more requests than the last of them or this.
    pub top_flows_missed_at_most: u64,
    /// The same under the objects compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
}

/// What a log holds besides requests.
#[derive(Debug, Clone, Serialize)]
pub struct LogReport {
    /// Lines, empty ones too.
    pub lines: u64,
    /// Audit events.
    pub events: u64,
    /// Requests that came to flow control and ended.
    pub requests: u64,
    /// Time of the earliest and the latest event, RFC 3339.
    pub from: Option<String>,
    /// See `from`.
    pub to: Option<String>,
    /// Of the requests: given up by the server (stage Panic).
    pub panicked: u64,
    /// Of the requests: met in the log more than the horizon after one that came later.
    pub late: u64,
    /// Of the requests: watches of which the log does not tell when they had started.
    pub watches_without_start: u64,
    /// Requests without a known user (401); flow control never saw them.
    pub unauthenticated: u64,
    /// Requests that may run for long, other than watches; flow control let them pass.
    pub long_running: u64,
    /// Requests refused because their user may not impersonate; flow control never saw them.
    pub impersonation_refused: u64,
    /// Watches that were still open; not counted as requests.
    pub open_watches: u64,
    /// Lines that made no sense.
    pub bad_lines: u64,
    /// The first of them.
    pub bad_lines_shown: Vec<BadLine>,
    /// Why the log could not be read to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
}

impl From<&Seen> for LogReport {
    fn from(seen: &Seen) -> Self {
        Self {
            lines: seen.lines,
            events: seen.events,
            requests: seen.requests,
            from: seen.span.map(|(from, _)| to_text(from)),
            to: seen.span.map(|(_, to)| to_text(to)),
            panicked: seen.panicked,
            late: seen.late,
            watches_without_start: seen.watches_without_start,
            unauthenticated: seen.unauthenticated,
            long_running: seen.passed_by,
            impersonation_refused: seen.impersonation_refused,
            open_watches: seen.open_watches,
            bad_lines: seen.bad,
            bad_lines_shown: seen.bad_lines.clone(),
            cut_short: seen.cut_short.clone(),
        }
    }
}

/// How a log was played.
#[derive(Debug, Clone, Serialize)]
pub struct Settings {
    /// Seats of the server.
    pub server_concurrency: u32,
    /// `kubernetes` or `corrected`.
    pub fidelity: &'static str,
    /// How many times as fast as in the log the requests came.
    pub speed: f64,
    /// For how long a request may wait.
    pub wait_limit_seconds: f64,
    /// When after the first request the limits were adjusted for the first time; then every ten seconds.
    pub first_adjustment_seconds: f64,
    /// Whether the first adjustment was found from the log.
    pub first_adjustment_from_log: bool,
    /// For how long a watch holds its seats where the log does not tell.
    pub watch_start_seconds: f64,
    /// From the first request to the end of the last.
    pub played_seconds: f64,
}

/// Waits of the requests that ran, in seconds: quantiles to about one part in a hundred, the longest exactly.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Waits {
    /// Half of the requests waited no longer.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// Ninety-nine in a hundred.
    pub p99: f64,
    /// All.
    pub max: f64,
}

/// What became of some requests.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Requests in the log, refused ones too.
    pub requests_in_log: u64,
    /// Requests that ran.
    pub dispatched: u64,
    /// Requests that did not, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Sum of the waits of those that ran.
    pub wait_seconds: f64,
    /// These waits.
    pub wait: Waits,
    /// Seats times the time for which they were held.
    pub seat_seconds: f64,
    /// What the log tells: requests refused by flow control.
    pub recorded_429: u64,
    /// What the log tells: requests whose wait it tells (slow ones only).
    pub recorded_waits: u64,
    /// What the log tells: the sum of those waits.
    pub recorded_wait_seconds: f64,
    /// Sum of the waits as they were, told ones and those that follow from when requests ended.
    pub estimated_wait_seconds: f64,
}

/// What became of the requests of a flow schema.
#[derive(Debug, Clone, Serialize)]
pub struct SchemaReport {
    /// Its level.
    pub priority_level: String,
    /// Its name.
    pub flow_schema: String,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// What became of the requests of a priority level.
#[derive(Debug, Clone, Serialize)]
pub struct LevelReport {
    /// Its name.
    pub priority_level: String,
    /// `Exempt`, `Reject` or `Queue`.
    #[serde(rename = "type")]
    pub discipline: &'static str,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Seats, where the level has a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seats: Option<SeatsReport>,
}

/// Seats of a level.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SeatsReport {
    /// Its part of the server's limit.
    pub nominal: u64,
    /// What it keeps whatever others need.
    pub min: u64,
    /// What it may have if others do not need it.
    pub max: u64,
    /// The least limit that it had.
    pub least: u64,
    /// The limit, over time.
    pub mean: f64,
    /// The greatest limit that it had.
    pub greatest: u64,
    /// Seats held over seats that there were; above 1 where a level without seats runs requests all the same.
    pub utilisation: Option<f64>,
}

/// What became of the requests of a flow.
#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    /// Its level.
    pub priority_level: String,
    /// Its schema.
    pub flow_schema: String,
    /// The user or namespace that tells it from others; empty where the schema has no distinguisher.
    pub flow: String,
    /// Its requests.
    pub requests_in_log: u64,
    /// Those that ran.
    pub dispatched: u64,
    /// Those that did not, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Sum of the waits of those that ran.
    pub wait_seconds: f64,
    /// The longest of them.
    pub max_wait_seconds: f64,
    /// Seats times the time for which they were held.
    pub seat_seconds: f64,
}

/// The same log under other objects, those that are taken to have been in force.
#[derive(Debug, Clone, Serialize)]
pub struct Against {
    /// Seats of the server.
    pub server_concurrency: u32,
    /// By flow schema.
    pub per_schema: Vec<SchemaReport>,
    /// By priority level.
    pub per_level: Vec<LevelReport>,
    /// All together.
    pub total: Figures,
    /// Requests that go to another schema or level than before.
    pub moved: Vec<Moved>,
}

/// Requests that one set of objects sorts in otherwise than the other.
#[derive(Debug, Clone, Serialize)]
pub struct Moved {
    /// Where they went under the objects compared with.
    pub from: Place,
    /// Where they go now.
    pub to: Place,
    /// How many they are.
    pub requests: u64,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Its level.
    pub priority_level: String,
    /// Its schema.
    pub flow_schema: String,
}

/// What a log tells of the requests of a schema.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recorded {
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) waits: u64,
    pub(crate) wait_ns: u128,
    pub(crate) estimated_wait_ns: u128,
}

impl Recorded {
    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.refused += other.refused;
        self.waits += other.waits;
        self.wait_ns += other.wait_ns;
        self.estimated_wait_ns += other.estimated_wait_ns;
    }
}

pub(crate) fn seconds(ns: u128) -> f64 {
    ns as f64 / 1e9
}

pub(crate) fn rejected(count: &Count) -> BTreeMap<&'static str, u64> {
    let counted = Refusal::ALL.into_iter().zip(count.refused);
    counted.filter(|(_, count)| *count > 0).map(|(refusal, count)| (refusal.name(), count)).collect()
}

fn figures(count: &Count, recorded: &Recorded) -> Figures {
    Figures {
        requests_in_log: recorded.requests,
        dispatched: count.dispatched,
        rejected: rejected(count),
        wait_seconds: seconds(count.wait_ns),
        wait: waits(count),
        seat_seconds: seconds(count.seat_ns),
        recorded_429: recorded.refused,
        recorded_waits: recorded.waits,
        recorded_wait_seconds: seconds(recorded.wait_ns),
        estimated_wait_seconds: seconds(recorded.estimated_wait_ns),
    }
}

pub(crate) fn waits(count: &Count) -> Waits {
    Waits {
        p50: count.wait_quantile(0.5),
        p90: count.wait_quantile(0.9),
        p99: count.wait_quantile(0.99),
        max: seconds(count.longest_wait_ns.into()),
    }
}

/// The parts of a report that come from one play.
pub(crate) struct Played {
    pub(crate) per_schema: Vec<SchemaReport>,
    pub(crate) per_level: Vec<LevelReport>,
    pub(crate) total: Figures,
}

/// Reports what `tally` counted of a play under `plan`.
pub(crate) fn played(plan: &Plan, tally: &Tally, recorded: &[Recorded]) -> Played {
    let mut total = (Count::default(), Recorded::default());
    let mut levels = vec![(Count::default(), Recorded::default()); plan.levels.len()];
    let mut per_schema = Vec::new();
    for (((name, level), count), recorded) in plan.schemas.iter().zip(&tally.schemas).zip(recorded) {
        per_schema.push(SchemaReport {
            priority_level: plan.levels[*level].spec.name.to_string(),
            flow_schema: name.to_string(),
            figures: figures(count, recorded),
        });
        for (sum, all) in [&mut levels[*level], &mut total] {
            sum.merge(count);
            all.merge(recorded);
        }
    }
    let limits = plan.limits();
    let per_level = (0..)
        .zip(&plan.levels)
        .zip(&levels)
        .map(|((index, planned), (count, recorded))| {
            let over_time: Option<&LimitOverTime> = tally.limits.get(index).and_then(Option::as_ref);
            let bounds = limits.level(&planned.spec.name);
            let seats = over_time.zip(bounds).map(|(limit, bounds)| SeatsReport {
                nominal: bounds.nominal,
                min: bounds.min,
                max: bounds.max,
                least: limit.least,
                mean: if tally.end == 0 {
                    limit.least as f64
                } else {
                    limit.seat_ns as f64 / tally.end as f64
                },
                greatest: limit.greatest,
                utilisation: (limit.seat_ns > 0).then(|| count.seat_ns as f64 / limit.seat_ns as f64),
            });
            LevelReport {
                priority_level: planned.spec.name.to_string(),
                discipline: discipline(planned.discipline),
                figures: figures(count, recorded),
                seats,
            }
        })
        .collect();
    Played { per_schema, per_level, total: figures(&total.0, &total.1) }
}

pub(crate) fn discipline(discipline: Discipline) -> &'static str {
    match discipline {
        Discipline::Exempt => "Exempt",
        Discipline::Reject => "Reject",
        Discipline::Queue { .. } => "Queue",
    }
}
