//! All of an engine, read: for metrics and dumps. Nothing here holds requests up.

use std::collections::HashMap;
use std::sync::Arc;

use super::apply::{Control, Tenant};
use super::outcome::{Outcome, Rows};
use super::{Engine, GENERATION, Rejection};
use crate::borrow::LevelLimits;
use crate::dump::{Dump, LevelDump, QueueDump, RequestDump, SeatsDump, TotalsDump};
use crate::level::{Context, Discipline, Occupancy};
use crate::metrics::{FlowMetrics, LevelMetrics, Metrics};
use crate::sync::Ordering::Acquire;
use crate::ticket::{State, StateWord};

const NANOS_PER_SECOND: f64 = 1e9;
const UNITS_PER_SEAT_SECOND: f64 = 1e8;

impl Engine {
    /// What the engine has counted, and what it holds now.
    ///
    /// Any thread may call. Allocates, in proportion to the levels and schemas; takes turns with [`apply`](Engine::apply) and
    /// [`tick`](Engine::tick), and holds no request up. Costs microseconds a level, and reads one number a thread for each
    /// count. At rest all numbers are exact; counts of calls under way may be missing.
    pub fn metrics(&self) -> Metrics {
        let control = self.control();
        let now = self.now();
        let levels = self.threads.with(|cx| self.each_level(&control, |at| self.level_metrics(cx, at)));
        let flows = counted_rows(&control.rows).map(|(row, pair)| self.flow_metrics(row, pair));
        Metrics {
            now,
            generation: self.generation.load(Acquire) & GENERATION,
            server_concurrency_limit: control.limits.server_limit(),
            closed: self.closed.load(Acquire),
            over_committed_seats: control.adjusted.over_committed,
            seat_fair_frac: control.adjusted.fair_fraction,
            memory_bytes: self.bytes(),
            levels,
            flows: flows.filter(|flow| &*flow.flow_schema != OTHERS || flow.arrived > 0).collect(),
        }
    }

    /// The engine's state, to read: levels, their active queues, and all requests in flight.
    ///
    /// Any thread may call. Allocates, in proportion to queues and requests; takes turns with [`apply`](Engine::apply) and
    /// [`tick`](Engine::tick), and holds no request up. Looks at every ticket and queue that there is: for people and for
    /// tests, not for a loop.
    pub fn dump(&self) -> Dump {
        let control = self.control();
        let now = self.now();
        let (levels, requests) = self.threads.with(|cx| {
            let levels = self.each_level(&control, |at| self.level_dump(&control, cx, at));
            (levels, self.requests(&control, cx))
        });
        Dump {
            now,
            generation: self.generation.load(Acquire) & GENERATION,
            server_concurrency_limit: control.limits.server_limit(),
            closed: self.closed.load(Acquire),
            over_committed_seats: control.adjusted.over_committed,
            levels,
            requests,
        }
    }

    /// Bytes of address space reserved.
    fn bytes(&self) -> u64 {
        let cache = self.inspect(|resolver| resolver.cache().bytes());
        (self.threads.bytes() + cache + size_of_val(&*self.levels)) as u64
    }

    fn each_level<T>(&self, control: &Control, mut of: impl FnMut(At) -> T) -> Vec<T> {
        let levels = control.limits.levels();
        let at =
            levels.filter_map(|limits| Some(At { limits, tenant: control.tenants.get(&limits.spec.name)? }));
        at.map(&mut of).collect()
    }

    fn level_metrics(&self, cx: &mut Context, at: At) -> LevelMetrics {
        let limits = at.limits;
        let seats = self.seats_at(at.tenant.place);
        let Occupancy { seats_in_use, waiting, seats_waiting, active_queues, r, .. } =
            seats.level.occupancy(cx);
        LevelMetrics {
            priority_level: limits.spec.name.clone(),
            draining: limits.draining,
            nominal_limit_seats: limits.nominal,
            lower_limit_seats: limits.min,
            upper_limit_seats: limits.max,
            current_limit_seats: limits.current,
            seats_in_use,
            requests_waiting: waiting,
            seats_waiting,
            active_queues,
            demand_seats_high_watermark: limits.demand.high_watermark,
            demand_seats_average: limits.demand.average,
            demand_seats_stdev: limits.demand.deviation,
            demand_seats_smoothed: limits.demand.smoothed,
            current_r: r as f64 / UNITS_PER_SEAT_SECOND,
            retry_after_seconds: seats.retry_after.seconds(),
        }
    }

    fn flow_metrics(&self, row: u32, (priority_level, flow_schema): (Arc<str>, Arc<str>)) -> FlowMetrics {
        let (counts, dispatched) = self.threads.counted(row);
        let count = |what: Outcome| counts[what.index()];
        let seconds = |what: Outcome| count(what) as f64 / NANOS_PER_SECOND;
        FlowMetrics {
            priority_level,
            flow_schema,
            arrived: count(Outcome::Arrived),
            dispatched,
            finished: count(Outcome::Finished),
            rejected_by_reason: Rejection::ALL.map(|why| count(Outcome::Rejected(why))),
            wait_seconds: seconds(Outcome::Waited),
            rejected_wait_seconds: seconds(Outcome::WaitedInVain),
            service_seconds: seconds(Outcome::Served),
        }
    }

