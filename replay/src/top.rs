//! The flows with the most requests, in bounded memory.
//!
//! While a log is read, a fixed number of flows is watched; a new flow takes the place of the one with the fewest
//! requests and inherits its count (the "space-saving" sketch). So every flow that has more than the `watched`-th part of
//! all requests is among them at the end. While the log is played, the requests of these are counted exactly.

use std::collections::HashMap;

/// Flows watched.
const WATCHED: usize = 1024;

/// A flow, as reports name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowName {
    /// Index of its schema.
    pub schema: u32,
    /// What tells it from the other flows of its schema: a user, a namespace, or nothing.
    pub distinguisher: Box<str>,
}

/// Finds the flows with the most requests.
#[derive(Debug)]
pub struct TopFlows {
    most: usize,
    place: HashMap<u64, usize>,
    hashes: Vec<u64>,
    counts: Vec<u64>,
    names: Vec<FlowName>,
    /// Whether a flow had to make place for another.
    full: bool,
}

impl Default for TopFlows {
    fn default() -> Self {
        Self::new(WATCHED)
    }
}

impl TopFlows {
    fn new(most: usize) -> Self {
        Self {
            most,
            place: HashMap::new(),
            hashes: Vec::new(),
            counts: Vec::new(),
            names: Vec::new(),
            full: false,
        }
    }

    /// Counts a request of the flow that has this hash.
    pub fn add(&mut self, hash: u64, schema: u32, distinguisher: &str) {
        if let Some(&place) = self.place.get(&hash) {
            self.counts[place] += 1;
            return;
        }
        let name = FlowName { schema, distinguisher: distinguisher.into() };
        if self.hashes.len() < self.most {
            self.place.insert(hash, self.hashes.len());
            self.hashes.push(hash);
            self.counts.push(1);
            self.names.push(name);
            return;
        }
        if let Some((place, _)) = self.counts.iter().enumerate().min_by_key(|(_, count)| **count) {
            self.full = true;
            self.place.remove(&self.hashes[place]);
            self.place.insert(hash, place);
            self.hashes[place] = hash;
            self.counts[place] += 1;
            self.names[place] = name;
        }
    }

    /// The flows watched at the end, by hash. No other flow had more requests than the second number.
    pub fn finish(self) -> (HashMap<u64, FlowName>, u64) {
        let missed = if self.full { self.counts.iter().copied().min().unwrap_or(0) } else { 0 };
        (self.hashes.into_iter().zip(self.names).collect(), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_with_many_requests_is_found_among_many_with_few() {
        let mut top = TopFlows::new(10);
        for n in 0..1000_u64 {
            top.add(1_000_000 + n, 0, "one of many");
            if n % 5 == 0 {
                top.add(7, 3, "heavy");
            }
        }
        let (flows, missed) = top.finish();
        assert_eq!(flows[&7], FlowName { schema: 3, distinguisher: "heavy".into() });
        assert!(missed <= 1200 / 10, "{missed}");
    }

    #[test]
    fn few_flows_are_all_known() {
        let mut top = TopFlows::new(10);
        (0..10).for_each(|flow| top.add(flow, 0, ""));
        let (flows, missed) = top.finish();
        assert_eq!((flows.len(), missed), (10, 0));
    }
}
