//! Where the engine departs from the reference implementation, and how to make it not depart.
//!
//! Everything else is decided alike under both values. The rows of the table on [`Fidelity`] are the whole list; each
//! is implemented where its rule lives and has a test of both values.

/// Whose decisions the engine makes where the reference implementation of Kubernetes has a fault.
///
/// | the reference (`Kubernetes`) | `Corrected` |
/// |---|---|
/// | a Reject level with 0 seats still runs one request at a time | refuses: a jail is a jail |
/// | at small server concurrency limits a level's current limit can round to 0, so its first request waits up to 10 s | a level with shares keeps at least one seat; where that passes what there is to divide, the sum of the limits passes it by at most one seat a level, and the engine says so ([`Adjustment::over_committed`]) |
/// | queues grow without bound while a wide request blocks with seats free | `queueLengthLimit` bounds the queue then, too |
/// | the count of waiting seats leaks upward after final seats are cut | exact |
/// | a too-wide request looks at running requests, not at lingering seats | seats in use must be 0 |
/// | after a cancel or time-out nobody is granted until the next event, although the next in line may fit | granted at once |
/// | a queue is removed under a lingering request: crash | never |
/// | limits are over-committed while exempt requests hold seats | allocation divides what is left |
/// | one reason for time-out and cancellation | two |
///
/// A plain value, fixed when an engine is built.
///
/// [`Adjustment::over_committed`]: crate::borrow::Adjustment::over_committed
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fidelity {
    /// The reference's rules without its faults. For servers.
    #[default]
    Corrected,
    /// The reference's rules to the letter. For predicting what a cluster will do.
    Kubernetes,
}
