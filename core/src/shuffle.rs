//! Shuffle sharding: the deck of a level's queues, and the hands that flows are dealt from it.
//!
//! A flow may use only the few queues of its hand, so a heavy flow fills its own hand and leaves most other flows
//! with a queue that it does not reach. How likely it is that a light flow is left with none is computed here, too.
//!
//! Everything is a pure function of its arguments. Source of the rules: `vectors/dealer.jsonl`; of the probabilities:
//! the table of shuffle-sharding configurations in the Kubernetes documentation of API Priority and Fairness.

use std::{fmt, num::NonZeroU32};

/// Largest deck that can be dealt from. (The validation of the API is tighter: 10 000 000 queues.)
pub const MAX_DECK_SIZE: u32 = 1 << 26;

/// Bits of a hash value that dealing may use up; more, and the last cards would no longer be close to uniform.
pub const MAX_HASH_BITS: u32 = 60;

/// Largest hand: a hand of 16 needs a deck of at least 16 cards, hence 64 bits, which is above [`MAX_HASH_BITS`].
pub const MAX_HAND_SIZE: usize = 15;

/// Why a deck cannot be made. Where several reasons apply, the first in this order is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeckError {
    /// Deck size or hand size is below one.
    NotPositive,
    /// The hand is larger than the deck.
    HandOverDeck,
    /// The deck is larger than [`MAX_DECK_SIZE`].
    DeckTooLarge,
    /// Dealing would need this many bits of the hash, more than [`MAX_HASH_BITS`].
    TooManyBits(u32),
}

impl fmt::Display for DeckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeckError::NotPositive => write!(f, "deck size and hand size must be positive"),
            DeckError::HandOverDeck => write!(f, "hand size must not be larger than deck size"),
            DeckError::DeckTooLarge => write!(f, "deck size must not be larger than {MAX_DECK_SIZE}"),
            DeckError::TooManyBits(bits) => write!(
                f,
                "dealing needs {bits} bits of the hash, {MAX_HASH_BITS} are allowed: use a smaller hand or deck"
            ),
        }
    }
}

impl std::error::Error for DeckError {}

/// Bits of the hash that dealing `hand_size` cards from `deck_size` uses up: ceil(log2(deck size) · hand size).
/// `None` when a size is not positive.
pub fn entropy_bits(deck_size: i64, hand_size: i64) -> Option<u32> {
    // A double holds every size that the API can express; the cast saturates above that.
    (deck_size > 0 && hand_size > 0).then(|| ((deck_size as f64).log2() * hand_size as f64).ceil() as u32)
}

/// Deck size − 1 (26 bits) above hand size (4 bits, never 0): both in one word, so that a hand is 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes(NonZeroU32);

impl Sizes {
    const HAND_BITS: u32 = 4;

    /// Both at least 1 and in range, as [`Deck::new`] has checked.
    fn new(deck: u32, hand: u32) -> Sizes {
        Sizes(NonZeroU32::new((deck - 1) << Sizes::HAND_BITS | hand).expect("a hand has a card"))
    }

    fn deck(self) -> u32 {
        (self.0.get() >> Sizes::HAND_BITS) + 1
    }

    fn hand(self) -> u32 {
        self.0.get() & ((1 << Sizes::HAND_BITS) - 1)
    }
}

/// The queues of a level as a deck of cards, ready to deal hands of one size without dividing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deck {
    sizes: Sizes,
    /// floor((2^64 − 1) / n) for n = deck size, deck size − 1, … down to the last card of a hand.
    reciprocals: [u64; MAX_HAND_SIZE],
}

/// (value / divisor, value % divisor), for every `value`, by the divisor's reciprocal, floor((2^64 − 1) / divisor).
#[inline]
fn div_rem(value: u64, divisor: u32, reciprocal: u64) -> (u64, u64) {
    // 2^64 = reciprocal · divisor + e with 1 <= e <= divisor, so value · reciprocal / 2^64 falls short of
    // value / divisor by value · e / (divisor · 2^64) < 1: its floor is the quotient or one less.
    let quotient = ((u128::from(value) * u128::from(reciprocal)) >> 64) as u64;
    let divisor = u64::from(divisor);
    let remainder = value - quotient * divisor;
    let short = remainder >= divisor;
    (quotient + u64::from(short), if short { remainder - divisor } else { remainder })
}

impl Deck {
    /// A deck of `deck_size` queues from which hands of `hand_size` are dealt.
    ///
    /// Signed, because objects carry signed numbers and the refusal has a word for those that are not positive.
    pub fn new(deck_size: impl Into<i64>, hand_size: impl Into<i64>) -> Result<Deck, DeckError> {
        let (deck_size, hand_size) = (deck_size.into(), hand_size.into());
        let bits = entropy_bits(deck_size, hand_size).ok_or(DeckError::NotPositive)?;
        if hand_size > deck_size {
            return Err(DeckError::HandOverDeck);
        }
        if deck_size > i64::from(MAX_DECK_SIZE) {
            return Err(DeckError::DeckTooLarge);
        }
        if bits > MAX_HASH_BITS {
            return Err(DeckError::TooManyBits(bits));
        }
        let (deck_size, hand_size) = (deck_size as u32, hand_size as u32);
        let mut reciprocals = [0; MAX_HAND_SIZE];
        for (reciprocal, dealt) in reciprocals.iter_mut().zip(0..hand_size) {
            *reciprocal = u64::MAX / u64::from(deck_size - dealt);
        }
        Ok(Deck { sizes: Sizes::new(deck_size, hand_size), reciprocals })
    }

