//! `maitred explain`: which schema, level, flow and queues a request gets, and why not those before.

use anyhow::bail;
use clap::ArgGroup;
use maitred::classify::rule::Difference;
use maitred::classify::{Request, Target};
use maitred::explain::{Explanation, Response, Shuffle, explain};
use maitred::flow::{Distinguisher, FlowHasher};
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
    #[serde(flatten)]
    explanation: Explanation,
    /// Seats of the level.
    seats: Seats,
}

#[derive(Debug, Serialize)]
struct Seats {
    nominal: u64,
    min: u64,
    max: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum TargetReport {
    Resource { api_group: String, resource: String, subresource: String, namespace: String },
    Path { path: String },
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
    let explanation = explain(&policy, &request, &FlowHasher::Kubernetes);
    let level = policy.levels().iter().find(|level| *level.name == explanation.priority_level);
    let report = Report {
        target: match &args.path {
            Some(path) => TargetReport::Path { path: path.clone() },
            None => TargetReport::Resource {
                api_group: args.api_group.clone(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                namespace: args.namespace.clone(),
            },
        },
        seats: level.map_or(Seats { nominal: 0, min: 0, max: 0 }, |level| Seats {
            nominal: level.nominal,
            min: level.min,
            max: level.max,
        }),
        user: args.user.clone(),
        verb: verb.clone(),
        groups: groups.clone(),
        explanation,
    };
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

fn write(out: &mut dyn std::io::Write, report: &Report) -> std::io::Result<()> {
    let Report { explanation: found, seats, .. } = report;
    let by = match &found.matched_by {
        Some(path) => format!("by {path}"),
        None => "because no schema matches".to_owned(),
    };
    writeln!(
        out,
        "flow schema     {GOOD}{}{GOOD:#}, precedence {}, {by}",
        found.flow_schema, found.matching_precedence
    )?;
    let seats = match found.response {
        Response::Exempt => "never held back".to_owned(),
        Response::Reject | Response::Queue => {
            format!(
                "{} seats of its own, {} to {} with lending and borrowing",
                seats.nominal, seats.min, seats.max
            )
        }
    };
    writeln!(out, "priority level  {GOOD}{}{GOOD:#}, {:?}, {seats}", found.priority_level, found.response)?;
    let told_apart = match found.distinguisher_method {
        Distinguisher::None => "all requests of the schema".to_owned(),
        Distinguisher::ByUser => format!("user {:?}", found.distinguisher),
        Distinguisher::ByNamespace => format!("namespace {:?}", found.distinguisher),
    };
    let hand = match &found.shuffle {
        None => String::new(),
        Some(Shuffle { queues: 1, .. }) => ", the only queue".to_owned(),
        Some(Shuffle { hash, queues, hand }) => {
            let cards: Vec<_> = hand.iter().map(u32::to_string).collect();
            format!(", hash {hash}, queues {} of {queues}", cards.join(" "))
        }
    };
    writeln!(out, "flow            {told_apart}{hand}")?;
    writeln!(out, "groups          {}", report.groups.join(", "))?;
    for dangling in &found.dangling {
        writeln!(
            out,
            "{DOUBTFUL}ignored{DOUBTFUL:#}         {}, precedence {}, would have matched, but its level {:?} does not exist",
            dangling.flow_schema, dangling.matching_precedence, dangling.priority_level
        )?;
    }
    if !found.earlier.is_empty() {
        writeln!(out, "\nnot matched before:")?;
    }
    for other in &found.earlier {
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
