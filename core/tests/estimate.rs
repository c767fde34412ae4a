//! Widths of requests, watches that hear of a change, Retry-After. (The recorded answers of the reference are run by
//! the conformance runner.)
#![cfg(not(loom))]

use std::thread;

use maitred::estimate::{
    ObjectStats, Request, RetryAfter, RetryAfterTracker, WatchTracker, WorkEstimate, WorkEstimator,
    selected_name,
};

const LIST: Request<'_> =
    Request { verb: "list", api_group: "", resource: "pods", subresource: "", namespace: "", name: "" };
const WATCH: Request<'_> = Request { verb: "watch", ..LIST };
const UPDATE: Request<'_> = Request { verb: "update", namespace: "n", name: "x", ..LIST };

/// Objects of 100 kB: one seat each.
const fn objects(count: u64) -> ObjectStats {
    ObjectStats::Known { count, average_bytes: 100_000 }
}

fn list(request: Request<'_>, query: &str, stats: ObjectStats) -> u32 {
    let unasked = |_: &Request<'_>| panic!("a list asks for no watches");
    let estimate =
        WorkEstimator::default().estimate(Some(&request), query.as_bytes(), None, |_| stats, unasked);
    assert_eq!((estimate.final_seats, estimate.additional_latency), (0, 0));
    estimate.initial_seats
}

fn change(watches: u64, max_seats: Option<u64>) -> WorkEstimate {
    let unasked = |_: &Request<'_>| panic!("a change asks for no objects");
    WorkEstimator::default().estimate(Some(&UPDATE), b"", max_seats, unasked, |_| watches)
}

// Lists.

#[test]
fn a_list_from_the_store_takes_a_seat_for_each_100_kilobytes_that_it_loads() {
    assert_eq!(list(LIST, "resourceVersionMatch=Exact&resourceVersion=5", objects(40)), 40);
    assert_eq!(list(LIST, "resourceVersionMatch=Exact&resourceVersion=5&limit=7", objects(40)), 7);
    assert_eq!(list(LIST, "continue=token", objects(40)), 40);
    assert_eq!(list(LIST, "limit=20&resourceVersion=5", objects(40)), 20);
}

#[test]
fn a_list_from_the_cache_never_holds_more_than_a_megabyte() {
    for query in ["", "resourceVersion=0", "resourceVersion=0&limit=20", "resourceVersion=9"] {
        assert_eq!(list(LIST, query, objects(40)), 10, "{query}");
    }
}

#[test]
fn a_selective_list_from_the_store_loads_half_of_all_at_least() {
    assert_eq!(list(LIST, "continue=t&limit=7&labelSelector=a", objects(40)), 20);
    assert_eq!(list(LIST, "continue=t&limit=30&fieldSelector=a", objects(40)), 30);
    assert_eq!(list(LIST, "continue=t&limit=7&fieldSelector=", objects(40)), 7);
}

#[test]
fn a_list_of_a_single_object_is_narrow() {
    let single = Request { name: "x", ..LIST };
    assert_eq!(list(single, "continue=t", objects(40)), 1);
    assert_eq!(list(single, "continue=t", ObjectStats::Known { count: 0, average_bytes: 300_000 }), 3);
    assert_eq!(list(single, "continue=t", ObjectStats::Known { count: 0, average_bytes: 0 }), 1);
    assert_eq!(list(single, "continue=t", ObjectStats::Known { count: 9, average_bytes: 0 }), 15);
}

#[test]
fn what_is_not_known_is_taken_for_the_worst_but_another_servers_objects_for_the_least() {
    assert_eq!(list(LIST, "continue=t", ObjectStats::Stale), 100);
    assert_eq!(list(LIST, "continue=t", ObjectStats::Failed), 100);
    assert_eq!(list(LIST, "continue=t", ObjectStats::NotFound), 1);
    assert_eq!(list(LIST, "continue=t", ObjectStats::Known { count: 2, average_bytes: 0 }), 30);
    assert_eq!(
        list(LIST, "continue=t", ObjectStats::Known { count: u64::MAX, average_bytes: u64::MAX }),
        100
    );
}

