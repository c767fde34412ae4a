//! Plays a scenario through the engine on simulated time: whatever happens is an event, and the earliest comes next.
//!
//! Times are nanoseconds from the start. Of what falls on one moment, lingering seats come back and limits are adjusted
//! first, then requests end, then waits, then new requests come; each in the order in which it was foreseen. So every run
//! gives the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use maitred::engine::{Engine, Rejection, ResolvedFlow};
use maitred::level::Admitted;
use maitred::ticket::{State, TicketId, Width};
use maitred::time::Manual;

use super::random::{Distribution, Random};
use super::scenario::{Arrivals, Attributes, Scenario};
use super::tally::{Count, LimitOverTime};

const SECOND: u64 = 1_000_000_000;

/// Events between two calls that tell how far the play has come.
const EVENTS_OF_A_CALL: u64 = 1 << 14;

/// A flow of the scenario, at the engine.
#[derive(Debug)]
pub struct Flow {
    /// Which group of the scenario it belongs to.
    pub group: usize,
    /// Index of its schema in the policy.
    pub schema: usize,
    /// Index of its level there.
    pub level: usize,
    /// Where its requests are counted: flows of one group and schema are counted together.
    pub count: usize,
    /// What tells it from the other flows of its schema.
    pub distinguisher: Vec<u8>,
    attributes: Attributes,
    resolved: ResolvedFlow,
    width: Width,
    service: Distribution,
}

/// What was counted.
#[derive(Debug)]
pub struct Played {
    pub flows: Vec<Flow>,
    /// See [`Flow::count`].
    pub counts: Vec<Count>,
    /// By level of the policy. An exempt level has what it is taken to use.
    pub limits: Vec<LimitOverTime>,
    /// When flows begin or end, and the scenario does; epochs lie between them.
    pub turns: Vec<u64>,
    /// By flow and epoch: seats times time that its requests would have held, had all of them run.
    pub wanted: Vec<Vec<f64>>,
    /// By flow: seats times the time for which they were held.
    pub held: Vec<u128>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End(Id),
    TimeOut(Id),
    Arrival(usize),
}

/// A ticket, with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Id(u64);

/// Who sends requests: a flow by chance, or one client of it.
struct Source {
    flow: usize,
    until: u64,
    random: Random,
    sends: Sends,
}

#[derive(Clone, Copy)]
enum Sends {
    /// With this mean between two requests; nanoseconds.
    ByChance(f64),
    /// After this time from the end of the one before.
    InTurn(Distribution),
}

struct InFlight {
    source: usize,
    arrived: u64,
    service: u64,
    granted: Option<Granted>,
}

#[derive(Clone, Copy)]
struct Granted {
    at: u64,
    seats: u32,
    /// For which the seats stay taken after the end.
    lingers: u64,
}

struct Play<'a> {
    engine: &'a Engine,
    clock: &'a Manual,
    duration: u64,
    wait_limit: u64,
    /// By level: it has no limit.
    exempt: Vec<bool>,
    sources: Vec<Source>,
    events: BinaryHeap<Reverse<(u64, u8, u64, Event)>>,
    foreseen: u64,
    in_flight: HashMap<TicketId, InFlight>,
    epoch: usize,
    played: Played,
}

/// Plays `scenario` through `engine`, in which its objects are in force and whose clock is `clock`, at 0. Tells `see` now
/// and then what time it is.
pub fn play(engine: &Engine, clock: &Manual, scenario: &Scenario, mut see: impl FnMut(u64)) -> Played {
    let mut play = Play::new(engine, clock, scenario);
    engine.note_grants();
    let mut calls = 0_u64;
    loop {
        let event = play.events.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        let turn = play.played.turns[play.epoch];
        let due = engine.next_due();
        let now = event.min(due).min(turn);
        if now >= play.duration {
            break;
        }
        clock.set(now);
        if now == turn {
            play.turn(now);
        } else if now == due {
            play.tick(now);
        } else if let Some(Reverse((_, _, _, event))) = play.events.pop() {
            play.happens(now, event);
        }
        calls += 1;
        if calls.is_multiple_of(EVENTS_OF_A_CALL) {
            see(now);
        }
    }
    play.end()
}

