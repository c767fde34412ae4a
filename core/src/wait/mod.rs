//! Waiting for a grant.

mod blocking;

pub(crate) use blocking::Signal;
