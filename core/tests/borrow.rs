//! Limits of priority levels: bounds, demand, division; and the two rows of the table of differences that are
//! decided here. (The recorded answers of the reference are run by the conformance runner.)
#![cfg(not(loom))]

use maitred::api::v1;
use maitred::borrow::{
    Adjustment, AllocationError, CATCH_ALL, Claim, EXEMPT, Integrator, LevelSpec, Limits, Part, PeriodDemand,
    Refusal, SeatDemandStats, allocate, divide,
};
use maitred::fidelity::Fidelity::{self, Corrected, Kubernetes};
use maitred::shuffle::DeckError;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

/// A limited level that lends nothing and borrows without limit.
fn level(name: &str, shares: u32) -> LevelSpec {
    LevelSpec {
        name: name.into(),
        exempt: false,
        shares,
        lendable_percent: 0,
        borrowing_limit_percent: None,
        queuing: None,
    }
}

fn lending(name: &str, shares: u32, percent: u32) -> LevelSpec {
    LevelSpec { lendable_percent: percent, ..level(name, shares) }
}

fn exempt(shares: u32) -> LevelSpec {
    LevelSpec { exempt: true, ..level(EXEMPT, shares) }
}

fn catch_all(shares: u32) -> LevelSpec {
    level(CATCH_ALL, shares)
}

/// A period in which the level `name` had `seats` throughout, and all others none.
fn demand(name: &str, seats: u32) -> impl FnMut(&str) -> PeriodDemand {
    move |level| {
        let seats = if level == name { f64::from(seats) } else { 0.0 };
        PeriodDemand { seconds: 10.0, average: seats, deviation: 0.0, min: seats, max: seats }
    }
}

fn nothing(_: &str) -> PeriodDemand {
    PeriodDemand::empty(0.0)
}

fn currents(limits: &Limits) -> Vec<(&str, u64)> {
    limits.levels().map(|level| (&*level.spec.name, level.current)).collect()
}

fn at_rest(fidelity: Fidelity, server_limit: u32, specs: &[LevelSpec]) -> (Limits, Adjustment) {
    let (limits, _, adjustment) = Limits::at_rest(fidelity, server_limit, specs);
    (limits, adjustment)
}

// Bounds.

#[test]
fn a_nominal_limit_is_the_levels_part_of_all_shares_rounded_up() {
    let (limits, _) = at_rest(Corrected, 100, &[exempt(1), catch_all(1), level("a", 1)]);
    let nominal: Vec<u64> = limits.levels().map(|level| level.nominal).collect();
    assert_eq!(nominal, [34, 34, 34]);
    assert_eq!(limits.nominal_sum(), 102);
    assert_eq!(limits.level("a").unwrap().exact.nominal, 100.0 / 3.0);
}

#[test]
fn lendable_and_borrowable_seats_are_rounded_to_the_nearest_halves_up() {
    let specs = [catch_all(0), LevelSpec { borrowing_limit_percent: Some(250), ..lending("a", 1, 30) }];
    let (limits, _) = at_rest(Corrected, 5, &specs);
    let a = limits.level("a").unwrap();
    assert_eq!((a.nominal, a.exact.lendable, a.exact.borrowing), (5, 1.5, 12.5));
    assert_eq!((a.min, a.max), (3, 18));
}

#[test]
fn a_level_without_a_borrowing_limit_may_borrow_the_servers_limit() {
    let (limits, _) = at_rest(Corrected, 100, &[catch_all(1), level("a", 1)]);
    assert_eq!(limits.level("a").unwrap().max, 150);
}

#[test]
fn a_new_level_starts_half_way_between_nominal_and_min() {
    let mut limits = Limits::new(Corrected);
    limits.digest(100, &[catch_all(0), lending("a", 1, 51)], |_| false);
    assert_eq!(limits.level("a").unwrap().current, 75);
}

#[test]
fn without_any_shares_nobody_has_seats() {
    for fidelity in [Corrected, Kubernetes] {
        let (limits, adjustment) = at_rest(fidelity, 100, &[catch_all(0), level("a", 0)]);
        assert_eq!(currents(&limits), [("a", 0), (CATCH_ALL, 0), (EXEMPT, 0)]);
        assert_eq!(adjustment.over_committed, 0);
    }
}

