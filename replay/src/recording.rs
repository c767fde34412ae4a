//! A log, read and kept: which requests it holds, and where each goes under one or two sets of objects.

use std::collections::{BTreeMap, HashMap};
use std::io;

use maitred::classify::{Request, Target as ClassifyTarget};
use maitred::estimate::{ObjectStats, WorkEstimator};
use maitred::flow::flow_hash;

use crate::attributes::{Attributes, Target};
use crate::likeness::Kinds;
use crate::lines::Lines;
use crate::log::{Ended, Log, LogError, Reading, Seen};
use crate::plan::Plan;
use crate::record::{Class, Record, SETS};
use crate::report::Recorded;
use crate::spill::{Sorted, Spill};
use crate::top::{FlowName, TopFlows};

/// Objects stored, by resource: what makes lists wide. A log does not tell it.
#[derive(Debug, Clone, Default)]
pub struct Stored(HashMap<(String, String), ObjectStats>);

impl Stored {
    /// Notes that there are so many objects of the resource, of so many bytes on average; 0 bytes are not known.
    pub fn add(&mut self, api_group: &str, resource: &str, count: u64, average_bytes: u64) {
        let known = ObjectStats::Known { count, average_bytes };
        self.0.insert((api_group.to_owned(), resource.to_owned()), known);
    }

    /// A resource of which nothing was said counts as one that the server does not know: its lists are narrow.
    fn of(&self, api_group: &str, resource: &str) -> ObjectStats {
        if self.0.is_empty() {
            return ObjectStats::NotFound;
        }
        let key = (api_group.to_owned(), resource.to_owned());
        self.0.get(&key).copied().unwrap_or(ObjectStats::NotFound)
    }
}

/// A log, ready to be played.
#[derive(Debug)]
pub struct Recording {
    /// The requests.
    pub(crate) requests: Sorted,
    /// What was met on the way.
    pub(crate) seen: Seen,
    /// What is like what.
    pub(crate) kinds: Kinds,
    /// By set of objects and schema: what the log tells.
    pub(crate) recorded: [Vec<Recorded>; SETS],
    /// Flows of the first set with the most requests, and how many requests one that was missed has at most.
    pub(crate) flows: (HashMap<u64, FlowName>, u64),
    /// Requests by schema under the last set and under the first, where there are two.
    pub(crate) moves: BTreeMap<(u32, u32), u64>,
}

/// Takes the requests of a log, one by one.
pub struct Recorder<'a> {
    plans: &'a [Plan],
    most_seats: Vec<Vec<Option<u64>>>,
    estimator: WorkEstimator,
    stored: Stored,
    spill: Spill,
    kinds: Kinds,
    recorded: [Vec<Recorded>; SETS],
    flows: TopFlows,
    moves: BTreeMap<(u32, u32), u64>,
}

impl<'a> Recorder<'a> {
    /// For one or two plans. The last is the one that is taken to have been in force.
    pub fn new(plans: &'a [Plan], stored: Stored) -> Self {
        let most_seats = |plan: &Plan| {
            let limits = plan.limits();
            let of = |level: &crate::plan::PlannedLevel| {
                limits.level(&level.spec.name).and_then(|level| level.max_seats)
            };
            plan.levels.iter().map(of).collect()
        };
        Self {
            plans,
            most_seats: plans.iter().map(most_seats).collect(),
            estimator: WorkEstimator::default(),
            stored,
            spill: Spill::new(plans.len()),
            kinds: Kinds::default(),
            recorded: std::array::from_fn(|set| {
                plans.get(set).map_or_else(Vec::new, |plan| vec![Recorded::default(); plan.schemas.len()])
            }),
            flows: TopFlows::default(),
            moves: BTreeMap::new(),
        }
    }

    /// Takes a request.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn take(&mut self, ended: &Ended<'_>) -> io::Result<()> {
        let mut classes = [Class::default(); SETS];
        for (set, plan) in self.plans.iter().enumerate() {
            let class = &mut classes[set];
            *class = self.classify(set, plan, ended);
            let recorded = &mut self.recorded[set][class.schema as usize];
            recorded.requests += 1;
            recorded.refused += u64::from(ended.refused);
            if let Some(wait_ns) = ended.told_wait_ns {
                recorded.waits += 1;
                recorded.wait_ns += u128::from(wait_ns);
            }
        }
        let schema = classes[self.plans.len() - 1].schema;
        if self.plans.len() > 1 {
            *self.moves.entry((schema, classes[0].schema)).or_default() += 1;
        }
        let resource = match &ended.attributes.target {
            Target::Resource { api_group, resource, subresource, .. } => {
                [*api_group, *resource, *subresource]
            }
            Target::Path(_) => [""; 3],
        };
        self.spill.push(Record {
            received: ended.received,
            total_ns: ended.total_ns,
            told_wait_ns: ended.told_wait_ns,
            refused: ended.refused,
            kind: self.kinds.of(schema, ended.attributes.verb, resource),
            classes,
        })
    }

    fn classify(&mut self, set: usize, plan: &Plan, ended: &Ended<'_>) -> Class {
        let request = request(&ended.attributes);
        let classified = plan.policy.classify(&request);
        let distinguisher = plan.policy.distinguisher(classified, &request);
        let (name, level) = &plan.schemas[classified.schema as usize];
        let flow = flow_hash(&**name, distinguisher);
        if set == 0 {
            self.flows.add(flow, classified.schema, &String::from_utf8_lossy(distinguisher));
        }
        let attributes = ended.attributes.for_estimate();
        let width = match &attributes {
            Some(attributes) => self.estimator.estimate(
                Some(attributes),
                ended.query.as_bytes(),
                self.most_seats[set][*level],
                |request| self.stored.of(request.api_group, request.resource),
                |_| ended.watches,
            ),
            None => maitred::estimate::WorkEstimate { initial_seats: 1, ..Default::default() },
        };
        Class {
            schema: classified.schema,
            flow,
            initial_seats: width.initial_seats,
            final_seats: width.final_seats,
            latency_ns: width.additional_latency,
        }
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// When the requests cannot be kept.
    pub fn finish(self, seen: Seen) -> io::Result<Recording> {
        Ok(Recording {
            requests: self.spill.finish()?,
            seen,
            kinds: self.kinds,
            recorded: self.recorded,
            flows: self.flows.finish(),
            moves: self.moves,
        })
    }
}

/// Reads a log of one file or several that follow each other; `progress` is told the number of events so far.
///
/// # Errors
/// See [`Log::read`].
pub fn record(
    files: &mut [(String, Lines)],
    plans: &[Plan],
    reading: &Reading,
    stored: Stored,
    mut progress: impl FnMut(u64),
) -> Result<Recording, LogError> {
    let mut log = Log::new(reading);
    let mut recorder = Recorder::new(plans, stored);
    for (name, lines) in files {
        log.read(name, lines, |ended| recorder.take(ended), &mut progress)?;
    }
    recorder.finish(log.finish()).map_err(LogError::Receiver)
}

fn request<'a>(attributes: &'a Attributes<'a>) -> Request<'a> {
    let (target, namespace) = match &attributes.target {
        Target::Resource { api_group, resource, subresource, namespace, .. } => {
            (ClassifyTarget::resource(*api_group, *resource, *subresource), *namespace)
        }
        Target::Path(path) => (ClassifyTarget::path(&**path), ""),
    };
    Request::new(attributes.user, &attributes.groups, attributes.verb, target).in_namespace(namespace)
}
