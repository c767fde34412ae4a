//! What a scenario file says. `docs/scenarios.md` has the form.

use std::collections::HashSet;

use maitred::classify::{Request, Target};
use maitred::engine::MAX_WAIT;
use maitred::error::{Fault, FaultKind};
use maitred::ticket::Width;
use maitred_manifest::Plain;
use serde_json::Value;

use super::fields::{At, Fields, Reader};
use super::random::Distribution;
use crate::requester::implied_groups;

const SECOND: u64 = 1_000_000_000;
/// The longest scenario, and the longest span in one.
const MAX_SPAN: u64 = 7 * 24 * 3600 * SECOND;
/// Arrivals a second of one flow at most; they come in whole nanoseconds.
const MAX_RATE: f64 = 10_000_000.0;
/// Flows and clients of one scenario at most.
const MAX_SOURCES: u64 = 100_000;

/// A scenario without a fault.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub description: String,
    pub seed: u64,
    /// Nanoseconds, like all times here.
    pub duration: u64,
    pub server_concurrency_limit: u32,
    pub wait_limit: u64,
    pub objects: ObjectsFrom,
    pub groups: Vec<Group>,
}

/// Where the objects of a scenario are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectsFrom {
    /// Those of a fresh server.
    BuiltIn,
    /// In the scenario itself, under `objects`.
    Inline,
    /// In these files.
    Files(Vec<String>),
}

/// Flows that are alike.
#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub count: u32,
    template: Template,
    pub arrivals: Arrivals,
    pub width: Width,
    pub service: Distribution,
    pub from: u64,
    pub until: u64,
}

/// When the requests of a flow come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// By chance (a Poisson process), so many a second, whatever becomes of them.
    Rate(f64),
    /// Each client sends one, waits for its end, thinks, and sends the next.
    ClosedLoop { clients: u32, think: Distribution },
}

/// Attributes of a request.
#[derive(Debug, Clone)]
pub struct Attributes {
    user: String,
    groups: Vec<String>,
    verb: String,
    namespace: String,
    target: OwnedTarget,
}

/// The same, in which `{n}` stands for the number of the flow.
#[derive(Debug, Clone)]
struct Template(Attributes);

#[derive(Debug, Clone)]
enum OwnedTarget {
    Resource { api_group: String, resource: String, subresource: String },
    Path(String),
}

impl Attributes {
    /// The request that has them.
    pub fn request(&self) -> Request<'_, String> {
        let target = match &self.target {
            OwnedTarget::Resource { api_group, resource, subresource } => {
                Target::resource(api_group, resource, subresource)
            }
            OwnedTarget::Path(path) => Target::path(path),
        };
        Request::new(&self.user, &self.groups, &self.verb, target).in_namespace(&self.namespace)
    }
}

impl Group {
    /// Attributes of the requests of the flow with this number; the first is 1.
    pub fn attributes(&self, number: u32) -> Attributes {
        let number = number.to_string();
        let fill = |text: &String| text.replace("{n}", &number);
        let Template(Attributes { user, groups, verb, namespace, target }) = &self.template;
        let user = fill(user);
        let mut groups = groups.clone();
        groups.extend(
            implied_groups(&user).into_iter().filter(|group| !self.template.0.groups.contains(group)),
        );
        let target = match target {
            OwnedTarget::Path(path) => OwnedTarget::Path(fill(path)),
            target => target.clone(),
        };
        Attributes { user, groups, verb: verb.clone(), namespace: fill(namespace), target }
    }
}

/// Reads a scenario.
///
/// # Errors
/// Everything that is wrong with it, in order of the places.
pub fn read(file: &Plain) -> Result<Scenario, Vec<Fault>> {
    let mut reader = Reader::new(file);
    let twice = file.warnings.iter().filter(|warning| warning.kind == FaultKind::DuplicateField);
    reader.faults.extend(twice.cloned());
    let scenario = scenario(&mut reader);
    let mut faults = reader.faults;
    faults.sort_by(|a, b| a.at.cmp(&b.at));
    match scenario {
        Some(scenario) if faults.is_empty() => Ok(scenario),
        _ => Err(faults),
    }
}

