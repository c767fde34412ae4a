//! What a simulation tells, as data. The fields are documented in `docs/output.md` and stay as they are.

use std::collections::BTreeMap;

use maitred::engine::Engine;
use maitred::policy::{LevelKind, Policy};
use serde::Serialize;

use super::fair::max_min;
use super::play::{Flow, Played};
use super::scenario::Scenario;
use super::tally::Count;
use crate::fidelity::FidelityArg;

/// What a simulation tells.
#[derive(Debug, Serialize)]
pub struct Report {
    pub scenario: String,
    pub description: String,
    pub settings: Settings,
    /// By flow of the scenario, in its order; and by schema, where a flow's requests go to several.
    pub per_flow: Vec<FlowReport>,
    /// By priority level.
    pub per_level: Vec<LevelReport>,
}

/// How it was played.
#[derive(Debug, Serialize)]
pub struct Settings {
    pub seed: u64,
    pub duration_seconds: f64,
    pub server_concurrency: u32,
    pub fidelity: FidelityArg,
    pub wait_limit_seconds: f64,
}

/// What became of some requests.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Requests that were sent.
    pub offered: u64,
    /// Those that got seats.
    pub dispatched: u64,
    /// Those that came to their end within the scenario.
    pub finished: u64,
    /// Those that did not get seats, by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Those that wait for seats when the scenario ends.
    pub waiting_at_end: u64,
    /// Those that run then.
    pub running_at_end: u64,
    /// Waits of those that got seats.
    pub wait: Waits,
    /// Requests finished a second, while there are any.
    pub throughput_per_second: f64,
    /// Seats times the time for which they were held.
    pub seat_seconds: f64,
}

