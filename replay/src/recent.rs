//! A map that forgets: it keeps the newest entries, and its memory has a bound.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Remembers at least the last `capacity / 2` keys put in, and never more than `capacity`.
///
/// Keys are kept as 64-bit keyed hashes, so that an entry costs the same however long the key is.
#[derive(Debug)]
pub struct Recent<V> {
    hasher: RandomState,
    new: HashMap<u64, V>,
    old: HashMap<u64, V>,
    half: usize,
    forgotten: u64,
}

impl<V> Recent<V> {
    /// A map of at most `capacity` entries (at least two).
    pub fn new(capacity: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            new: HashMap::new(),
            old: HashMap::new(),
            half: (capacity / 2).max(1),
            forgotten: 0,
        }
    }

    /// Remembers `value` for `key`, in place of an earlier value.
    pub fn put(&mut self, key: (&str, i64), value: V) {
        let key = self.hasher.hash_one(key);
        self.old.remove(&key);
        if self.new.len() >= self.half && !self.new.contains_key(&key) {
            self.forgotten += self.old.len() as u64;
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, value);
    }

    /// Takes the value of `key` out.
    pub fn take(&mut self, key: (&str, i64)) -> Option<V> {
        if self.new.is_empty() && self.old.is_empty() {
            return None;
        }
        let key = self.hasher.hash_one(key);
        self.new.remove(&key).or_else(|| self.old.remove(&key))
    }

    /// Entries that were put in and never taken out, the forgotten ones too.
    pub fn left(&self) -> u64 {
        (self.new.len() + self.old.len()) as u64 + self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_half_is_remembered_and_the_bound_is_kept() {
        let mut recent = Recent::new(10);
        for n in 0..100 {
            recent.put(("request", n), n);
            assert!(recent.new.len() + recent.old.len() <= 10);
        }
        assert_eq!(recent.left(), 100);
        for n in 95..100 {
            assert_eq!(recent.take(("request", n)), Some(n));
            assert_eq!(recent.take(("request", n)), None);
        }
    }
}
