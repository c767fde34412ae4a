//! What a suite reports: how many cases there were, how many passed, and what differed.

/// One case that did not give the recorded answer.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// Which case: line number and what it is about.
    pub case: String,
    /// The recorded answer.
    pub expected: String,
    /// Our answer.
    pub got: String,
}

/// The result of one file.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Cases run.
    pub total: u64,
    /// Cases that gave the recorded answer.
    pub passed: u64,
    /// Those that did not, in order (all of them; the printer shows the first three).
    pub mismatches: Vec<Mismatch>,
}

impl Outcome {
    /// Counts one case; records a mismatch unless `expected == got`.
    pub fn check<T: PartialEq + std::fmt::Debug>(
        &mut self,
        case: impl FnOnce() -> String,
        expected: &T,
        got: &T,
    ) {
        self.verdict(expected == got, case, || (format!("{expected:?}"), format!("{got:?}")));
    }

    /// Counts one case with a verdict of the caller's own; `detail` gives (expected, got).
    pub fn verdict(
        &mut self,
        ok: bool,
        case: impl FnOnce() -> String,
        detail: impl FnOnce() -> (String, String),
    ) {
        self.total += 1;
        if ok {
            self.passed += 1;
        } else {
            let (expected, got) = detail();
            self.mismatches.push(Mismatch { case: case(), expected, got });
        }
    }
}
