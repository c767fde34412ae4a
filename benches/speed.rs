//! How long things take, on one thread.
//!
//! `floor` is what the machine asks for the operations that everything else is made of: compare the others with it.

#![allow(missing_docs, reason = "criterion's macros document nothing")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use maitred::classify::{Request, Target};
use maitred::flow::FlowHasher;
use maitred::policy::{Policy, Resolver};
use maitred::ticket::Width;
use maitred::time::{Clock as _, Monotonic};
use maitred_benches::{World, engine, many_schemas};

/// One compare-and-exchange of a line that nobody else wants; one reading of the clock.
fn floor(c: &mut Criterion) {
    let mut group = c.benchmark_group("floor");
    let word = AtomicU64::new(0);
    let mut value = 0;
    group.bench_function("cas/uncontended", |b| {
        b.iter(|| {
            let next = value + 1;
            let done = word.compare_exchange(value, next, Ordering::AcqRel, Ordering::Acquire);
            value = next;
            black_box(done)
        });
    });
    let clock = Monotonic::new();
    group.bench_function("clock_read", |b| b.iter(|| black_box(clock.now())));
}

/// A level alone: flow resolved, time given.
fn level(c: &mut Criterion) {
    let mut group = c.benchmark_group("level");
    for (name, limit, waiting) in [("uncontended", 100, 0), ("backlog_1000", 10, 1000)] {
        let mut world = World::new(limit, waiting);
        group.bench_function(format!("arrive_finish/{name}"), |b| {
            b.iter(|| {
                world.arrive();
                world.finish();
            });
        });
    }
}

/// The engine: two readings of the clock, its counters, and the end of the ticket.
fn admit(c: &mut Criterion) {
    let mut group = c.benchmark_group("admit");
    let engine = engine();
    let groups = ["system:serviceaccounts", "system:authenticated"];
    let user = "system:serviceaccount:shop:till";
    let request = Request::new(user, &groups, "list", Target::resource("", "pods", "")).in_namespace("shop");
    let flow = engine.resolve(&request);
    group.bench_function("resolved_flow/uncontended", |b| {
        b.iter(|| engine.admit_flow(black_box(&flow), Width::ONE).expect("seats are free").wait());
    });
    group.bench_function("attributes/uncontended", |b| {
        b.iter(|| engine.admit(black_box(&request), Width::ONE).expect("seats are free").wait());
    });
}

/// From attributes to the schema: the last of so many schemas that matches.
fn classify(c: &mut Criterion) {
    let mut group = c.benchmark_group("classify");
    for schemas in [10, 1000] {
        let policy = Policy::compile(&many_schemas(schemas), 600).expect("the objects are valid");
        let resolver = Resolver::new(policy, FlowHasher::Kubernetes, 16);
        let user = format!("user-{}", schemas - 1);
        let groups = ["system:authenticated"];
        let request =
            Request::new(&user, &groups, "list", Target::resource("", "pods", "")).in_namespace("shop");
        group.bench_function(format!("attributes/{schemas}_schemas"), |b| {
            b.iter(|| black_box(resolver.policy().classify(black_box(&request))));
        });
    }
}

criterion_group! {
    name = speed;
    config = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .without_plots();
    targets = floor, level, admit, classify
}
criterion_main!(speed);
