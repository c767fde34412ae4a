//! Plays arrivals through an admission engine on simulated time.
//!
//! Times are nanoseconds from the start of the play. Of what falls on one moment, what the engine does by itself comes
//! first, then requests end, then waits, then new requests come; so every run gives the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;

use crate::record::Class;

/// Why a request did not run. The names are those of the reference's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Its queue was full.
    QueueFull,
    /// Its level does not queue and had no seat.
    ConcurrencyLimit,
    /// It waited for as long as a request may.
    TimeOut,
    /// The engine had no ticket for it.
    OutOfTickets,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::QueueFull, Self::ConcurrencyLimit, Self::TimeOut, Self::OutOfTickets];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::TimeOut => "time-out",
            Self::OutOfTickets => "out-of-tickets",
        }
    }
}

/// The answer to an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It runs.
    Runs,
    /// It waits.
    Waits,
    /// It was turned away.
    Refused(Refusal),
}

/// What a play needs of an engine. Requests are named by numbers that the player chooses and never uses twice; its times
/// never go back. After each call that may let waiting requests run it asks for them with [`Seats::granted`].
pub trait Seats {
    /// A request comes.
    fn arrive(&mut self, now: u64, id: u64, class: &Class) -> Answer;
    /// A running request ends.
    fn finish(&mut self, now: u64, id: u64);
    /// A waiting request has waited for too long.
    fn time_out(&mut self, now: u64, id: u64);
    /// The next moment at which the engine itself has something to do: to give back seats that were held after an end, to
    /// adjust limits.
    fn next_tick(&self) -> u64;
    /// Does what is due. True if limits were adjusted.
    fn tick(&mut self, now: u64) -> bool;
    /// Appends the waiting requests that were let run since the last call.
    fn granted(&mut self, ids: &mut Vec<u64>);
    /// Calls `see` with the index and the current limit of each level.
    fn limits(&self, see: &mut dyn FnMut(usize, u64));
}

/// A request that is about to come.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When.
    pub at: u64,
    /// What it is.
    pub class: Class,
    /// For how long it runs.
    pub service_ns: u64,
    /// For its traffic to know it by.
    pub tag: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy)]
pub struct Fate {
    /// The request.
    pub arrival: Arrival,
    /// The wait before it ran, or why it did not.
    pub outcome: Result<u64, Refusal>,
}

/// Where requests come from, and who is told what becomes of them.
pub trait Traffic {
    /// When the next request comes, as far as is known now; `None` if none comes unless one ends.
    ///
    /// # Errors
    /// When the requests cannot be read.
    fn next_at(&mut self) -> io::Result<Option<u64>>;
    /// Takes that request; called only after `next_at` told one.
    ///
    /// # Errors
    /// When the requests cannot be read.
    fn take(&mut self) -> io::Result<Arrival>;
    /// The fate of a request is known.
    ///
    /// # Errors
    /// When it cannot be noted.
    fn fate(&mut self, now: u64, fate: &Fate) -> io::Result<()>;
    /// A request that ran has ended.
    fn ended(&mut self, _now: u64, _tag: u64) {}
    /// What a level's limit is from now on.
    fn limit(&mut self, _now: u64, _level: usize, _seats: u64) {}
}

/// Plays all requests of `traffic` through `seats` until the last has ended, and returns the moment of the last event.
/// No request waits for longer than `wait_limit_ns`
///
/// # Errors
/// Those of the traffic.
pub fn play(seats: &mut impl Seats, traffic: &mut impl Traffic, wait_limit_ns: u64) -> io::Result<u64> {
    let mut player = Player {
        seats,
        traffic,
        wait_limit_ns,
        now: 0,
        next_id: 0,
        in_flight: HashMap::new(),
        ends: BinaryHeap::new(),
        deadlines: VecDeque::new(),
        granted: Vec::new(),
    };
    player.tell_limits();
    while player.step()? {}
    Ok(player.now)
}