#[test]
fn most_seats_of_an_estimate_are_a_part_of_nominal_and_a_card_of_the_hand_but_at_least_one() {
    let max_seats = |server_limit, hand_size| {
        let specs = [catch_all(0), LevelSpec { queuing: Some((64, hand_size)), ..level("a", 1) }];
        at_rest(Corrected, server_limit, &specs).0.level("a").unwrap().max_seats
    };
    assert_eq!(max_seats(100, 2), Some(15));
    assert_eq!(max_seats(100, 10), Some(10));
    assert_eq!(max_seats(5, 8), Some(1));
}

#[test]
fn a_level_that_ceases_to_queue_keeps_its_last_most_seats() {
    let queuing = LevelSpec { queuing: Some((64, 2)), ..level("a", 1) };
    let (mut limits, _) = at_rest(Corrected, 100, &[catch_all(0), queuing]);
    limits.digest(50, &[catch_all(0), level("a", 1)], |_| false);
    assert_eq!(limits.level("a").unwrap().max_seats, Some(15));
}

#[test]
fn changing_the_servers_limit_changes_the_bounds_of_all() {
    let (mut limits, _) = at_rest(Corrected, 100, &[catch_all(1), level("a", 1)]);
    limits.set_server_limit(10);
    limits.adjust(nothing);
    assert_eq!(currents(&limits), [("a", 5), (CATCH_ALL, 5), (EXEMPT, 0)]);
    assert_eq!(limits.level("a").unwrap().max, 15);
}

#[test]
fn numbers_at_their_limits_are_carried_through() {
    let specs = [LevelSpec { borrowing_limit_percent: Some(i32::MAX as u32), ..level("a", i32::MAX as u32) }];
    for fidelity in [Corrected, Kubernetes] {
        let (limits, adjustment) = at_rest(fidelity, u32::MAX, &specs);
        let a = limits.level("a").unwrap();
        assert!(a.nominal <= u64::from(u32::MAX) && a.max > a.nominal && a.current <= a.max, "{a:?}");
        assert_eq!(adjustment.fault, None);
    }
}

// Which levels there are.

#[test]
fn mandatory_levels_are_made_without_objects() {
    let (limits, _) = at_rest(Corrected, 100, &[]);
    assert_eq!(currents(&limits), [(CATCH_ALL, 100), (EXEMPT, 0)]);
    assert_eq!(limits.level(CATCH_ALL).unwrap().spec, level(CATCH_ALL, 5));
}

#[test]
fn a_mandatory_level_whose_object_goes_keeps_the_specification_that_it_had() {
    let (mut limits, _) = at_rest(Corrected, 100, &[catch_all(7), exempt(3)]);
    let digest = limits.digest(100, &[], |_| false);
    assert_eq!((digest.added, digest.removed, digest.draining), (vec![], vec![], vec![]));
    assert_eq!(limits.level(CATCH_ALL).unwrap().spec, catch_all(7));
    assert_eq!(limits.level(EXEMPT).unwrap().spec, exempt(3));
}

#[test]
fn an_idle_level_goes_with_its_object_and_comes_back_as_new() {
    let specs = [catch_all(1), lending("a", 1, 100)];
    let (mut limits, _) = at_rest(Corrected, 100, &specs);
    limits.adjust(demand("a", 80));
    assert_eq!(&*limits.digest(100, &specs[..1], |_| false).removed, ["a".into()]);
    assert!(limits.level("a").is_none());
    assert_eq!(&*limits.digest(100, &specs, |_| false).added, ["a".into()]);
    let a = limits.level("a").unwrap();
    assert_eq!((a.demand, a.current), (SeatDemandStats::default(), 25));
}