/// Waits in seconds: quantiles to about one part in a thousand, mean and longest exactly.
#[derive(Debug, Serialize)]
pub struct Waits {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// What became of the requests of a flow of the scenario.
#[derive(Debug, Serialize)]
pub struct FlowReport {
    pub flow: String,
    /// How many flows of this name there are.
    pub count: usize,
    pub flow_schema: String,
    pub priority_level: String,
    #[serde(flatten)]
    pub figures: Figures,
    /// Part of the seat-seconds held in the level.
    pub share: Option<f64>,
    /// Seat-seconds that the flow is due.
    pub fair_seat_seconds: Option<f64>,
    /// What it held over what it is due.
    pub share_of_fair: Option<f64>,
}

/// What became of the requests of a priority level.
#[derive(Debug, Serialize)]
pub struct LevelReport {
    pub priority_level: String,
    /// `Exempt`, `Reject` or `Queue`.
    #[serde(rename = "type")]
    pub discipline: &'static str,
    #[serde(flatten)]
    pub figures: Figures,
    /// Seats, where the level has a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seats: Option<Seats>,
}

/// Seats of a level.
#[derive(Debug, Serialize)]
pub struct Seats {
    pub nominal: u64,
    pub min: u64,
    pub max: u64,
    /// The least limit that it had.
    pub least: u32,
    /// The limit, over time.
    pub mean: f64,
    /// The greatest limit that it had.
    pub greatest: u32,
    /// The limit when the scenario ended.
    pub at_end: u32,
    /// Seat-seconds held over those that there were.
    pub utilisation: Option<f64>,
}

/// Reports what was played.
pub fn report(
    name: &str,
    scenario: &Scenario,
    fidelity: FidelityArg,
    engine: &Engine,
    played: &Played,
) -> Report {
    engine.inspect(|resolver| {
        let policy = resolver.policy();
        Report {
            scenario: name.to_owned(),
            description: scenario.description.clone(),
            settings: Settings {
                seed: scenario.seed,
                duration_seconds: seconds(scenario.duration),
                server_concurrency: scenario.server_concurrency_limit,
                fidelity,
                wait_limit_seconds: seconds(scenario.wait_limit),
            },
            per_flow: flows(scenario, policy, played),
            per_level: levels(scenario, policy, played),
        }
    })
}

fn flows(scenario: &Scenario, policy: &Policy, played: &Played) -> Vec<FlowReport> {
    let due = due(policy, played);
    let mut held_in = vec![0_u128; policy.levels().len()];
    for (flow, held) in played.flows.iter().zip(&played.held) {
        held_in[flow.level] += held;
    }
    let mut members = vec![Vec::new(); played.counts.len()];
    for (index, flow) in played.flows.iter().enumerate() {
        members[flow.count].push(index);
    }
    let rows = played.counts.iter().zip(members).filter_map(|(count, members)| {
        let Flow { group, schema, level, .. } = &played.flows[*members.first()?];
        let group = &scenario.groups[*group];
        let fair = members.iter().map(|flow| due[*flow]).sum::<Option<f64>>().map(|ns| ns / 1e9);
        let figures = figures(count, group.until - group.from);
        Some(FlowReport {
            flow: group.name.clone(),
            count: members.len(),
            flow_schema: policy.schemas()[*schema].name.to_string(),
            priority_level: policy.levels()[*level].name.to_string(),
            share: ratio(count.seat_ns as f64, held_in[*level] as f64),
            fair_seat_seconds: fair,
            share_of_fair: fair.and_then(|fair| ratio(figures.seat_seconds, fair)),
            figures,
        })
    });
    rows.collect()
}

/// By flow: seats times nanoseconds that a fair division gives it. `None` in levels that have no queues to be fair with.
///
/// Flows with the same distinguisher are one to the engine: what it is due is theirs in proportion to what they want.
fn due(policy: &Policy, played: &Played) -> Vec<Option<f64>> {
    let mut due = vec![None; played.flows.len()];
    for (level, limit) in played.limits.iter().enumerate() {
        if !matches!(policy.levels()[level].kind, LevelKind::Queue { .. }) {
            continue;
        }
        let mut known: BTreeMap<(usize, &[u8]), Vec<usize>> = BTreeMap::new();
        for (index, flow) in played.flows.iter().enumerate().filter(|(_, flow)| flow.level == level) {
            known.entry((flow.schema, &flow.distinguisher)).or_default().push(index);
            due[index] = Some(0.0);
        }
        for (epoch, capacity) in limit.seat_ns.iter().enumerate() {
            let wants = |flow: &usize| played.wanted[*flow][epoch];
            let demands: Vec<f64> = known.values().map(|flows| flows.iter().map(wants).sum()).collect();
            let fair = max_min(*capacity as f64, &demands);
            for ((flows, fair), demand) in known.values().zip(fair).zip(demands) {
                for flow in flows.iter().filter(|_| demand > 0.0) {
                    *due[*flow].get_or_insert_default() += fair * wants(flow) / demand;
                }
            }
        }
    }
    due
}

fn levels(scenario: &Scenario, policy: &Policy, played: &Played) -> Vec<LevelReport> {
    let mut counts = vec![Count::default(); policy.levels().len()];
    let mut seen = vec![false; played.counts.len()];
    for flow in &played.flows {
        if !std::mem::replace(&mut seen[flow.count], true) {
            counts[flow.level].merge(&played.counts[flow.count]);
        }
    }
    let rows = policy.levels().iter().zip(counts).zip(&played.limits).map(|((level, count), limit)| {
        let seat_ns: u128 = limit.seat_ns.iter().sum();
        let discipline = match level.kind {
            LevelKind::Exempt => "Exempt",
            LevelKind::Reject => "Reject",
            LevelKind::Queue { .. } => "Queue",
        };
        LevelReport {
            priority_level: level.name.to_string(),
            discipline,
            figures: figures(&count, scenario.duration),
            seats: (level.kind != LevelKind::Exempt).then(|| Seats {
                nominal: level.nominal,
                min: level.min,
                max: level.max,
                least: limit.least,
                mean: seat_ns as f64 / scenario.duration as f64,
                greatest: limit.greatest,
                at_end: limit.now,
                utilisation: ratio(count.seat_ns as f64, seat_ns as f64),
            }),
        }
    });
    rows.collect()
}

fn figures(count: &Count, active: u64) -> Figures {
    let quantile = |part| seconds(count.wait_quantile(part));
    Figures {
        offered: count.offered,
        dispatched: count.dispatched,
        finished: count.finished,
        rejected: count.rejected.clone(),
        waiting_at_end: count.offered - count.dispatched - count.all_rejected(),
        running_at_end: count.dispatched - count.finished,
        wait: Waits {
            mean: count.mean_wait() / 1e9,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: seconds(count.longest_wait()),
        },
        throughput_per_second: count.finished as f64 / seconds(active),
        seat_seconds: count.seat_ns as f64 / 1e9,
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
