//! Objects, requests and engines in a line each, for tests of the engine.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::mpsc;
use std::time::Duration;

use maitred::api::meta::ObjectMeta;
use maitred::api::{Objects, v1};
use maitred::classify::{Request, Target};
use maitred::engine::{Engine, Options};
use maitred::fidelity::Fidelity;
use maitred::level::ArenaSize;
use maitred::time::Manual;

pub const GROUPS: [&str; 1] = ["system:authenticated"];

/// What a level does with requests that find no seat.
#[derive(Clone, Copy)]
pub enum Kind {
    Reject,
    /// Queues, hand size, queue length limit.
    Queue(i32, i32, i32),
}

/// A priority level, and a flow schema of the same name that takes the requests of all users in the namespace of that name.
#[derive(Clone)]
pub struct Row {
    pub name: String,
    pub shares: i32,
    pub kind: Kind,
    pub lendable: i32,
    pub by_user: bool,
}

pub fn row(name: &str, shares: i32, kind: Kind) -> Row {
    Row { name: name.into(), shares, kind, lendable: 0, by_user: true }
}

pub fn objects(rows: &[Row]) -> Objects {
    Objects {
        priority_levels: rows.iter().map(level).collect(),
        flow_schemas: rows.iter().map(schema).collect(),
    }
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta { name: name.into(), ..ObjectMeta::default() }
}

fn level(row: &Row) -> v1::PriorityLevelConfiguration {
    let (type_, queuing) = match row.kind {
        Kind::Reject => ("Reject", None),
        Kind::Queue(queues, hand_size, queue_length_limit) => {
            ("Queue", Some(v1::QueuingConfiguration { queues, hand_size, queue_length_limit }))
        }
    };
    v1::PriorityLevelConfiguration {
        metadata: meta(&row.name),
        spec: v1::PriorityLevelConfigurationSpec {
            type_: "Limited".into(),
            limited: Some(v1::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(row.shares),
                limit_response: v1::LimitResponse { type_: type_.into(), queuing },
                lendable_percent: Some(row.lendable),
                borrowing_limit_percent: None,
            }),
            exempt: None,
        },
        ..Default::default()
    }
}

fn schema(row: &Row) -> v1::FlowSchema {
    let everything = || vec!["*".to_owned()];
    v1::FlowSchema {
        metadata: meta(&row.name),
        spec: v1::FlowSchemaSpec {
            priority_level_configuration: v1::PriorityLevelConfigurationReference { name: row.name.clone() },
            matching_precedence: 500,
            distinguisher_method: row.by_user.then(|| v1::FlowDistinguisherMethod { type_: "ByUser".into() }),
            rules: vec![v1::PolicyRulesWithSubjects {
                subjects: vec![v1::Subject {
                    kind: "Group".into(),
                    group: Some(v1::GroupSubject { name: "*".into() }),
                    ..Default::default()
                }],
                resource_rules: vec![v1::ResourcePolicyRule {
                    verbs: everything(),
                    api_groups: everything(),
                    resources: everything(),
                    cluster_scope: false,
                    namespaces: vec![row.name.clone()],
                }],
                non_resource_rules: vec![],
            }],
        },
        ..Default::default()
    }
}

/// A request of the level of that name.
pub fn to<'a>(level: &'a str, user: &'a str) -> Request<'a> {
    Request::new(user, &GROUPS, "list", Target::resource("", "pods", "")).in_namespace(level)
}

/// A request that is never held back.
pub fn exempt() -> Request<'static> {
    Request::new("admin", &["system:masters"], "get", Target::path("/"))
}

/// Exact to the nanosecond, on a manual clock.
pub fn engine(seats: u32, fidelity: Fidelity) -> (Engine, Manual) {
    engine_with(Options { server_concurrency_limit: seats, fidelity, ..Options::default() })
}

pub fn engine_with(options: Options) -> (Engine, Manual) {
    let clock = Manual::default();
    let engine = Engine::with_clock(Options { clock_lag: 0, ..options }, clock.clone()).unwrap();
    (engine, clock)
}

/// Little memory: so many cells for queues, four levels besides the mandatory ones.
pub fn small(queues: usize) -> Options {
    Options {
        arena: ArenaSize { tickets: 64, queues, levels: 6, threads: 2 },
        cached_flows: 16,
        server_concurrency_limit: 100,
        ..Options::default()
    }
}

/// Runs `story` on a thread of its own, and fails if it hangs.
pub fn within<T: Send + 'static>(seconds: u64, story: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = tell.send(story());
    });
    match told.recv_timeout(Duration::from_secs(seconds)) {
        Ok(answer) => answer,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("it answers before it ends"),
        },
    }
}
