//! `maitred diff`: what another set of objects changes, and for whom.

use std::collections::BTreeMap;
use std::path::PathBuf;

use maitred::api::{Object, Objects, Version, encode};
use maitred::borrow::{LevelSpec, Limits};
use maitred::fidelity::Fidelity;
use maitred::policy::Policy;
use serde::Serialize;
use serde_json::Value;

use crate::Verdict;
use crate::fidelity::FidelityArg;
use crate::input::{add_missing, compile, load};
use crate::output::{Printer, table, write_table};
use crate::probe::{Probe, probes};

/// Tells what changes from one set of objects to another: schemas, levels, seats, and who is treated differently.
///
/// Who and what is found by trying requests: for each rule of both sets, one for each of its subjects, verbs, resources,
/// namespaces and paths. Exits 1 when anything differs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The set as it is: a file, a directory, or `-`.
    old: PathBuf,
    /// The set as it will be.
    new: PathBuf,
    /// Add to both sets the suggested objects of a fresh server that they lack.
    #[arg(long)]
    suggested: bool,
    /// Seats of the whole server: --max-requests-inflight plus --max-mutating-requests-inflight.
    #[arg(long, value_name = "SEATS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    server_concurrency: u32,
    /// Whose rules decide where the reference implementation has a fault.
    #[arg(long, value_enum, default_value_t = FidelityArg::Kubernetes)]
    fidelity: FidelityArg,
}

#[derive(Debug, Serialize)]
struct Report {
    server_concurrency: u32,
    flow_schemas: Vec<Changed>,
    priority_levels: Vec<Changed>,
    seats: Vec<SeatsChanged>,
    requests: Vec<Moved>,
    requests_tried: usize,
    /// Whether there would have been more requests to try.
    requests_left_out: bool,
}

/// An object that is not the same in both sets.
#[derive(Debug, Serialize)]
struct Changed {
    name: String,
    change: Change,
    /// Fields that differ, of an object that is in both.
    fields: Vec<FieldChanged>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Added,
    Removed,
    Changed,
}

#[derive(Debug, Serialize)]
struct FieldChanged {
    path: String,
    old: Value,
    new: Value,
}

#[derive(Debug, Serialize)]
struct SeatsChanged {
    priority_level: String,
    old: Option<Seats>,
    new: Option<Seats>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Seats {
    nominal: u64,
    min: u64,
    max: u64,
    at_rest: u64,
}

/// Requests that go elsewhere.
#[derive(Debug, Serialize)]
struct Moved {
    who: String,
    old: Destination,
    new: Destination,
    what: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Destination {
    flow_schema: String,
    priority_level: String,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let set = |path: &PathBuf| -> anyhow::Result<Objects> {
        let mut set = load(&[path])?;
        add_missing(&mut set, maitred::api::builtin::mandatory());
        if args.suggested {
            add_missing(&mut set, maitred::api::builtin::suggested());
        }
        Ok(set)
    };
    let (old, new) = (set(&args.old)?, set(&args.new)?);
    let report = report(&old, &new, args)?;
    printer.print(&report, |out| write(out, &report))?;
    Ok(if report.is_empty() { Verdict::Fine } else { Verdict::Findings })
}

impl Report {
    fn is_empty(&self) -> bool {
        let objects = self.flow_schemas.is_empty() && self.priority_levels.is_empty();
        objects && self.seats.is_empty() && self.requests.is_empty()
    }
}

fn report(old: &Objects, new: &Objects, args: &Args) -> anyhow::Result<Report> {
    let schemas = |set: &Objects| -> BTreeMap<String, Value> {
        let schemas = set.flow_schemas.iter();
        schemas
            .map(|schema| (schema.metadata.name.clone(), spec(Object::FlowSchema(schema.clone()))))
            .collect()
    };
    let levels = |set: &Objects| -> BTreeMap<String, Value> {
        let levels = set.priority_levels.iter();
        let spec = |level: &maitred::api::v1::PriorityLevelConfiguration| {
            (level.metadata.name.clone(), spec(Object::PriorityLevelConfiguration(level.clone())))
        };
        levels.map(spec).collect()
    };
    let probes = probes([old, new]);
    let (old_policy, new_policy) =
        (compile(old, args.server_concurrency)?, compile(new, args.server_concurrency)?);
    Ok(Report {
        server_concurrency: args.server_concurrency,
        flow_schemas: changed(&schemas(old), &schemas(new)),
        priority_levels: changed(&levels(old), &levels(new)),
        seats: seats_changed(&seats(old, args), &seats(new, args)),
        requests: moved(&probes.list, &old_policy, &new_policy),
        requests_tried: probes.list.len(),
        requests_left_out: probes.left_out,
    })
}

fn spec(object: Object) -> Value {
    encode(&object, Version::V1)["spec"].take()
}

fn changed(old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) -> Vec<Changed> {
    let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let mut fields = Vec::new();
        let change = match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) => {
                differences("spec", old, new, &mut fields);
                Change::Changed
            }
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
        };
        let same = matches!(change, Change::Changed) && fields.is_empty();
        (!same).then(|| Changed { name: name.clone(), change, fields })
    };
    names.into_iter().filter_map(change).collect()
}