impl<'a> Play<'a> {
    fn new(engine: &'a Engine, clock: &'a Manual, scenario: &Scenario) -> Self {
        let mut turns: Vec<_> = scenario.groups.iter().flat_map(|group| [group.from, group.until]).collect();
        turns.push(scenario.duration);
        turns.retain(|turn| *turn > 0);
        turns.sort_unstable();
        turns.dedup();
        let exempt = engine.inspect(|resolver| {
            let levels = resolver.policy().levels().iter();
            levels.map(|level| level.kind == maitred::policy::LevelKind::Exempt).collect()
        });
        let limits = limits(engine).into_iter().map(LimitOverTime::starting).collect();
        let mut play = Play {
            engine,
            clock,
            duration: scenario.duration,
            wait_limit: scenario.wait_limit,
            exempt,
            sources: Vec::new(),
            events: BinaryHeap::new(),
            foreseen: 0,
            in_flight: HashMap::new(),
            epoch: 0,
            played: Played {
                flows: Vec::new(),
                counts: Vec::new(),
                limits,
                turns,
                wanted: Vec::new(),
                held: Vec::new(),
            },
        };
        for index in 0..scenario.groups.len() {
            play.add_group(scenario, index);
        }
        play
    }

    fn add_group(&mut self, scenario: &Scenario, index: usize) {
        let group = &scenario.groups[index];
        let mut counts = HashMap::new();
        for number in 1..=group.count {
            let attributes = group.attributes(number);
            let resolved = self.engine.resolve(&attributes.request());
            let at = resolved.flow();
            let (schema, level) = (at.schema as usize, at.level as usize);
            let distinguisher = self.engine.inspect(|resolver| {
                let (policy, request) = (resolver.policy(), attributes.request());
                policy.distinguisher(policy.classify(&request), &request).to_vec()
            });
            let count = *counts.entry(schema).or_insert_with(|| {
                self.played.counts.push(Count::default());
                self.played.counts.len() - 1
            });
            let flow = self.played.flows.len();
            self.played.flows.push(Flow {
                group: index,
                schema,
                level,
                count,
                distinguisher,
                attributes,
                resolved,
                width: group.width,
                service: group.service,
            });
            self.played.wanted.push(vec![0.0; self.played.turns.len()]);
            self.played.held.push(0);
            let source = |sends, stream: u64| {
                // One stream a client: what one draws does not hang on when another does.
                let name = format!("{}/{number}", group.name);
                Source { flow, until: group.until, random: Random::new(scenario.seed, &name, stream), sends }
            };
            match group.arrivals {
                Arrivals::Rate(rate) => {
                    let mean = SECOND as f64 / rate;
                    let mut source = source(Sends::ByChance(mean), 0);
                    let first = group.from.saturating_add(source.random.exponential(mean) as u64);
                    self.sources.push(source);
                    self.arrives(first, self.sources.len() - 1);
                }
                Arrivals::ClosedLoop { clients, think } => {
                    self.wants_in_turn(flow, clients, think, group.from, group.until);
                    for client in 0..clients {
                        self.sources.push(source(Sends::InTurn(think), u64::from(client)));
                        self.arrives(group.from, self.sources.len() - 1);
                    }
                }
            }
        }
    }

    /// What the clients of a flow would use if none had to wait.
    fn wants_in_turn(&mut self, flow: usize, clients: u32, think: Distribution, from: u64, until: u64) {
        let Flow { width, service, .. } = self.played.flows[flow];
        let service = service.mean();
        let of_one = f64::from(width.max_seats()) * (service + width.additional_latency as f64);
        let seats = f64::from(clients) * of_one / (service + think.mean());
        let mut begin = 0;
        for (wanted, end) in self.played.wanted[flow].iter_mut().zip(&self.played.turns) {
            if from <= begin && *end <= until {
                *wanted = seats * (*end - begin) as f64;
            }
            begin = *end;
        }
    }

    fn foresee(&mut self, at: u64, event: Event) {
        if at >= self.duration {
            return;
        }
        let rank = match event {
            Event::End(_) => 0,
            Event::TimeOut(_) => 1,
            Event::Arrival(_) => 2,
        };
        self.foreseen += 1;
        self.events.push(Reverse((at, rank, self.foreseen, event)));
    }

    fn arrives(&mut self, at: u64, source: usize) {
        if at < self.sources[source].until {
            self.foresee(at, Event::Arrival(source));
        }
    }

