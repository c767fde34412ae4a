//! The limits of all levels together: bounds from the configuration, current limits from demand.
//!
//! [`Limits`] is a controller without clock or lock: its host tells it the levels ([`Limits::digest`]) and what each
//! wanted since ([`Limits::adjust`]), and reads the answers. [`divide`] is the rule inside, on plain figures.
//! Sources of the rules: `vectors/limits.jsonl` and `corpus/limits.json`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{
    allocate::{Allocation, AllocationError, Part, allocate},
    demand::{PeriodDemand, SeatDemandStats},
};
use crate::{
    api::v1,
    fidelity::Fidelity,
    shuffle::{Deck, DeckError},
};

/// Name of the level that is never limited. Always there.
pub const EXEMPT: &str = "exempt";
/// Name of the level for requests that no schema matches. Always there.
pub const CATCH_ALL: &str = "catch-all";

/// `nominalConcurrencyShares` of a limited level that does not say.
const DEFAULT_SHARES: i32 = 30;

/// Part of its nominal limit that one request may take by estimate.
const MAX_SEATS_PART: f64 = 0.15;

/// What a level's object says that bears on its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelSpec {
    /// Name of the object.
    pub name: Arc<str>,
    /// Requests of this level are never held back; it takes part with what it really uses.
    pub exempt: bool,
    /// `nominalConcurrencyShares`.
    pub shares: u32,
    /// `lendablePercent`, 0 to 100.
    pub lendable_percent: u32,
    /// `borrowingLimitPercent`; absent: may borrow up to the server's limit. Exempt levels have none.
    pub borrowing_limit_percent: Option<u32>,
    /// `queues` and `handSize` of a level that queues; absent on others.
    pub queuing: Option<(u32, u32)>,
}

impl LevelSpec {
    /// The specification that the mandatory level `name` has where no object gave it another.
    fn mandatory(name: &'static str) -> LevelSpec {
        let exempt = name == EXEMPT;
        LevelSpec {
            name: name.into(),
            exempt,
            shares: if exempt { 0 } else { 5 },
            lendable_percent: 0,
            borrowing_limit_percent: None,
            queuing: None,
        }
    }

    /// What an object says. Absent fields have their defaults, and numbers that validation refuses count as 0.
    pub fn from_object(object: &v1::PriorityLevelConfiguration) -> Result<LevelSpec, Refusal> {
        let number = |number: i32| u32::try_from(number).unwrap_or(0);
        let common = |shares: i32, lendable: Option<i32>| LevelSpec {
            name: object.metadata.name.as_str().into(),
            exempt: false,
            shares: number(shares),
            lendable_percent: number(lendable.unwrap_or(0)),
            borrowing_limit_percent: None,
            queuing: None,
        };
        let spec = &object.spec;
        match (&*spec.type_, &spec.limited, &spec.exempt) {
            ("Exempt", None, Some(exempt)) => {
                let shares = exempt.nominal_concurrency_shares.unwrap_or(0);
                Ok(LevelSpec { exempt: true, ..common(shares, exempt.lendable_percent) })
            }
            ("Limited", Some(limited), None) => {
                let response = &limited.limit_response;
                if (response.type_ == "Reject") != response.queuing.is_none() {
                    return Err(Refusal::BrokenUnion);
                }
                let shares = limited.nominal_concurrency_shares.unwrap_or(DEFAULT_SHARES);
                Ok(LevelSpec {
                    borrowing_limit_percent: limited.borrowing_limit_percent.map(number),
                    queuing: response.queuing.as_ref().map(|q| (number(q.queues), number(q.hand_size))),
                    ..common(shares, limited.lendable_percent)
                })
            }
            _ => Err(Refusal::BrokenUnion),
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.exempt != (&*self.name == EXEMPT) {
            return Err(Refusal::ExemptByNameOnly);
        }
        match self.queuing {
            Some((queues, hand_size)) => Deck::new(queues, hand_size).map(drop).map_err(Refusal::Deck),
            None => Ok(()),
        }
    }
}

/// Why a level of a digest is treated as if it were not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its hands cannot be dealt.
    Deck(DeckError),
    /// The level named `exempt`, and no other, is exempt.
    ExemptByNameOnly,
    /// `type` and the fields that go with it disagree.
    BrokenUnion,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Deck(error) => write!(f, "{error}"),
            Refusal::ExemptByNameOnly => {
                write!(f, "the level named \"exempt\", and no other, must be exempt")
            }
            Refusal::BrokenUnion => write!(f, "type and the fields that are set disagree"),
        }
    }
}

