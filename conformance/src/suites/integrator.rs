//! Time-weighted statistics, to the last bit.

use std::path::Path;

use anyhow::{Context, bail};
use maitred::borrow::{Integrator, PeriodDemand};
use serde::Deserialize;
use serde_json::Value;

use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
struct Story {
    ops: Vec<Vec<Value>>,
}

/// [seconds, average, deviation, min, max]; `None` is not-a-number.
pub type Results = [Option<f64>; 5];

/// Period results in the form of the vector files.
pub fn results(period: &PeriodDemand) -> Results {
    [period.seconds, period.average, period.deviation, period.min, period.max]
        .map(|number| (!number.is_nan()).then_some(number))
}

/// Every data line, one integrator's story, is a case.
pub fn run(path: &Path) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, story) in vectors::data::<Story>(path)? {
        let (expected, got) = replay(&story.ops).with_context(|| format!("{}:{line}", path.display()))?;
        outcome.check(|| format!("line {line}: {} operations", story.ops.len()), &expected, &got);
    }
    Ok(outcome)
}

fn replay(ops: &[Vec<Value>]) -> anyhow::Result<(Vec<Results>, Vec<Results>)> {
    let mut integrator = Integrator::new(0);
    let (mut expected, mut got) = (Vec::new(), Vec::new());
    for op in ops {
        let now = op.first().and_then(Value::as_u64).context("an operation without a time")?;
        let name = op.get(1).and_then(Value::as_str).context("an operation without a name")?;
        let number = || op.get(2).and_then(Value::as_f64).context("an operation without its operand");
        let answer = || -> anyhow::Result<Results> {
            Ok(serde_json::from_value(op.get(2).context("an operation without its result")?.clone())?)
        };
        match name {
            "s" => integrator.set(now, number()?),
            "a" => integrator.add(now, number()?),
            "i" => integrator.add(now, 1.0),
            "d" => integrator.add(now, -1.0),
            "g" => {
                expected.push(answer()?);
                got.push(results(&integrator.results(now)));
            }
            "r" => {
                expected.push(answer()?);
                got.push(results(&integrator.reset(now)));
            }
            _ => bail!("unknown operation {name}"),
        }
    }
    Ok((expected, got))
}
