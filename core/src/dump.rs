//! An engine's state, to read: levels, their queues, and the requests in flight ([`Engine::dump`]).
//!
//! Written out it is tables of text; serialized it is for programs.
//!
//! [`Engine::dump`]: crate::engine::Engine::dump

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// What an engine holds. Each level, queue and request is told as it was at one moment, but not all at the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dump {
    /// When it was made: nanoseconds on the engine's clock.
    pub now: u64,
    /// Number of the set of objects in force, as in [`Applied`](crate::engine::Applied).
    pub generation: u64,
    /// Seats of the whole server.
    pub server_concurrency_limit: u32,
    /// Whether the engine refuses all newcomers.
    pub closed: bool,
    /// Seats by which the current limits add up to more than the nominal ones.
    pub over_committed_seats: u64,
    /// Levels in force and draining, by name.
    pub levels: Vec<LevelDump>,
    /// Requests that wait, run or linger, by level; in a level those that came first, first.
    pub requests: Vec<RequestDump>,
}

/// A priority level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LevelDump {
    /// Name of the object.
    pub name: Arc<str>,
    /// `Exempt`, `Reject` or `Queue`.
    pub kind: &'static str,
    /// It has no object any more, and goes when its last request has gone.
    pub draining: bool,
    /// Its seats.
    pub seats: SeatsDump,
    /// Seats held by running and lingering requests.
    pub seats_in_use: u32,
    /// Requests waiting.
    pub waiting: u32,
    /// Seats that they wait for.
    pub seats_waiting: u64,
    /// Queues there are; more than configured while surplus ones drain.
    pub queues: u32,
    /// Queues that hold waiting or running requests.
    pub active_queues: u32,
    /// Progress meter, units of 1/100 000 000 seat-second.
    pub r: u64,
    /// Requests by what became of them, since the engine was made.
    pub totals: TotalsDump,
    /// The active queues, by position.
    pub active: Vec<QueueDump>,
}

/// Limits of a level; all are seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SeatsDump {
    /// Its share of the server's.
    pub nominal: u64,
    /// What it keeps whatever others want.
    pub min: u64,
    /// What it may have if others leave it.
    pub max: u64,
    /// What it may use now.
    pub current: u64,
}

/// Requests of a level by what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct TotalsDump {
    /// Handed in.
    pub arrived: u64,
    /// Got their seats.
    pub dispatched: u64,
    /// Ended after they ran.
    pub finished: u64,
    /// Refused or given up, by reason; reasons that did not occur are left out.
    pub rejected: BTreeMap<&'static str, u64>,
}

/// A queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueueDump {
    /// Its position, by which hands are dealt.
    pub position: u32,
    /// Requests waiting in it.
    pub waiting: u32,
    /// Requests that came from it and run.
    pub running: u32,
    /// Virtual time up to which it has been served; units of R.
    pub next_dispatch_r: u64,
    /// Work of its waiting requests, units of R.
    pub work: u64,
}

/// A request in flight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestDump {
    /// Its ticket, as a number.
    pub ticket: u64,
    /// Name of its level.
    pub priority_level: Arc<str>,
    /// Name of its flow schema.
    pub flow_schema: Arc<str>,
    /// `waiting`, `running` or `lingering`.
    pub state: &'static str,
    /// Position of its queue, if it has one that still is.
    pub queue: Option<u32>,
    /// Seats that it takes or asks for while it runs.
    pub initial_seats: u32,
    /// Seats during the additional latency, as the grant left them.
    pub final_seats: u32,
    /// How long its seats linger after its end; nanoseconds.
    pub additional_latency: u64,
    /// When it came (waiting), or was granted (running, lingering); nanoseconds.
    pub since: u64,
    /// When its seats come back, if it lingers; nanoseconds.
    pub until: Option<u64>,
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dump { generation, server_concurrency_limit, over_committed_seats, .. } = self;
        write!(f, "objects {generation}, server concurrency limit {server_concurrency_limit}")?;
        if *over_committed_seats > 0 {
            write!(f, ", over-committed by {over_committed_seats}")?;
        }
        writeln!(f, "{}, at {}", if self.closed { ", closed" } else { "" }, seconds(self.now))?;
        table(f, LEVEL_HEADINGS, self.levels.iter().map(LevelDump::cells))?;
        let queues = self.levels.iter().flat_map(|level| level.active.iter().map(|queue| queue.cells(level)));
        table(f, QUEUE_HEADINGS, queues)?;
        table(f, REQUEST_HEADINGS, self.requests.iter().map(|request| request.cells(self.now)))
    }
}