/// Figures of a level before they were rounded to whole seats, to show what rounding did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Exact {
    /// Before it was rounded up.
    pub nominal: f64,
    /// Seats that may be lent, before rounding to the nearest.
    pub lendable: f64,
    /// Seats that may be borrowed, before rounding to the nearest.
    pub borrowing: f64,
    /// The latest current limit before rounding to the nearest.
    pub current: f64,
}

/// A level and its limits. All limits are whole seats.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelLimits {
    /// The specification in force. One that lives on without an object keeps its last.
    pub spec: LevelSpec,
    /// It has no object any more and goes when its last request has gone.
    pub draining: bool,
    /// Its share of the server's limit.
    pub nominal: u64,
    /// What it keeps whatever others want: nominal less what may be lent.
    pub min: u64,
    /// What it may have if others leave it: nominal plus what may be borrowed.
    pub max: u64,
    /// What it may use now. Of an exempt level: what it is taken to use.
    pub current: u64,
    /// Most seats that a work estimator may give a request of this level; set once the level queues.
    pub max_seats: Option<u64>,
    /// Its demand.
    pub demand: SeatDemandStats,
    /// The same figures unrounded.
    pub exact: Exact,
}

impl LevelLimits {
    fn new(spec: LevelSpec) -> LevelLimits {
        LevelLimits {
            spec,
            draining: false,
            nominal: 0,
            min: 0,
            max: 0,
            current: 0,
            max_seats: None,
            demand: SeatDemandStats::default(),
            exact: Exact::default(),
        }
    }

    /// Sets the bounds from the level's part of all shares. Returns what the level may lend.
    fn bound(&mut self, server_limit: u32, all_shares: u64) -> u64 {
        let percent = |of: u64, percent: u32| of as f64 * f64::from(percent) / 100.0;
        let exact = &mut self.exact;
        exact.nominal = if all_shares == 0 {
            0.0
        } else {
            f64::from(server_limit) * f64::from(self.spec.shares) / all_shares as f64
        };
        self.nominal = exact.nominal.ceil() as u64;
        exact.lendable = percent(self.nominal, self.spec.lendable_percent);
        exact.borrowing = match self.spec.borrowing_limit_percent {
            Some(limit) => percent(self.nominal, limit),
            None => f64::from(server_limit),
        };
        let lendable = (exact.lendable.round() as u64).min(self.nominal);
        self.min = self.nominal - lendable;
        self.max = self.nominal + exact.borrowing.round() as u64;
        if let Some((_, hand_size)) = self.spec.queuing {
            let part = (self.nominal as f64 * MAX_SEATS_PART).ceil() as u64;
            self.max_seats = Some(part.min(self.nominal / u64::from(hand_size)).max(1));
        }
        lendable
    }

    fn claim(&self) -> Claim {
        Claim {
            exempt: self.spec.exempt,
            has_shares: self.spec.shares > 0,
            nominal: self.nominal,
            min: self.min,
            max: self.max,
            current: self.current,
            high_watermark: self.demand.high_watermark.max(0) as u64,
            smoothed: self.demand.smoothed,
        }
    }
}

/// What a digest did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Digest {
    /// Levels that were not there before, by name.
    pub added: Vec<Arc<str>>,
    /// Levels that are gone.
    pub removed: Vec<Arc<str>>,
    /// Levels without an object that stay until their last request has gone, including those of earlier digests.
    pub draining: Vec<Arc<str>>,
    /// Levels that were treated as if they were not there.
    pub refused: Vec<(Arc<str>, Refusal)>,
}

/// What an adjustment did, besides the limits themselves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adjustment {
    /// Seats by which the current limits, of exempt levels too, add up to more than the nominal ones.
    pub over_committed: u64,
    /// Levels whose limit would have been 0 and was raised to one seat. Under [`Fidelity::Corrected`] only.
    pub raised: Vec<Arc<str>>,
    /// Current limit over target of the levels that no bound holds; 0 when exempt requests leave nothing to divide.
    pub fair_fraction: f64,
    /// Why nothing could be divided, so that current limits stayed as they were.
    pub fault: Option<AllocationError>,
}

