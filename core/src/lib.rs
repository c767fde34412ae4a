//! `maitred` seats requests: run now, wait your fair turn, or no.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod api;
pub mod borrow;
pub mod classify;
mod counters;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod explain;
pub mod fidelity;
pub mod flow;
pub mod level;
pub mod policy;
pub mod shuffle;
pub mod sync;
pub mod ticket;
pub mod time;
pub mod wait;
