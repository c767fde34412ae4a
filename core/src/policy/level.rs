//! A priority level of a policy.

use std::sync::Arc;

use crate::{
    api::{defaults::CONCURRENCY_SHARES, v1},
    borrow::{EXEMPT, LevelSpec},
    error::{Fault, FaultKind},
    shuffle::{Deck, DeckError},
};

/// A priority level: what it does with requests, and its seats.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Name of the object.
    pub name: Arc<str>,
    /// What it does with requests.
    pub kind: LevelKind,
    /// `nominalConcurrencyShares`.
    pub shares: u32,
    /// `lendablePercent`, 0 to 100.
    pub lendable_percent: u32,
    /// `borrowingLimitPercent`; absent: may borrow up to the server's limit.
    pub borrowing_limit_percent: Option<u32>,
    /// Seats: its share of the server's.
    pub nominal: u64,
    /// Seats that it keeps whatever others want.
    pub min: u64,
    /// Seats that it may have if others leave them.
    pub max: u64,
    /// There is no such object: it is mandatory, and imagined.
    pub imagined: bool,
}

/// What a level does with a request that finds no seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LevelKind {
    /// There are always seats.
    Exempt,
    /// Rejects it.
    Reject,
    /// Lets it wait in a queue.
    Queue {
        /// The queues, ready to deal.
        deck: Deck,
        /// Requests that may wait in one queue.
        queue_length_limit: u32,
    },
}

impl Level {
    /// Seats are 0 until they are computed from all levels together.
    pub(super) fn compile(object: &v1::PriorityLevelConfiguration) -> Result<Level, Vec<Fault>> {
        let name = object.metadata.name.as_str();
        let mut compiler = Compiler { name, faults: Vec::new() };
        let level = compiler.level(&object.spec);
        if compiler.faults.is_empty() { Ok(level) } else { Err(compiler.faults) }
    }

    /// What bears on its limits.
    pub fn spec(&self) -> LevelSpec {
        LevelSpec {
            name: self.name.clone(),
            exempt: self.kind == LevelKind::Exempt,
            shares: self.shares,
            lendable_percent: self.lendable_percent,
            borrowing_limit_percent: self.borrowing_limit_percent,
            queuing: match &self.kind {
                LevelKind::Queue { deck, .. } => Some((deck.deck_size(), deck.hand_size())),
                LevelKind::Exempt | LevelKind::Reject => None,
            },
        }
    }
}

/// Collects the faults of one object.
struct Compiler<'a> {
    name: &'a str,
    faults: Vec<Fault>,
}

impl Compiler<'_> {
    /// A level; meaningless where faults were found.
    fn level(&mut self, spec: &v1::PriorityLevelConfigurationSpec) -> Level {
        let (kind, shares, lendable, borrowing) = match (spec.type_.as_str(), &spec.limited) {
            ("Exempt", _) => {
                let exempt = spec.exempt.clone().unwrap_or_default();
                let shares =
                    (exempt.nominal_concurrency_shares.unwrap_or(0), "spec.exempt.nominalConcurrencyShares");
                let lendable = (exempt.lendable_percent.unwrap_or(0), "spec.exempt.lendablePercent");
                (LevelKind::Exempt, shares, lendable, None)
            }
            ("Limited", Some(limited)) => {
                let shares = (
                    limited.nominal_concurrency_shares.unwrap_or(CONCURRENCY_SHARES),
                    "spec.limited.nominalConcurrencyShares",
                );
                let lendable = (limited.lendable_percent.unwrap_or(0), "spec.limited.lendablePercent");
                (self.response(&limited.limit_response), shares, lendable, limited.borrowing_limit_percent)
            }
            ("Limited", None) => {
                self.fault(
                    FaultKind::Required,
                    "spec.limited",
                    "must be given when type is \"Limited\"",
                    None,
                );
                (LevelKind::Reject, (0, ""), (0, ""), None)
            }
            (other, _) => {
                let detail = "supported values: \"Exempt\", \"Limited\"";
                self.fault(FaultKind::NotSupported, "spec.type", detail, Some(other.into()));
                (LevelKind::Reject, (0, ""), (0, ""), None)
            }
        };
        if (kind == LevelKind::Exempt) != (self.name == EXEMPT) && self.faults.is_empty() {
            let detail = format!("the level named \"{EXEMPT}\", and no other, must be \"Exempt\"");
            self.fault(FaultKind::Invalid, "spec.type", &detail, Some(spec.type_.as_str().into()));
        }
        Level {
            name: self.name.into(),
            kind,
            shares: self.at_least_zero(shares, "must be a non-negative integer"),
            lendable_percent: self.percent(lendable),
            borrowing_limit_percent: borrowing.map(|percent| {
                self.at_least_zero(
                    (percent, "spec.limited.borrowingLimitPercent"),
                    "must be a non-negative integer",
                )
            }),
            nominal: 0,
            min: 0,
            max: 0,
            imagined: false,
        }
    }

    fn response(&mut self, response: &v1::LimitResponse) -> LevelKind {
        match (response.type_.as_str(), &response.queuing) {
            ("Reject", _) => LevelKind::Reject,
            ("Queue", Some(queuing)) => self.queuing(queuing),
            ("Queue", None) => {
                let detail = "must be given when limitResponse.type is \"Queue\"";
                self.fault(FaultKind::Required, "spec.limited.limitResponse.queuing", detail, None);
                LevelKind::Reject
            }
            (other, _) => {
                let detail = "supported values: \"Queue\", \"Reject\"";
                self.fault(
                    FaultKind::NotSupported,
                    "spec.limited.limitResponse.type",
                    detail,
                    Some(other.into()),
                );
                LevelKind::Reject
            }
        }
    }

    fn queuing(&mut self, queuing: &v1::QueuingConfiguration) -> LevelKind {
        let path = |field: &str| format!("spec.limited.limitResponse.queuing.{field}");
        let queue_length_limit = u32::try_from(queuing.queue_length_limit).unwrap_or(0);
        if queue_length_limit == 0 {
            let value = queuing.queue_length_limit.into();
            self.fault(FaultKind::Invalid, &path("queueLengthLimit"), "must be positive", Some(value));
        }
        match Deck::new(queuing.queues, queuing.hand_size) {
            Ok(deck) => LevelKind::Queue { deck, queue_length_limit },
            Err(error) => {
                let (field, value) = match error {
                    DeckError::NotPositive if queuing.queues <= 0 => ("queues", queuing.queues),
                    DeckError::DeckTooLarge => ("queues", queuing.queues),
                    _ => ("handSize", queuing.hand_size),
                };
                self.fault(FaultKind::Invalid, &path(field), &error.to_string(), Some(value.into()));
                LevelKind::Reject
            }
        }
    }

    fn at_least_zero(&mut self, (value, path): (i32, &str), otherwise: &str) -> u32 {
        u32::try_from(value).unwrap_or_else(|_| {
            self.fault(FaultKind::Invalid, path, otherwise, Some(value.into()));
            0
        })
    }

    fn percent(&mut self, (value, path): (i32, &str)) -> u32 {
        let wording = "must be between 0 and 100, inclusive";
        if value > 100 {
            self.fault(FaultKind::Invalid, path, wording, Some(value.into()));
            return 0;
        }
        self.at_least_zero((value, path), wording)
    }

    fn fault(&mut self, kind: FaultKind, path: &str, detail: &str, value: Option<serde_json::Value>) {
        let fault = Fault::new(kind, path, detail).of("PriorityLevelConfiguration", self.name);
        self.faults.push(match value {
            Some(value) => fault.with_value(value),
            None => fault,
        });
    }
}
