//! Fair division. Errors are compared by kind, numbers with a relative difference of 1e-9.

use std::path::Path;

use maitred::borrow::{AllocationError, Part, allocate};
use serde::Deserialize;

use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
struct Case {
    n: i64,
    it: Vec<(f64, f64, f64)>,
    a: Option<Vec<f64>>,
    f: Option<f64>,
    err: Option<String>,
}

/// Every data line is a case.
pub fn run(path: &Path) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, case) in vectors::data::<Case>(path)? {
        let parts: Vec<Part> =
            case.it.iter().map(|&(lower, upper, target)| Part { lower, upper, target }).collect();
        let got = allocate(case.n, &parts).map(|a| (a.amounts, a.proportion)).map_err(kind);
        let expected = match (case.err, case.a, case.f) {
            (Some(kind), ..) => Err(kind),
            // A list of no amounts is written as absent.
            (None, amounts, Some(proportion)) => Ok((amounts.unwrap_or_default(), proportion)),
            (None, ..) => anyhow::bail!("{}:{line}: neither an answer nor an error", path.display()),
        };
        let same = match (&expected, &got) {
            (Ok((amounts, proportion)), Ok((our_amounts, our_proportion))) => {
                amounts.len() == our_amounts.len()
                    && amounts.iter().zip(our_amounts).all(|(&a, &b)| close(a, b))
                    && close(*proportion, *our_proportion)
            }
            (Err(kind), Err(our_kind)) => kind == our_kind,
            _ => false,
        };
        let case_name = || format!("line {line}: {} among {} classes", case.n, parts.len());
        outcome.verdict(same, case_name, || (format!("{expected:?}"), format!("{got:?}")));
    }
    Ok(outcome)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn kind(error: AllocationError) -> String {
    let kind = match error {
        AllocationError::NegativeSum => "negative-sum",
        AllocationError::NegativeLowerBound(_) => "negative-lower-bound",
        AllocationError::TargetBelowLower(_) => "target-below-lower",
        AllocationError::UpperBelowLower(_) => "upper-below-lower",
        AllocationError::LowerOverTarget => "lower-over-target",
        AllocationError::LowerSumOver(_) => "lower-sum-over",
        AllocationError::UpperSumUnder(_) => "upper-sum-under",
        AllocationError::OutOfBounds => "out-of-bounds",
    };
    kind.to_owned()
}