fn scenario(reader: &mut Reader<'_>) -> Option<Scenario> {
    let root = reader.root();
    let fields = reader.fields(
        &root,
        &["description", "seed", "duration", "serverConcurrencyLimit", "waitLimit", "objects", "flows"],
    );
    let description =
        fields.get("description").and_then(|at| reader.text(&at)).unwrap_or_default().trim().to_owned();
    let seed = fields.get("seed").map_or(Some(1), |at| reader.count(&at, 0..=u64::MAX));
    let duration = reader
        .need(&fields, "duration", "say for how long requests come, such as 60s")
        .and_then(|at| reader.positive_span(&at, MAX_SPAN));
    let seats =
        fields.get("serverConcurrencyLimit").map_or(Some(600), |at| reader.count32(&at, 1..=1_000_000));
    let wait_limit = fields.get("waitLimit").map_or(Some(15 * SECOND), |at| reader.span(&at, MAX_WAIT));
    let objects = fields.get("objects").map_or(Some(ObjectsFrom::BuiltIn), |at| self::objects(reader, &at));
    let flows = reader.need(&fields, "flows", "say who sends requests");
    if let Some(at) = flows.as_ref().filter(|at| at.value.as_array().is_some_and(Vec::is_empty)) {
        reader.fault(FaultKind::Required, &at.path, None, "say who sends requests");
    }
    let flows = flows.map_or_else(Vec::new, |at| reader.list(&at, "flows"));
    let groups: Vec<_> =
        flows.iter().map(|at| (at, group(reader, at, duration.unwrap_or(MAX_SPAN)))).collect();
    let mut names = HashSet::new();
    let mut sources = 0;
    for (at, group) in &groups {
        let Some(group) = group else { continue };
        if !names.insert(&group.name) {
            let value = Value::from(group.name.as_str());
            let path = format!("{}.name", at.path);
            reader.fault(FaultKind::Duplicate, &path, Some(&value), "each flow needs a name of its own");
        }
        let before = sources <= MAX_SOURCES;
        sources += u64::from(group.count)
            * match group.arrivals {
                Arrivals::Rate(_) => 1,
                Arrivals::ClosedLoop { clients, .. } => u64::from(clients),
            };
        if before && sources > MAX_SOURCES {
            let detail = format!("with this there are more than {MAX_SOURCES} flows and clients in all");
            reader.fault(FaultKind::TooMany, &at.path, None, detail);
        }
    }
    Some(Scenario {
        description,
        seed: seed?,
        duration: duration?,
        server_concurrency_limit: seats?,
        wait_limit: wait_limit?,
        objects: objects?,
        groups: groups.into_iter().map(|(_, group)| group).collect::<Option<_>>()?,
    })
}

fn objects(reader: &mut Reader<'_>, at: &At<'_>) -> Option<ObjectsFrom> {
    match at.value {
        Value::String(file) => Some(ObjectsFrom::Files(vec![file.clone()])),
        Value::Array(items) if items.iter().all(Value::is_object) => Some(ObjectsFrom::Inline),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            Some(ObjectsFrom::Files(items.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
        }
        _ => reader
            .wrong_type(at, "a list of objects, the name of a file that has some, or a list of such names"),
    }
}

fn group<'a>(reader: &mut Reader<'a>, at: &At<'a>, duration: u64) -> Option<Group> {
    let known = ["name", "count", "request", "arrivals", "width", "service", "from", "until"];
    let fields = reader.fields(at, &known);
    let name = reader
        .need(&fields, "name", "each flow needs a name of its own")
        .and_then(|at| reader.name(&at).map(str::to_owned));
    let count = fields.get("count").map(|at| reader.count32(&at, 1..=MAX_SOURCES as u32));
    let request = reader
        .need(&fields, "request", "say what is asked for: a resource or a path")
        .and_then(|at| template(reader, &at, name.as_deref().unwrap_or_default(), count.is_some()));
    let arrivals = reader
        .need(&fields, "arrivals", "say when requests come: {rate: 50/s} or {closedLoop: {clients: 4}}")
        .and_then(|at| arrivals(reader, &at));
    let width = fields.get("width").map_or(Some(Width::ONE), |at| width(reader, &at));
    let service = reader
        .need(
            &fields,
            "service",
            "say for how long a request runs: {exponential: 5ms}, or 5ms for all of them",
        )
        .and_then(|at| distribution(reader, &at, Least::AboveZero));
    let from = fields.get("from").map_or(Some(0), |at| reader.span(&at, duration));
    let until = fields.get("until").map_or(Some(duration), |at| reader.span(&at, duration));
    if let (Some(from), Some(until)) = (from, until)
        && from >= until
    {
        let name = if fields.get("until").is_some() { "until" } else { "from" };
        let at = fields.get(name).unwrap_or_else(|| at.clone());
        reader.invalid(&at, "a flow must begin before it ends, and before the scenario does");
    }
    Some(Group {
        name: name?,
        count: count.unwrap_or(Some(1))?,
        template: request?,
        arrivals: arrivals?,
        width: width?,
        service: service?,
        from: from?,
        until: until?,
    })
}

