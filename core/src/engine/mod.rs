//! The engine: objects in, decisions out.
//!
//! [`Engine::admit`] classifies a request, finds its flow's hand and hands it to its priority level. Nothing on that path
//! locks, allocates or calls the system; objects are applied, limits adjusted and lingering seats given back elsewhere
//! ([`Engine::apply`], [`Engine::tick`]).
//!
//! | file | what |
//! |---|---|
//! | `mod` | the engine, and admitting |
//! | `ticket` | what a caller holds: running or waiting |
//! | `handle` | the same by number, for hosts that keep numbers |
//! | `apply` | a new set of objects, swapped in whole |
//! | `places` | where levels live: places and memory, used anew |
//! | `ticker` | what is due: lingering seats, and limits every ten seconds |
//! | `snapshot` | what requests are decided by, until the next set of objects |
//! | `observe` | all of it, read: for metrics and dumps |
//! | `current`, `lingering`, `threads`, `outcome`, `rejection` | details of these |

mod apply;
mod current;
mod handle;
mod lingering;
mod observe;
mod outcome;
mod places;
mod rejection;
mod snapshot;
mod threads;
mod ticker;
mod ticket;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crossbeam_utils::CachePadded;

pub use apply::{Applied, ApplyError};
pub use handle::Handed;
pub use rejection::Rejection;
pub use snapshot::ResolvedFlow;
pub use ticker::{Tick, Ticker};
pub use ticket::{Admission, Ticket, Waiting};

use crate::classify::Request;
use crate::fidelity::Fidelity;
use crate::flow::FlowHasher;
use crate::level::{Arena, ArenaSize, Context, Finished, OutOfCells};
use crate::policy::Resolver;
use crate::sync::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::ticket::{State, TicketId, Width};
use crate::time::{Clock, Monotonic};
use crate::wait::Signal;
use apply::Control;
use current::Current;
use lingering::Inbox;
use outcome::Outcome;
use places::Seats;
use snapshot::{Snapshot, Target};
use threads::Threads;

/// How often limits are adjusted to demand: ten seconds, in nanoseconds.
pub const ADJUSTMENT_PERIOD: u64 = 10_000_000_000;

/// The longest that a request may wait: one minute, in nanoseconds.
pub const MAX_WAIT: u64 = 60_000_000_000;

/// What an engine is built with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seats of the whole server; can change later ([`Engine::set_server_concurrency_limit`]). 600, as a Kubernetes API
    /// server has.
    pub server_concurrency_limit: u32,
    /// Whose decisions to make where the reference has a fault.
    pub fidelity: Fidelity,
    /// How flows are hashed. Choose a keyed hasher where users can choose their own names.
    pub hasher: FlowHasher,
    /// Flows whose hands are kept; 192 bytes each. About twice the flows that are active at a time; at most
    /// [`Options::MAX_CACHED_FLOWS`].
    pub cached_flows: usize,
    /// Bounds on memory. Two levels are the least: the mandatory ones.
    pub arena: ArenaSize,
    /// How long a request waits at most where its caller does not say; nanoseconds. 15 s; never above [`MAX_WAIT`].
    pub wait_limit: u64,
    /// How many nanoseconds the clock of a level may lag while nobody waits in it: 1000. With 0 every decision is exact to
    /// the nanosecond, and costs the write of one more shared line.
    pub clock_lag: u64,
}

impl Options {
    /// The most flows whose hands are kept.
    pub const MAX_CACHED_FLOWS: usize = 1 << 20;

    /// Numbers out of their bounds count as the nearest within.
    fn bounded(self) -> Options {
        Options {
            cached_flows: self.cached_flows.min(Options::MAX_CACHED_FLOWS),
            wait_limit: self.wait_limit.min(MAX_WAIT),
            arena: self.arena.bounded(),
            ..self
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            server_concurrency_limit: 600,
            fidelity: Fidelity::Corrected,
            hasher: FlowHasher::Kubernetes,
            cached_flows: 4096,
            arena: ArenaSize::default(),
            wait_limit: 15_000_000_000,
            clock_lag: 1000,
        }
    }
}

