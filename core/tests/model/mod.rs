//! A priority level, one event at a time: the rules, written to be read.
//!
//! No threads, no packing, nothing shared with the engine; what the engine decides is compared with what this decides.
//! All of it was checked against `vectors/queueset.jsonl` (`queueset_model.rs`). The order of the steps inside an event is
//! part of the rules: it shows in R, in the choice of queues and in the statistics.
//!
//! Every event first moves the clock and R, then acts, then grants waiting requests as far as the rules go. Times are
//! nanoseconds and never go back; an event that comes with an older time happens at the latest time known.
//! Events must be legal (finish what runs, cancel what waits); an illegal one is a fault of the test and panics.
#![allow(dead_code, reason = "each test binary uses its own part of the model")]

mod arithmetic;
mod demand;

use arithmetic::time_for;
pub use arithmetic::{ASSUMED_SERVICE_NS, EPOCH, deal, work};
use demand::Demand;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Which rules hold where the reference has a known flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fidelity {
    /// As the reference decides, flaws included.
    Kubernetes,
    /// Without the flaws. Each use of this in the model is one row of the design's table.
    Corrected,
}

/// What a level does with a request that finds no free seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// Never limits, only counts.
    Exempt,
    /// Refuses it.
    Reject,
    /// Lets it wait in one of `queues`, one of the `hand_size` that its flow's hash deals.
    Queue { queues: u32, hand_size: u32, queue_length_limit: u32 },
}

/// Everything that can be changed while requests are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    pub discipline: Discipline,
    pub limit: u32,
    pub fidelity: Fidelity,
}

/// Seats of a request: `initial` while it runs, `final_` for `latency_ns` after it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    pub initial: u32,
    pub final_: u32,
    pub latency_ns: u64,
}

impl Width {
    /// What the request occupies from its grant until its release.
    pub fn max(self) -> u32 {
        self.initial.max(self.final_)
    }

    fn initial_work(self) -> u64 {
        work(f64::from(self.initial), ASSUMED_SERVICE_NS)
    }

    fn final_work(self) -> u64 {
        work(f64::from(self.final_), self.latency_ns as i64)
    }
}

impl From<(u32, u32, u64)> for Width {
    fn from((initial, final_, latency_ns): (u32, u32, u64)) -> Self {
        Self { initial, final_, latency_ns }
    }
}

/// The answer to an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Run,
    Wait,
    QueueFull,
    ConcurrencyLimit,
}

/// Why a request that waited will not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ejection {
    TimedOut,
    Cancelled,
}

/// Where a request is. A request that is over is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Running {
        since: u64,
    },
    /// Has ended, but keeps its seats until `until`; `turn` orders the releases that are due at the same time.
    Lingering {
        until: u64,
        turn: u64,
    },
}

/// One request in flight.
#[derive(Debug, Clone)]
pub struct Request {
    /// As it arrived, until a grant cuts it to the limit.
    pub width: Width,
    pub phase: Phase,
    /// What its queue is charged at the grant: from the width as it arrived.
    pub total_work: u64,
    /// Its queue, by `Queue::key`; none when the level did not queue at its arrival.
    queue: Option<u64>,
    /// R at its arrival.
    arrival_r: u64,
}

/// One queue.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    /// Names the queue for its requests: its place in the list changes when another queue goes.
    key: u64,
    /// R at which its next request will start in the virtual world.
    pub next_dispatch_r: u64,
    /// Oldest first.
    pub waiting: VecDeque<u64>,
    /// Without those that only linger.
    pub running: BTreeSet<u64>,
    /// Of running and lingering requests that came from here.
    pub seats: u32,
    /// Sum of the max widths of `waiting`.
    pub seats_waiting: u32,
    /// Sum of the total work of `waiting`.
    pub work_waiting: u64,
}

impl Queue {
    /// Takes part in the division of service.
    pub fn is_active(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    fn put(&mut self, id: u64, request: &Request) {
        self.waiting.push_back(id);
        self.seats_waiting += request.width.max();
        self.work_waiting = self.work_waiting.wrapping_add(request.total_work);
    }

    fn take(&mut self, id: u64, request: &Request) {
        self.waiting.retain(|&other| other != id);
        self.seats_waiting -= request.width.max();
        self.work_waiting = self.work_waiting.wrapping_sub(request.total_work);
    }
}

/// Final seats that were cut to the limit at a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clip {
    pub id: u64,
    pub final_seats: u32,
    pub latency_ns: u64,
}

