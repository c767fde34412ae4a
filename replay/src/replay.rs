//! From a log and objects to a report.

use std::fmt;
use std::io;

use maitred::engine::ADJUSTMENT_PERIOD;
use maitred::fidelity::Fidelity;

use crate::engine::PlayedEngine;
use crate::lines::Lines;
use crate::log::{LogError, Reading, Seen};
use crate::plan::Plan;
use crate::playback::{Pace, Services, playback};
use crate::reconstruct::{Ground, first_adjustment, waits};
use crate::recording::{Recording, Stored, record};
use crate::report::{
    Against, FlowReport, LogReport, Moved, Place, Played, Report, Settings, played, rejected, seconds,
};
use crate::tally::Tally;

/// How a log is replayed.
#[derive(Debug, Clone)]
pub struct Options {
    /// How it is read.
    pub reading: Reading,
    /// Objects stored.
    pub stored: Stored,
    /// Requests come so many times as fast as in the log.
    pub speed: f64,
    /// For how long a request may wait.
    pub wait_limit_ns: u64,
    /// When after the first request the limits are first adjusted, at most ten seconds; `None` to find it from the log.
    pub first_adjustment_ns: Option<u64>,
    /// For how long a watch holds its seats where the log does not tell.
    pub watch_ns: u64,
    /// Flows reported.
    pub top_flows: usize,
}

impl Default for Options {
    /// At the speed of the log; 15 s of waiting, a quarter of a minute as on the reference's servers; 3 ms for the start
    /// of a watch, what flow control assumes of any request.
    fn default() -> Self {
        Self {
            reading: Reading::default(),
            stored: Stored::default(),
            speed: 1.0,
            wait_limit_ns: 15_000_000_000,
            first_adjustment_ns: None,
            watch_ns: 3_000_000,
            top_flows: 10,
        }
    }
}

/// How far a replay has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The log is being read; so many events so far.
    Reading(u64),
    /// It is found out who waited how long.
    Estimating,
    /// So many of so many requests were played.
    Playing(u64, u64),
}

