//! What an engine has counted, and what it holds: plain numbers, read at once ([`Engine::metrics`]).
//!
//! Names are those of the API server's metrics, `apiserver_flowcontrol_…`, where it has one:
//!
//! | field | metric of the reference | labels |
//! |---|---|---|
//! | [`FlowMetrics::dispatched`] | `dispatched_requests_total` | priority_level, flow_schema |
//! | [`FlowMetrics::rejected`] | `rejected_requests_total` | the same, reason |
//! | [`FlowMetrics::executing`] | `current_executing_requests` | the same |
//! | [`FlowMetrics::waiting`] | `current_inqueue_requests` | the same |
//! | [`FlowMetrics::wait_seconds`] | `request_wait_duration_seconds_sum`, execute=true | the same |
//! | [`FlowMetrics::rejected_wait_seconds`] | `request_wait_duration_seconds_sum`, execute=false | the same |
//! | [`FlowMetrics::service_seconds`] | `request_execution_seconds_sum` | the same |
//! | [`LevelMetrics::nominal_limit_seats`] | `nominal_limit_seats` | priority_level |
//! | [`LevelMetrics::lower_limit_seats`] | `lower_limit_seats` | the same |
//! | [`LevelMetrics::upper_limit_seats`] | `upper_limit_seats` | the same |
//! | [`LevelMetrics::current_limit_seats`] | `current_limit_seats` | the same |
//! | [`LevelMetrics::seats_in_use`] | `current_executing_seats`, over all flow schemas | the same |
//! | [`LevelMetrics::demand_seats_high_watermark`] | `demand_seats_high_watermark` | the same |
//! | [`LevelMetrics::demand_seats_average`] | `demand_seats_average` | the same |
//! | [`LevelMetrics::demand_seats_stdev`] | `demand_seats_stdev` | the same |
//! | [`LevelMetrics::demand_seats_smoothed`] | `demand_seats_smoothed` | the same |
//! | [`LevelMetrics::current_r`] | `current_r` | the same |
//! | [`Metrics::seat_fair_frac`] | `seat_fair_frac` | none |
//!
//! The rest has no name there. Of the reference's reasons, `queue-full`, `concurrency-limit` and `time-out` are the same
//! here, and its `cancelled` is [`Rejection::Cancelled`] ([`Rejection::reason`] spells all).
//!
//! [`Engine::metrics`]: crate::engine::Engine::metrics

use std::sync::Arc;

use serde::Serialize;

use crate::engine::Rejection;

/// All that an engine counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Metrics {
    /// When it was read: nanoseconds on the engine's clock.
    pub now: u64,
    /// Number of the set of objects in force, as in [`Applied`](crate::engine::Applied).
    pub generation: u64,
    /// Seats of the whole server.
    pub server_concurrency_limit: u32,
    /// Whether the engine refuses all newcomers.
    pub closed: bool,
    /// Seats by which the current limits add up to more than the nominal ones, after the last adjustment.
    pub over_committed_seats: u64,
    /// Current limit over target of the levels that no bound held, at the last adjustment.
    pub seat_fair_frac: f64,
    /// Address space that the engine has reserved, flow cache included; the system backs only what has been used.
    pub memory_bytes: u64,
    /// Levels in force and draining, by name.
    pub levels: Vec<LevelMetrics>,
    /// Every pair of priority level and flow schema that was ever in force, oldest first. A pair keeps its counts when it goes
    /// and comes again. Past 16 383 pairs the others are counted together, as level and schema `*`.
    pub flows: Vec<FlowMetrics>,
}

/// A priority level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LevelMetrics {
    /// Name of the level.
    pub priority_level: Arc<str>,
    /// It has no object any more, and goes when its last request has gone.
    pub draining: bool,
    /// Its share of the server's seats.
    pub nominal_limit_seats: u64,
    /// Seats that it keeps whatever others want.
    pub lower_limit_seats: u64,
    /// Seats that it may have if others leave them.
    pub upper_limit_seats: u64,
    /// Seats that it may use now; of an exempt level, what it is taken to use.
    pub current_limit_seats: u64,
    /// Seats held by running and lingering requests.
    pub seats_in_use: u32,
    /// Requests waiting.
    pub requests_waiting: u32,
    /// Seats that they wait for.
    pub seats_waiting: u64,
    /// Queues that hold waiting or running requests.
    pub active_queues: u32,
    /// Greatest demand, seats in use and waiting, of the last period.
    pub demand_seats_high_watermark: i64,
    /// Average demand of the last period, seats.
    pub demand_seats_average: f64,
    /// Its standard deviation.
    pub demand_seats_stdev: f64,
    /// Smoothed demand, by which limits are divided; seats.
    pub demand_seats_smoothed: f64,
    /// Progress meter, seat-seconds. (The meter wraps at about 1.8 · 10^11.)
    pub current_r: f64,
    /// Seconds after which a refused request should come back.
    pub retry_after_seconds: u64,
}

/// A flow schema at a priority level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FlowMetrics {
    /// Name of the level.
    pub priority_level: Arc<str>,
    /// Name of the schema.
    pub flow_schema: Arc<str>,
    /// Requests handed in, refused ones included.
    pub arrived: u64,
    /// Requests that got their seats, at once or after waiting.
    pub dispatched: u64,
    /// Requests that ended after they ran. Their seats may linger.
    pub finished: u64,
    /// Requests refused or given up, by reason: see [`rejected`](FlowMetrics::rejected).
    pub rejected_by_reason: [u64; Rejection::ALL.len()],
    /// Seconds from arrival to grant, summed over requests that ended after they ran.
    pub wait_seconds: f64,
    /// Seconds from arrival to time-out or cancellation, summed.
    pub rejected_wait_seconds: f64,
    /// Seconds from grant to end, summed over requests that ended.
    pub service_seconds: f64,
}

impl FlowMetrics {
    /// Requests refused or given up for that reason.
    pub fn rejected(&self, why: Rejection) -> u64 {
        self.rejected_by_reason[why.index()]
    }

    /// Requests refused or given up.
    pub fn rejected_in_all(&self) -> u64 {
        self.rejected_by_reason.iter().sum()
    }

    /// Requests running. While others come and go, counts of one moment may not all be in.
    pub fn executing(&self) -> u64 {
        self.dispatched.saturating_sub(self.finished)
    }

    /// Requests waiting. While others come and go, counts of one moment may not all be in.
    pub fn waiting(&self) -> u64 {
        self.arrived.saturating_sub(self.dispatched).saturating_sub(self.rejected_in_all())
    }
}