    fn happens(&mut self, now: u64, event: Event) {
        match event {
            Event::Arrival(source) => self.arrival(now, source),
            Event::End(Id(id)) => self.ends(now, TicketId::from_bits(id)),
            Event::TimeOut(Id(id)) => self.time_out(now, TicketId::from_bits(id)),
        }
        self.grants(now);
    }

    fn arrival(&mut self, now: u64, index: usize) {
        let source = &mut self.sources[index];
        let flow = &self.played.flows[source.flow];
        let service = flow.service.sample(&mut source.random).max(1);
        let next = match source.sends {
            Sends::ByChance(mean) => {
                let seat_ns = f64::from(flow.width.max_seats())
                    * (service as f64 + flow.width.additional_latency as f64);
                self.played.wanted[source.flow][self.epoch] += seat_ns;
                Some(now.saturating_add(source.random.exponential(mean).round() as u64))
            }
            Sends::InTurn(_) => None,
        };
        let count = &mut self.played.counts[flow.count];
        count.offered += 1;
        match self.engine.submit_flow(&flow.resolved, flow.width, now).outcome {
            Ok(Admitted { id, state }) => {
                self.in_flight.insert(id, InFlight { source: index, arrived: now, service, granted: None });
                if state == State::Waiting {
                    self.foresee(now.saturating_add(self.wait_limit), Event::TimeOut(Id(id.to_bits())));
                }
            }
            Err(why) => {
                count.rejected(why);
                self.turned_away(now, index);
            }
        }
        if let Some(next) = next {
            self.arrives(next, index);
        }
    }

    fn ends(&mut self, now: u64, id: TicketId) {
        let done = self.engine.finish(id, now);
        debug_assert_eq!(done, Ok(()));
        let Some(request) = self.in_flight.remove(&id) else { return };
        self.held(now, &request);
        let source = &mut self.sources[request.source];
        self.played.counts[self.played.flows[source.flow].count].finished += 1;
        if let Sends::InTurn(think) = source.sends {
            let next = now.saturating_add(think.sample(&mut source.random));
            self.arrives(next, request.source);
        }
    }

    fn time_out(&mut self, now: u64, id: TicketId) {
        // One that was granted runs, or has ended and its ticket's name means nothing any more.
        if self.engine.cancel(id, Rejection::TimedOut, now).is_err() {
            return;
        }
        let Some(request) = self.in_flight.remove(&id) else { return };
        let flow = &self.played.flows[self.sources[request.source].flow];
        self.played.counts[flow.count].rejected(Rejection::TimedOut);
        self.turned_away(now, request.source);
    }

    /// A client comes back when it was told to; other requests do not.
    fn turned_away(&mut self, now: u64, source: usize) {
        let Source { flow, sends: Sends::InTurn(_), .. } = self.sources[source] else { return };
        let seconds = self.engine.retry_after(&self.played.flows[flow].attributes.request());
        self.arrives(now.saturating_add(seconds * SECOND), source);
    }

    fn tick(&mut self, now: u64) {
        if self.engine.tick(now).adjusted.is_some() {
            for (limit, seats) in self.played.limits.iter_mut().zip(limits(self.engine)) {
                limit.set(now, seats);
            }
        }
        self.grants(now);
    }

    /// Notes who got seats by what just happened.
    fn grants(&mut self, now: u64) {
        for id in self.engine.take_grants() {
            let Some(request) = self.in_flight.get_mut(&id) else { continue };
            let flow = &self.played.flows[self.sources[request.source].flow];
            let limit = if self.exempt[flow.level] { u32::MAX } else { self.played.limits[flow.level].now };
            let (seats, lingers) = holds(flow.width, limit);
            request.granted = Some(Granted { at: now, seats, lingers });
            self.played.counts[flow.count].dispatched(now - request.arrived);
            let end = now.saturating_add(request.service);
            self.foresee(end, Event::End(Id(id.to_bits())));
        }
    }

    /// Counts the seats of a request that ends now, as far as they are held before the end of the scenario.
    fn held(&mut self, now: u64, request: &InFlight) {
        let Some(granted) = request.granted else { return };
        let until = now.saturating_add(granted.lingers).min(self.duration);
        let seat_ns = u128::from(granted.seats) * u128::from(until - granted.at);
        let flow = self.sources[request.source].flow;
        self.played.held[flow] += seat_ns;
        self.played.counts[self.played.flows[flow].count].seat_ns += seat_ns;
    }

    fn turn(&mut self, now: u64) {
        self.epoch += 1;
        self.played.limits.iter_mut().for_each(|limit| limit.turn(now));
    }