/// Why there is no report.
#[derive(Debug)]
pub enum ReplayError {
    /// The log could not be read.
    Log(LogError),
    /// The log holds no audit event.
    Empty(Box<Seen>),
    /// The objects ask for more queues than an engine can hold.
    TooLarge,
    /// The temporary files could not be written or read.
    Io(io::Error),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(formatter),
            Self::Empty(seen) => {
                write!(formatter, "no audit event in {} lines", seen.lines)?;
                seen.bad_lines.first().map_or(Ok(()), |bad| write!(formatter, " ({bad})"))
            }
            Self::TooLarge => formatter.write_str("the levels have more queues than an engine can hold"),
            Self::Io(error) => write!(formatter, "temporary file: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {}

impl From<io::Error> for ReplayError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Replays the log in `files` under `plan`, and under `against` too if it is given. The log is taken to have been
/// recorded under `against`, else under `plan`.
///
/// Memory does not depend on the length of the log; what grows with it goes to temporary files.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(
    files: &mut [(String, Lines)],
    plan: Plan,
    against: Option<Plan>,
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, ReplayError> {
    let plans: Vec<Plan> = [plan].into_iter().chain(against).collect();
    let mut recording = record(files, &plans, &options.reading, options.stored.clone(), |events| {
        progress(Progress::Reading(events));
    })
    .map_err(ReplayError::Log)?;
    if recording.seen.events == 0 {
        return Err(ReplayError::Empty(Box::new(recording.seen)));
    }

    progress(Progress::Estimating);
    let in_force = plans.len() - 1;
    let ground = ground(&plans[in_force], in_force, options.watch_ns);
    let requests = &mut recording.requests;
    let first = match options.first_adjustment_ns {
        Some(first) => first.min(ADJUSTMENT_PERIOD),
        None => first_adjustment(requests, &ground)?,
    };
    let found = waits(requests, &ground, first)?;
    let mut services =
        Services::new(requests, &recording.kinds, options.watch_ns, found, |record, wait_ns| {
            for (class, recorded) in record.classes.iter().zip(&mut recording.recorded).take(plans.len()) {
                recorded[class.schema as usize].estimated_wait_ns += u128::from(wait_ns);
            }
        })?;

    let pace =
        Pace { speed: options.speed, wait_limit_ns: options.wait_limit_ns, watch_ns: options.watch_ns };
    let mut play = |recording: &mut Recording, set: usize| -> Result<(Played, Tally), ReplayError> {
        let plan = &plans[set];
        let watched = recording.flows.0.keys().copied().filter(|_| set == 0);
        let mut tally = Tally::new(plan.schemas.len(), watched);
        let mut engine = PlayedEngine::new(plan, first).map_err(|_| ReplayError::TooLarge)?;
        let (done_before, all) =
            (set as u64 * recording.requests.len(), recording.requests.len() * plans.len() as u64);
        let mut told = |done: u64| progress(Progress::Playing(done_before + done, all));
        let end =
            playback(&mut recording.requests, &mut services, set, &mut engine, &pace, &mut tally, &mut told)?;
        tally.finish(end);
        Ok((played(plan, &tally, &recording.recorded[set]), tally))
    };
    let (ours, tally) = play(&mut recording, 0)?;
    let against = match plans.get(1) {
        None => None,
        Some(plan) => {
            let (theirs, _) = play(&mut recording, 1)?;
            Some(Against {
                server_concurrency: plan.server_concurrency(),
                per_schema: theirs.per_schema,
                per_level: theirs.per_level,
                total: theirs.total,
                moved: moved(&plans[0], plan, &recording),
            })
        }
    };
    let (top_flows, missed) = top_flows(&plans[0], &recording, &tally, options.top_flows);
    Ok(Report {
        log: LogReport::from(&recording.seen),
        settings: Settings {
            server_concurrency: plans[0].server_concurrency(),
            fidelity: match plans[0].fidelity {
                Fidelity::Kubernetes => "kubernetes",
                Fidelity::Corrected => "corrected",
            },
            speed: options.speed,
            wait_limit_seconds: seconds(options.wait_limit_ns.into()),
            first_adjustment_seconds: seconds(first.into()),
            first_adjustment_from_log: options.first_adjustment_ns.is_none(),
            watch_start_seconds: seconds(options.watch_ns.into()),
            played_seconds: seconds(tally.end.into()),
        },
        per_schema: ours.per_schema,
        per_level: ours.per_level,
        total: ours.total,
        top_flows,
        top_flows_missed_at_most: missed,
        against,
    })
}

fn ground(plan: &Plan, set: usize, watch_ns: u64) -> Ground {
    Ground {
        levels: plan
            .levels
            .iter()
            .map(|level| (level.spec.name.clone(), level.spec.queuing.is_some()))
            .collect(),
        level_of: plan.schemas.iter().map(|(_, level)| *level).collect(),
        limits: plan.limits(),
        set,
        watch_ns,
    }
}

fn place(plan: &Plan, schema: u32) -> Place {
    let (name, level) = &plan.schemas[schema as usize];
    Place { priority_level: plan.levels[*level].spec.name.to_string(), flow_schema: name.to_string() }
}

/// The moves from one place to another, those of the most requests first.
fn moved(to: &Plan, from: &Plan, recording: &Recording) -> Vec<Moved> {
    let moves = recording.moves.iter().map(|((theirs, ours), requests)| Moved {
        from: place(from, *theirs),
        to: place(to, *ours),
        requests: *requests,
    });
    let mut moves: Vec<_> = moves.filter(|moved| moved.from != moved.to).collect();
    moves.sort_by_key(|moved| std::cmp::Reverse(moved.requests));
    moves
}

fn top_flows(plan: &Plan, recording: &Recording, tally: &Tally, most: usize) -> (Vec<FlowReport>, u64) {
    let (names, missed) = &recording.flows;
    let mut flows: Vec<_> = names
        .iter()
        .filter_map(|(hash, name)| {
            let count = tally.flows.get(hash)?;
            let Place { priority_level, flow_schema } = place(plan, name.schema);
            Some(FlowReport {
                priority_level,
                flow_schema,
                flow: name.distinguisher.to_string(),
                requests_in_log: count.dispatched + count.refused(),
                dispatched: count.dispatched,
                rejected: rejected(count),
                wait_seconds: seconds(count.wait_ns),
                max_wait_seconds: seconds(count.longest_wait_ns.into()),
                seat_seconds: seconds(count.seat_ns),
            })
        })
        .collect();
    let key = |flow: &FlowReport| {
        (std::cmp::Reverse(flow.requests_in_log), flow.flow_schema.clone(), flow.flow.clone())
    };
    flows.sort_by_cached_key(key);
    flows.truncate(most);
    (flows, *missed)
}
