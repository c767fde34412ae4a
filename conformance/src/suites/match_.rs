//! Choice of flow schema, order of schemas, flow distinguisher and hash, through a compiled policy.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use maitred::api::{self, DecodeOptions, Kind, Object, Objects, Reading, Version, v1};
use maitred::classify::{Request, Target};
use maitred::flow::FlowHasher;
use maitred::policy::{LevelKind, Policy, Resolver};
use serde::Deserialize;
use serde_json::Value;

use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
#[serde(tag = "k", rename_all = "lowercase")]
enum Line {
    Config { c: u64, fs: Vec<Value> },
    Order { c: u64, fs: Vec<String> },
    Req(Box<Req>),
}

#[derive(Deserialize)]
struct Req {
    c: u64,
    r: Attributes,
    fs: String,
    pl: String,
    fb: bool,
    d: String,
    nd: String,
    h: String,
}

/// User, groups, verb, whether for a resource, API group, resource, subresource, namespace, path.
#[derive(Deserialize)]
struct Attributes(String, Option<Vec<String>>, String, bool, String, String, String, String, String);

/// The answer of a request, as the file has it.
#[derive(Debug, PartialEq)]
struct Answer<'a> {
    schema: &'a str,
    level: &'a str,
    fallback: bool,
    distinguisher: String,
    used_distinguisher: String,
    hash: String,
}

/// Each order and each request is a case; a set of flow schemas is what the following cases are about.
pub fn run(path: &Path) -> Result<Outcome> {
    let (header, lines) = vectors::with_header(path)?;
    let levels = levels(&header).with_context(|| format!("{}:1", path.display()))?;
    let mut outcome = Outcome::default();
    let mut current: Option<(u64, Resolver)> = None;
    for line in lines {
        let place = || format!("{}:{}", path.display(), line.number);
        let of = |c: u64| match &current {
            Some((config, resolver)) if *config == c => Ok(resolver),
            _ => Err(anyhow!("config {c} is not the latest")),
        };
        match serde_json::from_value(line.value).with_context(place)? {
            Line::Config { c, fs } => {
                let objects = Objects {
                    flow_schemas: schemas(&fs).with_context(place)?,
                    priority_levels: levels.clone(),
                };
                let policy = Policy::compile(&objects, 100)
                    .map_err(|faults| anyhow!("config {c} does not compile: {faults:?}"))
                    .with_context(place)?;
                current = Some((c, Resolver::new(policy, FlowHasher::Kubernetes, 1024)));
            }
            Line::Order { c, fs } => {
                let names = of(c)
                    .with_context(place)?
                    .policy()
                    .schemas()
                    .iter()
                    .map(|schema| schema.name.to_string());
                outcome.check(|| format!("line {}: order of config {c}", line.number), &fs, &names.collect());
            }
            Line::Req(req) => {
                let Req { c, r, fs, pl, fb, d, nd, h } = *req;
                let expected = Answer {
                    schema: &fs,
                    level: &pl,
                    fallback: fb,
                    distinguisher: d,
                    used_distinguisher: nd,
                    hash: h,
                };
                let got = answer(of(c).with_context(place)?, &r);
                let case = || format!("line {}: {} {} in config {c}", line.number, r.0, r.2);
                outcome.check(case, &expected, &got);
            }
        }
    }
    Ok(outcome)
}

fn answer<'a>(resolver: &'a Resolver, attributes: &Attributes) -> Answer<'a> {
    let Attributes(user, groups, verb, is_resource, api_group, resource, subresource, namespace, path) =
        attributes;
    let target =
        if *is_resource { Target::resource(api_group, resource, subresource) } else { Target::path(path) };
    let request =
        Request::new(user, groups.as_deref().unwrap_or_default(), verb, target).in_namespace(namespace);
    let policy = resolver.policy();
    let classified = policy.classify(&request);
    let flow = resolver.resolve(&request);
    let (schema, level) = (&policy.schemas()[flow.schema as usize], &policy.levels()[flow.level as usize]);
    let distinguisher = String::from_utf8_lossy(policy.distinguisher(classified, &request)).into_owned();
    // What the reference uses where the level has several queues, and only there.
    let shuffled = matches!(&level.kind, LevelKind::Queue { deck, .. } if deck.deck_size() > 1);
    Answer {
        schema: &schema.name,
        level: &level.name,
        fallback: flow.fallback,
        used_distinguisher: if shuffled { distinguisher.clone() } else { String::new() },
        distinguisher,
        hash: flow.hash.to_string(),
    }
}

/// The schemas as they are: the reference matched them without filling in defaults or validating.
fn schemas(objects: &[Value]) -> Result<Vec<v1::FlowSchema>> {
    let options = DecodeOptions {
        defaults: false,
        kind: Some(Kind::FlowSchema),
        version: Some(Version::V1),
        ..DecodeOptions::default()
    };
    let read = |object| match api::decode_with(object, options) {
        Reading { object: Some(Object::FlowSchema(schema)), unknown, .. } if unknown.is_empty() => Ok(schema),
        reading => bail!("not a flow schema: {:?}{:?}", reading.faults, reading.unknown),
    };
    objects.iter().map(read).collect()
}

/// The levels of the header: name, type, number of queues or 0 for a level that rejects.
fn levels(header: &Value) -> Result<Vec<v1::PriorityLevelConfiguration>> {
    let levels: Vec<(String, String, i32)> = serde_json::from_value(header["more"]["levels"].clone())
        .context("\"more\".\"levels\" of the header")?;
    let level = |(name, type_, queues): (String, String, i32)| {
        let limited = match type_.as_str() {
            "Exempt" => None,
            "Limited" => Some(v1::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(30),
                limit_response: response(queues),
                ..Default::default()
            }),
            other => bail!("level {name:?} is of type {other:?}"),
        };
        let mut level = v1::PriorityLevelConfiguration::default();
        level.metadata.name = name;
        (level.spec.type_, level.spec.limited) = (type_, limited);
        Ok(level)
    };
    levels.into_iter().map(level).collect()
}

fn response(queues: i32) -> v1::LimitResponse {
    if queues == 0 {
        return v1::LimitResponse { type_: "Reject".to_owned(), queuing: None };
    }
    let queuing = v1::QueuingConfiguration { queues, hand_size: queues.min(8), queue_length_limit: 50 };
    v1::LimitResponse { type_: "Queue".to_owned(), queuing: Some(queuing) }
}