    fn end(mut self) -> Played {
        self.clock.set(self.duration);
        for request in std::mem::take(&mut self.in_flight).into_values() {
            self.held(self.duration, &request);
        }
        let duration = self.duration;
        self.played.limits.iter_mut().for_each(|limit| limit.end(duration));
        self.played
    }
}

/// Seats that a request holds once it has been granted, and for how long after its end. Final seats above the limit are
/// cut to it, and their time stretched so that the work stays the same.
fn holds(width: Width, limit: u32) -> (u32, u64) {
    let Width { initial_seats, final_seats, additional_latency } = width;
    if final_seats <= limit {
        return (width.max_seats(), additional_latency);
    }
    let stretch = if limit == 0 { 0.0 } else { f64::from(final_seats) / f64::from(limit) };
    (initial_seats.max(limit), (additional_latency as f64 * stretch) as u64)
}

/// Current limits, by level of the policy.
fn limits(engine: &Engine) -> Vec<u32> {
    let names: Vec<_> = engine
        .inspect(|resolver| resolver.policy().levels().iter().map(|level| level.name.clone()).collect());
    let metrics = engine.metrics();
    let current = |name: &Arc<str>| {
        let level = metrics.levels.iter().find(|level| level.priority_level == *name);
        level.map_or(0, |level| u32::try_from(level.current_limit_seats).unwrap_or(u32::MAX))
    };
    names.iter().map(current).collect()
}

#[cfg(test)]
mod tests {
    use maitred::engine::Options;
    use maitred_manifest::Plain;

    use super::super::scenario;
    use super::*;

    #[test]
    fn the_engine_has_counted_the_same() {
        let text = "
duration: 25s
serverConcurrencyLimit: 20
waitLimit: 500ms
flows:
- name: wide
  count: 4
  request: {resource: pods, verb: list}
  arrivals: {rate: 20/s}
  width: {initialSeats: 2, finalSeats: 9, additionalLatency: 30ms}
  service: {exponential: 100ms}
- name: turns
  request: {user: 'system:serviceaccount:a:b', resource: pods}
  arrivals: {closedLoop: {clients: 30, think: {uniform: {from: 0s, to: 20ms}}}}
  service: {logNormal: {median: 50ms, p99: 500ms}}
  from: 5s
  until: 20s
";
        let scenario = scenario::read(&Plain::read_str("s", text).unwrap()).unwrap();
        let clock = Manual::default();
        let options = Options {
            server_concurrency_limit: scenario.server_concurrency_limit,
            clock_lag: 0,
            ..Options::default()
        };
        let engine = Engine::with_clock(options, clock.clone()).unwrap();
        engine.apply(&maitred::api::builtin::suggested()).unwrap();
        let played = play(&engine, &clock, &scenario, |_| ());
        assert_eq!(engine.now(), scenario.duration);

        let metrics = engine.metrics();
        for (flow, count) in [0, 4].map(|flow| &played.flows[flow]).into_iter().zip(&played.counts) {
            let schema = engine.inspect(|resolver| resolver.policy().schemas()[flow.schema].name.clone());
            let engines = metrics.flows.iter().find(|flow| flow.flow_schema == schema).unwrap();
            assert_eq!(
                (engines.arrived, engines.dispatched, engines.finished),
                (count.offered, count.dispatched, count.finished)
            );
            for why in Rejection::ALL {
                assert_eq!(engines.rejected(why), count.rejected.get(why.reason()).copied().unwrap_or(0));
            }
            assert!(count.all_rejected() > 0, "{count:?}");
        }
        for level in &metrics.levels {
            let index = engine.inspect(|resolver| {
                resolver.policy().levels().iter().position(|other| other.name == level.priority_level)
            });
            let limit = &played.limits[index.unwrap()];
            assert_eq!(u64::from(limit.now), level.current_limit_seats);
            assert_eq!(limit.seat_ns.len(), played.turns.len());
        }
    }

    #[test]
    fn final_seats_above_the_limit_are_cut_and_last_longer() {
        let width = Width { initial_seats: 2, final_seats: 10, additional_latency: 1000 };
        assert_eq!(holds(width, 20), (10, 1000));
        assert_eq!(holds(width, 5), (5, 2000));
        assert_eq!(holds(width, 1), (2, 10_000));
        assert_eq!(holds(width, 0), (2, 0));
    }
}
