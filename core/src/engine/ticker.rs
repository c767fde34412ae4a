//! What is due: seats of lingering requests, and every ten seconds the limits.

use std::sync::Arc;

use super::apply::Control;
use super::{ADJUSTMENT_PERIOD, Engine};
use crate::borrow::{Adjustment, Limits};
use crate::sync::{
    AtomicBool,
    Ordering::{AcqRel, Acquire, Release},
};

/// What a tick did.
#[derive(Debug, Clone, Default)]
pub struct Tick {
    /// Lingering requests whose seats came back.
    pub released: usize,
    /// What became of the limits, if they were due or a level has drained.
    pub adjusted: Option<Adjustment>,
}

impl Engine {
    /// Does what is due at `now`: gives back the seats of requests whose additional latency has passed, each at its own
    /// time; adjusts limits to demand every [`ADJUSTMENT_PERIOD`] since the engine was made; and
    /// lets levels go that have drained, which adjusts limits too.
    ///
    /// For hosts with a loop of their own; others have a [`Ticker`]. Call it when [`next_due`](Engine::next_due) says, and
    /// no later than every ten seconds; where several adjustments are overdue, the last two are made. Any thread may call.
    /// Allocates; takes turns with [`apply`](Engine::apply), but no request waits for it.
    pub fn tick(&self, now: u64) -> Tick {
        let mut control = self.control();
        let control = &mut *control;
        let mut tick = Tick::default();
        self.threads.with(|cx| {
            loop {
                control.due.collect(&self.inbox, &self.arena().tickets);
                let at = control.next_adjustment;
                // The end of time is never reached: nothing could come after it.
                let adjustment_first =
                    at <= now && at < u64::MAX && control.due.next().is_none_or(|due| at <= due);
                if adjustment_first {
                    // A host that was away does not adjust for each period that it missed.
                    let recent = now.saturating_sub(ADJUSTMENT_PERIOD).saturating_add(1);
                    control.next_adjustment = at.saturating_add(ADJUSTMENT_PERIOD).max(recent);
                    self.dismiss_drained(control, cx);
                    tick.adjusted = Some(self.adjust(control, cx, at));
                    for tenant in control.tenants.values() {
                        self.seats_at(tenant.place).level.tidy(cx);
                    }
                    continue;
                }
                let Some((due, id)) = control.due.pop(now) else { break };
                if let Some(seats) = self.level_of(id)
                    && seats.level.release(cx, id, due).is_ok()
                {
                    tick.released += 1;
                }
            }
            if self.dismiss_drained(control, cx) {
                tick.adjusted = Some(self.adjust(control, cx, now));
            }
        });
        self.current.free_unread();
        self.look_ahead(control);
        tick
    }

    /// Calls `f` with the limits of all levels. Any thread may call; takes turns with [`tick`](Engine::tick) and
    /// [`apply`](Engine::apply), neither of which `f` may call.
    pub fn with_limits<T>(&self, f: impl FnOnce(&Limits) -> T) -> T {
        f(&self.control().limits)
    }

    /// When [`tick`](Engine::tick) has something to do next; nanoseconds on the engine's clock. Any thread may call; takes
    /// turns with `tick`.
    pub fn next_due(&self) -> u64 {
        self.look_ahead(&mut self.control())
    }

    /// Looks when something is due next, and wakes the ticker if it would sleep for longer.
    fn look_ahead(&self, control: &mut Control) -> u64 {
        control.due.collect(&self.inbox, &self.arena().tickets);
        let next = control.due.next().map_or(control.next_adjustment, |due| due.min(control.next_adjustment));
        // Release: the time goes before the call that wakes.
        if next < self.wake_at.swap(next, AcqRel) {
            self.ticker.notify();
        }
        next
    }
}

/// A thread that ticks for an engine, until it is dropped. Sleeps while nothing is due.
///
/// It goes by the engine's clock but sleeps in real time, so it is for clocks that run like real time. One for an engine is
/// enough; the host may tick besides. Dropping it waits for the tick under way.
#[derive(Debug)]
pub struct Ticker {
    engine: Arc<EngineAndStop>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct EngineAndStop {
    engine: Arc<Engine>,
    stop: AtomicBool,
}

impl std::fmt::Debug for EngineAndStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Engine")
    }
}

impl Ticker {
    /// Starts the thread; its error if the system has none to give. The engine lives at least as long.
    pub fn start(engine: Arc<Engine>) -> std::io::Result<Ticker> {
        let shared = Arc::new(EngineAndStop { engine, stop: AtomicBool::new(false) });
        let its = shared.clone();
        let thread = std::thread::Builder::new().name("maitred-ticker".into()).spawn(move || {
            let engine = &its.engine;
            let stopped = || its.stop.load(Acquire);
            while !stopped() {
                engine.tick(engine.now());
                let woken = || stopped() || !engine.inbox.is_empty();
                // Looked up each time it wakes: others who look what is due may find something earlier.
                let left = || engine.wake_at.load(Acquire).checked_sub(engine.now()).filter(|left| *left > 0);
                engine.ticker.wait(woken, left);
            }
        })?;
        Ok(Ticker { engine: shared, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.engine.stop.store(true, Release);
        self.engine.engine.ticker.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