fn template<'a>(reader: &mut Reader<'a>, at: &At<'a>, flow: &str, counted: bool) -> Option<Template> {
    let known = ["user", "groups", "verb", "apiGroup", "resource", "namespace", "path"];
    let fields = reader.fields(at, &known);
    let text = |reader: &mut Reader<'a>, name: &str| fields.get(name).map(|at| reader.text(&at));
    let user = match fields.get("user") {
        Some(at) => reader.name(&at).map(str::to_owned),
        None if counted => Some(format!("{flow}-{{n}}")),
        None => Some(flow.to_owned()),
    };
    let groups = fields.get("groups").map_or_else(Vec::new, |at| reader.list(&at, "names of groups"));
    let groups: Vec<_> = groups.iter().map(|at| reader.name(at).map(str::to_owned)).collect();
    let verb = fields.get("verb").map_or(Some("get"), |at| reader.name(&at));
    let namespace = text(reader, "namespace").unwrap_or(Some(""));
    let api_group = text(reader, "apiGroup").unwrap_or(Some(""));
    let target = match (fields.get("resource"), fields.get("path")) {
        (Some(_), Some(path)) => {
            reader.fault(FaultKind::Forbidden, &path.path, None, "a request is for a resource or for a path");
            None
        }
        (None, None) => {
            reader.fault(FaultKind::Required, &at.path, None, "needs a resource, or a path");
            None
        }
        (Some(resource), None) => reader.name(&resource).and_then(|resource| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            Some(OwnedTarget::Resource {
                api_group: api_group?.to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
            })
        }),
        (None, Some(path)) => {
            refuse_beside_path(reader, &fields);
            let text = reader.name(&path)?;
            if !text.starts_with('/') {
                reader.invalid(&path, "a path begins with a slash");
            }
            Some(OwnedTarget::Path(text.to_owned()))
        }
    };
    Some(Template(Attributes {
        user: user?,
        groups: groups.into_iter().collect::<Option<_>>()?,
        verb: verb?.to_lowercase(),
        namespace: namespace?.to_owned(),
        target: target?,
    }))
}

fn refuse_beside_path(reader: &mut Reader<'_>, fields: &Fields<'_>) {
    for name in ["apiGroup", "namespace"] {
        if fields.get(name).is_some() {
            let path = fields.path_of(name);
            reader.fault(FaultKind::Forbidden, &path, None, "a request for a path has none");
        }
    }
}

fn arrivals<'a>(reader: &mut Reader<'a>, at: &At<'a>) -> Option<Arrivals> {
    const KINDS: &[&str] = &["rate", "closedLoop"];
    let fields = reader.fields(at, KINDS);
    match reader.one_of(&fields, KINDS)? {
        ("rate", at) => rate(reader, &at).map(Arrivals::Rate),
        (_, at) => {
            let fields = reader.fields(&at, &["clients", "think"]);
            let clients = reader
                .need(&fields, "clients", "say how many")
                .and_then(|at| reader.count32(&at, 1..=MAX_SOURCES as u32));
            let think = fields
                .get("think")
                .map_or(Some(Distribution::Constant(0)), |at| distribution(reader, &at, Least::Zero));
            Some(Arrivals::ClosedLoop { clients: clients?, think: think? })
        }
    }
}

