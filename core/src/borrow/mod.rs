//! Limits over time: how many seats each priority level may use, and what it may borrow from others.
//!
//! - [`demand`](self::Integrator): what a level wanted in a period, and the smoothed figure;
//! - [`allocate`](self::allocate()): a sum divided in proportion to targets, within bounds;
//! - [`limits`](self::Limits): the controller over all levels that uses both.
//!
//! Plain data in, plain data out: no clock, no lock, no thread; nothing here runs on a request's path.

mod allocate;
mod demand;
mod limits;
mod order;

pub use allocate::{Allocation, AllocationError, Part, allocate};
pub use demand::{Integrator, Moments, PeriodDemand, SeatDemandStats};
pub use limits::{
    Adjustment, CATCH_ALL, Claim, Digest, Division, EXEMPT, Exact, LevelLimits, LevelSpec, Limits, Refusal,
    Seats, divide,
};