struct Player<'a, E, T> {
    seats: &'a mut E,
    traffic: &'a mut T,
    wait_limit_ns: u64,
    now: u64,
    next_id: u64,
    /// Requests that wait or run.
    in_flight: HashMap<u64, Flight>,
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    /// In the order of arrival, which is theirs too. What runs or has ended is dropped when it comes to the front.
    deadlines: VecDeque<(u64, u64)>,
    granted: Vec<u64>,
}

struct Flight {
    arrival: Arrival,
    waits: bool,
}

/// What happens next; earlier variants go first at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Tick,
    End,
    Deadline,
    Arrival,
}

impl<E: Seats, T: Traffic> Player<'_, E, T> {
    /// Lets the next event happen; false if there is none.
    fn step(&mut self) -> io::Result<bool> {
        while self.deadlines.front().is_some_and(|(_, id)| !self.waits(*id)) {
            self.deadlines.pop_front();
        }
        let due = [
            (self.ends.peek().map(|Reverse((at, _))| *at), Event::End),
            (self.deadlines.front().map(|(at, _)| *at), Event::Deadline),
            (self.traffic.next_at()?, Event::Arrival),
        ];
        let next = due.into_iter().filter_map(|(at, event)| Some((at?, event))).min();
        // Ticks go on for ever; the play does only while something else is to come.
        let Some(next) = next else { return Ok(false) };
        let (at, event) = next.min((self.seats.next_tick(), Event::Tick));
        self.now = self.now.max(at);
        match event {
            Event::Tick => {
                if self.seats.tick(self.now) {
                    self.tell_limits();
                }
            }
            Event::End => self.end(),
            Event::Deadline => self.time_out()?,
            Event::Arrival => self.arrive()?,
        }
        self.begin_granted()?;
        Ok(true)
    }

    fn waits(&self, id: u64) -> bool {
        self.in_flight.get(&id).is_some_and(|flight| flight.waits)
    }

    fn arrive(&mut self) -> io::Result<()> {
        let arrival = self.traffic.take()?;
        let id = self.next_id;
        self.next_id += 1;
        match self.seats.arrive(self.now, id, &arrival.class) {
            Answer::Runs => {
                self.in_flight.insert(id, Flight { arrival, waits: false });
                self.begin(id, arrival)
            }
            Answer::Waits => {
                self.in_flight.insert(id, Flight { arrival, waits: true });
                self.deadlines.push_back((self.now.saturating_add(self.wait_limit_ns), id));
                Ok(())
            }
            Answer::Refused(refusal) => self.refuse(arrival, refusal),
        }
    }

    fn begin(&mut self, id: u64, arrival: Arrival) -> io::Result<()> {
        self.ends.push(Reverse((self.now.saturating_add(arrival.service_ns), id)));
        self.traffic.fate(self.now, &Fate { arrival, outcome: Ok(self.now - arrival.at.min(self.now)) })
    }

    fn refuse(&mut self, arrival: Arrival, refusal: Refusal) -> io::Result<()> {
        self.traffic.fate(self.now, &Fate { arrival, outcome: Err(refusal) })
    }

    fn begin_granted(&mut self) -> io::Result<()> {
        let mut granted = std::mem::take(&mut self.granted);
        self.seats.granted(&mut granted);
        for id in granted.drain(..) {
            let flight = self.in_flight.get_mut(&id).expect("the engine grants what waits");
            flight.waits = false;
            let arrival = flight.arrival;
            self.begin(id, arrival)?;
        }
        self.granted = granted;
        Ok(())
    }

    fn end(&mut self) {
        if let Some(Reverse((_, id))) = self.ends.pop() {
            self.seats.finish(self.now, id);
            if let Some(flight) = self.in_flight.remove(&id) {
                self.traffic.ended(self.now, flight.arrival.tag);
            }
        }
    }

    fn time_out(&mut self) -> io::Result<()> {
        if let Some((_, id)) = self.deadlines.pop_front()
            && let Some(flight) = self.in_flight.remove(&id)
        {
            self.seats.time_out(self.now, id);
            self.refuse(flight.arrival, Refusal::TimeOut)?;
        }
        Ok(())
    }

    fn tell_limits(&mut self) {
        let (now, traffic) = (self.now, &mut *self.traffic);
        self.seats.limits(&mut |level, seats| traffic.limit(now, level, seats));
    }
}