/// Requests turned away since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// All of them, those that had waited included.
    pub rejected: u64,
    pub timed_out: u64,
    pub cancelled: u64,
}

/// One priority level.
#[derive(Debug, Clone)]
pub struct Model {
    config: Config,
    now: u64,
    /// R, the progress meter: seat-seconds of service that each active queue has been due.
    r: u64,
    queues: Vec<Queue>,
    next_key: u64,
    /// Place of the queue granted last. -1 when that was place 0 and it went.
    robin: i64,
    hands_dealt: u64,
    requests: BTreeMap<u64, Request>,
    /// Requests that wait.
    waiting: u32,
    /// Requests that run; lingering ones do not.
    executing: u32,
    seats_in_use: u32,
    /// Meant to be the sum of max widths over all that wait.
    seats_waiting: u32,
    lingered: u64,
    demand: Demand,
    totals: Totals,
    granted: Vec<u64>,
    clipped: Vec<Clip>,
}

impl Model {
    /// An idle level at time 0.
    pub fn new(config: Config) -> Self {
        let mut level = Self {
            config,
            now: 0,
            r: 0,
            queues: Vec::new(),
            next_key: 0,
            robin: 0,
            hands_dealt: 0,
            requests: BTreeMap::new(),
            waiting: 0,
            executing: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            lingered: 0,
            demand: Demand::starting_at(0),
            totals: Totals::default(),
            granted: Vec::new(),
            clipped: Vec::new(),
        };
        level.grow();
        level
    }

    /// Puts the progress meter somewhere else. Only while the level is idle.
    pub fn set_r(&mut self, r: u64) {
        assert!(self.requests.is_empty(), "R can be set only at rest");
        self.r = r;
    }

    // Events

    /// A request arrives. Answers what becomes of it and the place of the queue chosen, -1 where there is no queuing.
    pub fn arrive(&mut self, now: u64, id: u64, hash: u64, width: impl Into<Width>) -> (Outcome, i32) {
        self.begin(now);
        let request = self.request(id, width.into());
        match self.config.discipline {
            Discipline::Exempt | Discipline::Reject => (self.admit_without_queue(id, request), -1),
            Discipline::Queue { queues, hand_size, queue_length_limit } => {
                let place = self.choose_queue(hash, queues, hand_size);
                (self.admit_through_queue(id, request, place, queue_length_limit), place as i32)
            }
        }
    }

    /// A running request has ended. Answers when its seats are to be released, if they are not free now.
    pub fn finish(&mut self, now: u64, id: u64) -> Option<u64> {
        self.begin(now);
        let request = self.requests.get_mut(&id).expect("finished a request that is not there");
        let Phase::Running { since } = request.phase else { panic!("finished a request that does not run") };
        let Request { width, queue, .. } = *request;
        let until = (width.latency_ns > 0).then(|| self.now.saturating_add(width.latency_ns));
        if let Some(until) = until {
            self.lingered += 1;
            request.phase = Phase::Lingering { until, turn: self.lingered };
        }
        self.executing -= 1;
        if let Some(place) = self.place_of(queue) {
            let queue = &mut self.queues[place];
            queue.running.remove(&id);
            // The queue was charged for the assumed time; it pays the true one.
            let unused = ASSUMED_SERVICE_NS - (self.now - since) as i64;
            queue.next_dispatch_r =
                queue.next_dispatch_r.wrapping_sub(work(f64::from(width.initial), unused));
            self.not_before_arrival(place);
        }
        if until.is_none() {
            self.give_back_seats(id);
        }
        // Also when the seats linger: a request that is wider than the limit asks only that nothing runs.
        self.grant_all();
        until
    }

    /// The seats of a lingering request are free now.
    pub fn release(&mut self, now: u64, id: u64) {
        self.begin(now);
        let phase = self.requests.get(&id).expect("released a request that is not there").phase;
        assert!(matches!(phase, Phase::Lingering { .. }), "released a request that does not linger");
        self.give_back_seats(id);
        self.grant_all();
    }

    /// The caller of a waiting request has given up.
    pub fn cancel(&mut self, now: u64, id: u64) -> Ejection {
        self.eject(now, id, Ejection::Cancelled)
    }