    /// Number of queues.
    pub fn deck_size(&self) -> u32 {
        self.sizes.deck()
    }

    /// Number of queues that one flow may use.
    pub fn hand_size(&self) -> u32 {
        self.sizes.hand()
    }

    /// The hand of the flow with this hash: `hand_size` different queues, in the order dealt.
    ///
    /// All 64 bits of the hash count: its digits in the mixed radix deck size, deck size − 1, … say which of the
    /// cards that are left is dealt. Neither allocates nor divides; a few nanoseconds a card.
    pub fn deal(&self, hash: u64) -> Hand {
        let mut digits = [0u32; MAX_HAND_SIZE];
        let mut hash = hash;
        let (deck_size, size) = (self.deck_size(), self.hand_size() as usize);
        for (dealt, (digit, &reciprocal)) in digits.iter_mut().zip(&self.reciprocals[..size]).enumerate() {
            let (quotient, remainder) = div_rem(hash, deck_size - dealt as u32, reciprocal);
            (hash, *digit) = (quotient, remainder as u32);
        }
        let mut cards = [0u32; MAX_HAND_SIZE];
        for (i, card) in cards[..size].iter_mut().enumerate() {
            // The digit counts among the cards left; step past those that were dealt before, latest first.
            *card = digits[..i].iter().rev().fold(digits[i], |card, &digit| card + u32::from(card >= digit));
        }
        Hand { cards, sizes: self.sizes }
    }

    /// Chance that the hands of `elephants` other flows together hold every queue of one flow's hand, all hands
    /// being dealt independently and uniformly: then a light flow has no queue that no heavy flow uses.
    ///
    /// Exact up to the rounding of doubles (a sum of positive terms, no simulation and no cancellation). Takes time
    /// in proportion to elephants² · hand size³ at most; the documentation's tables go up to 16 elephants.
    pub fn chance_all_shared(&self, elephants: u32) -> f64 {
        let (deck, hand) = (self.deck_size() as usize, self.hand_size() as usize);
        // covered[m] is the chance that the elephants so far hold exactly m queues between them.
        let mut covered = vec![1.0];
        for _ in 0..elephants {
            let mut next = vec![0.0; deck.min(covered.len() - 1 + hand) + 1];
            for (held, &chance) in covered.iter().enumerate().filter(|&(_, &chance)| chance > 0.0) {
                for (fresh, share) in fresh_cards(deck, hand, held).into_iter().enumerate() {
                    if share > 0.0 {
                        next[held + fresh] += chance * share;
                    }
                }
            }
            covered = next;
        }
        let all_within = |held: usize| -> f64 {
            (0..hand).map(|i| held.saturating_sub(i) as f64 / (deck - i) as f64).product()
        };
        covered.iter().enumerate().map(|(held, &chance)| chance * all_within(held)).sum::<f64>().min(1.0)
    }
}

/// Element f is the chance that a hand dealt from `deck` cards has exactly f cards outside a set of `held` cards.
fn fresh_cards(deck: usize, hand: usize, held: usize) -> [f64; MAX_HAND_SIZE + 1] {
    let mut chances = [0.0; MAX_HAND_SIZE + 1];
    chances[0] = 1.0;
    for dealt in 0..hand {
        // Downwards, so that each card moves a chance by one place only.
        for fresh in (0..=dealt).rev() {
            let outside_left = (deck - held).saturating_sub(fresh) as f64;
            let inside_left = held.saturating_sub(dealt - fresh) as f64;
            let left = (deck - dealt) as f64;
            let chance = chances[fresh];
            chances[fresh + 1] += chance * outside_left / left;
            chances[fresh] = chance * inside_left / left;
        }
    }
    chances
}

/// The queues that one flow may use, in the order dealt. One cache line; cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hand {
    cards: [u32; MAX_HAND_SIZE],
    sizes: Sizes,
}

const _: () = assert!(size_of::<Option<Hand>>() == 64);

impl Hand {
    /// The queues, each below [`deck_size`](Hand::deck_size), all different.
    pub fn cards(&self) -> &[u32] {
        &self.cards[..self.hand_size() as usize]
    }

    /// Size of the deck that it was dealt from. A hand of another deck size must be dealt anew.
    pub fn deck_size(&self) -> u32 {
        self.sizes.deck()
    }

    /// Number of cards.
    pub fn hand_size(&self) -> u32 {
        self.sizes.hand()
    }

    /// The hand as words, for places that hold nothing but atomic words.
    pub(crate) fn to_words(self) -> [u64; 8] {
        let all: [u32; 16] =
            std::array::from_fn(|i| self.cards.get(i).copied().unwrap_or(self.sizes.0.get()));
        std::array::from_fn(|i| u64::from(all[2 * i]) | u64::from(all[2 * i + 1]) << 32)
    }

    /// The hand that [`to_words`](Hand::to_words) gave as these words; none of words that it never gives.
    pub(crate) fn from_words(words: [u64; 8]) -> Option<Hand> {
        let all: [u32; 16] = std::array::from_fn(|i| (words[i / 2] >> (32 * (i % 2))) as u32);
        let sizes = Sizes(NonZeroU32::new(all[MAX_HAND_SIZE])?);
        Some(Hand { cards: std::array::from_fn(|i| all[i]), sizes })
    }
}

impl fmt::Debug for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand").field("cards", &self.cards()).field("deck_size", &self.deck_size()).finish()
    }
}
