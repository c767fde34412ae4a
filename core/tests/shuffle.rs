//! Dealing and its limits, against plain arithmetic and the published table.

#![cfg(not(loom))]

use maitred::shuffle::{Deck, DeckError, MAX_DECK_SIZE, MAX_HASH_BITS, entropy_bits};
use proptest::prelude::*;

/// The rule as the definition has it: digits by division, then each raised past the earlier ones, latest first.
fn dealt_by_division(deck_size: u64, hand_size: u64, mut hash: u64) -> Vec<u32> {
    let mut digits = Vec::new();
    for dealt in 0..hand_size {
        digits.push((hash % (deck_size - dealt)) as u32);
        hash /= deck_size - dealt;
    }
    let raise =
        |i: usize| (0..i).rev().fold(digits[i], |card, j| if card >= digits[j] { card + 1 } else { card });
    (0..digits.len()).map(raise).collect()
}

fn sizes() -> impl Strategy<Value = (u32, u32)> {
    let decks = prop_oneof![1..=64u32, 1..=MAX_DECK_SIZE, (0..=26u32).prop_map(|bits| 1 << bits)];
    (decks, 1..=15u32).prop_filter_map("more than 60 bits", |(deck, hand)| {
        let hand = hand.min(deck);
        Deck::new(deck, hand).is_ok().then_some((deck, hand))
    })
}

/// Any hash, but often one beside a multiple of what the first division divides by, where a reciprocal is weakest.
fn hashes() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<u64>().prop_map(|x| u64::MAX - (x >> 40)),
        (any::<u64>(), 0..27u32).prop_map(|(x, shift)| (x >> shift << shift).wrapping_sub(1)),
        Just(0),
        Just(u64::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn dealing_with_reciprocals_equals_dealing_with_divisions((deck_size, hand_size) in sizes(), hash in hashes()) {
        let deck = Deck::new(deck_size, hand_size).unwrap();
        let near = hash / u64::from(deck_size) * u64::from(deck_size);
        for hash in [hash, near, near.wrapping_sub(1), near.saturating_add(1)] {
            let hand = deck.deal(hash);
            let plain = dealt_by_division(deck_size.into(), hand_size.into(), hash);
            prop_assert_eq!(hand.cards(), &plain[..], "hash {}", hash);
            prop_assert_eq!((hand.deck_size(), hand.hand_size()), (deck_size, hand_size));
        }
    }

    #[test]
    fn the_cards_of_a_hand_are_different_queues_of_the_deck((deck_size, hand_size) in sizes(), hash in hashes()) {
        let hand = Deck::new(deck_size, hand_size).unwrap().deal(hash);
        let mut cards = hand.cards().to_vec();
        cards.sort_unstable();
        cards.dedup();
        prop_assert_eq!(cards.len() as u32, hand_size);
        prop_assert!(cards.iter().all(|&card| card < deck_size));
    }
}

#[test]
fn every_divisor_is_exact_at_the_ends_of_the_hash_range() {
    for deck_size in
        (1..=4096u32).chain((0..=26).flat_map(|bits| [(1 << bits) - 1, 1 << bits])).filter(|&n| n > 0)
    {
        let deck = Deck::new(deck_size, 1).unwrap();
        for hash in (0..64).chain((0..64).map(|back| u64::MAX - back)) {
            assert_eq!(
                deck.deal(hash).cards(),
                [(hash % u64::from(deck_size)) as u32],
                "{hash} % {deck_size}"
            );
        }
    }
}

#[test]
fn the_first_reason_that_applies_is_given() {
    assert_eq!(Deck::new(0, 1), Err(DeckError::NotPositive));
    assert_eq!(Deck::new(-1, -5), Err(DeckError::NotPositive));
    assert_eq!(Deck::new(3, 4), Err(DeckError::HandOverDeck));
    assert_eq!(Deck::new(MAX_DECK_SIZE + 1, 1), Err(DeckError::DeckTooLarge));
    assert_eq!(Deck::new(i64::MAX, 5), Err(DeckError::DeckTooLarge));
    assert_eq!(Deck::new(64, 11), Err(DeckError::TooManyBits(66)));
    assert!(Deck::new(MAX_DECK_SIZE, 2).is_ok());
    assert!(Deck::new(64, 10).is_ok());
}

