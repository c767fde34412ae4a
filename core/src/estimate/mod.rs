//! What a request will cost before it runs, and when a refused one should come back.
//!
//! - [`WorkEstimator`]: seats and latency of a request, from its attributes, its query, the objects stored and the
//!   watches that hear of it;
//! - [`WatchTracker`]: counts those watches;
//! - [`RetryAfter`], [`RetryAfterTracker`]: the seconds of `Retry-After`.
//!
//! Each is usable without the others and without an engine.

mod list;
mod mutating;
mod query;
mod retry_after;
mod selector;
mod watches;

pub use retry_after::{RetryAfter, RetryAfterTracker};
pub use watches::{WatchGuard, WatchTracker};

/// The attributes of a request for resources that bear on its work.
///
/// A request for something else has an empty `resource`, and its verb is the HTTP method in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request<'a> {
    /// `get`, `list`, `watch`, `create`, …
    pub verb: &'a str,
    /// Empty for the core group.
    pub api_group: &'a str,
    /// `pods`, …
    pub resource: &'a str,
    /// `status`, `token`, …, or empty.
    pub subresource: &'a str,
    /// Empty for objects of the cluster, and for all namespaces.
    pub namespace: &'a str,
    /// Empty where no single object is meant. For a list or watch it is what [`selected_name`] finds.
    pub name: &'a str,
}

/// The name that a list or watch is limited to by the field selector in its query (`metadata.name=…`), if it is.
///
/// The reference's servers take it for the name of the request. Allocates; for those who make the attributes of a
/// request.
pub fn selected_name(query: &[u8]) -> Option<String> {
    let name = required_by_query(query, "metadata.name")?;
    let path_segment = !name.contains(['/', '%']) && name != "." && name != "..";
    path_segment.then_some(name)
}

/// The value that the field selector in a query requires `field` to have.
fn required_by_query(query: &[u8], field: &str) -> Option<String> {
    // A number that cannot be read spoils the whole query for the reference, too.
    for number in ["limit", "timeoutSeconds"] {
        query::first(query, number).map(query::Text::as_number).transpose().ok()?;
    }
    let selector = query::first(query, "fieldSelector")?.to_text();
    selector::required_value(&selector, field).ok()?
}

/// Seats and time that a request is estimated to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkEstimate {
    /// Seats while it runs.
    pub initial_seats: u32,
    /// Seats for `additional_latency` after it has ended.
    pub final_seats: u32,
    /// Nanoseconds for which `final_seats` stay taken. The caller does not wait for it.
    pub additional_latency: u64,
}

/// What is known of the objects of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectStats {
    /// They were counted of late.
    Known {
        /// Objects stored.
        count: u64,
        /// Their average size; 0 when not known.
        average_bytes: u64,
    },
    /// They were counted, but too long ago.
    Stale,
    /// The resource is not known here.
    NotFound,
    /// The count could not be had.
    Failed,
}

/// What the cost of a list goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListCost {
    /// The bytes of the objects loaded.
    BySize,
    /// The number of objects.
    ByCount,
}

/// Estimates the work of requests.
///
/// A plain value without state; a call neither allocates nor blocks. [`Default`] is the reference's default
/// configuration. Source of the rules: `vectors/workestimate.jsonl`.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkEstimator {
    /// Least seats of a request.
    pub minimum_seats: u32,
    /// Most seats of a list, whatever its level would allow.
    pub maximum_list_seats: u32,
    /// Most seats after the end of a change, whatever its level would allow.
    pub maximum_mutating_seats: u32,
    /// What lists are measured by.
    pub list_cost: ListCost,
    /// Objects that one seat stands for, where lists are measured by count.
    pub objects_per_seat: f64,
    /// Watches that begin by sending what there is cost what a list costs. Else every watch costs the least.
    pub watches_cost_as_lists: bool,
    /// The store can tell a cache how far behind it is, so that the cache answers lists of the latest version.
    pub consistent_reads_from_cache: bool,
    /// Changes have a cost after their end.
    pub mutating_enabled: bool,
    /// Nanoseconds that the watches of one seat take to handle a change.
    pub event_additional_latency: u64,
    /// Watches that one seat stands for.
    pub watches_per_seat: f64,
}

impl Default for WorkEstimator {
    fn default() -> WorkEstimator {
        WorkEstimator {
            minimum_seats: 1,
            maximum_list_seats: 100,
            maximum_mutating_seats: 10,
            list_cost: ListCost::BySize,
            objects_per_seat: 100.0,
            watches_cost_as_lists: true,
            consistent_reads_from_cache: true,
            mutating_enabled: true,
            event_additional_latency: 5_000_000,
            watches_per_seat: 10.0,
        }
    }
}

impl WorkEstimator {
    /// The reference's configuration for servers that measure lists by the number of objects.
    pub fn by_count() -> WorkEstimator {
        WorkEstimator { list_cost: ListCost::ByCount, maximum_list_seats: 10, ..WorkEstimator::default() }
    }

    /// Seats and latency of a request.
    ///
    /// `query` is the query of its URL, without the `?`. `level_max_seats` is the most that its priority level allows
    /// ([`LevelLimits::max_seats`](crate::borrow::LevelLimits::max_seats)), if it says. `objects` and `watches` are
    /// asked at most once, and only where the answer matters: for the objects stored of the request's resource, and for
    /// the watches that hear of its change ([`WatchTracker::count`]). A request of which nothing is known gets the most
    /// seats.
    pub fn estimate(
        &self,
        request: Option<&Request<'_>>,
        query: &[u8],
        level_max_seats: Option<u64>,
        objects: impl FnOnce(&Request<'_>) -> ObjectStats,
        watches: impl FnOnce(&Request<'_>) -> u64,
    ) -> WorkEstimate {
        let most = |limit: u32| match level_max_seats {
            None | Some(0) => limit,
            Some(seats) => u32::try_from(seats).unwrap_or(u32::MAX).min(limit),
        };
        let initial = |initial_seats| WorkEstimate { initial_seats, ..WorkEstimate::default() };
        let Some(request) = request else {
            return initial(most(self.maximum_list_seats.max(self.maximum_mutating_seats)));
        };
        match request.verb {
            "list" => initial(list::seats(self, request, query, most(self.maximum_list_seats), objects)),
            "watch" if self.watches_cost_as_lists => {
                initial(list::seats(self, request, query, most(self.maximum_list_seats), objects))
            }
            "create" | "update" | "patch" | "delete" => {
                mutating::width(self, request, most(self.maximum_mutating_seats), watches)
            }
            _ => initial(self.minimum_seats),
        }
    }
}
