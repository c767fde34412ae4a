//! Shuffle sharding: hands card by card, and which decks can be made.

use std::path::Path;

use anyhow::Context as _;
use maitred::shuffle::{Deck, DeckError, entropy_bits};
use serde::Deserialize;

use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
#[serde(tag = "k", rename_all = "lowercase")]
enum Case {
    Deal { d: i64, n: i64, h: String, c: Vec<u32> },
    Check { d: i64, n: i64, ok: bool, bits: Option<u32>, why: Option<String> },
}

/// Every data line is a case.
pub fn run(path: &Path) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, case) in vectors::data::<Case>(path)? {
        match case {
            Case::Deal { d, n, h, c } => {
                let hash = h.parse().with_context(|| format!("{}:{line}: hash {h:?}", path.display()))?;
                let hand = Deck::new(d, n).map(|deck| deck.deal(hash).cards().to_vec());
                outcome.check(|| format!("line {line}: hand {n} of deck {d}, hash {h}"), &Ok(c), &hand);
            }
            Case::Check { d, n, ok, bits, why } => {
                let reason = Deck::new(d, n).err().map(word);
                let got = (reason.is_none(), entropy_bits(d, n), reason);
                let expected = (ok, bits, why.as_deref());
                outcome.check(|| format!("line {line}: may hands of {n} be dealt from {d}"), &expected, &got);
            }
        }
    }
    Ok(outcome)
}

fn word(error: DeckError) -> &'static str {
    match error {
        DeckError::NotPositive => "not-positive",
        DeckError::HandOverDeck => "hand-over-deck",
        DeckError::DeckTooLarge => "deck-too-large",
        DeckError::TooManyBits(_) => "too-many-bits",
    }
}