/// All levels with their limits.
///
/// The host calls [`digest`](Limits::digest) with each new set of objects, and again when a level has drained, and
/// [`adjust`](Limits::adjust) every ten seconds and after every digest. Not for several threads at once; keep it
/// where objects are applied. Both calls allocate.
#[derive(Debug, Clone)]
pub struct Limits {
    fidelity: Fidelity,
    server_limit: u32,
    levels: BTreeMap<Arc<str>, LevelLimits>,
}

impl Limits {
    /// One with no levels yet; the first digest makes the mandatory ones.
    pub fn new(fidelity: Fidelity) -> Limits {
        Limits { fidelity, server_limit: 0, levels: BTreeMap::new() }
    }

    /// The limits of a server that has just started with these levels and has no requests yet.
    pub fn at_rest(
        fidelity: Fidelity,
        server_limit: u32,
        specs: &[LevelSpec],
    ) -> (Limits, Digest, Adjustment) {
        let mut limits = Limits::new(fidelity);
        let digest = limits.digest(server_limit, specs, |_| false);
        let adjustment = limits.adjust(|_| PeriodDemand::empty(0.0));
        (limits, digest, adjustment)
    }

    /// Takes in a new set of levels and the server's concurrency limit, and sets the bounds of all.
    ///
    /// `specs` are the levels for which there are objects, each name once: a mandatory level that has none is kept with
    /// the specification that it had, or made with the one prescribed. A level that is not among them goes, unless
    /// `busy` says that requests of it wait or run; then it keeps its share until a later digest finds it idle.
    /// Current limits stay until the adjustment that has to follow; a new level starts half-way between nominal and
    /// min.
    pub fn digest(
        &mut self,
        server_limit: u32,
        specs: &[LevelSpec],
        mut busy: impl FnMut(&str) -> bool,
    ) -> Digest {
        let mut digest = Digest::default();
        let mut old = std::mem::take(&mut self.levels);
        for spec in specs {
            if let Err(refusal) = spec.check() {
                digest.refused.push((spec.name.clone(), refusal));
                continue;
            }
            match old.remove(&spec.name) {
                Some(level) => self.insert(LevelLimits { spec: spec.clone(), draining: false, ..level }),
                None => self.add(spec.clone(), &mut digest),
            }
        }
        for (name, level) in old {
            if [EXEMPT, CATCH_ALL].contains(&&*name) {
                self.insert(level);
            } else if busy(&name) {
                digest.draining.push(name);
                self.insert(LevelLimits { draining: true, ..level });
            } else {
                digest.removed.push(name);
            }
        }
        for name in [EXEMPT, CATCH_ALL] {
            if !self.levels.contains_key(name) {
                self.add(LevelSpec::mandatory(name), &mut digest);
            }
        }
        self.bound(server_limit, &digest.added);
        digest
    }

    /// Changes the server's concurrency limit and with it the bounds of all levels. An adjustment has to follow.
    pub fn set_server_limit(&mut self, server_limit: u32) {
        self.bound(server_limit, &[]);
    }

    /// Takes in what each level wanted since the last adjustment and sets all current limits.
    ///
    /// `demand` is asked once for each level and has to end that level's period ([`Integrator::reset`]).
    ///
    /// [`Integrator::reset`]: super::Integrator::reset
    pub fn adjust(&mut self, mut demand: impl FnMut(&str) -> PeriodDemand) -> Adjustment {
        for (name, level) in &mut self.levels {
            level.demand.update(&demand(name));
        }
        let claims: Vec<Claim> = self.levels.values().map(LevelLimits::claim).collect();
        let division = divide(self.fidelity, &claims);
        for (level, seats) in self.levels.values_mut().zip(&division.seats) {
            level.current = seats.current;
            level.exact.current = seats.exact;
        }
        let raised = self.levels.keys().zip(&division.seats).filter(|(_, seats)| seats.raised);
        Adjustment {
            over_committed: division.over_committed,
            raised: raised.map(|(name, _)| name.clone()).collect(),
            fair_fraction: division.fair_fraction,
            fault: division.fault,
        }
    }