#[test]
fn a_busy_level_keeps_its_share_without_its_object_until_it_is_idle() {
    let specs = [catch_all(1), level("a", 1)];
    let (mut limits, _) = at_rest(Corrected, 100, &specs);
    let digest = limits.digest(100, &specs[..1], |name| name == "a");
    assert_eq!((&*digest.draining, &*digest.removed), (&["a".into()][..], &[][..]));
    limits.adjust(demand("a", 3));
    assert_eq!(currents(&limits), [("a", 50), (CATCH_ALL, 50), (EXEMPT, 0)]);
    assert!(limits.level("a").unwrap().draining);

    limits.digest(100, &specs[..1], |_| false);
    limits.adjust(nothing);
    assert_eq!(currents(&limits), [(CATCH_ALL, 100), (EXEMPT, 0)]);
}

#[test]
fn a_draining_level_that_is_wanted_again_lives_on() {
    let specs = [catch_all(1), level("a", 1)];
    let (mut limits, _) = at_rest(Corrected, 100, &specs);
    limits.digest(100, &specs[..1], |_| true);
    limits.adjust(demand("a", 3));
    let digest = limits.digest(100, &specs, |_| true);
    assert_eq!((digest.added, digest.draining), (vec![], vec![]));
    let a = limits.level("a").unwrap();
    assert_eq!((a.draining, a.demand.high_watermark), (false, 3));
}

#[test]
fn a_level_whose_hands_cannot_be_dealt_is_treated_as_absent() {
    let broken = LevelSpec { queuing: Some((4, 5)), ..level("a", 1) };
    let (mut limits, digest, _) = Limits::at_rest(Corrected, 100, &[catch_all(1), broken.clone()]);
    assert_eq!(&*digest.refused, [("a".into(), Refusal::Deck(DeckError::HandOverDeck))]);
    assert_eq!(currents(&limits), [(CATCH_ALL, 100), (EXEMPT, 0)]);

    limits.digest(100, &[catch_all(1), level("a", 1)], |_| false);
    assert_eq!(&*limits.digest(100, &[catch_all(1), broken], |_| false).removed, ["a".into()]);
}

#[test]
fn only_the_level_named_exempt_is_exempt() {
    let specs = [level(EXEMPT, 1), LevelSpec { exempt: true, ..level("a", 1) }, catch_all(1)];
    let (limits, digest, _) = Limits::at_rest(Corrected, 100, &specs);
    let refused = |name: &str| (name.into(), Refusal::ExemptByNameOnly);
    assert_eq!(&*digest.refused, [refused(EXEMPT), refused("a")]);
    assert!(limits.level(EXEMPT).unwrap().spec.exempt);
}

fn object(spec: serde_json::Value) -> v1::PriorityLevelConfiguration {
    let object = serde_json::json!({"metadata": {"name": "a"}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

#[test]
fn an_object_tells_what_bears_on_limits() {
    let queuing = serde_json::json!({"queues": 64, "handSize": 6, "queueLengthLimit": 50});
    let spec = serde_json::json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 7, "lendablePercent": 40, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing}}});
    let expected =
        LevelSpec { borrowing_limit_percent: Some(0), queuing: Some((64, 6)), ..lending("a", 7, 40) };
    assert_eq!(LevelSpec::from_object(&object(spec)), Ok(expected));

    let spec = serde_json::json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 2}});
    assert_eq!(LevelSpec::from_object(&object(spec)), Ok(LevelSpec { exempt: true, ..level("a", 2) }));
}

#[test]
fn absent_shares_have_their_defaults() {
    let spec = serde_json::json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}});
    assert_eq!(LevelSpec::from_object(&object(spec)), Ok(level("a", 30)));
    let spec = serde_json::json!({"type": "Exempt", "exempt": {}});
    assert_eq!(LevelSpec::from_object(&object(spec)).unwrap().shares, 0);
}

#[test]
fn an_object_whose_type_and_fields_disagree_is_refused() {
    let response = serde_json::json!({"type": "Queue"});
    for spec in [
        serde_json::json!({"type": "Limited"}),
        serde_json::json!({"type": "Exempt"}),
        serde_json::json!({"type": "Exempt", "limited": {"limitResponse": {"type": "Reject"}}}),
        serde_json::json!({"type": "Limited", "limited": {"limitResponse": response}}),
    ] {
        assert_eq!(LevelSpec::from_object(&object(spec)), Err(Refusal::BrokenUnion));
    }
}

// Demand and borrowing.

