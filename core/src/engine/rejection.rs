//! Why a request was not admitted.

use std::fmt;

use crate::level::Refusal;

/// Why a request was not admitted, or not for long. The numbers are stable: they are for metric labels and other
/// languages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Rejection {
    /// All seats are taken and the flow's queue is full.
    QueueFull = 1,
    /// All seats are taken and the level does not queue.
    ConcurrencyLimit = 2,
    /// It waited as long as it may.
    TimedOut = 3,
    /// Whoever asked left.
    Cancelled = 4,
    /// The engine's bound on requests in flight is reached: raise `ArenaSize::tickets`.
    OutOfTickets = 5,
    /// The engine admits nobody any more.
    Closed = 6,
    /// The handle names no request in the state that the call is about.
    BadTicket = 7,
    /// A width of no seats, or of more than there can be.
    BadArgument = 8,
}

impl Rejection {
    /// All of them.
    pub const ALL: [Rejection; 8] = [
        Rejection::QueueFull,
        Rejection::ConcurrencyLimit,
        Rejection::TimedOut,
        Rejection::Cancelled,
        Rejection::OutOfTickets,
        Rejection::Closed,
        Rejection::BadTicket,
        Rejection::BadArgument,
    ];

    /// Its place in [`ALL`](Rejection::ALL).
    pub(crate) const fn index(self) -> usize {
        self as usize - 1
    }

    /// The reason as metrics and logs spell it.
    pub const fn reason(self) -> &'static str {
        match self {
            Rejection::QueueFull => "queue-full",
            Rejection::ConcurrencyLimit => "concurrency-limit",
            Rejection::TimedOut => "time-out",
            Rejection::Cancelled => "cancelled",
            Rejection::OutOfTickets => "out-of-tickets",
            Rejection::Closed => "engine-closed",
            Rejection::BadTicket => "bad-ticket",
            Rejection::BadArgument => "bad-argument",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::QueueFull => "all seats are taken and the flow's queue is full",
            Rejection::ConcurrencyLimit => "all seats are taken and the priority level does not queue",
            Rejection::TimedOut => "waited for a seat as long as it may",
            Rejection::Cancelled => "cancelled while it waited for a seat",
            Rejection::OutOfTickets => "the engine's bound on requests in flight is reached",
            Rejection::Closed => "the engine is closed",
            Rejection::BadTicket => "no such request in that state",
            Rejection::BadArgument => "the width must be 1 seat or more, and no more than there can be",
        })
    }
}

impl std::error::Error for Rejection {}

impl From<Refusal> for Rejection {
    fn from(why: Refusal) -> Self {
        match why {
            Refusal::QueueFull => Rejection::QueueFull,
            Refusal::ConcurrencyLimit => Rejection::ConcurrencyLimit,
            Refusal::OutOfTickets => Rejection::OutOfTickets,
        }
    }
}
