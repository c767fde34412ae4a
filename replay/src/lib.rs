//! Plays traffic, recorded or made up, through maitred on simulated time.
//!
//! [`replay()`] answers what a set of objects would have done to the requests of an audit log:
//!
//! ```text
//! lines -> log (events of a request put together) -> recording (classified, widths estimated, kept sorted by arrival)
//!       -> reconstruct (who waited how long, hence how long each ran) -> playback -> engine -> tally -> report
//! ```
//!
//! Whatever grows with the length of the log lies in temporary files; memory is bounded by what was in flight at once and
//! by the number of schemas, levels and kinds of requests.

mod attributes;
mod engine;
mod event;
mod likeness;
mod lines;
mod log;
mod moment;
mod plan;
mod play;
mod playback;
mod recent;
mod reconstruct;
mod record;
mod recording;
mod replay;
pub mod report;
mod spill;
mod tally;
mod top;
mod waits;

#[cfg(test)]
mod standin;

pub use lines::{Lines, Position};
pub use log::{BadLine, LogError, Reading, Seen};
pub use moment::span;
pub use plan::Plan;
pub use recording::Stored;
pub use replay::{Options, Progress, ReplayError, replay};
