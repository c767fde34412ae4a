//! From the attributes of a request to its flow nothing is allocated. A binary of its own: it counts all allocations.
#![cfg(not(loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use maitred::{
    api::{Objects, builtin},
    classify::{Request, Target},
    flow::{FlowHasher, FlowKey},
    policy::{Policy, Resolver},
};

thread_local!(static ALLOCATIONS: Cell<u64> = const { Cell::new(0) });

struct Counting;

// SAFETY: both calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn resolving_a_request_does_not_allocate() {
    let objects: Objects = builtin::mandatory().into_iter().chain(builtin::suggested()).collect();
    let hashers = [FlowHasher::Kubernetes, FlowHasher::Keyed(FlowKey::from_bytes([7; 16]))];
    let resolvers =
        hashers.map(|hasher| Resolver::new(Policy::compile(&objects, 600).expect("compiles"), hasher, 16));
    let many: Vec<String> = (0..100).map(|i| format!("group-{i}")).collect();
    let users: Vec<String> =
        (0..200).map(|i| format!("system:serviceaccount:n{i}:{}", "x".repeat(i))).collect();
    let before = ALLOCATIONS.get();
    let mut flows = 0;
    for resolver in &resolvers {
        for user in &users {
            for target in [Target::resource("apps", "deployments", "scale"), Target::path("/healthz/etcd")] {
                let request = Request::new(user, &many, "get", target).in_namespace("n");
                flows += u64::from(resolver.resolve(&request).fallback);
                let groups = ["system:serviceaccounts", "system:authenticated"];
                flows +=
                    u64::from(resolver.resolve(&Request::new(user, &groups, "list", target)).hand.is_some());
            }
        }
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert!(flows > 0);
}
