//! Ends a run that stands still, and shows what the engine holds.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::Scope;
use std::time::Duration;

use super::World;

const PATIENCE: Duration = Duration::from_secs(30);

/// Watches until the answer is dropped.
pub fn start<'s>(scope: &'s Scope<'s, '_>, world: &'s World<'_>) -> mpsc::Sender<()> {
    let (stop, stopped) = mpsc::channel();
    scope.spawn(move || {
        let mut before = u64::MAX;
        while stopped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let now = world.steps.load(SeqCst);
            if now == before {
                eprintln!("stands still after {now} steps");
                scope.spawn(|| eprintln!("{}", world.engine.dump()));
                // The dump may stand still, too.
                let _ = stopped.recv_timeout(Duration::from_secs(5));
                std::process::exit(101);
            }
            before = now;
        }
    });
    stop
}
