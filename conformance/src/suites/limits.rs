//! Limits over time: digests and adjustment periods of the whole controller, to the last bit.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use maitred::borrow::{Integrator, LevelLimits, LevelSpec, Limits};
use maitred::fidelity::Fidelity;
use serde::Deserialize;

use crate::outcome::Outcome;
use crate::vectors;

const PERIOD: u64 = 10_000_000_000;
const MILLISECOND: u64 = 1_000_000;

#[derive(Deserialize)]
struct Story {
    scl: u32,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Step {
    Digest { pl: Option<Vec<Level>>, out: BTreeMap<String, (u64, u64, u64, u64, u64)>, sum: u64 },
    Period { dem: Option<Vec<(u64, String, f64)>>, out: BTreeMap<String, (i64, f64, f64, f64, u64)> },
}

#[derive(Deserialize)]
struct Level(String, String, u32, Option<u32>, Option<u32>, Option<(u32, u32, u32)>);

impl Level {
    fn spec(&self) -> Result<LevelSpec> {
        let Level(name, kind, shares, lendable, borrowing, queuing) = self;
        ensure!(kind == "E" || kind == "L", "unknown type {kind} of level {name}");
        Ok(LevelSpec {
            name: name.as_str().into(),
            exempt: kind == "E",
            shares: *shares,
            lendable_percent: lendable.unwrap_or(0),
            borrowing_limit_percent: *borrowing,
            queuing: queuing.map(|(queues, hand_size, _)| (queues, hand_size)),
        })
    }
}

/// Every data line, one controller's story, is a case; of one that fails, the first step that differs is shown.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, story) in vectors::data::<Story>(path)? {
        let difference = replay(&story).with_context(|| format!("{}:{line}", path.display()))?;
        let Difference { step, expected, got } = difference.clone().unwrap_or_default();
        outcome.verdict(difference.is_none(), || format!("line {line}: step {step}"), || (expected, got));
    }
    Ok(outcome)
}

/// The first step whose answer differs.
#[derive(Clone, Default)]
struct Difference {
    step: usize,
    expected: String,
    got: String,
}

impl Difference {
    fn between<T: PartialEq + Debug>(step: usize, expected: T, got: T) -> Option<Difference> {
        (expected != got).then(|| Difference {
            step,
            expected: format!("{expected:?}"),
            got: format!("{got:?}"),
        })
    }
}

/// The controller and what stands for the levels themselves.
struct World {
    now: u64,
    limits: Limits,
    integrators: BTreeMap<String, Integrator>,
}

impl World {
    fn digest(&mut self, scl: u32, specs: &[LevelSpec]) {
        let digest = self.limits.digest(scl, specs, |_| false);
        for name in &digest.removed {
            self.integrators.remove(&**name);
        }
        for name in &digest.added {
            self.integrators.insert(name.to_string(), Integrator::new(self.now));
        }
        self.adjust();
    }

    fn adjust(&mut self) {
        let World { now, limits, integrators } = self;
        limits.adjust(|name| {
            integrators.get_mut(name).expect("a level was added before it is adjusted").reset(*now)
        });
    }

    fn figures<T>(&self, of: impl Fn(&LevelLimits) -> T) -> BTreeMap<String, T> {
        self.limits.levels().map(|level| (level.spec.name.to_string(), of(level))).collect()
    }
}

fn replay(story: &Story) -> Result<Option<Difference>> {
    let limits = Limits::new(Fidelity::Kubernetes);
    let mut world = World { now: 0, limits, integrators: BTreeMap::new() };
    world.digest(story.scl, &[]);
    for (number, step) in story.steps.iter().enumerate() {
        let difference = match step {
            Step::Digest { pl, out, sum } => {
                let specs = pl.iter().flatten().map(Level::spec).collect::<Result<Vec<_>>>()?;
                world.digest(story.scl, &specs);
                let got = world.figures(|level| {
                    (level.nominal, level.min, level.max, level.current, level.max_seats.unwrap_or(0))
                });
                Difference::between(number, (out, *sum), (&got, world.limits.nominal_sum()))
            }
            Step::Period { dem, out } => {
                for (after, name, demand) in dem.iter().flatten() {
                    let Some(integrator) = world.integrators.get_mut(name) else {
                        bail!("step {number}: demand of a level that is not there, {name}");
                    };
                    integrator.set(world.now + after * MILLISECOND, *demand);
                }
                world.now += PERIOD;
                world.adjust();
                let got = world.figures(|level| {
                    let demand = &level.demand;
                    (demand.high_watermark, demand.average, demand.deviation, demand.smoothed, level.current)
                });
                Difference::between(number, out, &got)
            }
        };
        if difference.is_some() {
            return Ok(difference);
        }
    }
    Ok(None)
}
