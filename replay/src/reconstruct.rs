//! Who waited how long, as far as a log lets one know.
//!
//! A log tells when each request came and ended. Of the wait in between it tells only where a request was slow. But it
//! also tells, by all those ends, when seats became free: a level that has more requests than seats runs as many as it
//! has seats, and those that ended first are taken to have begun first. With one seat this is exact. The seats themselves
//! follow from the objects and, as they are lent and borrowed, from the demand, which the log tells too.
//!
//! What the log does not tell is when, within ten seconds, the server adjusted its limits. While a level's limit rounds to
//! zero that moment decides how long its first requests wait. [`first_adjustment`] takes the moment that leaves the
//! least to explain.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::sync::Arc;

use maitred::borrow::{Integrator, Limits, PeriodDemand};
use maitred::engine::ADJUSTMENT_PERIOD;

use crate::record::Record;
use crate::spill::{Pass, Sorted};
use crate::waits::{Waits, WaitsWriter};

/// The levels under which a log was recorded.
#[derive(Debug, Clone)]
pub struct Ground {
    /// Name of each level, and whether it queues; on others nobody waits.
    pub levels: Vec<(Arc<str>, bool)>,
    /// Level of each schema.
    pub level_of: Vec<usize>,
    /// Limits of the levels when the log begins.
    pub limits: Limits,
    /// Which of a record's classes tells its schema.
    pub set: usize,
    /// For how long a watch holds its seats where the log does not tell.
    pub watch_ns: u64,
}

/// Requests, from the first on, by which the first adjustment is judged.
const JUDGED: u64 = 100_000;
/// Moments judged at first lie so far apart, and then those around the best of them.
const COARSE_NS: u64 = ADJUSTMENT_PERIOD / 20;
const FINE_NS: u64 = COARSE_NS / 5;

/// When after the first request the server adjusted its limits for the first time, so far as the log tells: the moment
/// within ten seconds that leaves the least unexplained; of several the latest.
///
/// # Errors
/// When the requests cannot be read.
pub fn first_adjustment(sorted: &mut Sorted, ground: &Ground) -> io::Result<u64> {
    let mut best = (f64::INFINITY, ADJUSTMENT_PERIOD);
    let mut judge = |best: &mut (f64, u64), first: u64| -> io::Result<()> {
        let mut judge = Judge::default();
        History::new(sorted.pass(), ground, first, true).run(JUDGED, &mut judge)?;
        if judge.unexplained < best.0 {
            *best = (judge.unexplained, first);
        }
        Ok(())
    };
    for step in (1..=ADJUSTMENT_PERIOD / COARSE_NS).rev() {
        judge(&mut best, step * COARSE_NS)?;
    }
    let around = best.1;
    for step in (1..COARSE_NS / FINE_NS).rev().map(|step| step * FINE_NS) {
        if around + step < ADJUSTMENT_PERIOD {
            judge(&mut best, around + step)?;
        }
        judge(&mut best, around - step)?;
    }
    Ok(best.1)
}

/// The wait of every request; unknown where one ended before it can have begun.
///
/// # Errors
/// When the requests cannot be read or the waits cannot be kept.
pub fn waits(sorted: &mut Sorted, ground: &Ground, first_adjustment: u64) -> io::Result<Waits> {
    let mut writer = WaitsWriter::default();
    History::new(sorted.pass(), ground, first_adjustment, false).run(u64::MAX, &mut writer)?;
    writer.finish()
}

/// Who is told what is found.
trait Finder {
    fn found(&mut self, place: u64, flight: &Flight, wait_ns: Option<u64>) -> io::Result<()>;
}

impl Finder for WaitsWriter {
    fn found(&mut self, place: u64, _: &Flight, wait_ns: Option<u64>) -> io::Result<()> {
        self.set(place, wait_ns)
    }
}

/// Sums the seconds that are left to explain: those that requests seem to have run for, all of its time where one ended
/// before it can have begun, and how far the waits told are from those found.
#[derive(Default)]
struct Judge {
    unexplained: f64,
}

impl Finder for Judge {
    fn found(&mut self, _: u64, flight: &Flight, wait_ns: Option<u64>) -> io::Result<()> {
        let wait_ns = wait_ns.unwrap_or(0);
        let off = match flight.told_wait_ns {
            Some(told) => told.abs_diff(wait_ns),
            None => flight.total_ns.saturating_sub(wait_ns),
        };
        self.unexplained += off as f64 / 1e9;
        Ok(())
    }
}

#[derive(Debug)]
struct Flight {
    level: usize,
    received: i64,
    total_ns: u64,
    told_wait_ns: Option<u64>,
    seats: u64,
    runs: bool,
}

#[derive(Debug)]
struct Level {
    name: Arc<str>,
    queues: bool,
    limit: u64,
    in_use: u64,
    in_flight: u64,
    demand: Integrator,
    /// End and place of those that came; also of some that run or have ended by now.
    waiting: BinaryHeap<Reverse<(i64, u64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End,
    Begin,
}

/// The past of a server, event by event.
struct History<'a> {
    records: Pass<'a>,
    ground: &'a Ground,
    limits: Limits,
    levels: Vec<Level>,
    flights: HashMap<u64, Flight>,
    events: BinaryHeap<Reverse<(i64, Event, u64)>>,
    /// Whether to look away from the waits told.
    blind: bool,
    first_adjustment: u64,
    /// When the first period began.
    start: i64,
}