    fn level_dump(&self, control: &Control, cx: &mut Context, at: At) -> LevelDump {
        let LevelLimits { spec, draining, nominal, min, max, current, .. } = at.limits;
        let level = &self.seats_at(at.tenant.place).level;
        let occupancy = level.occupancy(cx);
        // Queue by queue: all at once might never be seen in a busy level.
        let queues =
            (0..occupancy.queues).filter_map(|position| Some((position, level.queue(cx, position)?)));
        let active = queues.filter(|(_, queue)| queue.waiting > 0 || queue.running > 0);
        let active = active.map(|(position, queue)| QueueDump {
            position,
            waiting: queue.waiting,
            running: queue.running,
            next_dispatch_r: queue.next_dispatch_r,
            work: queue.work,
        });
        LevelDump {
            name: spec.name.clone(),
            kind: match at.tenant.config.discipline {
                Discipline::Exempt => "Exempt",
                Discipline::Reject => "Reject",
                Discipline::Queue { .. } => "Queue",
            },
            draining: *draining,
            seats: SeatsDump { nominal: *nominal, min: *min, max: *max, current: *current },
            seats_in_use: occupancy.seats_in_use,
            waiting: occupancy.waiting,
            seats_waiting: occupancy.seats_waiting,
            queues: occupancy.queues,
            active_queues: occupancy.active_queues,
            r: occupancy.r,
            totals: self.totals(control, &spec.name),
            active: active.collect(),
        }
    }

    /// Over all schemas that ever led to the level.
    fn totals(&self, control: &Control, level: &str) -> TotalsDump {
        let mut totals = TotalsDump::default();
        for (row, pair) in counted_rows(&control.rows).filter(|(_, pair)| &*pair.0 == level) {
            let flow = self.flow_metrics(row, pair);
            totals.arrived += flow.arrived;
            totals.dispatched += flow.dispatched;
            totals.finished += flow.finished;
            for why in Rejection::ALL.into_iter().filter(|why| flow.rejected(*why) > 0) {
                *totals.rejected.entry(why.reason()).or_default() += flow.rejected(why);
            }
        }
        totals
    }

    fn requests(&self, control: &Control, cx: &mut Context) -> Vec<RequestDump> {
        let names: HashMap<u32, Arc<str>> =
            control.tenants.iter().map(|(name, tenant)| (tenant.place, name.clone())).collect();
        let mut requests: Vec<_> = (0..self.arena().tickets.used())
            .filter_map(|index| self.request_dump(control, cx, &names, index))
            .collect();
        requests.sort_by(|a, b| {
            (&a.priority_level, a.since, a.ticket).cmp(&(&b.priority_level, b.since, b.ticket))
        });
        requests
    }

    /// The request that the ticket in place `index` stands for, if it does for one.
    fn request_dump(
        &self,
        control: &Control,
        cx: &mut Context,
        names: &HashMap<u32, Arc<str>>,
        index: u32,
    ) -> Option<RequestDump> {
        let ticket = self.arena().tickets.get(index)?;
        if ticket.state().state() == State::Free {
            return None;
        }
        let place = ticket.level.load(Acquire);
        let request = self.seats(place)?.level.request(cx, index)?;
        let (row, arrival) = (ticket.tag.load(Acquire), ticket.arrival.load(Acquire));
        // Still the same one's.
        let same = |now: StateWord| now.is(request.id, request.state);
        same(ticket.state()).then(|| RequestDump {
            ticket: request.id.to_bits(),
            priority_level: names.get(&place).cloned().unwrap_or_else(|| OTHERS.into()),
            flow_schema: pair_of(&control.rows, row).1,
            state: match request.state {
                State::Waiting => "waiting",
                State::Running => "running",
                State::Lingering => "lingering",
                State::Free => "ended",
            },
            queue: request.queue,
            initial_seats: request.width.initial_seats,
            final_seats: request.width.final_seats,
            additional_latency: request.width.additional_latency,
            since: if request.state == State::Waiting { arrival } else { request.granted_at },
            until: (request.state == State::Lingering).then_some(arrival),
        })
    }
}

/// A level in force or draining.
struct At<'a> {
    limits: &'a LevelLimits,
    tenant: &'a Tenant,
}

/// The name of pairs that have no row of their own.
const OTHERS: &str = "*";

fn pair_of(rows: &Rows, row: u32) -> (Arc<str>, Arc<str>) {
    rows.pairs().get(row as usize).cloned().unwrap_or_else(|| (OTHERS.into(), OTHERS.into()))
}

fn counted_rows(rows: &Rows) -> impl Iterator<Item = (u32, (Arc<str>, Arc<str>))> {
    (0..rows.pairs().len() as u32).chain([Rows::OTHERS]).map(|row| (row, pair_of(rows, row)))
}