    /// The time of a waiting request is over.
    pub fn time_out(&mut self, now: u64, id: u64) -> Ejection {
        self.eject(now, id, Ejection::TimedOut)
    }

    /// New rules for what is in flight and what will come. Nothing is dropped: queues are added at once and go only
    /// when they have nothing left, and a queue that is longer than its new limit keeps what it has.
    pub fn reconfigure(&mut self, now: u64, config: Config) {
        self.begin(now);
        self.config = config;
        self.grow();
        self.grant_all();
    }

    // Accessors

    /// Requests granted by the last event, in order; a request that ran at once is among them.
    pub fn granted(&self) -> &[u64] {
        &self.granted
    }

    /// Those of `granted` whose final seats were cut.
    pub fn clipped(&self) -> &[Clip] {
        &self.clipped
    }

    pub fn config(&self) -> Config {
        self.config
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn r(&self) -> u64 {
        self.r
    }

    pub fn robin(&self) -> i64 {
        self.robin
    }

    pub fn hands_dealt(&self) -> u64 {
        self.hands_dealt
    }

    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    pub fn executing(&self) -> u32 {
        self.executing
    }

    pub fn seats_in_use(&self) -> u32 {
        self.seats_in_use
    }

    pub fn seats_waiting(&self) -> u32 {
        self.seats_waiting
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// All requests in flight, by id.
    pub fn requests(&self) -> &BTreeMap<u64, Request> {
        &self.requests
    }

    /// When the next lingering request is to be released, and which.
    pub fn next_release(&self) -> Option<(u64, u64)> {
        let lingering = self.requests.iter().filter_map(|(&id, request)| match request.phase {
            Phase::Lingering { until, turn } => Some((until, turn, id)),
            _ => None,
        });
        lingering.min().map(|(until, _, id)| (until, id))
    }

    /// Seat demand (in use and waiting) since the start: seconds, average, deviation, least, greatest.
    pub fn demand(&self, now: u64) -> [f64; 5] {
        self.demand.statistics(now)
    }

    /// The oldest request of the queue whose turn is next, and that queue's place.
    ///
    /// Least virtual finish wins: where the queue stands plus the whole work of its oldest request. Of equal ones the
    /// first after the queue granted last.
    pub fn next_in_turn(&self) -> Option<(u64, usize)> {
        let count = self.queues.len();
        let mut best: Option<(u64, u64, usize)> = None;
        for step in 1..=count as i64 {
            let place = (self.robin + step).rem_euclid(count as i64) as usize;
            let queue = &self.queues[place];
            let Some(&oldest) = queue.waiting.front() else { continue };
            let finish_r = queue.next_dispatch_r.wrapping_add(self.requests[&oldest].total_work);
            if best.is_none_or(|(least, ..)| finish_r < least) {
                best = Some((finish_r, oldest, place));
            }
        }
        best.map(|(_, oldest, place)| (oldest, place))
    }

    /// Whether the rules let a request of this max width start now.
    pub fn fits(&self, seats: u32) -> bool {
        let Config { discipline, limit, fidelity } = self.config;
        match (discipline, fidelity) {
            (Discipline::Exempt, _) => true,
            (Discipline::Reject, Fidelity::Corrected) if limit == 0 => false,
            // Wider than the whole level: alone, or never.
            (_, Fidelity::Kubernetes) if seats > limit => self.executing == 0,
            (_, Fidelity::Corrected) if seats > limit => self.seats_in_use == 0,
            _ => self.seats_in_use + seats <= limit,
        }
    }

    // Virtual time

    /// Opens an event: moves the clock, and R by what its rate has been since the last event.
    fn begin(&mut self, now: u64) {
        self.granted.clear();
        self.clipped.clear();
        let elapsed = now.saturating_sub(self.now);
        self.now += elapsed;
        self.r = self.r.wrapping_add(work(self.rate(), elapsed as i64));
        if self.r >= EPOCH + EPOCH / 2 {
            self.wind_back();
        }
    }

    /// Seats per active queue. Requests that did not come through a queue of the list have no part in it.
    fn rate(&self) -> f64 {
        let active = self.queues.iter().filter(|queue| queue.is_active()).count();
        if active == 0 {
            return 0.0;
        }
        let seats: u32 = self.queues.iter().map(|queue| queue.seats + queue.seats_waiting).sum();
        f64::from(seats).min(f64::from(self.config.limit)) / active as f64
    }

    /// Takes an epoch off every reading of the meter that still counts, so that no comparison meets a wrap-around.
    fn wind_back(&mut self) {
        self.r -= EPOCH;
        for queue in &mut self.queues {
            if queue.is_active() {
                queue.next_dispatch_r = queue.next_dispatch_r.wrapping_sub(EPOCH);
            } else {
                queue.next_dispatch_r = 0;
            }
            for id in &queue.waiting {
                let request = self.requests.get_mut(id).expect("a queued request is known");
                request.arrival_r = request.arrival_r.wrapping_sub(EPOCH);
            }
        }
    }

    /// A queue does not save up service for a request that was not there yet.
    fn not_before_arrival(&mut self, place: usize) {
        let queue = &mut self.queues[place];
        if let Some(oldest) = queue.waiting.front() {
            queue.next_dispatch_r = queue.next_dispatch_r.max(self.requests[oldest].arrival_r);
        }
    }

    // Arrival

    fn request(&self, id: u64, width: Width) -> Request {
        assert!(!self.requests.contains_key(&id), "two requests in flight with one id");
        Request {
            width,
            phase: Phase::Waiting,
            total_work: width.initial_work().wrapping_add(width.final_work()),
            queue: None,
            arrival_r: self.r,
        }
    }

    /// Those that wait from the time when the level queued are not asked: an arrival may pass them.
    fn admit_without_queue(&mut self, id: u64, mut request: Request) -> Outcome {
        if !self.fits(request.width.max()) {
            self.totals.rejected += 1;
            return Outcome::ConcurrencyLimit;
        }
        request.phase = Phase::Running { since: self.now };
        self.executing += 1;
        self.seats_in_use += request.width.max();
        self.requests.insert(id, request);
        self.granted.push(id);
        self.note_demand();
        Outcome::Run
    }

    /// A refused request leaves nothing behind but the counts, and moves the look of the next one on.
    fn admit_through_queue(&mut self, id: u64, mut request: Request, place: usize, longest: u32) -> Outcome {
        if self.is_full(place, longest) {
            self.totals.rejected += 1;
            return Outcome::QueueFull;
        }
        let queue = &mut self.queues[place];
        if !queue.is_active() {
            queue.next_dispatch_r = self.r;
        }
        request.queue = Some(queue.key);
        queue.put(id, &request);
        self.waiting += 1;
        self.seats_waiting += request.width.max();
        self.requests.insert(id, request);
        self.note_demand();
        self.not_before_arrival(place);
        self.grant_all();
        if self.requests[&id].phase == Phase::Waiting { Outcome::Wait } else { Outcome::Run }
    }

    /// Of the flow's hand, the queue with the least work waiting; of equal ones the first seen. Where the look begins
    /// moves on with each arrival, refused ones too, so that flows whose hands overlap do not all press on one queue.
    fn choose_queue(&mut self, hash: u64, queues: u32, hand_size: u32) -> usize {
        let mut hand = deal(hash, queues, hand_size);
        hand.rotate_left((self.hands_dealt % u64::from(hand_size)) as usize);
        self.hands_dealt += 1;
        let least = hand.into_iter().min_by_key(|&card| self.queues[card as usize].work_waiting);
        least.expect("a hand has a card") as usize
    }

    fn is_full(&self, place: usize, longest: u32) -> bool {
        let length = self.queues[place].waiting.len() as u32;
        let no_seat_free = self.seats_in_use >= self.config.limit;
        match self.config.fidelity {
            Fidelity::Kubernetes => length >= longest && no_seat_free,
            // With seats free a queue is as long as that only behind a wide request that waits for more of them.
            Fidelity::Corrected => length >= longest && (no_seat_free || length > 0),
        }
    }

    // Grant

    fn grant_all(&mut self) {
        while self.waiting > 0 && self.seats_in_use < self.config.limit && self.grant_one() {}
    }

    /// Grants the request whose turn is next, or nobody when it does not fit: nobody overtakes it.
    fn grant_one(&mut self) -> bool {
        let (id, place) = self.next_in_turn().expect("something waits");
        if self.robin < 0 {
            // A look around ends at the queue before its first one, and that is remembered also when nobody is granted.
            self.robin += self.queues.len() as i64;
        }
        if !self.fits(self.requests[&id].width.max()) {
            return false;
        }
        self.robin = place as i64;
        let queue = &mut self.queues[place];
        let request = self.requests.get_mut(&id).expect("a queued request is known");
        queue.take(id, request);
        let asked = request.width;
        if asked.final_ > self.config.limit {
            request.width.final_ = self.config.limit;
            request.width.latency_ns = time_for(asked.final_work(), self.config.limit);
            self.clipped.push(Clip {
                id,
                final_seats: request.width.final_,
                latency_ns: request.width.latency_ns,
            });
        }
        request.phase = Phase::Running { since: self.now };
        let taken = request.width.max();
        self.waiting -= 1;
        self.seats_waiting -= match self.config.fidelity {
            // Less than was put on, if the request was cut.
            Fidelity::Kubernetes => taken,
            Fidelity::Corrected => asked.max(),
        };
        self.executing += 1;
        self.seats_in_use += taken;
        queue.running.insert(id);
        queue.seats += taken;
        queue.next_dispatch_r = queue.next_dispatch_r.wrapping_add(request.total_work);
        self.granted.push(id);
        self.note_demand();
        self.not_before_arrival(place);
        true
    }

    // Endings

    fn give_back_seats(&mut self, id: u64) {
        let request = self.requests.remove(&id).expect("whoever holds seats is known");
        let seats = request.width.max();
        self.seats_in_use -= seats;
        self.note_demand();
        // The queue of a lingering request may be gone, see `is_to_go`.
        if let Some(place) = self.place_of(request.queue) {
            self.queues[place].seats -= seats;
            if self.is_to_go(place) {
                self.remove_queue(place);
            }
        }
    }

    /// A request leaves its queue without having run. A queue that this empties stays, even where there are too many.
    fn eject(&mut self, now: u64, id: u64, cause: Ejection) -> Ejection {
        self.begin(now);
        let request = self.requests.remove(&id).expect("ended the wait of a request that is not there");
        assert_eq!(request.phase, Phase::Waiting, "ended the wait of a request that does not wait");
        let place = self.place_of(request.queue).expect("a queue with a waiting request is there");
        self.queues[place].take(id, &request);
        self.waiting -= 1;
        self.seats_waiting -= request.width.max();
        self.totals.rejected += 1;
        self.note_demand();
        self.not_before_arrival(place);
        let reported = match self.config.fidelity {
            Fidelity::Kubernetes => Ejection::TimedOut,
            Fidelity::Corrected => cause,
        };
        match reported {
            Ejection::TimedOut => self.totals.timed_out += 1,
            Ejection::Cancelled => self.totals.cancelled += 1,
        }
        if self.config.fidelity == Fidelity::Corrected {
            // It may have been wide and first in turn; whoever is next may fit.
            self.grant_all();
        }
        reported
    }

    // Number of queues

    fn desired_queues(&self) -> usize {
        match self.config.discipline {
            Discipline::Queue { queues, .. } => queues as usize,
            Discipline::Exempt | Discipline::Reject => 0,
        }
    }

    fn grow(&mut self) {
        while self.queues.len() < self.desired_queues() {
            self.queues.push(Queue { key: self.next_key, ..Queue::default() });
            self.next_key += 1;
        }
    }

    /// Asked only when a request of this queue gives back its seats: one of too many, wherever it stands, goes when it
    /// has nothing left. An excess queue that never sees another request stays for good.
    fn is_to_go(&self, place: usize) -> bool {
        let queue = &self.queues[place];
        let unused = match self.config.fidelity {
            // Lingering seats do not hold it. They stay in use in the level, and their release finds no queue;
            // the reference then takes out whichever queue stands in the old place, or crashes.
            Fidelity::Kubernetes => !queue.is_active(),
            Fidelity::Corrected => !queue.is_active() && queue.seats == 0,
        };
        unused && self.queues.len() > self.desired_queues()
    }

    /// Those behind it move up, and with them, where the hands reach further than they did, what waits in them.
    fn remove_queue(&mut self, place: usize) {
        self.queues.remove(place);
        if self.robin >= place as i64 {
            self.robin -= 1;
        }
    }

    fn place_of(&self, queue: Option<u64>) -> Option<usize> {
        self.queues.iter().position(|other| Some(other.key) == queue)
    }

    fn note_demand(&mut self) {
        self.demand.set(self.now, f64::from(self.seats_in_use) + f64::from(self.seats_waiting));
    }
}
