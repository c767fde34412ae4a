//! Work of changes: what the watches that hear of them will cost after the request has ended.
//!
//! Source of the rule: `vectors/workestimate.jsonl`.

use super::{Request, WorkEstimate, WorkEstimator};

/// Units of work in a seat-second.
const UNITS_PER_SEAT_SECOND: f64 = 1e8;

const NANOS_PER_SECOND: f64 = 1e9;

/// Width of a create, update, patch or delete.
pub(super) fn width(
    estimator: &WorkEstimator,
    request: &Request<'_>,
    max_seats: u32,
    watches: impl FnOnce(&Request<'_>) -> u64,
) -> WorkEstimate {
    let minimum = WorkEstimate { initial_seats: estimator.minimum_seats, ..WorkEstimate::default() };
    // Making a token for a service account changes no object, so no watch hears of it.
    if !estimator.mutating_enabled
        || (request.resource == "serviceaccounts" && request.subresource == "token")
    {
        return minimum;
    }
    let watches = watches(request);
    // Below this the work is small, and the latency would burden nearly every request.
    if watches < estimator.watches_per_seat as u64 {
        return WorkEstimate { initial_seats: 1, ..WorkEstimate::default() };
    }
    let seats = (watches as f64 / estimator.watches_per_seat).ceil();
    let latency = estimator.event_additional_latency as f64;
    let work = (seats * latency / (NANOS_PER_SECOND / UNITS_PER_SEAT_SECOND)).round();
    // The same work on fewer seats takes longer: a wide request would hold up its level.
    let seats = seats.min(f64::from(max_seats));
    WorkEstimate {
        initial_seats: 1,
        final_seats: seats as u32,
        additional_latency: (work / seats * (NANOS_PER_SECOND / UNITS_PER_SEAT_SECOND)) as u64,
    }
}