/// The deepest fields in which two values differ. Lists of different lengths differ as a whole.
fn differences(path: &str, old: &Value, new: &Value, found: &mut Vec<FieldChanged>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut keys: Vec<_> =
                old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).collect();
            keys.dedup();
            for key in keys {
                let member =
                    |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                differences(&format!("{path}.{key}"), &member(old), &member(new), found);
            }
        }
        (Value::Array(old), Value::Array(new))
            if old.len() == new.len() && old.iter().all(Value::is_object) =>
        {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differences(&format!("{path}[{index}]"), old, new, found);
            }
        }
        _ if old == new => {}
        _ => found.push(FieldChanged { path: path.to_owned(), old: old.clone(), new: new.clone() }),
    }
}

fn seats(set: &Objects, args: &Args) -> BTreeMap<String, Seats> {
    let specs: Vec<_> =
        set.priority_levels.iter().filter_map(|level| LevelSpec::from_object(level).ok()).collect();
    let (limits, ..) = Limits::at_rest(Fidelity::from(args.fidelity), args.server_concurrency, &specs);
    let seats = limits.levels().map(|level| {
        let seats = Seats { nominal: level.nominal, min: level.min, max: level.max, at_rest: level.current };
        (level.spec.name.to_string(), seats)
    });
    seats.collect()
}

fn seats_changed(old: &BTreeMap<String, Seats>, new: &BTreeMap<String, Seats>) -> Vec<SeatsChanged> {
    let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let both = |name: &String| (old.get(name).copied(), new.get(name).copied());
    names
        .into_iter()
        .map(|name| (name, both(name)))
        .filter(|(_, (old, new))| old != new)
        .map(|(name, (old, new))| SeatsChanged { priority_level: name.clone(), old, new })
        .collect()
}

fn moved(probes: &[Probe], old: &Policy, new: &Policy) -> Vec<Moved> {
    let mut moved: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for probe in probes {
        let destination = |policy: &Policy| {
            let schema = &policy.schemas()[probe.classify(policy).schema as usize];
            Destination {
                flow_schema: schema.name.to_string(),
                priority_level: policy.levels()[schema.level as usize].name.to_string(),
            }
        };
        let (old, new) = (destination(old), destination(new));
        if old != new {
            moved.entry((probe.who.clone(), old, new)).or_default().push(probe.what());
        }
    }
    moved.into_iter().map(|((who, old, new), what)| Moved { who, old, new, what }).collect()
}

fn write(out: &mut dyn std::io::Write, report: &Report) -> std::io::Result<()> {
    for (kind, list) in
        [("FlowSchema", &report.flow_schemas), ("PriorityLevelConfiguration", &report.priority_levels)]
    {
        for Changed { name, change, fields } in list {
            let change = match change {
                Change::Added => "added",
                Change::Removed => "removed",
                Change::Changed => "changed",
            };
            writeln!(out, "{change} {kind}/{name}")?;
            for FieldChanged { path, old, new } in fields {
                writeln!(out, "  {path}: {} -> {}", shown(old), shown(new))?;
            }
        }
    }
    if !report.seats.is_empty() {
        writeln!(out, "\nseats, of {} in the server:", report.server_concurrency)?;
        let mut table = table(&["LEVEL", ">NOMINAL", ">MIN", ">MAX", ">AT REST"]);
        for SeatsChanged { priority_level, old, new } in &report.seats {
            let cell = |of: fn(&Seats) -> u64| {
                let [old, new] = [old, new]
                    .map(|seats| seats.as_ref().map_or("-".to_owned(), |seats| of(seats).to_string()));
                if old == new { old } else { format!("{old} -> {new}") }
            };
            table.add_row([
                priority_level.clone(),
                cell(|seats| seats.nominal),
                cell(|seats| seats.min),
                cell(|seats| seats.max),
                cell(|seats| seats.at_rest),
            ]);
        }
        write_table(out, &table)?;
    }
    if !report.requests.is_empty() {
        writeln!(out, "\nwho goes elsewhere:")?;
    }
    for Moved { who, old, new, what } in &report.requests {
        const SHOWN: usize = 3;
        let more = what.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let what = what.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let level = |end: &Destination| format!("{} ({})", end.priority_level, end.flow_schema);
        writeln!(out, "{who}: {} -> {}: {what}{more}", level(old), level(new))?;
    }
    if report.is_empty() {
        write!(out, "no difference")?;
    }
    let left_out = if report.requests_left_out { "; there would be more" } else { "" };
    writeln!(out, "\n{} requests tried{left_out}", report.requests_tried)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "absent".to_owned(),
        value => value.to_string(),
    }
}
