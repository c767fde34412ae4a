//! Numbers of the rules: work, its inverse, and the cards of a hand.

/// Service time that a request is charged for before the true one is known.
pub const ASSUMED_SERVICE_NS: i64 = 3_000_000;

/// Half of the meter. When the progress meter R reaches one and a half of these, all readings go back by one.
pub const EPOCH: u64 = u64::MAX / 2;

/// Seat-seconds, 1e-8 each, of `seats` held for `ns`: in doubles, in this order, halves away from zero.
///
/// `ns` may be negative; the result is then meant to be added with wrap-around.
pub fn work(seats: f64, ns: i64) -> u64 {
    (seats * ns as f64 / 10.0).round() as i64 as u64
}

/// How long `seats` can be held for this much work, cut to whole nanoseconds.
pub fn time_for(work: u64, seats: u32) -> u64 {
    (work as f64 / f64::from(seats) * 10.0) as u64
}

/// The hand that `hash` deals from a deck of `deck` cards, in the order of the deal.
///
/// The hash is read as digits of mixed radix `deck`, `deck - 1`, …. Digit i chooses among the cards that are still
/// there; raising it past every earlier digit that is not larger, last one first, turns the choice into a card.
pub fn deal(mut hash: u64, deck: u32, hand_size: u32) -> Vec<u32> {
    let mut digits = Vec::new();
    for dealt in 0..hand_size {
        let left = u64::from(deck - dealt);
        digits.push((hash % left) as u32);
        hash /= left;
    }
    let card = |i: usize| {
        digits[..i]
            .iter()
            .rev()
            .fold(digits[i], |card, &earlier| if card >= earlier { card + 1 } else { card })
    };
    (0..digits.len()).map(card).collect()
}