fn rate<'a>(reader: &mut Reader<'a>, at: &At<'a>) -> Option<f64> {
    const FORM: &str = "a number of requests and a unit of time: 50/s, 0.5/s, 300/m or 10/h";
    let Value::String(text) = at.value else { return reader.wrong_type(at, FORM) };
    let per_second = text.split_once('/').and_then(|(number, unit)| {
        let seconds = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        Some(number.trim().parse::<f64>().ok()? / seconds)
    });
    match per_second {
        Some(rate) if rate > 0.0 && rate <= MAX_RATE => Some(rate),
        Some(_) => {
            reader.invalid(at, format!("must be more than 0 and at most {MAX_RATE}/s"));
            None
        }
        None => {
            reader.invalid(at, format!("must be {FORM}"));
            None
        }
    }
}

fn width<'a>(reader: &mut Reader<'a>, at: &At<'a>) -> Option<Width> {
    let fields = reader.fields(at, &["initialSeats", "finalSeats", "additionalLatency"]);
    let initial_seats =
        fields.get("initialSeats").map_or(Some(1), |at| reader.count32(&at, 1..=Width::MAX_SEATS));
    let final_seats =
        fields.get("finalSeats").map_or(Some(0), |at| reader.count32(&at, 0..=Width::MAX_SEATS));
    let latency = fields.get("additionalLatency").map_or(Some(0), |at| reader.span(&at, MAX_SPAN));
    if let (Some(1..), Some(0)) | (Some(0), Some(1..)) = (final_seats, latency) {
        let path = at.path.clone();
        let detail = "finalSeats stay taken for additionalLatency: give both, above 0, or neither";
        reader.fault(FaultKind::Required, &path, None, detail);
    }
    Some(Width { initial_seats: initial_seats?, final_seats: final_seats?, additional_latency: latency? })
}

/// Whether spans may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Least {
    Zero,
    AboveZero,
}

fn distribution<'a>(reader: &mut Reader<'a>, at: &At<'a>, least: Least) -> Option<Distribution> {
    const KINDS: &[&str] = &["constant", "exponential", "uniform", "logNormal"];
    let constant = |reader: &mut Reader<'a>, at: &At<'a>| match least {
        Least::Zero => reader.span(at, MAX_SPAN),
        Least::AboveZero => reader.positive_span(at, MAX_SPAN),
    };
    if at.value.is_string() {
        return constant(reader, at).map(Distribution::Constant);
    }
    let fields = reader.fields(at, KINDS);
    match reader.one_of(&fields, KINDS)? {
        ("constant", at) => constant(reader, &at).map(Distribution::Constant),
        ("exponential", at) => reader.positive_span(&at, MAX_SPAN).map(Distribution::Exponential),
        ("uniform", at) => {
            let (least, most) = pair(reader, &at, ["from", "to"], constant)?;
            Some(Distribution::Uniform(least, most))
        }
        (_, at) => {
            let (median, p99) =
                pair(reader, &at, ["median", "p99"], |reader, at| reader.positive_span(at, MAX_SPAN))?;
            Some(Distribution::LogNormal { median, p99 })
        }
    }
}

/// Two spans of which the second is not less than the first.
fn pair<'a>(
    reader: &mut Reader<'a>,
    at: &At<'a>,
    names: [&str; 2],
    span: impl Fn(&mut Reader<'a>, &At<'a>) -> Option<u64>,
) -> Option<(u64, u64)> {
    let fields = reader.fields(at, &names);
    let [first, second] =
        names.map(|name| reader.need(&fields, name, "a span of time").and_then(|at| span(reader, &at)));
    let (first, second) = (first?, second?);
    if first > second {
        let at = fields.get(names[1])?;
        reader.invalid(&at, format!("must not be less than {}", names[0]));
        return None;
    }
    Some((first, second))
}
