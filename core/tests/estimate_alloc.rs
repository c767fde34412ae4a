//! Nothing that is called for each request allocates.
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use maitred::estimate::{ObjectStats, Request, RetryAfterTracker, WatchTracker, WorkEstimator};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, so from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[test]
fn estimating_counting_and_refusing_do_not_allocate() {
    let request =
        Request { verb: "list", api_group: "g", resource: "r", subresource: "", namespace: "n", name: "" };
    let change = Request { verb: "update", name: "x", ..request };
    let watches = WatchTracker::new();
    let _guard = watches.register(&Request { verb: "watch", ..request }, b"");
    let refusals = RetryAfterTracker::new();
    refusals.record("level", 100);
    let estimator = WorkEstimator::default();
    let stats = ObjectStats::Known { count: 1000, average_bytes: 1000 };

    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1_u64)))), 1, "the counter counts");
    let counted = allocations(|| {
        let query = b"l%69mit=%35%30&fieldSelector=a%3Db&resourceVersion=7&timeoutSeconds=30";
        assert_eq!(estimator.estimate(Some(&request), query, Some(8), |_| stats, |_| 0).initial_seats, 5);
        estimator.estimate(Some(&change), b"", None, |_| stats, |request| watches.count(request));
        for second in 100..200 {
            refusals.record("level", second);
            refusals.seconds("level");
        }
    });
    assert_eq!(counted, 0);
}