#[test]
fn idle_levels_divide_what_there_is_in_proportion_to_what_they_keep() {
    let (limits, adjustment) = at_rest(Corrected, 100, &[catch_all(1), lending("a", 3, 60)]);
    // a keeps 30 of 75, catch-all 25 of 25.
    assert_eq!(currents(&limits), [("a", 55), (CATCH_ALL, 45), (EXEMPT, 0)]);
    assert!((adjustment.fair_fraction - 100.0 / 55.0).abs() < 1e-12);
}

#[test]
fn a_level_borrows_what_idle_ones_may_lend_and_returns_it() {
    let specs = [catch_all(1), lending("a", 3, 60)];
    let (mut limits, _) = at_rest(Corrected, 100, &specs);
    limits.adjust(demand(CATCH_ALL, 1000));
    assert_eq!(currents(&limits), [("a", 30), (CATCH_ALL, 70), (EXEMPT, 0)]);
    limits.adjust(demand("a", 75));
    assert_eq!(currents(&limits), [("a", 75), (CATCH_ALL, 25), (EXEMPT, 0)]);
}

#[test]
fn smoothed_demand_rises_at_once_and_falls_slowly() {
    let mut stats = SeatDemandStats::default();
    let period = |average, deviation, max| PeriodDemand { seconds: 10.0, average, deviation, min: 0.0, max };
    stats.update(&period(10.0, 5.0, 20.4));
    assert_eq!((stats.high_watermark, stats.smoothed), (20, 15.0));
    stats.update(&period(0.0, f64::NAN, 0.5));
    assert_eq!((stats.high_watermark, stats.deviation, stats.smoothed), (1, 0.0, 0.977 * 15.0));
}

#[test]
fn a_period_of_no_length_moves_the_high_watermark_only() {
    let mut stats = SeatDemandStats { high_watermark: 9, average: 1.0, deviation: 2.0, smoothed: 3.0 };
    stats.update(&PeriodDemand::empty(4.0));
    assert_eq!(stats, SeatDemandStats { high_watermark: 4, average: 1.0, deviation: 2.0, smoothed: 3.0 });
}

#[test]
fn an_integrator_weighs_by_time() {
    let mut integrator = Integrator::new(5 * SECOND);
    integrator.set(6 * SECOND, 8.0);
    integrator.add(9 * SECOND, -8.0);
    let results = integrator.reset(9 * SECOND);
    assert_eq!((results.seconds, results.average, results.min, results.max), (4.0, 6.0, 0.0, 8.0));
    assert_eq!(results.deviation, 12_f64.sqrt());
    let results = integrator.results(9 * SECOND);
    assert!(results.average.is_nan() && results.deviation.is_nan());
    assert_eq!((results.min, results.max), (0.0, 0.0));
}

#[test]
fn a_clock_that_steps_back_stands_still() {
    let mut integrator = Integrator::new(10);
    integrator.set(20, 1.0);
    integrator.set(5, 2.0);
    assert_eq!(integrator.results(20), {
        let mut other = Integrator::new(10);
        other.set(20, 1.0);
        other.set(20, 2.0);
        other.results(20)
    });
}

#[test]
fn bounds_that_tie_are_visited_in_the_order_of_the_reference() {
    // Here the targets of tied bounds cancel to a millionth of their size; the exact answer is not the recorded one.
    let parts = [
        (0.0, 10218.0, 0.0),
        (0.0, 37779.0, 5582.0),
        (0.0, 10218.0, 0.0),
        (0.0, 10218.0, 0.0),
        (0.0, 37779.0, 5582.0),
        (0.0, 23104.0, 1384.6584100470075),
        (0.0, 13299.0, 24700.866213482357),
        (29182.0, 78999.0, 29182.0),
    ]
    .map(|(lower, upper, target)| Part { lower, upper, target });
    assert_eq!(allocate(203_588, &parts).unwrap().proportion, 4_209_333.359593369);
}

// The table of differences.