/// An admission engine. Share it by reference or in an `Arc`; all methods may be called from any thread.
///
/// A thread's first call makes its context, which allocates; [`register_thread`](Engine::register_thread) does it ahead
/// of time. A thread gives it back when it ends, or, if the engine has gone, with its first call to another engine. Threads
/// past [`ArenaSize::threads`] take turns at one context, behind a lock; others never wait. A new engine holds the mandatory objects alone, so that all requests but those of `system:masters` share
/// the `catch-all` level until objects are applied.
///
/// ```
/// use maitred::classify::{Request, Target};
/// use maitred::engine::{Admission, Engine, Options};
/// use maitred::ticket::Width;
///
/// let engine = Engine::new(Options::default()).unwrap();
/// engine.apply(&maitred::api::builtin::suggested()).unwrap();
///
/// let groups = ["system:authenticated"];
/// let request = Request::new("alice", &groups, "list", Target::resource("", "pods", "")).in_namespace("shop");
/// match engine.admit(&request, Width::ONE) {
///     Ok(Admission::Running(_ticket)) => { /* serve; the ticket ends when it is dropped */ }
///     Ok(Admission::Waiting(waiting)) => {
///         let _ticket = waiting.wait().unwrap(); // blocks until it is its turn
///     }
///     Err(why) => println!("429: {why}"),
/// }
/// ```
pub struct Engine {
    /// Engine's number 24 | how many sets of objects there have been 40. Changes after `current` does. With the engine in
    /// it, no flow that another engine resolved looks up to date.
    generation: CachePadded<AtomicU64>,
    current: Current,
    levels: Box<[OnceLock<Box<Seats>>]>,
    threads: Threads,
    clock: Box<dyn Clock>,
    inbox: Inbox,
    /// Where a ticker sleeps.
    ticker: Signal,
    /// Till when at the longest.
    wake_at: AtomicU64,
    closed: AtomicBool,
    options: Options,
    control: Mutex<Control>,
}

/// The part of `Engine::generation` that counts.
const GENERATION: u64 = (1 << 40) - 1;

impl Engine {
    /// An engine on the system's monotonic clock. Allocates; fails if the options leave no memory for the mandatory levels.
    pub fn new(options: Options) -> Result<Engine, OutOfCells> {
        Engine::with_clock(options, Monotonic::new())
    }

    /// An engine on a clock of the host's. Otherwise as [`new`](Engine::new).
    pub fn with_clock(options: Options, clock: impl Clock) -> Result<Engine, OutOfCells> {
        let options = options.bounded();
        let threads = Threads::new(options.arena)?;
        let engine = Engine {
            generation: CachePadded::new(AtomicU64::new(threads.engine() << GENERATION.count_ones())),
            current: Current::new(threads.arena().contexts()),
            levels: (0..options.arena.levels).map(|_| OnceLock::new()).collect(),
            threads,
            inbox: Inbox::new(),
            ticker: Signal::new(),
            wake_at: AtomicU64::new(u64::MAX),
            closed: AtomicBool::new(false),
            control: Mutex::new(Control::new(options.fidelity, options.server_concurrency_limit)),
            clock: Box::new(clock),
            options,
        };
        engine.start()?;
        Ok(engine)
    }

    /// Nanoseconds on the engine's clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// What the engine was built with: numbers out of their bounds are brought within them, and the server's concurrency
    /// limit may have changed since.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Makes the calling thread's context, which its first request would do otherwise. Allocates, and takes a short lock;
    /// after it nothing from [`admit`](Engine::admit) to the end of the request does.
    pub fn register_thread(&self) {
        self.threads.with(|_| ());
    }

