//! Hashes and hands of the flows seen lately. Bounded, lock-free, without allocation after it was made.
//!
//! The key of an entry is what the flow is made of: the number of its schema and the bytes of the distinguisher, kept
//! in the entry and compared byte for byte. No fingerprint stands for them, so a false hit, which would give a request
//! another flow's queues, is not improbable but impossible; and finding the slot can do with a fast hash, as the worst
//! that somebody who searches for collisions can reach is that his own flows are not found here and are computed.
//!
//! A cache holds schema numbers and hands of one policy, therefore it belongs to one: see
//! [`Resolver`](crate::policy::Resolver).

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

use super::slot::Slot;
use crate::shuffle::Hand;

/// Longest distinguisher that is kept, in bytes; flows with longer ones are computed anew each time. Room for the names
/// of service accounts, nodes and people; the entry is 192 bytes with it, three cache lines.
pub const MAX_CACHED_BYTES: usize = (KEY_WORDS - 1) * 8;

const KEY_WORDS: usize = 14;
/// The flow hash and the words of the hand.
const VALUE_WORDS: usize = 9;

#[repr(align(64))]
struct Entry(Slot<KEY_WORDS, VALUE_WORDS>);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Entry>() == 192);

/// Bounded map from (schema, distinguisher) to the flow's hash and hand. Any thread may look up and insert at any time.
///
/// Neither waits: what is being written by another thread counts as not found, and is not written twice.
pub struct FlowCache {
    /// A power of two of pairs; a flow's entry is in one place of its pair.
    pairs: Box<[[Entry; 2]]>,
}

/// Where a flow is kept, if it is; made once for looking up and inserting.
pub(crate) struct CacheKey {
    words: [u64; KEY_WORDS],
    used: usize,
    hash: u64,
}

impl CacheKey {
    /// None for a distinguisher longer than [`MAX_CACHED_BYTES`].
    #[inline]
    pub(crate) fn new(schema: u32, distinguisher: &[u8]) -> Option<CacheKey> {
        if distinguisher.len() > MAX_CACHED_BYTES {
            return None;
        }
        let mut words = [0; KEY_WORDS];
        // The length in the first word makes keys of different length differ there; those of one length have the same
        // number of words, padded with zeros alike.
        words[0] = u64::from(schema) << 32 | distinguisher.len() as u64;
        let used = 1 + distinguisher.len().div_ceil(8);
        for (word, bytes) in words[1..].iter_mut().zip(distinguisher.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        let mut hasher = FxHasher::default();
        words[..used].iter().for_each(|&word| hasher.write_u64(word));
        Some(CacheKey { words, used, hash: hasher.finish() })
    }

    fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }
}

impl FlowCache {
    /// A cache for at least `flows` flows (a power of two; at least 2), 192 bytes each.
    ///
    /// It does its work when it has room for about twice the flows that are active at a time.
    pub fn new(flows: usize) -> FlowCache {
        let pairs = flows.div_ceil(2).max(1).next_power_of_two();
        let entry = || Entry(Slot::empty());
        FlowCache { pairs: (0..pairs).map(|_| [entry(), entry()]).collect() }
    }

    /// Bytes of memory that it holds.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.pairs)
    }

    fn pair(&self, key: &CacheKey) -> &[Entry; 2] {
        // The number of pairs is a power of two, so the mask keeps the index below it.
        &self.pairs[key.hash as usize & (self.pairs.len() - 1)]
    }

    #[inline]
    pub(crate) fn find(&self, key: &CacheKey) -> Option<(u64, Hand)> {
        let [hash, hand @ ..] = self.pair(key).iter().find_map(|entry| entry.0.find(key.words()))?;
        Some((hash, Hand::from_words(hand)?))
    }

    pub(crate) fn insert(&self, key: &CacheKey, hash: u64, hand: Hand) {
        let [first, second] = self.pair(key);
        // The one written less often: an empty one first, and then each in turn.
        let entry = if first.0.writes() <= second.0.writes() { first } else { second };
        let mut value = [hash; VALUE_WORDS];
        value[1..].copy_from_slice(&hand.to_words());
        entry.0.put(key.words(), value);
    }
}

impl std::fmt::Debug for FlowCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowCache").field("flows", &(self.pairs.len() * 2)).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{flow::flow_hash, shuffle::Deck};

    fn key(schema: u32, distinguisher: &str) -> CacheKey {
        CacheKey::new(schema, distinguisher.as_bytes()).unwrap()
    }

    #[test]
    fn a_flow_is_found_as_it_was_inserted() {
        let cache = FlowCache::new(64);
        let hand = Deck::new(64, 8).unwrap().deal(12345);
        assert_eq!(cache.find(&key(7, "alice")), None);
        cache.insert(&key(7, "alice"), 12345, hand);
        assert_eq!(cache.find(&key(7, "alice")), Some((12345, hand)));
    }

    #[test]
    fn flows_in_the_same_pair_are_told_apart_by_every_byte() {
        // One pair only, so that every key meets every other.
        let hand = Deck::new(8, 1).unwrap().deal(1);
        let long = "x".repeat(MAX_CACHED_BYTES);
        let others = ["", "\0", "alice", "alice\0", "alicf", "alicf\0\0\0\0", &long, &long[1..]];
        for (schema, name) in [0, 1].iter().flat_map(|s| others.map(|name| (*s, name))) {
            let cache = FlowCache::new(2);
            cache.insert(&key(schema, name), 5, hand);
            for (other, with) in [0, 1].iter().flat_map(|s| others.map(|name| (*s, name))) {
                let found = cache.find(&key(other, with)).is_some();
                assert_eq!(found, (schema, name) == (other, with), "{schema} {name:?}, {other} {with:?}");
            }
        }
    }

    #[test]
    fn a_distinguisher_that_is_too_long_is_not_kept() {
        assert!(CacheKey::new(0, &[b'x'; MAX_CACHED_BYTES]).is_some());
        assert!(CacheKey::new(0, &[b'x'; MAX_CACHED_BYTES + 1]).is_none());
    }

    #[test]
    fn the_older_of_a_pair_makes_place() {
        let cache = FlowCache::new(2);
        let hand = Deck::new(8, 1).unwrap().deal(1);
        for name in ["a", "b", "c"] {
            cache.insert(&key(0, name), 1, hand);
        }
        assert_eq!(["a", "b", "c"].map(|name| cache.find(&key(0, name)).is_some()), [false, true, true]);
    }

    #[test]
    fn threads_that_fight_for_the_same_few_places_only_find_their_own_hands() {
        let cache = FlowCache::new(4);
        let deck = Deck::new(512, 6).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let (cache, deck) = (&cache, &deck);
                scope.spawn(move || {
                    for round in 0..20_000u32 {
                        let name = format!("system:node:{:0>40}", (round * 7 + thread) % 16);
                        let (key, hash) = (key(1, &name), flow_hash("s", &name));
                        match cache.find(&key) {
                            Some(found) => assert_eq!(found, (hash, deck.deal(hash)), "{name}"),
                            None => cache.insert(&key, hash, deck.deal(hash)),
                        }
                    }
                });
            }
        });
    }
}