#[test]
fn a_level_with_shares_may_round_to_no_seats_or_keeps_one() {
    let specs = [catch_all(10), lending("a", 1, 100)];
    let (reference, adjustment) = at_rest(Kubernetes, 20, &specs);
    assert_eq!(currents(&reference), [("a", 0), (CATCH_ALL, 21), (EXEMPT, 0)]);
    assert_eq!((adjustment.raised, adjustment.over_committed), (vec![], 0));

    let (corrected, adjustment) = at_rest(Corrected, 20, &specs);
    assert_eq!(
        currents(&corrected),
        [("a", 1), (CATCH_ALL, 20), (EXEMPT, 0)],
        "the seat comes from the other"
    );
    assert_eq!((&*adjustment.raised, adjustment.over_committed), (&["a".into()][..], 0));
}

#[test]
fn at_a_tiny_server_limit_the_kept_seats_pass_the_sum_by_one_a_level_and_that_is_said() {
    let specs = [catch_all(1), lending("a", 1, 100), lending("b", 1, 100)];
    let busy = |fidelity| {
        let (mut limits, _) = at_rest(fidelity, 1, &specs);
        // Two exempt requests hold more than catch-all leaves.
        let adjustment = limits.adjust(demand(EXEMPT, 2));
        let seats: u64 = limits.levels().map(|level| level.current).sum();
        (seats, limits.nominal_sum(), adjustment)
    };
    let (seats, nominal, adjustment) = busy(Kubernetes);
    assert_eq!((seats, nominal, adjustment.raised.len(), adjustment.over_committed), (3, 3, 0, 0));
    let (seats, nominal, adjustment) = busy(Corrected);
    assert_eq!((seats, nominal, adjustment.raised.len(), adjustment.over_committed), (5, 3, 2, 2));
}

#[test]
fn a_level_without_shares_keeps_no_seat() {
    let (limits, _) = at_rest(Corrected, 20, &[catch_all(1), level("jail", 0)]);
    assert_eq!(limits.level("jail").unwrap().current, 0);
}

#[test]
fn a_server_without_seats_has_none_to_keep() {
    let (limits, adjustment) = at_rest(Corrected, 0, &[catch_all(1), level("a", 1)]);
    assert_eq!(currents(&limits), [("a", 0), (CATCH_ALL, 0), (EXEMPT, 0)]);
    assert_eq!(adjustment.raised, []);
}

#[test]
fn while_exempt_requests_hold_seats_limits_are_over_committed_or_divide_what_is_left() {
    let specs = [catch_all(1), lending("a", 3, 60)];
    let busy = |fidelity| {
        let (mut limits, _) = at_rest(fidelity, 100, &specs);
        let adjustment = limits.adjust(demand(EXEMPT, 34));
        (currents(&limits).iter().map(|(_, seats)| seats).sum::<u64>(), adjustment.over_committed)
    };
    assert_eq!(busy(Kubernetes), (134, 34));
    assert_eq!(busy(Corrected), (100, 0));
}

#[test]
fn exempt_requests_never_take_what_others_may_not_lend() {
    for fidelity in [Corrected, Kubernetes] {
        let (mut limits, _) = at_rest(fidelity, 100, &[catch_all(1), lending("a", 3, 60)]);
        limits.adjust(demand(EXEMPT, 1000));
        assert_eq!(currents(&limits), [("a", 30), (CATCH_ALL, 25), (EXEMPT, 1000)]);
    }
}

#[test]
fn when_more_is_left_than_levels_may_hold_limits_stay_as_they_were_or_become_max() {
    // The exempt level's 50 seats are idle, and a may not borrow.
    let specs = [
        LevelSpec { lendable_percent: 100, ..exempt(1) },
        LevelSpec { borrowing_limit_percent: Some(0), ..lending("a", 1, 50) },
        LevelSpec { borrowing_limit_percent: Some(0), ..level(CATCH_ALL, 0) },
    ];
    let (reference, adjustment) = at_rest(Kubernetes, 100, &specs);
    assert_eq!(reference.level("a").unwrap().current, 38, "where a new level starts");
    assert_eq!(adjustment.fault, Some(AllocationError::UpperSumUnder(50.0)));
    let (corrected, adjustment) = at_rest(Corrected, 100, &specs);
    assert_eq!(corrected.level("a").unwrap().current, 50);
    assert_eq!(adjustment.fault, None);
}

