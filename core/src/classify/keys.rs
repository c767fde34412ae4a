//! Tables that find the set of clauses which name a value.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::sets::{Collected, Set, Sets};

/// Values and their clauses, as they are collected. Ordered, so that the same objects always give the same index.
#[derive(Debug, Default)]
pub(super) struct CollectedKeys(BTreeMap<Box<[u8]>, Collected>);

impl CollectedKeys {
    pub(super) fn insert(&mut self, key: impl AsRef<[u8]>, clause: u32) {
        let key = key.as_ref();
        match self.0.get_mut(key) {
            Some(clauses) => clauses.insert(clause),
            None => self.0.entry(key.into()).or_default().insert(clause),
        }
    }

    pub(super) fn store(&self, sets: &mut Sets) -> Keys {
        Keys(self.0.iter().map(|(key, clauses)| (key.clone(), sets.store(clauses))).collect())
    }

    /// A table in which every key's set also holds those of the keys that it begins with.
    ///
    /// All keys but the empty one end in `separator`.
    pub(super) fn store_prefixes(&self, separator: u8, sets: &mut Sets) -> Prefixes {
        let longest = self.0.keys().map(|key| key.len()).max().unwrap_or(0);
        let inherited = |key: &[u8]| {
            let mut all = Collected::default();
            for end in (0..=key.len()).filter(|&end| end == 0 || key[end - 1] == separator) {
                if let Some(clauses) = self.0.get(&key[..end]) {
                    all.add(clauses);
                }
            }
            all
        };
        let keys = self.0.keys().map(|key| (key.clone(), sets.store(&inherited(key)))).collect();
        Prefixes { keys: Keys(keys), separator, longest }
    }
}

/// From a value to the clauses that name it.
// The hash is fast and not keyed: keys come from the configuration, and whoever sends requests cannot add any.
#[derive(Debug)]
pub(super) struct Keys(FxHashMap<Box<[u8]>, Set>);

impl Keys {
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Set {
        self.0.get(key).copied().unwrap_or_default()
    }
}

/// From a value to the clauses that name something it begins with.
#[derive(Debug)]
pub(super) struct Prefixes {
    keys: Keys,
    separator: u8,
    longest: usize,
}

impl Prefixes {
    /// Looks up one part of the value for each separator in it, but for none beyond the longest key.
    #[inline]
    pub(super) fn get(&self, value: &[u8]) -> Set {
        let mut end = value.len().min(self.longest);
        // The longest key that fits has the sets of all shorter ones.
        while end > 0 {
            if value[end - 1] == self.separator
                && let Some(&set) = self.keys.0.get(&value[..end])
            {
                return set;
            }
            end -= 1;
        }
        self.keys.get(b"")
    }
}

/// Resources and what is below them. A table of its own because the two come apart in a request, joined in a rule.
#[derive(Debug, Default)]
pub(super) struct CollectedResources(BTreeMap<Box<[u8]>, (Collected, CollectedKeys)>);

impl CollectedResources {
    pub(super) fn insert(&mut self, rule: &str, clause: u32) {
        let rule = rule.as_bytes();
        self.0.entry(rule.into()).or_default().0.insert(clause);
        // A valid rule has one slash at most; with more, the request may come apart at any of them.
        for slash in (0..rule.len()).filter(|&i| rule[i] == b'/') {
            self.0.entry(rule[..slash].into()).or_default().1.insert(&rule[slash + 1..], clause);
        }
    }

    pub(super) fn store(self, sets: &mut Sets) -> Resources {
        let store = |(key, (whole, below)): (Box<[u8]>, (Collected, CollectedKeys))| {
            (key, Resource { whole: sets.store(&whole), below: below.store(sets) })
        };
        Resources(self.0.into_iter().map(store).collect())
    }
}

#[derive(Debug)]
struct Resource {
    whole: Set,
    below: Keys,
}

/// From resource and subresource to the clauses that name them.
#[derive(Debug)]
pub(super) struct Resources(FxHashMap<Box<[u8]>, Resource>);

impl Resources {
    #[inline]
    pub(super) fn get(&self, resource: &[u8], subresource: &[u8]) -> Set {
        match self.0.get(resource) {
            None => Set::default(),
            Some(found) if subresource.is_empty() => found.whole,
            Some(found) => found.below.get(subresource),
        }
    }
}