#[test]
fn the_entropy_estimate_is_exact_where_it_decides() {
    // Hands of one and two pass the largest deck before they pass the bits.
    for hand_size in 3..=15u32 {
        // The deck sizes around 2^(60 / hand size) are those that a rounding error could misjudge.
        let edge = 2f64.powf(f64::from(MAX_HASH_BITS) / f64::from(hand_size)) as u64;
        for deck_size in edge.saturating_sub(2).max(2)..=edge + 2 {
            let fits = u128::from(deck_size).pow(hand_size) <= 1 << MAX_HASH_BITS;
            let bits = entropy_bits(deck_size as i64, hand_size.into()).unwrap();
            assert_eq!(bits <= MAX_HASH_BITS, fits, "{deck_size}^{hand_size}");
        }
    }
}

/// Hand size, queues, and the chance with 1, 4 and 16 elephants, as the Kubernetes documentation tabulates them.
const PUBLISHED: [(u32, u32, [f64; 3]); 11] = [
    (12, 32, [4.428838398950118e-09, 0.11431348830099144, 0.9935089607656024]),
    (10, 32, [1.550093439632541e-08, 0.0626479840223545, 0.9753101519027554]),
    (10, 64, [6.601827268370426e-12, 0.00045571320990370776, 0.49999929150089345]),
    (9, 64, [3.6310049976037345e-11, 0.00045501212304112273, 0.4282314876454858]),
    (8, 64, [2.25929199850899e-10, 0.0004886697053040446, 0.35935114681123076]),
    (8, 128, [6.994461389026097e-13, 3.4055790161620863e-06, 0.02746173137155063]),
    (7, 128, [1.0579122850901972e-11, 6.960839379258192e-06, 0.02406157386340147]),
    (7, 256, [7.597695465552631e-14, 6.728547142019406e-08, 0.0006709661542533682]),
    (6, 256, [2.7134626662687968e-12, 2.9516464018476436e-07, 0.0008895654642000348]),
    (6, 512, [4.116062922897309e-14, 4.982983350480894e-09, 2.26025764343413e-05]),
    (6, 1024, [6.337324016514285e-16, 8.09060164312957e-11, 4.517408062903668e-07]),
];

#[test]
fn chances_equal_the_published_table() {
    for (hand_size, queues, chances) in PUBLISHED {
        let deck = Deck::new(queues, hand_size).unwrap();
        for (elephants, published) in [1, 4, 16].into_iter().zip(chances) {
            let ours = deck.chance_all_shared(elephants);
            let difference = (ours / published - 1.0).abs();
            assert!(
                difference < 1e-12,
                "{hand_size} of {queues}, {elephants} elephants: {ours} / {published}"
            );
        }
    }
}

#[test]
fn chances_at_the_edges() {
    let one = Deck::new(1, 1).unwrap();
    assert_eq!((one.chance_all_shared(0), one.chance_all_shared(1)), (0.0, 1.0));
    let all = Deck::new(10, 10).unwrap();
    assert_eq!(all.chance_all_shared(1), 1.0);
    let single = Deck::new(4, 1).unwrap();
    assert!((single.chance_all_shared(2) - (1.0 - 0.75f64.powi(2))).abs() < 1e-15);
    let large = Deck::new(10_000_000, 2).unwrap();
    assert!(large.chance_all_shared(16) > 0.0);
}

#[test]
fn chances_equal_counting_every_combination_of_small_hands() {
    // 2 of 5: enumerate the 10 hands of two elephants and a mouse as bit masks.
    let hands: Vec<u8> = (0u8..32).filter(|mask| mask.count_ones() == 2).collect();
    let mut shared = 0;
    for a in &hands {
        for b in &hands {
            shared += hands.iter().filter(|&&mouse| mouse & !(a | b) == 0).count();
        }
    }
    let counted = shared as f64 / 1000.0;
    assert!((Deck::new(5, 2).unwrap().chance_all_shared(2) - counted).abs() < 1e-15);
}