    /// The level `name`.
    pub fn level(&self, name: &str) -> Option<&LevelLimits> {
        self.levels.get(name)
    }

    /// All levels, by name.
    pub fn levels(&self) -> impl ExactSizeIterator<Item = &LevelLimits> {
        self.levels.values()
    }

    /// The server's concurrency limit.
    pub fn server_limit(&self) -> u32 {
        self.server_limit
    }

    /// Sum of all nominal limits. Above the server's limit by what rounding up added, less than one seat a level.
    pub fn nominal_sum(&self) -> u64 {
        self.levels.values().map(|level| level.nominal).sum()
    }

    fn insert(&mut self, level: LevelLimits) {
        self.levels.insert(level.spec.name.clone(), level);
    }

    fn add(&mut self, spec: LevelSpec, digest: &mut Digest) {
        digest.added.push(spec.name.clone());
        self.insert(LevelLimits::new(spec));
    }

    fn bound(&mut self, server_limit: u32, added: &[Arc<str>]) {
        self.server_limit = server_limit;
        let added: BTreeSet<&Arc<str>> = added.iter().collect();
        let all_shares = self.levels.values().map(|level| u64::from(level.spec.shares)).sum();
        for (name, level) in &mut self.levels {
            let lendable = level.bound(server_limit, all_shares);
            if added.contains(name) {
                level.current = level.nominal - lendable / 2;
                level.exact.current = level.current as f64;
            }
        }
    }
}

/// A level's figures for [`divide`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claim {
    /// Not limited: it is taken to use its high watermark, or its min if that is more.
    pub exempt: bool,
    /// It has shares, so [`Fidelity::Corrected`] leaves it a seat.
    pub has_shares: bool,
    /// Nominal limit, seats.
    pub nominal: u64,
    /// Lower bound, seats; not above `nominal`.
    pub min: u64,
    /// Upper bound, seats; not below `nominal`.
    pub max: u64,
    /// Limit so far, seats: stays where nothing can be divided.
    pub current: u64,
    /// Greatest demand of the period, seats.
    pub high_watermark: u64,
    /// Smoothed demand, seats.
    pub smoothed: f64,
}

impl Claim {
    /// What the level wanted in the period within what is its own, and at least its min.
    fn min_current(&self) -> u64 {
        if self.exempt {
            self.min.max(self.high_watermark)
        } else {
            self.min.max(self.nominal.min(self.high_watermark))
        }
    }

    /// Whether its limit must not be 0. (Without any seats in the server there are none to be entitled to.)
    fn is_entitled_to_a_seat(&self) -> bool {
        !self.exempt && self.has_shares && self.nominal > 0
    }

    fn part(&self) -> Part {
        let lower = self.min_current() as f64;
        Part { lower, upper: self.max as f64, target: lower.max(self.smoothed) }
    }
}

/// What [`divide`] gives one level.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seats {
    /// Its current limit.
    pub current: u64,
    /// The same before rounding.
    pub exact: f64,
    /// It would have been 0 and was raised to one seat.
    pub raised: bool,
}

impl Seats {
    fn whole(current: u64) -> Seats {
        Seats { current, exact: current as f64, raised: false }
    }

    fn rounded(exact: f64) -> Seats {
        Seats { current: exact.round() as u64, exact, raised: false }
    }

    /// Gives an entitled level that has no seat one. True when it did.
    fn raise_if(&mut self, entitled: bool) -> bool {
        let raise = entitled && self.current == 0;
        if raise {
            (self.current, self.raised) = (1, true);
        }
        raise
    }
}

/// The answer of [`divide`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Division {
    /// In the order of the claims.
    pub seats: Vec<Seats>,
    /// See [`Adjustment::over_committed`].
    pub over_committed: u64,
    /// See [`Adjustment::fair_fraction`].
    pub fair_fraction: f64,
    /// See [`Adjustment::fault`].
    pub fault: Option<AllocationError>,
}

