//! Hashes of flows, and flows as requests resolve to them.
#![cfg(not(loom))]

use std::io::Read as _;

use flate2::read::GzDecoder;
use maitred::{
    api::{Objects, builtin},
    classify::{Request, Target},
    flow::{FlowHasher, FlowKey, MAX_CACHED_BYTES, flow_hash},
    policy::{Policy, Resolver},
    shuffle::{Deck, entropy_bits},
};
use serde_json::Value;

fn lines(gzip: &[u8]) -> impl Iterator<Item = Value> {
    let mut text = String::new();
    GzDecoder::new(gzip).read_to_string(&mut text).expect("gzip");
    let lines: Vec<Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.into_iter()
}

#[test]
fn hashes_are_those_of_the_reference() {
    let mut count = 0;
    for line in lines(include_bytes!("vectors/flowhash.jsonl.gz")) {
        let text = |key: &str| line[key].as_str().expect("text");
        assert_eq!(flow_hash(text("fs"), text("d")).to_string(), text("h"), "{line}");
        count += 1;
    }
    assert!(count > 800);
}

#[test]
fn hands_and_refusals_are_those_of_the_reference() {
    let mut count = 0;
    for line in lines(include_bytes!("vectors/dealer.jsonl.gz")) {
        let (d, n) = (line["d"].as_i64().expect("a number"), line["n"].as_i64().expect("a number"));
        if line["k"] == "deal" {
            let hash = line["h"].as_str().expect("text").parse().expect("64 bits");
            let hand = Deck::new(d, n).expect("a deck").deal(hash);
            assert_eq!(serde_json::json!(hand.cards()), line["c"], "{line}");
        } else {
            assert_eq!(serde_json::json!(entropy_bits(d, n)), line["bits"], "{line}");
            assert_eq!(serde_json::json!(Deck::new(d, n).is_ok()), line["ok"], "{line}");
        }
        count += 1;
    }
    assert!(count > 2600);
}

fn policy() -> Policy {
    let mut objects: Objects = builtin::mandatory();
    for object in builtin::suggested() {
        objects.push(object);
    }
    Policy::compile(&objects, 600).expect("compiles")
}

fn request<'a>(user: &'a str, groups: &'a [&'a str]) -> Request<'a> {
    Request::new(user, groups, "get", Target::resource("", "pods", "")).in_namespace("n")
}

#[test]
fn a_cached_flow_is_the_computed_one() {
    let resolver = Resolver::new(policy(), FlowHasher::Kubernetes, 64);
    let groups = ["system:authenticated"];
    let long = "x".repeat(MAX_CACHED_BYTES + 1);
    for round in 0..3 {
        for user in ["alice", "bob", "", &long, "system:kube-scheduler"] {
            let request = request(user, &groups);
            let computed = resolver.policy().flow(&request, resolver.hasher());
            assert_eq!(resolver.resolve(&request), computed, "{user} in round {round}");
            let hand = computed.hand.expect("global-default and workload-high queue");
            assert_eq!(hand, Deck::new(128, 6).unwrap().deal(computed.hash));
        }
    }
}

#[test]
fn levels_that_do_not_queue_have_neither_hash_nor_hand() {
    let resolver = Resolver::new(policy(), FlowHasher::Kubernetes, 64);
    for groups in [["system:masters"], ["nothing"]] {
        let flow = resolver.resolve(&request("root", &groups));
        assert_eq!((flow.hash, flow.hand), (0, None));
    }
}

#[test]
fn keyed_hashes_depend_on_the_key_and_on_every_part_of_the_flow() {
    let keyed = |key: u8| FlowHasher::Keyed(FlowKey::from_bytes([key; 16]));
    let mut all = vec![FlowHasher::Kubernetes.hash("schema", "alice")];
    for key in [1, 2] {
        all.extend(
            [("schema", "alice"), ("schema", "bob"), ("other", "alice")].map(|(s, d)| keyed(key).hash(s, d)),
        );
    }
    assert_eq!(keyed(1).hash("schema", "alice"), keyed(1).hash("schema", "alice"));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 7);
}

#[test]
fn random_keys_differ_and_are_not_shown() {
    let keys = [FlowKey::random().expect("randomness"), FlowKey::random().expect("randomness")];
    assert_ne!(keys[0], keys[1]);
    assert_eq!(format!("{:?}", FlowKey::from_bytes([0xab; 16])), "FlowKey(..)");
}
