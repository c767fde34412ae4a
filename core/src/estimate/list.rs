//! Work of lists, and of watches that begin with one.
//!
//! A list takes memory in proportion to the objects that it loads at once. Source of the rule:
//! `vectors/workestimate.jsonl`.

use super::query::{Text, Unreadable, pairs};
use super::{ListCost, ObjectStats, Request, WorkEstimator};

/// Memory that one seat stands for.
const BYTES_PER_SEAT: u64 = 100_000;
/// A list out of the cache is written piece by piece, so it never holds more than this.
const MOST_BYTES_FROM_CACHE: u64 = 1_000_000;
/// The largest object that the store takes, for when the average is not known.
const LARGEST_OBJECT: u64 = 1_500_000;
/// For when the number of objects is not known.
const COUNTLESS: u64 = 1_000_000_000;

/// The options of a list that bear on its work.
#[derive(Default)]
struct Options<'a> {
    selective: bool,
    resource_version: Text<'a>,
    version_match: Text<'a>,
    limit: u64,
    continues: bool,
    send_initial_events: bool,
}

impl<'a> Options<'a> {
    fn read(query: &'a [u8]) -> Result<Options<'a>, Unreadable> {
        const KEYS: [&str; 8] = [
            "labelSelector",
            "fieldSelector",
            "resourceVersion",
            "resourceVersionMatch",
            "timeoutSeconds",
            "limit",
            "continue",
            "sendInitialEvents",
        ];
        let mut found: [Option<Text<'a>>; KEYS.len()] = Default::default();
        for (key, value) in pairs(query) {
            if let Some(at) = KEYS.iter().position(|name| key.is(name)) {
                found[at].get_or_insert(value);
            }
        }
        let [labels, fields, version, version_match, timeout, limit, token, initial_events] = found;
        timeout.map(Text::as_number).transpose()?;
        let present = |text: Option<Text<'_>>| text.is_some_and(|text| !text.is_empty());
        Ok(Options {
            selective: present(labels) || present(fields),
            resource_version: version.unwrap_or_default(),
            version_match: version_match.unwrap_or_default(),
            // A limit that is not positive is none.
            limit: limit.map(Text::as_number).transpose()?.map_or(0, |limit| limit.max(0).unsigned_abs()),
            continues: present(token),
            send_initial_events: initial_events.is_some_and(Text::as_flag),
        })
    }

    /// Whether the list has to be read from the store, because the cache cannot answer it.
    fn reads_store(&self, consistent_reads_from_cache: bool) -> bool {
        let version = self.resource_version;
        if self.version_match.is("NotOlderThan") {
            false
        } else if !self.version_match.is_empty() || self.continues {
            // `Exact`, a value that will be refused, or a token that tells the version to read at.
            true
        } else if version.is_empty() {
            !consistent_reads_from_cache
        } else {
            // A limited list of a certain version is one of exactly that version.
            self.limit > 0 && !version.is("0")
        }
    }
}

/// Seats of a list, or of a watch when `watch`.
pub(super) fn seats(
    estimator: &WorkEstimator,
    request: &Request<'_>,
    query: &[u8],
    max_seats: u32,
    objects: impl FnOnce(&Request<'_>) -> ObjectStats,
) -> u32 {
    // What cannot be read is going to be refused, so the estimate is the safe one.
    let Ok(options) = Options::read(query) else { return max_seats };
    let watch = request.verb == "watch";
    let from_start = options.resource_version.is_empty() || options.resource_version.is("0");
    if watch && !options.send_initial_events && !from_start {
        return estimator.minimum_seats;
    }
    let (count, average) = match objects(request) {
        // The size of objects of which there are none is not worth a guess.
        ObjectStats::Known { count, average_bytes: 0 } if count > 0 => (count, LARGEST_OBJECT),
        ObjectStats::Known { count, average_bytes } => (count, average_bytes),
        ObjectStats::Stale | ObjectStats::Failed => (COUNTLESS, LARGEST_OBJECT),
        // Most likely another server keeps these objects and does the work.
        ObjectStats::NotFound => return estimator.minimum_seats,
    };
    let from_cache = watch || !options.reads_store(estimator.consistent_reads_from_cache);
    let limited = if options.limit > 0 { count.min(options.limit) } else { count };
    let single = !request.name.is_empty();
    let seats = match estimator.list_cost {
        ListCost::ByCount => {
            let objects = match () {
                () if single => 1,
                () if from_cache => count,
                () if options.selective => count.saturating_add(limited),
                () => limited.saturating_mul(2),
            };
            (objects as f64 / estimator.objects_per_seat).ceil() as u64
        }
        ListCost::BySize => {
            let objects = match () {
                () if single => 1,
                () if options.selective && !from_cache => limited.max(count / 2),
                () => limited,
            };
            let bytes = objects.saturating_mul(average);
            let bytes = if from_cache { bytes.min(MOST_BYTES_FROM_CACHE) } else { bytes };
            bytes.div_ceil(BYTES_PER_SEAT)
        }
    };
    let seats = u32::try_from(seats).unwrap_or(u32::MAX);
    // Not `clamp`, which panics where the level's most is below the least; the most wins.
    seats.max(estimator.minimum_seats).min(max_seats)
}