const LEVEL_HEADINGS: [&str; 14] = [
    "LEVEL",
    "KIND",
    "NOMINAL",
    "MIN",
    "MAX",
    "CURRENT",
    "IN USE",
    "WAITING",
    "QUEUES",
    "ACTIVE",
    "DISPATCHED",
    "FINISHED",
    "REJECTED",
    "BY REASON",
];

impl LevelDump {
    fn cells(&self) -> [String; 14] {
        let SeatsDump { nominal, min, max, current } = self.seats;
        let TotalsDump { dispatched, finished, rejected, .. } = &self.totals;
        let draining = if self.draining { " (draining)" } else { "" };
        let reasons: Vec<_> = rejected.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
        [
            format!("{}{draining}", self.name),
            self.kind.into(),
            nominal.to_string(),
            min.to_string(),
            max.to_string(),
            current.to_string(),
            self.seats_in_use.to_string(),
            self.waiting.to_string(),
            self.queues.to_string(),
            self.active_queues.to_string(),
            dispatched.to_string(),
            finished.to_string(),
            rejected.values().sum::<u64>().to_string(),
            reasons.join(", "),
        ]
    }
}

const QUEUE_HEADINGS: [&str; 6] = ["LEVEL", "QUEUE", "WAITING", "RUNNING", "NEXT DISPATCH R", "WORK"];

impl QueueDump {
    fn cells(&self, level: &LevelDump) -> [String; 6] {
        let QueueDump { position, waiting, running, next_dispatch_r, work } = *self;
        [
            level.name.to_string(),
            position.to_string(),
            waiting.to_string(),
            running.to_string(),
            seat_seconds(next_dispatch_r),
            seat_seconds(work),
        ]
    }
}

const REQUEST_HEADINGS: [&str; 7] = ["LEVEL", "SCHEMA", "TICKET", "STATE", "QUEUE", "SEATS", "FOR"];

impl RequestDump {
    fn cells(&self, now: u64) -> [String; 7] {
        let RequestDump { initial_seats, final_seats, .. } = self;
        [
            self.priority_level.to_string(),
            self.flow_schema.to_string(),
            self.ticket.to_string(),
            self.state.into(),
            self.queue.map_or("-".into(), |queue| queue.to_string()),
            match self.additional_latency {
                0 => initial_seats.to_string(),
                ns => format!("{initial_seats}, then {final_seats} for {}", seconds(ns)),
            },
            seconds(now.saturating_sub(self.since)),
        ]
    }
}

fn seconds(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

fn seat_seconds(r: u64) -> String {
    format!("{}.{:08}", r / 100_000_000, r % 100_000_000)
}

/// Columns as wide as their widest cell; nothing where there are no rows.
fn table<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> fmt::Result {
    let rows: Vec<[String; N]> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    let widths: [usize; N] = std::array::from_fn(|i| {
        rows.iter().map(|row| row[i].chars().count()).chain([headings[i].len()]).max().unwrap_or(0)
    });
    let mut line = |cells: [&str; N]| {
        let padded: Vec<_> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(f, "{}", padded.join("  ").trim_end())
    };
    line([""; N])?;
    line(headings)?;
    rows.iter().try_for_each(|row| line(std::array::from_fn(|i| &*row[i])))
}