/// Divides the sum of all nominal limits among the levels that are limited, by their bounds and their demand.
///
/// Exempt levels come first with what they use. When they leave too little for what the others hold by right, these
/// get their min and a part of the rest of their claim. Else each gets between its claim and its max, in proportion to
/// its target; the two fidelities differ in how much is divided (see [`Fidelity`]).
pub fn divide(fidelity: Fidelity, claims: &[Claim]) -> Division {
    let sum_over = |exempt: bool, figure: fn(&Claim) -> u64| -> i64 {
        claims.iter().filter(|claim| claim.exempt == exempt).map(figure).sum::<u64>() as i64
    };
    let total = claims.iter().map(|claim| claim.nominal).sum::<u64>() as i64;
    let left = total - sum_over(true, Claim::min_current);
    let (mins, min_currents) = (sum_over(false, |claim| claim.min), sum_over(false, Claim::min_current));

    let mut division = Division {
        seats: claims.iter().map(|claim| Seats::whole(claim.min_current())).collect(),
        ..Division::default()
    };
    let limited = || (0..claims.len()).filter(|&i| !claims[i].exempt);
    if left <= mins {
        for i in limited() {
            division.seats[i] = Seats::whole(claims[i].min);
        }
    } else if left <= min_currents {
        let fraction = (left - mins) as f64 / (min_currents - mins) as f64;
        for i in limited() {
            let added = (claims[i].min_current() - claims[i].min) as f64 * fraction;
            division.seats[i] = Seats {
                exact: claims[i].min as f64 + added,
                ..Seats::whole(claims[i].min + added.round() as u64)
            };
        }
    } else {
        let parts: Vec<Part> = limited().map(|i| claims[i].part()).collect();
        let divided = match fidelity {
            Fidelity::Kubernetes => allocate(total, &parts).map(Divided::from),
            Fidelity::Corrected => {
                let entitled: Vec<bool> = limited().map(|i| claims[i].is_entitled_to_a_seat()).collect();
                divide_what_is_left(left, parts, &entitled)
            }
        };
        match divided {
            Ok(divided) => {
                division.fair_fraction = divided.proportion;
                for (i, seats) in limited().zip(divided.seats) {
                    division.seats[i] = seats;
                }
            }
            Err(fault) => {
                division.fault = Some(fault);
                for i in limited() {
                    division.seats[i] = Seats::whole(claims[i].current);
                }
            }
        }
    }
    if fidelity == Fidelity::Corrected {
        for (claim, seats) in claims.iter().zip(&mut division.seats) {
            seats.raise_if(claim.is_entitled_to_a_seat());
        }
    }
    let current = division.seats.iter().map(|seats| seats.current).sum::<u64>();
    division.over_committed = current.saturating_sub(total as u64);
    division
}

/// Seats of the limited levels, in their order.
struct Divided {
    seats: Vec<Seats>,
    proportion: f64,
}

impl From<Allocation> for Divided {
    fn from(allocation: Allocation) -> Divided {
        Divided {
            seats: allocation.amounts.into_iter().map(Seats::rounded).collect(),
            proportion: allocation.proportion,
        }
    }
}

/// Divides `left`, or as much of it as the upper bounds admit, such that entitled parts get at least one seat.
///
/// A part that comes out as 0 is set to one seat and the others are divided again without that seat, so that only
/// the lower bounds of all can make the sum pass `left`.
fn divide_what_is_left(
    left: i64,
    mut parts: Vec<Part>,
    entitled: &[bool],
) -> Result<Divided, AllocationError> {
    let allocate_within = |parts: &[Part]| {
        let most: f64 = parts.iter().map(|part| part.upper).sum();
        // Saturates; sums of whole numbers are exact in doubles far beyond any number of seats.
        allocate(left.min(most as i64), parts)
    };
    let mut divided = Divided::from(allocate_within(&parts)?);
    loop {
        let mut raised_any = false;
        for ((seats, part), &entitled) in divided.seats.iter_mut().zip(&mut parts).zip(entitled) {
            if seats.raise_if(entitled) {
                *part = Part { lower: 1.0, upper: 1.0, target: 1.0 };
                raised_any = true;
            }
        }
        if !raised_any {
            return Ok(divided);
        }
        // An error says that the others cannot give up more: they keep their lower bounds.
        let again = allocate_within(&parts).ok();
        divided.proportion = again.as_ref().map_or(0.0, |again| again.proportion);
        for (i, seats) in divided.seats.iter_mut().enumerate().filter(|(_, seats)| !seats.raised) {
            *seats = Seats::rounded(again.as_ref().map_or(parts[i].lower, |again| again.amounts[i]));
        }
    }
}
