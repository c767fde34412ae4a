//! The requests of a log as traffic.

use std::io;

use crate::likeness::{Kinds, ServiceTimes};
use crate::play::{Arrival, Fate, Seats, Traffic, play};
use crate::record::Record;
use crate::spill::{Pass, Sorted};
use crate::waits::Waits;

/// How a log is played.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Arrivals come this many times as fast as in the log; what each runs for stays.
    pub speed: f64,
    /// For how long a request may wait.
    pub wait_limit_ns: u64,
    /// For how long a watch holds its seats where the log does not tell.
    pub watch_ns: u64,
}

/// Who looks on while a log is played.
pub trait Observer {
    /// The fate of a request is known.
    fn fate(&mut self, now: u64, fate: &Fate);
    /// What a level's limit is from now on.
    fn limit(&mut self, now: u64, level: usize, seats: u64);
}

/// For how long each request of a log ran, or would have run.
///
/// Service time is the time from arrival to end, less the wait. A request that was refused has none, and one whose wait
/// is not known has one that is not known; each is given the mean of those like it.
#[derive(Debug)]
pub struct Services {
    waits: Waits,
    means: ServiceTimes,
}

impl Services {
    /// The service times that go with these waits; `see` is called with each request whose wait is known, and the wait.
    ///
    /// # Errors
    /// When the requests or the waits cannot be read.
    pub fn new(
        sorted: &mut Sorted,
        kinds: &Kinds,
        watch_ns: u64,
        mut waits: Waits,
        mut see: impl FnMut(&Record, u64),
    ) -> io::Result<Self> {
        let mut means = kinds.table();
        let mut next_wait = waits.read()?;
        let mut records = sorted.pass();
        while let Some(record) = records.next()? {
            if let Some(wait_ns) = next_wait()?
                && !record.refused
            {
                see(&record, wait_ns);
                means.add(record.kind, total_ns(&record, watch_ns).saturating_sub(wait_ns));
            }
        }
        drop(next_wait);
        Ok(Self { waits, means })
    }
}

fn total_ns(record: &Record, watch_ns: u64) -> u64 {
    record.total_ns.unwrap_or(watch_ns)
}

/// Plays the log through `seats`, by the classes of the set `set` of objects; `progress` is told now and then how many
/// requests came. Returns the
/// moment of the last event.
///
/// # Errors
/// When the requests or the waits cannot be read.
pub fn playback(
    sorted: &mut Sorted,
    services: &mut Services,
    set: usize,
    seats: &mut impl Seats,
    pace: &Pace,
    observer: &mut impl Observer,
    progress: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let mut records = sorted.pass();
    let next = records.next()?;
    let mut playback = Playback {
        start: next.map_or(0, |record| record.received),
        records,
        next,
        set,
        pace,
        waits: services.waits.read()?,
        means: &services.means,
        observer,
        taken: 0,
        progress,
    };
    play(seats, &mut playback, pace.wait_limit_ns)
}

struct Playback<'a, W, O> {
    records: Pass<'a>,
    next: Option<Record>,
    /// The first arrival, nanoseconds since 1970.
    start: i64,
    set: usize,
    pace: &'a Pace,
    /// Gives the wait of the next request, as it was.
    waits: W,
    means: &'a ServiceTimes,
    observer: &'a mut O,
    taken: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl<W, O> Playback<'_, W, O> {
    fn at(&self, record: &Record) -> u64 {
        let after = record.received.saturating_sub(self.start).max(0);
        if self.pace.speed == 1.0 { after as u64 } else { (after as f64 / self.pace.speed) as u64 }
    }
}

impl<W: FnMut() -> io::Result<Option<u64>>, O: Observer> Traffic for Playback<'_, W, O> {
    fn next_at(&mut self) -> io::Result<Option<u64>> {
        Ok(self.next.as_ref().map(|record| self.at(record)))
    }

    fn take(&mut self) -> io::Result<Arrival> {
        let record = self.next.take().ok_or(io::ErrorKind::UnexpectedEof)?;
        self.taken += 1;
        if self.taken.is_multiple_of(1 << 12) {
            (self.progress)(self.taken);
        }
        self.next = self.records.next()?;
        let total_ns = total_ns(&record, self.pace.watch_ns);
        let like = || self.means.of(record.kind);
        let service_ns = match (self.waits)()? {
            _ if record.refused => like(),
            Some(wait_ns) => total_ns.saturating_sub(wait_ns),
            None => total_ns.min(like()),
        };
        Ok(Arrival { at: self.at(&record), class: record.classes[self.set], service_ns, tag: 0 })
    }

    fn fate(&mut self, now: u64, fate: &Fate) -> io::Result<()> {
        self.observer.fate(now, fate);
        Ok(())
    }

    fn limit(&mut self, now: u64, level: usize, seats: u64) {
        self.observer.limit(now, level, seats);
    }
}
