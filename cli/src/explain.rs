//! `maitred explain`: which schema, level, flow and queues a request gets, and why not those before.

use anyhow::bail;
use clap::ArgGroup;
use maitred::classify::rule::{Difference, check};
use maitred::classify::{Request, Target};
use maitred::flow::{Distinguisher, FlowHasher};
use maitred::policy::{LevelKind, Policy};
use serde::Serialize;

use crate::Verdict;
use crate::input::{ObjectFiles, compile};
use crate::output::{DOUBTFUL, GOOD, Printer};
use crate::requester::implied_groups;

/// Says which flow schema, priority level, flow and queues a request gets, and why each schema before did not match.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("target").required(true).args(["resource", "path"]))]
pub struct Args {
    #[command(flatten)]
    objects: ObjectFiles,
    /// Name of the user.
    #[arg(long)]
    user: String,
    /// A group of the user. Those that a server adds by itself, such as system:authenticated, need not be told.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Take the groups as they are told and add none.
    #[arg(long)]
    only_these_groups: bool,
    /// Verb, or HTTP method of a request for a path.
    #[arg(long, default_value = "get")]
    verb: String,
    /// API group of the resource; empty for the core group.
    #[arg(long, default_value = "", conflicts_with = "path")]
    api_group: String,
    /// Resource in the plural, with a subresource if there is one: pods, deployments/scale.
    #[arg(long)]
    resource: Option<String>,
    /// Subresource, for those who like it apart.
    #[arg(long, default_value = "", hide_default_value = true, conflicts_with = "path")]
    subresource: String,
    /// Namespace; none for a request that spans the cluster.
    #[arg(long, default_value = "", hide_default_value = true, conflicts_with = "path")]
    namespace: String,
    /// Path of a request that is for no resource: /healthz.
    #[arg(long)]
    path: Option<String>,
    /// Seats of the whole server, for the seats of the level.
    #[arg(long, value_name = "SEATS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    server_concurrency: u32,
}

#[derive(Debug, Serialize)]
struct Report {
    user: String,
    groups: Vec<String>,
    verb: String,
    #[serde(flatten)]
    target: TargetReport,
    flow_schema: String,
    matching_precedence: i32,
    /// Path of the rule that matched; absent when nothing matched and catch-all took the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_by: Option<String>,
    priority_level: Level,
    flow: Flow,
    passed_over: Vec<PassedOver>,
    /// Schemas that would have come before but are ignored, because their level does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dangling: Vec<Dangling>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum TargetReport {
    Resource { api_group: String, resource: String, subresource: String, namespace: String },
    Path { path: String },
}

