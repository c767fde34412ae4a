//! Seats that a real server gave its levels, for several server limits.
//!
//! Nominal, lower and upper limits follow from the objects; current limits are judged from the demand and the target
//! that were recorded with them. Objects come from the recording's `bootstrap.json`, which lies beside it, changed as
//! the state's name and its `extra` tell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use maitred::borrow::{Claim, LevelSpec, Limits, divide};
use maitred::fidelity::Fidelity;
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
struct State {
    levels: BTreeMap<String, Recorded>,
    seat_fair_frac: f64,
    #[serde(default)]
    extra: BTreeMap<String, Fields>,
}

/// What the server's metrics told of a level.
#[derive(Deserialize, Debug)]
struct Recorded {
    current_limit_seats: u64,
    demand_seats_high_watermark: u64,
    lower_limit_seats: u64,
    nominal_limit_seats: u64,
    /// Of an exempt level it is that of some other level; it has no bearing there.
    target_seats: f64,
    upper_limit_seats: u64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Fields {
    nominal_concurrency_shares: u32,
    lendable_percent: Option<u32>,
    borrowing_limit_percent: Option<u32>,
    limit_response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    queuing: Option<Queuing>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Queuing {
    queues: u32,
    hand_size: u32,
}

impl Fields {
    fn spec(&self, name: &str, exempt: bool) -> LevelSpec {
        LevelSpec {
            name: name.into(),
            exempt,
            shares: self.nominal_concurrency_shares,
            lendable_percent: self.lendable_percent.unwrap_or(0),
            borrowing_limit_percent: self.borrowing_limit_percent,
            queuing: self
                .limit_response
                .as_ref()
                .and_then(|response| response.queuing.as_ref())
                .map(|queuing| (queuing.queues, queuing.hand_size)),
        }
    }
}

/// The recording of a server's objects that `path` is read with.
pub fn inputs(path: &Path) -> Vec<PathBuf> {
    vec![path.with_file_name("bootstrap.json")]
}

/// Every level of every state is a case, and every state's fair fraction.
pub fn run(path: &Path) -> Result<Outcome> {
    let recording = vectors::json(path)?;
    let cases = recording["cases"].as_array().with_context(|| format!("{}: no cases", path.display()))?;
    let bootstrap = bootstrap_levels(&path.with_file_name("bootstrap.json"))?;
    let mut outcome = Outcome::default();
    for (number, case) in cases.iter().enumerate() {
        let place = || format!("{}: case {number}", path.display());
        let case = case.as_object().with_context(place)?;
        let total = case.get("total").and_then(Value::as_u64).with_context(place)?;
        let mut specs = bootstrap.clone();
        // In the order in which the server went through them: what one state changes stays changed.
        for (name, state) in case.iter().filter(|(_, value)| value.is_object()) {
            let state: State = State::deserialize(state).with_context(|| format!("{}, {name}", place()))?;
            change(&mut specs, name, &state)?;
            judge(&format!("{total} seats, {name}"), u32::try_from(total)?, &state, &specs, &mut outcome)?;
        }
    }
    Ok(outcome)
}

/// Does to the levels what was done on the server before `state` was recorded.
fn change(specs: &mut BTreeMap<String, LevelSpec>, name: &str, state: &State) -> Result<()> {
    for (level, fields) in &state.extra {
        specs.insert(level.clone(), fields.spec(level, false));
    }
    if let Some((_, figures)) = name.split_once("exempt_") {
        let (shares, lendable) =
            figures.split_once("_shares_lendable_").context("figures in the state's name")?;
        let exempt = specs.get_mut("exempt").context("a level named exempt")?;
        (exempt.shares, exempt.lendable_percent) = (shares.parse()?, lendable.parse()?);
    }
    if name.contains("int32max_shares") {
        let all_shares = Fields { nominal_concurrency_shares: i32::MAX as u32, ..Fields::default() };
        for level in state.levels.keys() {
            specs.entry(level.clone()).or_insert_with(|| all_shares.spec(level, false));
        }
    }
    Ok(())
}

fn judge(
    place: &str,
    server_limit: u32,
    state: &State,
    specs: &BTreeMap<String, LevelSpec>,
    outcome: &mut Outcome,
) -> Result<()> {
    let specs: Vec<LevelSpec> = specs.values().cloned().collect();
    let (limits, ..) = Limits::at_rest(Fidelity::Kubernetes, server_limit, &specs);
    ensure!(
        limits.levels().map(|level| &*level.spec.name).eq(state.levels.keys()),
        "{place}: the levels recorded are not those of the objects"
    );

    let claims: Vec<Claim> = limits
        .levels()
        .zip(state.levels.values())
        .map(|(level, recorded)| Claim {
            exempt: level.spec.exempt,
            has_shares: level.spec.shares > 0,
            nominal: level.nominal,
            min: level.min,
            max: level.max,
            current: level.current,
            high_watermark: recorded.demand_seats_high_watermark,
            smoothed: recorded.target_seats,
        })
        .collect();
    let division = divide(Fidelity::Kubernetes, &claims);
    for ((level, seats), recorded) in limits.levels().zip(&division.seats).zip(state.levels.values()) {
        let expected = [
            recorded.nominal_limit_seats,
            recorded.lower_limit_seats,
            recorded.upper_limit_seats,
            recorded.current_limit_seats,
        ];
        let got = [level.nominal, level.min, level.max, seats.current];
        outcome.check(|| format!("{place}: {} {recorded:?}", level.spec.name), &expected, &got);
    }
    let (expected, got) = (state.seat_fair_frac, division.fair_fraction);
    // The reference adds up its levels in random order.
    let same = (expected - got).abs() <= 1e-9 * expected.abs();
    outcome.verdict(same, || format!("{place}: fair fraction"), || (expected.to_string(), got.to_string()));
    Ok(())
}

/// The priority levels of a fresh server.
fn bootstrap_levels(path: &Path) -> Result<BTreeMap<String, LevelSpec>> {
    let place = || format!("{}: prioritylevelconfigurations", path.display());
    let recording = vectors::json(path)?;
    let items = recording["prioritylevelconfigurations"]["items"].as_array().with_context(place)?;
    items
        .iter()
        .map(|item| {
            let name = item["metadata"]["name"].as_str().with_context(place)?;
            let exempt = item["spec"]["type"] == "Exempt";
            let fields = Fields::deserialize(&item["spec"][if exempt { "exempt" } else { "limited" }])
                .with_context(|| format!("{}: {name}", path.display()))?;
            Ok((name.to_owned(), fields.spec(name, exempt)))
        })
        .collect()
}