#[test]
fn a_query_with_a_number_that_is_none_gets_the_most_seats() {
    for query in
        ["limit=", "limit=x", "limit=1.5", "limit=-", "limit=9223372036854775808", "timeoutSeconds=1s"]
    {
        assert_eq!(list(LIST, query, objects(1)), 100, "{query}");
    }
    for query in ["limit=%2B1", "limit=-9223372036854775808", "limit=0009", "other=x"] {
        assert_eq!(list(LIST, query, objects(1)), 1, "{query}");
    }
}

#[test]
fn a_query_is_read_in_the_form_encoding() {
    assert_eq!(list(LIST, "contin%75e=%74&l%69mit=%37", objects(40)), 7);
    assert_eq!(list(LIST, "&&continue=t&&limit=7&", objects(40)), 7);
    assert_eq!(list(LIST, "continue=t&limit=7&limit=9", objects(40)), 7, "the first of two counts");
    assert_eq!(list(LIST, "continue=t&limit=+7", objects(40)), 100, "a plus is a space");
    assert_eq!(list(LIST, "continue=t&limit=%2B7", objects(40)), 7);
    for broken in ["limit=%", "limit=%4", "limit=%zz", "%=", "limit=1;limit=2", "limit"] {
        let passed_over = !broken.eq("limit");
        let seats = list(LIST, &format!("continue=t&{broken}&limit=7"), objects(40));
        assert_eq!(seats, if passed_over { 7 } else { 100 }, "{broken}");
    }
}

#[test]
fn only_a_watch_that_begins_with_what_there_is_costs_what_a_list_costs() {
    for query in ["", "resourceVersion=0", "resourceVersion=5&sendInitialEvents=true", "sendInitialEvents="] {
        assert_eq!(list(WATCH, query, objects(5)), 5, "{query}");
    }
    for flag in ["false", "0", "FALSE"] {
        let query = format!("resourceVersion=5&sendInitialEvents={flag}");
        assert_eq!(list(WATCH, &query, objects(5)), 1, "{query}");
    }
    assert_eq!(list(WATCH, "resourceVersion=5", objects(5)), 1);
    assert_eq!(list(WATCH, "continue=t", objects(40)), 10, "a watch is never served from the store");
}

#[test]
fn the_level_and_the_configuration_both_bound_the_seats() {
    let estimate = |max_seats| {
        let query = b"continue=t";
        WorkEstimator::default()
            .estimate(Some(&LIST), query, max_seats, |_| objects(400), |_| 0)
            .initial_seats
    };
    assert_eq!(estimate(None), 100);
    assert_eq!(estimate(Some(3)), 3);
    assert_eq!(estimate(Some(u64::MAX)), 100);
}

#[test]
fn by_count_a_seat_stands_for_a_hundred_objects_handled() {
    let seats = |query: &[u8]| {
        WorkEstimator::by_count().estimate(Some(&LIST), query, None, |_| objects(450), |_| 0).initial_seats
    };
    assert_eq!(seats(b""), 5);
    assert_eq!(seats(b"continue=t"), 9);
    assert_eq!(seats(b"continue=t&limit=100"), 2);
    assert_eq!(seats(b"continue=t&limit=100&labelSelector=a"), 6);
}

#[test]
fn a_request_of_which_nothing_is_known_gets_the_most_seats() {
    let estimate = |max| WorkEstimator::default().estimate(None, b"", max, |_| objects(1), |_| 0);
    assert_eq!(estimate(None), WorkEstimate { initial_seats: 100, ..WorkEstimate::default() });
    assert_eq!(estimate(Some(4)).initial_seats, 4);
}

#[test]
fn any_other_request_takes_one_seat_and_asks_for_nothing() {
    for verb in ["get", "deletecollection", "proxy", "post", ""] {
        let request = Request { verb, ..LIST };
        let unasked = |_: &Request<'_>| panic!("{verb} asks");
        let estimate = WorkEstimator::default()
            .estimate(Some(&request), b"limit=x", None, unasked, |_| panic!("{verb} asks"));
        assert_eq!(estimate, WorkEstimate { initial_seats: 1, ..WorkEstimate::default() });
    }
}

