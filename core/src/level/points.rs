//! Labelled points of the hot path, where tests suspend threads. Nothing in builds without `--cfg maitred_points`.

/// A point. Each is just before the exchange that it is named for, or just after one.
#[cfg(maitred_points)]
#[allow(missing_docs, reason = "the names say where")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Point {
    LevelRead,
    QueueReady,
    ArrivedInQueue,
    LevelReady,
    ClockReady,
    FinishClaimed,
    FinishedInQueue,
    StepBegins,
    OperationReady,
    OperationBegun,
    OperationInstalling,
    OperationInstalled,
    OperationWriting,
    OperationReleasing,
    OperationDone,
}

#[cfg(maitred_points)]
static HOOK: std::sync::OnceLock<fn(Point)> = std::sync::OnceLock::new();

/// Sets what every thread does at every point. Once a process.
#[cfg(maitred_points)]
pub fn hook(f: fn(Point)) {
    let _ = HOOK.set(f);
}

#[cfg(maitred_points)]
pub(super) fn reach(point: Point) {
    if let Some(f) = HOOK.get() {
        f(point);
    }
}

macro_rules! point {
    ($name:ident) => {
        #[cfg(maitred_points)]
        $crate::level::points::reach($crate::level::points::Point::$name);
    };
}