impl<'a> History<'a> {
    fn new(records: Pass<'a>, ground: &'a Ground, first_adjustment: u64, blind: bool) -> Self {
        let limits = ground.limits.clone();
        let levels = ground
            .levels
            .iter()
            .map(|(name, queues)| Level {
                name: name.clone(),
                queues: *queues,
                limit: current(&limits, name),
                in_use: 0,
                in_flight: 0,
                demand: Integrator::new(0),
                waiting: BinaryHeap::new(),
            })
            .collect();
        Self {
            records,
            ground,
            limits,
            levels,
            flights: HashMap::new(),
            events: BinaryHeap::new(),
            blind,
            first_adjustment,
            start: 0,
        }
    }

    fn run(mut self, most: u64, finder: &mut impl Finder) -> io::Result<()> {
        let mut next = self.records.next()?;
        let first_arrival = next.map_or(0, |record| record.received);
        let mut adjust_at = first_arrival.saturating_add_unsigned(self.first_adjustment);
        // The period that ends then began before the log, and for all that is known idle.
        self.start = adjust_at.saturating_sub_unsigned(ADJUSTMENT_PERIOD);
        let mut place = 0;
        loop {
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let arrival = next.map(|record| record.received);
            let Some(now) = event.into_iter().chain(arrival).min() else { return Ok(()) };
            if adjust_at <= now {
                self.adjust(adjust_at, finder)?;
                adjust_at = adjust_at.saturating_add_unsigned(ADJUSTMENT_PERIOD);
            } else if event == Some(now) {
                self.event(now, finder)?;
            } else if let Some(record) = next {
                self.arrive(place, &record, finder)?;
                place += 1;
                next = if place < most { self.records.next()? } else { None };
            }
        }
    }

    fn arrive(&mut self, place: u64, record: &Record, finder: &mut impl Finder) -> io::Result<()> {
        let class = &record.classes[self.ground.set];
        let mut flight = Flight {
            level: self.ground.level_of[class.schema as usize],
            received: record.received,
            total_ns: record.total_ns.unwrap_or(self.ground.watch_ns),
            told_wait_ns: record.told_wait_ns,
            seats: class.initial_seats.into(),
            runs: false,
        };
        if record.refused {
            flight.total_ns = 0;
            return finder.found(place, &flight, Some(0));
        }
        let now = record.received;
        let end = now.saturating_add_unsigned(flight.total_ns);
        self.events.push(Reverse((end, Event::End, place)));
        if let Some(wait_ns) = flight.told_wait_ns.filter(|_| !self.blind) {
            self.events.push(Reverse((now.saturating_add_unsigned(wait_ns), Event::Begin, place)));
        }
        let level = &mut self.levels[flight.level];
        level.in_flight += flight.seats;
        level.demand.set(elapsed(self.start, now), level.in_flight as f64);
        level.waiting.push(Reverse((end, place)));
        let index = flight.level;
        self.flights.insert(place, flight);
        self.begin_all(now, index, finder)
    }

    fn event(&mut self, now: i64, finder: &mut impl Finder) -> io::Result<()> {
        let Some(Reverse((_, event, place))) = self.events.pop() else { return Ok(()) };
        match event {
            Event::Begin => match self.flights.get(&place) {
                // The log knows better than the limit.
                Some(flight) if !flight.runs => self.begin(now, place, finder),
                _ => Ok(()),
            },
            Event::End => {
                let Some(flight) = self.flights.remove(&place) else { return Ok(()) };
                let level = &mut self.levels[flight.level];
                level.in_flight -= flight.seats;
                level.demand.set(elapsed(self.start, now), level.in_flight as f64);
                if flight.runs {
                    level.in_use -= flight.seats;
                } else {
                    finder.found(place, &flight, None)?;
                }
                self.begin_all(now, flight.level, finder)
            }
        }
    }

    fn adjust(&mut self, now: i64, finder: &mut impl Finder) -> io::Result<()> {
        let elapsed = elapsed(self.start, now);
        let levels = &mut self.levels;
        self.limits.adjust(|name| match levels.iter_mut().find(|level| &*level.name == name) {
            Some(level) => level.demand.reset(elapsed),
            None => PeriodDemand::empty(0.0),
        });
        for index in 0..self.levels.len() {
            self.levels[index].limit = current(&self.limits, &self.levels[index].name);
            self.begin_all(now, index, finder)?;
        }
        Ok(())
    }

    /// Lets those begin for whom there are seats, the one that ended first before the others.
    fn begin_all(&mut self, now: i64, index: usize, finder: &mut impl Finder) -> io::Result<()> {
        loop {
            let level = &mut self.levels[index];
            if level.queues && level.in_use >= level.limit {
                return Ok(());
            }
            let Some(Reverse((_, place))) = level.waiting.pop() else { return Ok(()) };
            if self.flights.get(&place).is_some_and(|flight| !flight.runs) {
                self.begin(now, place, finder)?;
            }
        }
    }

    fn begin(&mut self, now: i64, place: u64, finder: &mut impl Finder) -> io::Result<()> {
        let Some(flight) = self.flights.get_mut(&place) else { return Ok(()) };
        flight.runs = true;
        self.levels[flight.level].in_use += flight.seats;
        let wait_ns = match flight.told_wait_ns {
            Some(wait_ns) if !self.blind => wait_ns,
            _ => elapsed(flight.received, now),
        };
        finder.found(place, flight, Some(wait_ns))
    }
}

fn current(limits: &Limits, name: &str) -> u64 {
    limits.level(name).map_or(0, |level| level.current)
}

fn elapsed(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}