// Changes.

#[test]
fn a_change_takes_a_seat_for_each_ten_watches_after_its_end() {
    let after =
        |final_seats, additional_latency| WorkEstimate { initial_seats: 1, final_seats, additional_latency };
    assert_eq!(change(9, None), after(0, 0));
    assert_eq!(change(10, None), after(1, 5_000_000));
    assert_eq!(change(11, None), after(2, 5_000_000));
}

#[test]
fn the_same_work_on_fewer_seats_takes_longer() {
    let wide = change(1000, Some(4));
    assert_eq!((wide.final_seats, wide.additional_latency), (4, 100 * 5_000_000 / 4));
    assert_eq!(change(1000, None).final_seats, 10);
}

#[test]
fn making_a_service_account_token_changes_nothing() {
    let request = Request { resource: "serviceaccounts", subresource: "token", verb: "create", ..UPDATE };
    let estimate =
        WorkEstimator::default().estimate(Some(&request), b"", None, |_| objects(1), |_| panic!("asks"));
    assert_eq!(estimate, WorkEstimate { initial_seats: 1, ..WorkEstimate::default() });
}

// The name that a selector requires.

#[test]
fn a_selector_of_a_name_names_the_request() {
    assert_eq!(selected_name(b"fieldSelector=metadata.name%3Dx").as_deref(), Some("x"));
    assert_eq!(selected_name(b"limit=5&fieldSelector=a!=b,metadata.name==x+y").as_deref(), Some("x y"));
    for query in [
        "",
        "fieldSelector=metadata.name!=x",
        "fieldSelector=metadata.name=x,y",
        "fieldSelector=metadata.name%3D..",
        "fieldSelector=metadata.name%3Da/b",
        "fieldSelector=metadata.name%3Dx&limit=y",
    ] {
        assert_eq!(selected_name(query.as_bytes()), None, "{query}");
    }
}

// Watches.

#[test]
fn a_change_concerns_watches_for_all_for_its_namespace_and_for_its_object() {
    let tracker = WatchTracker::new();
    let configmaps = Request { resource: "configmaps", ..WATCH };
    let _guards: Vec<_> = [
        configmaps,
        Request { namespace: "n", ..configmaps },
        Request { namespace: "n", name: "x", ..configmaps },
        Request { namespace: "other", ..configmaps },
        Request { namespace: "n", name: "y", ..configmaps },
        Request { api_group: "g", ..configmaps },
        WATCH,
    ]
    .iter()
    .map(|request| tracker.register(request, b"").unwrap())
    .collect();
    let update = Request { resource: "configmaps", ..UPDATE };
    assert_eq!(tracker.count(&update), 3);
    assert_eq!(tracker.count(&Request { name: "", ..update }), 2);
    assert_eq!(tracker.count(&Request { verb: "get", ..update }), 0);
    assert_eq!(tracker.count(&Request { api_group: "none", ..update }), 0);
}

#[test]
fn a_watch_for_the_pods_of_one_node_is_not_counted() {
    let tracker = WatchTracker::new();
    let register = |query: &str| tracker.register(&WATCH, query.as_bytes()).unwrap();
    let _counted =
        ["", "fieldSelector=spec.nodeName=", "fieldSelector=spec.nodeName!=n1", "fieldSelector=%3D%5C"]
            .map(register);
    let _not_counted =
        ["fieldSelector=spec.nodeName%3Dn1", "fieldSelector=a=b,spec.nodeName==n1"].map(register);
    assert_eq!(tracker.count(&UPDATE), 4);
    let nodes = Request { resource: "nodes", ..WATCH };
    let _node = tracker.register(&nodes, b"fieldSelector=spec.nodeName%3Dn1").unwrap();
    assert_eq!(tracker.count(&Request { resource: "nodes", ..UPDATE }), 1);
}

#[test]
fn only_watches_are_registered() {
    assert!(WatchTracker::new().register(&LIST, b"").is_none());
}

