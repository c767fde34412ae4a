//! `maitred` seats requests: run now, wait your fair turn, or no.
//!
//! It decides as Kubernetes API Priority and Fairness does, from the same objects. Data flows through the modules in this
//! order:
//!
//! | when | modules |
//! |---|---|
//! | configuration | [`api`]: objects, read and validated → [`policy`]: compiled, immutable |
//! | a request | [`classify`]: its flow schema → [`flow`], [`shuffle`]: its flow and hand → [`level`]: runs, waits or is refused → [`ticket`], [`wait`] |
//! | every ten seconds | [`borrow`]: demand → limits of the levels |
//! | where a host wants them | [`estimate`]: widths of requests, and when to come back |
//! | for people and programs that look on | [`metrics`], [`dump`], [`explain`] |
//!
//! [`engine`] ties them together, and is where to begin:
//!
//! ```
//! use maitred::classify::{Request, Target};
//! use maitred::engine::{Engine, Options};
//! use maitred::ticket::Width;
//!
//! let engine = Engine::new(Options::default())?;
//! engine.apply(&maitred::api::builtin::suggested())?;
//! let request = Request::new("alice", &["system:authenticated"], "list", Target::resource("", "pods", ""));
//! let ticket = engine.admit(&request, Width::ONE)?.wait()?; // blocks until it is its turn
//! println!("{}", engine.dump()); // serve here
//! ticket.finish();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! All times are nanoseconds on one clock ([`time`]). Atomics come
//! from [`sync`] alone. Where the engine departs from the reference is told by [`fidelity`]; faults are values
//! ([`error`]).

#![deny(unsafe_op_in_unsafe_fn)]

pub mod api;
pub mod borrow;
pub mod classify;
mod counters;
pub mod dump;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod explain;
pub mod fidelity;
pub mod flow;
pub mod level;
pub mod metrics;
pub mod policy;
pub mod shuffle;
pub mod sync;
pub mod ticket;
pub mod time;
pub mod wait;

/// The Rust of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