// Properties.

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (0_u16..200, 0_u16..200, 0_u16..400).prop_map(|(lower, more, target)| Part {
        lower: f64::from(lower),
        upper: f64::from(lower) + f64::from(more),
        target: f64::from(lower) + f64::from(target) / 4.0,
    });
    proptest::collection::vec(part, 1..12)
}

fn claims() -> impl Strategy<Value = Vec<Claim>> {
    let claim = (0_u32..8, 0_u64..40, 0_u64..=100, 0_u64..80, 0_u64..120, 0_u16..400).prop_map(
        |(kind, nominal, lendable, borrowing, high_watermark, smoothed)| Claim {
            exempt: kind == 0,
            has_shares: nominal > 0,
            nominal,
            min: nominal - nominal * lendable / 100,
            max: nominal + borrowing,
            current: nominal,
            high_watermark,
            smoothed: f64::from(smoothed) / 4.0,
        },
    );
    proptest::collection::vec(claim, 1..10)
}

proptest! {
    #[test]
    fn parts_add_up_lie_in_their_bounds_and_are_in_proportion(parts in parts(), way in 0.0..=1.0_f64) {
        let (lower, upper): (f64, f64) = (parts.iter().map(|p| p.lower).sum(), parts.iter().map(|p| p.upper).sum());
        let sum = (lower + way * (upper - lower)).round() as i64;
        let allocation = allocate(sum, &parts).unwrap();
        let added: f64 = allocation.amounts.iter().sum();
        prop_assert!((added - sum as f64).abs() < 1e-6, "{added} for {sum}");
        for (part, &amount) in parts.iter().zip(&allocation.amounts) {
            prop_assert!(part.lower <= amount && amount <= part.upper);
            let due = allocation.proportion * part.target.max(0.001);
            let held = due.max(part.lower).min(part.upper);
            prop_assert!(sum == 0 || (amount - held).abs() < 1e-6, "{amount} where {held} is due");
        }
    }

    #[test]
    fn limits_stay_in_their_bounds(claims in claims()) {
        for fidelity in [Corrected, Kubernetes] {
            let division = divide(fidelity, &claims);
            for (claim, seats) in claims.iter().zip(&division.seats) {
                prop_assert!(claim.exempt || seats.current <= claim.max, "{claim:?} {seats:?}");
                let min = if division.fault.is_some() { 0 } else { claim.min };
                prop_assert!(seats.current >= min, "{claim:?} {seats:?}");
            }
        }
    }

    #[test]
    fn corrected_limits_pass_what_is_left_by_no_more_than_rounding_minimums_and_kept_seats(claims in claims()) {
        let division = divide(Corrected, &claims);
        prop_assert_eq!(division.fault, None);
        let sum = |exempt| -> i64 {
            let seats = claims.iter().zip(&division.seats).filter(|(claim, _)| claim.exempt == exempt);
            seats.map(|(_, seats)| seats.current as i64).sum()
        };
        let nominal: i64 = claims.iter().map(|claim| claim.nominal as i64).sum();
        let minimums: i64 = claims.iter().filter(|claim| !claim.exempt).map(|claim| claim.min as i64).sum();
        let limited = claims.iter().filter(|claim| !claim.exempt).count() as i64;
        let left = nominal - sum(true);
        prop_assert!(sum(false) <= left.max(minimums) + limited, "{} of {left}", sum(false));
        for (claim, seats) in claims.iter().zip(&division.seats) {
            prop_assert!(claim.exempt || !claim.has_shares || seats.current > 0, "{claim:?}");
        }
        let over = (sum(true) + sum(false) - nominal).max(0);
        prop_assert_eq!(division.over_committed as i64, over);
    }

    #[test]
    fn where_nobody_is_exempt_and_nobody_has_no_seat_both_fidelities_agree(claims in claims()) {
        let claims: Vec<Claim> = claims.into_iter().filter(|claim| !claim.exempt).collect();
        let reference = divide(Kubernetes, &claims);
        let kept = claims.iter().zip(&reference.seats).any(|(claim, seats)| claim.has_shares && seats.current == 0);
        prop_assume!(!kept && reference.fault.is_none());
        prop_assert_eq!(divide(Corrected, &claims), reference);
    }
}
