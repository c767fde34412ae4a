//! What is due: seats of lingering requests, and every ten seconds the limits.

use std::sync::Arc;

use super::Engine;
use crate::borrow::Adjustment;
use crate::sync::{AtomicBool, Ordering};

/// What a tick did.
#[derive(Debug, Clone, Default)]
pub struct Tick {
    /// Lingering requests whose seats came back.
    pub released: usize,
    /// What became of the limits, if they were due.
    pub adjusted: Option<Adjustment>,
}

impl Engine {
    /// Does what is due at `now`: gives back the seats of requests whose additional latency has passed, each at its own
    /// time, and adjusts limits to demand every [`ADJUSTMENT_PERIOD`](super::ADJUSTMENT_PERIOD).
    ///
    /// For hosts with a loop of their own; others have a [`Ticker`]. Call it when [`next_due`](Engine::next_due) says, and
    /// no later than every ten seconds. Allocates; takes turns with [`apply`](Engine::apply).
    pub fn tick(&self, now: u64) -> Tick {
        let mut control = self.control();
        let control = &mut *control;
        let mut tick = Tick::default();
        self.threads.with(|cx| {
            loop {
                control.due.collect(&self.inbox, &self.arena.tickets);
                let adjustment_first = control.next_adjustment <= now
                    && control.due.next().is_none_or(|due| control.next_adjustment <= due);
                if adjustment_first {
                    let at = control.next_adjustment;
                    tick.adjusted = Some(self.adjust(control, cx, at));
                    // A host that was away does not adjust for each period that it missed.
                    control.next_adjustment =
                        control.next_adjustment.max(now.saturating_sub(super::ADJUSTMENT_PERIOD) + 1);
                    self.dismiss_drained(control, cx);
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
        });
        tick
    }

    /// When [`tick`](Engine::tick) has something to do next; nanoseconds.
    pub fn next_due(&self) -> u64 {
        let mut control = self.control();
        control.due.collect(&self.inbox, &self.arena.tickets);
        control.due.next().map_or(control.next_adjustment, |due| due.min(control.next_adjustment))
    }
}

/// A thread that ticks for an engine, until it is dropped. Sleeps while nothing is due.
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
    /// Starts the thread; its error if the system has none to give. One for an engine is enough.
    pub fn start(engine: Arc<Engine>) -> std::io::Result<Ticker> {
        let shared = Arc::new(EngineAndStop { engine, stop: AtomicBool::new(false) });
        let its = shared.clone();
        let thread = std::thread::Builder::new().name("maitred-ticker".into()).spawn(move || {
            let engine = &its.engine;
            while !its.stop.load(Ordering::Acquire) {
                engine.tick(engine.now());
                let due = engine.next_due();
                let woken = || its.stop.load(Ordering::Acquire) || !engine.inbox.is_empty();
                engine.ticker.wait(woken, || due.checked_sub(engine.now()).filter(|left| *left > 0));
            }
        })?;
        Ok(Ticker { engine: shared, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.engine.stop.store(true, Ordering::Release);
        self.engine.engine.ticker.notify();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