    /// A request arrives: it runs, waits or is refused. Reads the clock once.
    ///
    /// Refused as [`Rejection`] says, [`TimedOut`](Rejection::TimedOut) and [`Cancelled`](Rejection::Cancelled) excepted.
    /// Any thread may call. Never blocks, never allocates (but for a thread's first call). Costs classifying, hashing of a
    /// flow that is not in the cache, and a few atomic operations.
    #[inline]
    pub fn admit<G: AsRef<[u8]>>(
        &self,
        request: &Request<'_, G>,
        width: Width,
    ) -> Result<Admission<'_>, Rejection> {
        self.admit_at(request, width, self.now())
    }

    /// The same at a time that the caller has read from the engine's clock.
    pub fn admit_at<G: AsRef<[u8]>>(
        &self,
        request: &Request<'_, G>,
        width: Width,
        now: u64,
    ) -> Result<Admission<'_>, Rejection> {
        self.submit(request, width, now).outcome.map(|admitted| Admission::new(self, admitted))
    }

    /// A request of a flow that was resolved before arrives. Reads the clock once. As [`admit`](Engine::admit), for less: a
    /// few atomic operations.
    #[inline]
    pub fn admit_flow(&self, flow: &ResolvedFlow, width: Width) -> Result<Admission<'_>, Rejection> {
        self.admit_flow_at(flow, width, self.now())
    }

    /// The same at a time that the caller has read from the engine's clock.
    #[inline]
    pub fn admit_flow_at(
        &self,
        flow: &ResolvedFlow,
        width: Width,
        now: u64,
    ) -> Result<Admission<'_>, Rejection> {
        self.submit_flow(flow, width, now).outcome.map(|admitted| Admission::new(self, admitted))
    }

    /// Resolves the flow of requests like this one, for callers that serve many of them. Allocates: the flow remembers the
    /// request, so that it can be resolved anew when objects have changed, or when another engine is asked.
    pub fn resolve<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> ResolvedFlow {
        ResolvedFlow::new(request, self.with_snapshot(|s| s.target(request)))
    }

    /// Brings a resolved flow up to date with the objects in force, and says whether it was not. One that is behind is
    /// served rightly, but resolved anew each time. Neither blocks nor allocates.
    pub fn refresh(&self, flow: &mut ResolvedFlow) -> bool {
        let behind = flow.generation() != self.generation.load(Acquire);
        if behind {
            let target = self.with_snapshot(|s| flow.with_request(|request| s.target(request)));
            flow.retarget(target);
        }
        behind
    }

    /// Seconds after which a request like this one should come back if it is refused now: 1 to 32, the more the longer its
    /// level has been refusing. Neither blocks nor allocates. Rule: [`crate::estimate::RetryAfter`].
    pub fn retry_after<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> u64 {
        self.at_level_of(request, |seats| seats.retry_after.seconds()).unwrap_or(1)
    }

    /// The most seats that a [work estimator](crate::estimate::WorkEstimator) may give a request like this one; 0: its
    /// level sets no bound. Neither blocks nor allocates.
    pub fn max_seats<G: AsRef<[u8]>>(&self, request: &Request<'_, G>) -> u32 {
        self.at_level_of(request, |seats| seats.max_seats.load(Relaxed)).unwrap_or(0)
    }

    /// Refuses all newcomers from now on, for good. Requests that wait or run go on. Neither blocks nor allocates.
    pub fn close(&self) {
        self.closed.store(true, Release);
    }

    /// Calls `f` with the resolver of the objects in force: their policy, as compiled. (The seats in it are those of the
    /// server's concurrency limit at that time; [`metrics`](Engine::metrics) has those of now.) What `f` does holds back the
    /// memory of older policies, and nobody.
    pub fn inspect<T>(&self, f: impl FnOnce(&Resolver) -> T) -> T {
        self.current.look(|s| f(&s.resolver))
    }

    // ---- machinery

    /// Calls `f` with what is in force. It stays alive meanwhile; nothing that others read is written. `f` must not call the
    /// engine.
    #[inline]
    fn with_snapshot<T>(&self, f: impl FnOnce(&Snapshot) -> T) -> T {
        self.threads.with(|cx| self.current.read(cx.number(), f))
    }

    fn at_level_of<G: AsRef<[u8]>, T>(
        &self,
        request: &Request<'_, G>,
        f: impl FnOnce(&Seats) -> T,
    ) -> Option<T> {
        self.with_snapshot(|s| {
            let classified = s.resolver.policy().classify(request);
            self.seats(s.levels[classified.level as usize].place).map(f)
        })
    }

    #[inline]
    fn seats(&self, place: u32) -> Option<&Seats> {
        Some(self.levels.get(place as usize)?.get()?)
    }

    /// Seats a request at its level. `None` if the level is out of force: newer objects have been published by now.
    #[inline]
    fn place(&self, cx: &mut Context, target: &Target, width: Width, now: u64) -> Option<Handed> {
        let (flow, row) = (&target.flow, target.row);
        let seats = self.seats(target.place)?;
        // Acquire: who was told that it is closed is not admitted after.
        let outcome = if self.closed.load(Acquire) {
            Err(Rejection::Closed)
        } else if !width.is_valid() {
            Err(Rejection::BadArgument)
        } else {
            let arrival = seats.level.arrive_tagged(cx, flow.hash, flow.hand.as_ref(), width, now, row);
            // After the arrival, not before: see `is_inhabited`.
            if seats.tenancy.load(Acquire) != target.tenancy {
                if let Ok(admitted) = arrival.outcome {
                    self.leave(cx, seats, admitted.id, row, now);
                }
                return None;
            }
            arrival.outcome.map_err(|why| {
                seats.turned_away(now);
                why.into()
            })
        };
        self.threads.count(cx, row, Outcome::Arrived, 1);
        if let Err(why) = outcome {
            self.threads.count(cx, row, Outcome::Rejected(why), 1);
        }
        Some(Handed { schema: flow.schema, level: flow.level, outcome })
    }

    /// A request leaves a level that it should not have come to, as if it never had.
    #[cold]
    fn leave(&self, cx: &mut Context, seats: &Seats, id: TicketId, row: u32, now: u64) {
        if seats.level.cancel(cx, id, now).is_ok() {
            return;
        }
        // It was granted.
        self.threads.uncount_grant(cx, row);
        if seats.level.finish(cx, id, now).is_ok_and(|finished| finished != Finished::Released) {
            let _ = seats.level.release(cx, id, now);
        }
    }

    #[inline]
    fn arena(&self) -> &Arc<Arena> {
        self.threads.arena()
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_of(&self, id: TicketId) -> State {
        let Some(seats) = self.level_of(id) else { return State::Free };
        self.threads.with(|cx| seats.level.poll(cx, id))
    }

    /// Where a ticket says that it is.
    #[inline]
    fn level_of(&self, id: TicketId) -> Option<&Seats> {
        let ticket = self.arena().tickets.get(id.index())?;
        self.seats(ticket.level.load(Acquire))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn options_past_their_bounds_count_as_the_bounds() {
        let all = usize::MAX;
        let arena = ArenaSize { tickets: all, queues: all, levels: all, threads: all };
        let options =
            Options { cached_flows: all, wait_limit: u64::MAX, arena, ..Options::default() }.bounded();
        assert_eq!((options.cached_flows, options.wait_limit), (Options::MAX_CACHED_FLOWS, MAX_WAIT));
        let ArenaSize { tickets, queues, levels, threads } = options.arena;
        assert_eq!((tickets, levels, threads), ((1 << 24) - 1, 1 << 16, 4095));
        assert_eq!(queues, 1 << 22);
        let none = ArenaSize { tickets: 0, queues: 0, levels: 0, threads: 0 };
        assert_eq!(none.bounded(), ArenaSize { threads: 1, ..none });
    }
}
