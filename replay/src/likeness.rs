//! Service times of like requests: those of one flow schema, verb and resource.
//!
//! A refused request never ran; it is given the mean of those like it that did. What is like what is found while the
//! log is read; the means are taken anew in each pass, since they rest on estimated waits.

use std::collections::HashMap;

/// Kinds told apart; the requests of any further kinds count as one. A server has some hundreds.
const MOST: usize = 1 << 16;
/// What a request is taken to need where nothing at all is known: what flow control itself assumes.
const UNKNOWN_NS: u64 = 3_000_000;

/// Finds the kind of a request.
#[derive(Debug, Default)]
pub struct Kinds {
    known: HashMap<Box<str>, u32>,
    key: String,
    schemas: Vec<u32>,
}

impl Kinds {
    /// The kind of a request, by the index of its schema, verb and resource.
    pub fn of(&mut self, schema: u32, verb: &str, resource: [&str; 3]) -> u32 {
        self.key.clear();
        self.key.push_str(&schema.to_string());
        for part in [verb].into_iter().chain(resource) {
            self.key.push('\0');
            self.key.push_str(part);
        }
        if let Some(&kind) = self.known.get(&*self.key) {
            return kind;
        }
        // Kind 0 takes what is past the bound.
        if self.schemas.is_empty() {
            self.schemas.push(schema);
        }
        if self.schemas.len() >= MOST {
            return 0;
        }
        let kind = u32::try_from(self.schemas.len()).unwrap_or(0);
        self.schemas.push(schema);
        self.known.insert(self.key.as_str().into(), kind);
        kind
    }

    /// A table for their service times.
    pub fn table(&self) -> ServiceTimes {
        let schemas = self.schemas.iter().max().map_or(0, |&most| most as usize + 1);
        ServiceTimes {
            schema_of: self.schemas.clone(),
            kinds: vec![Mean::default(); self.schemas.len()],
            schemas: vec![Mean::default(); schemas],
            all: Mean::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: u64,
    sum_ns: u128,
}

impl Mean {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(ns);
    }

    fn get(self) -> Option<u64> {
        (self.count > 0).then(|| u64::try_from(self.sum_ns / u128::from(self.count)).unwrap_or(u64::MAX))
    }
}

/// Mean service times by kind.
#[derive(Debug, Clone)]
pub struct ServiceTimes {
    schema_of: Vec<u32>,
    kinds: Vec<Mean>,
    schemas: Vec<Mean>,
    all: Mean,
}

impl ServiceTimes {
    /// Adds the service time of a request that ran.
    pub fn add(&mut self, kind: u32, ns: u64) {
        let kind = kind as usize;
        self.kinds[kind].add(ns);
        self.schemas[self.schema_of[kind] as usize].add(ns);
        self.all.add(ns);
    }

    /// The mean of the requests of `kind`; where none ran, that of its schema; else that of all.
    pub fn of(&self, kind: u32) -> u64 {
        let kind = kind as usize;
        let schema = self.schemas[self.schema_of[kind] as usize];
        self.kinds[kind].get().or(schema.get()).or(self.all.get()).unwrap_or(UNKNOWN_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_service_takes_that_of_its_schema_then_that_of_all() {
        let mut kinds = Kinds::default();
        let pods = kinds.of(0, "list", ["", "pods", ""]);
        let nodes = kinds.of(0, "list", ["", "nodes", ""]);
        let other = kinds.of(1, "list", ["", "pods", ""]);
        assert_eq!(kinds.of(0, "list", ["", "pods", ""]), pods);
        let mut times = kinds.table();
        assert_eq!(times.of(other), UNKNOWN_NS);
        times.add(pods, 10);
        times.add(pods, 20);
        assert_eq!([pods, nodes, other].map(|kind| times.of(kind)), [15, 15, 15]);
        times.add(other, 60);
        assert_eq!([pods, nodes, other].map(|kind| times.of(kind)), [15, 15, 60]);
    }
}