#[test]
fn a_watch_counts_until_its_guard_is_dropped() {
    let tracker = WatchTracker::new();
    let first = tracker.register(&WATCH, b"").unwrap();
    let second = tracker.clone().register(&WATCH, b"").unwrap();
    assert_eq!(tracker.count(&UPDATE), 2);
    drop(first);
    assert_eq!(tracker.count(&UPDATE), 1);
    drop(second);
    assert_eq!(tracker.count(&UPDATE), 0);
}

#[test]
fn watches_come_and_go_from_many_threads() {
    let tracker = WatchTracker::new();
    let _lasting = tracker.register(&WATCH, b"").unwrap();
    thread::scope(|scope| {
        for namespace in ["a", "b", "n"] {
            let tracker = &tracker;
            scope.spawn(move || {
                for _ in 0..500 {
                    let guard = tracker.register(&Request { namespace, ..WATCH }, b"");
                    assert!(tracker.count(&Request { namespace, ..UPDATE }) == 2);
                    drop(guard);
                }
            });
        }
    });
    assert_eq!(tracker.count(&UPDATE), 1);
}

// Retry-After.

fn refuse(level: &RetryAfter, second: u64, times: u32) -> u64 {
    for _ in 0..times {
        level.record(second);
    }
    level.seconds()
}

#[test]
fn the_wait_doubles_after_three_refusals_for_each_of_its_seconds() {
    let level = RetryAfter::new();
    assert_eq!(refuse(&level, 100, 3), 1);
    assert_eq!(refuse(&level, 101, 1), 2, "the refusals of the seconds before count");
    assert_eq!(refuse(&level, 102, 50), 2, "not again before the wait has passed");
    assert_eq!(refuse(&level, 103, 50), 4);
}

#[test]
fn the_wait_shrinks_by_one_where_few_are_refused_and_stays_at_one() {
    let level = RetryAfter::new();
    refuse(&level, 100, 3);
    assert_eq!(refuse(&level, 101, 1), 2);
    assert_eq!(refuse(&level, 200, 1), 1);
    assert_eq!(refuse(&level, 300, 1), 1);
}

#[test]
fn the_wait_is_at_most_32_seconds() {
    let level = RetryAfter::new();
    assert_eq!((0..1000).map(|second| refuse(&level, second, 100)).max(), Some(32));
}

#[test]
fn a_clock_near_zero_delays_the_first_doubling() {
    let level = RetryAfter::new();
    assert_eq!((refuse(&level, 0, 100), refuse(&level, 1, 1)), (1, 2));
    let level = RetryAfter::new();
    assert_eq!(refuse(&level, u64::MAX, 1), 1);
}

#[test]
fn refusals_of_long_ago_are_forgotten() {
    let level = RetryAfter::new();
    for second in [100, 164] {
        refuse(&level, second, 2);
        assert_eq!(refuse(&level, second + 1, 1), 1, "{second}");
    }
}

#[test]
fn a_clock_that_steps_back_counts_as_the_latest_second() {
    let level = RetryAfter::new();
    refuse(&level, 100, 1);
    refuse(&level, 50, 2);
    assert_eq!(refuse(&level, 101, 1), 2);
}

#[test]
fn levels_are_apart_and_an_unknown_one_waits_a_second() {
    let tracker = RetryAfterTracker::new();
    refuse(&tracker.level("a"), 100, 3);
    tracker.record("a", 101);
    tracker.record("b", 101);
    assert_eq!(["a", "b", "c"].map(|name| tracker.seconds(name)), [2, 1, 1]);
}

#[test]
fn no_refusal_within_a_second_is_lost_between_threads() {
    for missing in [0, 1] {
        let level = RetryAfter::new();
        // The refusal that raised the wait to 16 seconds is the first of its second.
        let now = (1000..)
            .find(|&second| refuse(&level, second, 1) == 16 || refuse(&level, second, 99) == 16)
            .unwrap();
        let level = &level;
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || refuse(level, now, 11));
            }
        });
        // With these, three for each second of the wait, or one less.
        refuse(level, now, 3 - missing);
        assert_eq!(refuse(level, now + 16, 1), if missing == 0 { 32 } else { 16 });
    }
}
