//! How many watches hear of a change.
//!
//! Source of the rule: `vectors/watchcount.jsonl`.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Request, required_by_query};

/// The one resource whose watches are found by the value of a field, and that field.
const INDEXED: (&str, &str) = ("pods", "spec.nodeName");

/// Counts the watches of a server by the objects that they are for.
///
/// Clones share the counts. Any thread may call; registering and forgetting take a lock that counting shares, and
/// counting allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct WatchTracker(Arc<RwLock<Groups>>);

/// API group, resource, namespace, name: each may be empty. Nested, so that a look-up borrows its keys.
type Groups = HashMap<Box<str>, Resources>;
type Resources = HashMap<Box<str>, Namespaces>;
type Namespaces = HashMap<Box<str>, Names>;
type Names = HashMap<Box<str>, u64>;

impl WatchTracker {
    /// One that knows of no watches.
    pub fn new() -> WatchTracker {
        WatchTracker::default()
    }

    /// Registers a watch until the guard is dropped. `None` when the request is none.
    ///
    /// `query` is the query of its URL, of which the field selector counts: a watch for the pods of one node hears of
    /// a change of pods only through that node's index, which is not counted.
    pub fn register(&self, request: &Request<'_>, query: &[u8]) -> Option<WatchGuard> {
        if request.verb != "watch" {
            return None;
        }
        let (resource, field) = INDEXED;
        if request.resource == resource
            && required_by_query(query, field).is_some_and(|value| !value.is_empty())
        {
            return Some(WatchGuard(None));
        }
        let key =
            [request.api_group, request.resource, request.namespace, request.name].map(Box::<str>::from);
        let [group, resource, namespace, name] = key.clone();
        let mut groups = self.write();
        let names =
            groups.entry(group).or_default().entry(resource).or_default().entry(namespace).or_default();
        *names.entry(name).or_default() += 1;
        Some(WatchGuard(Some((self.clone(), key))))
    }

    /// How many watches may hear of the change that `request` makes: those for all objects of the resource, those for
    /// all of its namespace, and those for the very object. 0 for a request that changes nothing.
    pub fn count(&self, request: &Request<'_>) -> u64 {
        if matches!(request.verb, "get" | "list" | "watch" | "proxy") {
            return 0;
        }
        let groups = self.read();
        let Some(namespaces) =
            groups.get(request.api_group).and_then(|resources| resources.get(request.resource))
        else {
            return 0;
        };
        let count = |namespace: &str, name: &str| {
            namespaces.get(namespace).and_then(|names| names.get(name)).copied().unwrap_or(0)
        };
        let mut watches = count("", "");
        if !request.namespace.is_empty() {
            watches += count(request.namespace, "");
        }
        if !request.name.is_empty() {
            watches += count(request.namespace, request.name);
        }
        watches
    }

    fn forget(&self, [group, resource, namespace, name]: &[Box<str>; 4]) {
        let mut groups = self.write();
        // Each level of the map goes with its last entry: objects come and go for as long as a server runs.
        retain(&mut groups, group, |resources| {
            retain(resources, resource, |namespaces| {
                retain(namespaces, namespace, |names| {
                    retain(names, name, |count| {
                        *count -= 1;
                        *count > 0
                    });
                    !names.is_empty()
                });
                !namespaces.is_empty()
            });
            !resources.is_empty()
        });
    }

    // A thread that panicked while it held the lock left whole counts behind: each change is one entry's.
    fn read(&self) -> RwLockReadGuard<'_, Groups> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Groups> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the entry of `key` unless `keep` wants it.
fn retain<V>(map: &mut HashMap<Box<str>, V>, key: &str, keep: impl FnOnce(&mut V) -> bool) {
    if map.get_mut(key).is_some_and(|value| !keep(value)) {
        map.remove(key);
    }
}

/// A registered watch. Dropping it forgets the watch.
#[derive(Debug)]
#[must_use = "the watch is forgotten when this is dropped"]
pub struct WatchGuard(Option<(WatchTracker, [Box<str>; 4])>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        if let Some((tracker, key)) = &self.0 {
            tracker.forget(key);
        }
    }
}