#[derive(Debug, Serialize)]
struct Level {
    name: String,
    /// `Exempt`, `Reject` or `Queue`.
    #[serde(rename = "type")]
    kind: &'static str,
    nominal: u64,
    min: u64,
    max: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Flow {
    /// `ByUser`, `ByNamespace` or `None`.
    distinguisher_method: Distinguisher,
    distinguisher: String,
    /// A number that may pass 2^53, thus as text.
    hash: String,
    /// Queues in the order dealt; empty where the level has none.
    hand: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct PassedOver {
    flow_schema: String,
    matching_precedence: i32,
    priority_level: String,
    differences: Vec<Difference>,
}

#[derive(Debug, Serialize)]
struct Dangling {
    flow_schema: String,
    matching_precedence: i32,
    priority_level: String,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let policy = compile(&args.objects.load()?, args.server_concurrency)?;
    let mut groups = args.groups.clone();
    if !args.only_these_groups {
        groups.extend(implied_groups(&args.user).into_iter().filter(|group| !args.groups.contains(group)));
    }
    let (resource, subresource) = resource(args)?;
    let target = match &args.path {
        Some(path) => Target::path(path),
        None => Target::resource(&args.api_group, resource, subresource),
    };
    let verb = args.verb.to_lowercase();
    let request = Request::new(&args.user, &groups, &verb, target).in_namespace(&args.namespace);
    let target = match &args.path {
        Some(path) => TargetReport::Path { path: path.clone() },
        None => TargetReport::Resource {
            api_group: args.api_group.clone(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: args.namespace.clone(),
        },
    };
    let report = report(&policy, &request, &groups, target);
    printer.print(&report, |out| write(out, &report))?;
    Ok(Verdict::Fine)
}

fn resource(args: &Args) -> anyhow::Result<(&str, &str)> {
    let whole = args.resource.as_deref().unwrap_or_default();
    let (resource, subresource) = whole.split_once('/').unwrap_or((whole, ""));
    match (subresource, args.subresource.as_str()) {
        (sub, "") => Ok((resource, sub)),
        ("", sub) => Ok((resource, sub)),
        (sub, other) => {
            bail!("the subresource is given twice: {sub} with --resource, {other} with --subresource")
        }
    }
}

fn report(policy: &Policy, request: &Request<'_, String>, groups: &[String], target: TargetReport) -> Report {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let classified = policy.classify(request);
    let flow = policy.flow(request, &FlowHasher::Kubernetes);
    let schema = &policy.schemas()[classified.schema as usize];
    let level = &policy.levels()[classified.level as usize];
    let level_name = |index: u32| policy.levels()[index as usize].name.to_string();
    let before =
        policy.schemas().iter().take_while(|other| classified.fallback || !std::ptr::eq(*other, schema));
    let place = (schema.precedence, &*schema.name);
    Report {
        user: text(request.user),
        groups: groups.to_vec(),
        verb: text(request.verb),
        target,
        flow_schema: schema.name.to_string(),
        matching_precedence: schema.precedence,
        matched_by: check(&schema.spec, request).ok().filter(|_| !classified.fallback),
        priority_level: Level {
            name: level.name.to_string(),
            kind: match level.kind {
                LevelKind::Exempt => "Exempt",
                LevelKind::Reject => "Reject",
                LevelKind::Queue { .. } => "Queue",
            },
            nominal: level.nominal,
            min: level.min,
            max: level.max,
            queues: match &level.kind {
                LevelKind::Queue { deck, .. } => Some(deck.deck_size()),
                LevelKind::Exempt | LevelKind::Reject => None,
            },
        },
        flow: Flow {
            distinguisher_method: schema.distinguisher,
            distinguisher: text(policy.distinguisher(classified, request)),
            hash: flow.hash.to_string(),
            hand: flow.hand.map_or_else(Vec::new, |hand| hand.cards().to_vec()),
        },
        passed_over: before
            .map(|other| PassedOver {
                flow_schema: other.name.to_string(),
                matching_precedence: other.precedence,
                priority_level: level_name(other.level),
                differences: check(&other.spec, request).err().unwrap_or_default(),
            })
            .collect(),
        dangling: policy
            .dangling()
            .iter()
            .filter(|other| {
                (other.spec.matching_precedence, &*other.name) < place && check(&other.spec, request).is_ok()
            })
            .map(|other| Dangling {
                flow_schema: other.name.to_string(),
                matching_precedence: other.spec.matching_precedence,
                priority_level: other.spec.priority_level_configuration.name.clone(),
            })
            .collect(),
    }
}

fn write(out: &mut dyn std::io::Write, report: &Report) -> std::io::Result<()> {
    let level = &report.priority_level;
    let by = match &report.matched_by {
        Some(path) => format!("by {path}"),
        None => "because no schema matches".to_owned(),
    };
    writeln!(
        out,
        "flow schema     {GOOD}{}{GOOD:#}, precedence {}, {by}",
        report.flow_schema, report.matching_precedence
    )?;
    let seats = format!(
        "{} seats of its own, {} to {} with lending and borrowing",
        level.nominal, level.min, level.max
    );
    let seats = if level.kind == "Exempt" { "never held back".to_owned() } else { seats };
    writeln!(out, "priority level  {GOOD}{}{GOOD:#}, {}, {seats}", level.name, level.kind)?;
    let flow = &report.flow;
    let told_apart = match flow.distinguisher_method {
        Distinguisher::None => "all requests of the schema".to_owned(),
        Distinguisher::ByUser => format!("user {:?}", flow.distinguisher),
        Distinguisher::ByNamespace => format!("namespace {:?}", flow.distinguisher),
    };
    let hand = match level.queues {
        None => String::new(),
        Some(1) => ", the only queue".to_owned(),
        Some(queues) => {
            let cards: Vec<_> = flow.hand.iter().map(u32::to_string).collect();
            format!(", hash {}, queues {} of {queues}", flow.hash, cards.join(" "))
        }
    };
    writeln!(out, "flow            {told_apart}{hand}")?;
    writeln!(out, "groups          {}", report.groups.join(", "))?;
    for dangling in &report.dangling {
        writeln!(
            out,
            "{DOUBTFUL}ignored{DOUBTFUL:#}         {}, precedence {}, would have matched, but its level {:?} does not exist",
            dangling.flow_schema, dangling.matching_precedence, dangling.priority_level
        )?;
    }
    if !report.passed_over.is_empty() {
        writeln!(out, "\nnot matched before:")?;
    }
    for other in &report.passed_over {
        writeln!(
            out,
            "{} (precedence {}, {})",
            other.flow_schema, other.matching_precedence, other.priority_level
        )?;
        for Difference { path, request, covers } in &other.differences {
            match covers.as_slice() {
                [] => writeln!(out, "  {path}: has nothing for {request}")?,
                covers => writeln!(out, "  {path}: {}; the request has {request}", covers.join(", "))?,
            }
        }
    }
    Ok(())
}
