//! Traces of a queue set, event by event, through one level of the engine with the time given.
//!
//! Each event of a trace is a case, and the totals and statistics at its end are one more. After an event that differs
//! the level is no longer in the recorded state, so what follows it in its trace counts as failed, too.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Finished, Level, Refusal};
use maitred::shuffle::Deck;
use maitred::ticket::{State, TicketId, Width};
use serde::Deserialize;
use serde_json::{Value, json};

use super::integrator::{Results, results};
use crate::{outcome::Outcome, vectors};

#[derive(Deserialize)]
struct Trace {
    name: String,
    cfg: [i64; 4],
    r0: Option<String>,
    h: Vec<String>,
    ev: Vec<Value>,
    demand: Results,
    tot: [u64; 2],
}

/// R counts modulo 2^64 here; the reference winds its own back by this much before it would overflow.
const EPOCH: u64 = (1 << 63) - 1;

/// Runs all traces.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (line, trace) in vectors::data::<Trace>(path)? {
        let place = || format!("{}:{line}", path.display());
        let total = trace.ev.len() as u64 + 1;
        let mut story = Story::begin(&trace).with_context(place)?;
        let mut passed = 0;
        let mut first = None;
        for (i, event) in trace.ev.iter().enumerate() {
            let differences = story.step(event).with_context(|| format!("{}: event {i}", place()))?;
            if !differences.is_empty() {
                first = Some((format!("line {line}, {}, event {i}: {event}", trace.name), differences));
                break;
            }
            passed += 1;
        }
        if first.is_none() {
            let differences = story.end(&trace);
            if differences.is_empty() {
                passed += 1;
            } else {
                first = Some((format!("line {line}, {}, at the end", trace.name), differences));
            }
        }
        for _ in 0..passed {
            outcome.verdict(true, String::new, || (String::new(), String::new()));
        }
        for _ in passed..total {
            let (case, differences) = first.clone().unwrap_or_default();
            let (expected, got) = differences.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
            outcome.verdict(false, || case, || (expected.join("; "), got.join("; ")));
        }
    }
    Ok(outcome)
}

struct Story {
    level: Level,
    cx: Context,
    epoch: bool,
    hashes: Vec<u64>,
    deck: Option<Deck>,
    tickets: HashMap<u64, TicketId>,
    ids: HashMap<TicketId, u64>,
    /// Releases due: time, order in which they were set, request.
    timers: BTreeMap<(u64, u64), u64>,
    timers_set: u64,
    cancels: u64,
    now: u64,
}

type Differences = Vec<(String, String)>;

impl Story {
    fn begin(trace: &Trace) -> Result<Story> {
        let arena: Arc<Arena> =
            Arena::new(ArenaSize { tickets: 1 << 14, queues: 1 << 14, levels: 1, threads: 1 });
        let mut cx = Context::new(&arena).map_err(|e| anyhow::anyhow!("{e:?}"))?;
        let config = config(&trace.cfg)?;
        let mut level =
            Level::new(&arena, 0, config, Fidelity::Kubernetes, 0).map_err(|e| anyhow::anyhow!("{e:?}"))?;
        if let Some(r0) = &trace.r0 {
            level = level.starting_at_r(&mut cx, r0.parse()?);
        }
        cx.granted = Some(Vec::new());
        Ok(Story {
            level,
            cx,
            epoch: trace.name == "epoch" || trace.r0.is_some(),
            hashes: trace.h.iter().map(|h| h.parse()).collect::<Result<_, _>>()?,
            deck: deck(config.discipline),
            tickets: HashMap::new(),
            ids: HashMap::new(),
            timers: BTreeMap::new(),
            timers_set: 0,
            cancels: 0,
            now: 0,
        })
    }

    /// Does what the event says; gives (recorded, ours) wherever they differ.
    fn step(&mut self, event: &Value) -> Result<Differences> {
        let mut out = Differences::new();
        let kind = event["e"].as_str().context("an event without a kind")?;
        let now = event["t"].as_u64().context("an event without a time")?;
        self.now = now;
        let id = event["id"].as_u64().context("an event without a request");
        let ticket =
            event["id"].as_u64().context("an event without a request").and_then(|id| self.ticket(id));
        let due = self.timers.first_key_value().map(|(k, v)| (k.0, *v));
        if kind != "r" && kind != "k" && due.is_some_and(|(at, _)| at <= now) {
            out.push((format!("{kind} next"), format!("the release of {due:?} is due before")));
        }
        match kind {
            "a" => self.arrive(event, now, id?, &mut out)?,
            "f" => match self.level.finish(&mut self.cx, ticket?, now) {
                Ok(Finished::Released) => {}
                Ok(Finished::Lingers(ns)) => {
                    self.timers.insert((now + ns, self.timers_set), id?);
                    self.timers_set += 1;
                }
                Err(e) => out.push(("the request runs".into(), format!("{e:?}"))),
            },
            "c" => {
                self.cancels += 1;
                if let Err(e) = self.level.cancel(&mut self.cx, ticket?, now) {
                    out.push(("the request waits".into(), format!("{e:?}")));
                }
            }
            "r" => {
                compare(&mut out, "release", json!([now, id?]), json!(due));
                self.timers.pop_first();
                if let Err(e) = self.level.release(&mut self.cx, ticket?, now) {
                    out.push(("the request lingers".into(), format!("{e:?}")));
                }
            }
            "s" => {
                let config = config(&serde_json::from_value(event["cfg"].clone())?)?;
                self.deck = deck(config.discipline);
                self.level.configure(&mut self.cx, &config, now).map_err(|e| anyhow::anyhow!("{e:?}"))?;
            }
            "k" => self.checkpoint(event, &mut out)?,
            other => bail!("unknown kind of event {other:?}"),
        }
        if kind != "k" {
            self.grants(event, &mut out)?;
        }
        let o = self.level.occupancy(&mut self.cx);
        let t = self.level.totals();
        let running = t.dispatched - t.finished;
        compare(
            &mut out,
            "s",
            event["s"].clone(),
            json!([o.waiting, running, o.seats_in_use, o.seats_waiting]),
        );
        let r: u64 = event["R"].as_str().context("an event without R")?.parse()?;
        self.meter(&mut out, "R", r, o.r);
        Ok(out)
    }

    fn arrive(&mut self, event: &Value, now: u64, id: u64, out: &mut Differences) -> Result<()> {
        let flow = event["f"].as_u64().context("an arrival without a flow")? as usize;
        let hash = *self.hashes.get(flow).context("a flow without a hash")?;
        let [initial, last, latency]: [u64; 3] = serde_json::from_value(event["w"].clone())?;
        let width = Width {
            initial_seats: initial.try_into()?,
            final_seats: last.try_into()?,
            additional_latency: latency,
        };
        let hand = self.deck.as_ref().map(|deck| deck.deal(hash));
        let arrival = self.level.arrive(&mut self.cx, hash, hand.as_ref(), width, now);
        let outcome = match arrival.outcome {
            Ok(admitted) => {
                self.tickets.insert(id, admitted.id);
                self.ids.insert(admitted.id, id);
                if admitted.state == State::Running { "run" } else { "wait" }
            }
            Err(Refusal::QueueFull) => "queue-full",
            Err(Refusal::ConcurrencyLimit) => "concurrency-limit",
            Err(Refusal::OutOfTickets) => "out-of-tickets",
        };
        compare(out, "o", event["o"].clone(), json!(outcome));
        compare(out, "q", event["q"].clone(), json!(arrival.queue.map_or(-1, i64::from)));
        Ok(())
    }

    /// Who was granted by the event, and whose final seats were cut.
    fn grants(&mut self, event: &Value, out: &mut Differences) -> Result<()> {
        let granted = std::mem::take(self.cx.granted.as_mut().context("grants are noted")?);
        let ids: Vec<_> = granted.iter().map(|t| self.ids.get(t)).collect();
        compare(out, "d", or_empty(&event["d"]), json!(ids));
        let mut clips = Vec::new();
        for request in self.level.requests(&mut self.cx) {
            if granted.contains(&request.id) && request.clipped {
                clips.push((
                    granted.iter().position(|g| *g == request.id),
                    json!([
                        self.ids.get(&request.id),
                        request.width.final_seats,
                        request.width.additional_latency
                    ]),
                ));
            }
        }
        clips.sort_by_key(|c| c.0);
        let clips: Vec<Value> = clips.into_iter().map(|c| c.1).collect();
        compare(out, "clip", or_empty(&event["clip"]), json!(clips));
        Ok(())
    }

    /// `[next_dispatch_r, waiting, executing, seats]` of every queue, and the scan position with the hands dealt.
    fn checkpoint(&mut self, event: &Value, out: &mut Differences) -> Result<()> {
        let o = self.level.occupancy(&mut self.cx);
        // Without queues there is no list.
        let recorded = event["k"].as_array().map_or(&[][..], Vec::as_slice);
        compare(out, "number of queues", json!(recorded.len()), json!(o.queues));
        let requests = self.level.requests(&mut self.cx);
        for (position, queue) in recorded.iter().enumerate() {
            let position = position as u32;
            let Some(q) = self.level.queue(&mut self.cx, position) else { continue };
            let what = format!("queue {position}");
            let recorded_r: u64 = queue[0].as_str().context("a queue without R")?.parse()?;
            // Winding back, the reference forgets this of queues that are not active, for they get it anew.
            if !self.epoch || q.running + q.waiting > 0 {
                self.meter(out, &what, recorded_r, q.next_dispatch_r);
            }
            let waiting: Vec<_> = self
                .level
                .waiting_in(&mut self.cx, position)
                .iter()
                .map(|t| self.ids.get(t).copied())
                .collect();
            compare(out, &what, queue[1].clone(), json!(waiting));
            let own = || requests.iter().filter(|r| r.queue == Some(position));
            let mut running: Vec<_> = own()
                .filter(|r| r.state == State::Running)
                .filter_map(|r| self.ids.get(&r.id).copied())
                .collect();
            running.sort_unstable();
            let mut expected: Vec<u64> = serde_json::from_value(queue[2].clone())?;
            expected.sort_unstable();
            compare(out, &what, json!(expected), json!(running));
            let seats: u64 =
                own().filter(|r| r.state != State::Waiting).map(|r| r.width.max_seats() as u64).sum();
            compare(out, &what, queue[3].clone(), json!(seats));
        }
        let last = self.level.last_granted(&mut self.cx).map_or(-1, i64::from);
        compare(out, "rr", event["rr"].clone(), json!([last, o.arrivals]));
        Ok(())
    }

    fn meter(&self, out: &mut Differences, what: &str, recorded: u64, ours: u64) {
        let difference = ours.wrapping_sub(recorded);
        if !(difference == 0 || self.epoch && difference.is_multiple_of(EPOCH)) {
            out.push((format!("{what} {recorded}"), format!("{what} {ours}")));
        }
    }

    fn end(&mut self, trace: &Trace) -> Differences {
        let mut out = Differences::new();
        let demand = results(&self.level.take_demand(&mut self.cx, self.now));
        // The reference adds at the moments of its own choice; sums of other parts differ in the last bits.
        let same = demand.iter().zip(&trace.demand).all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
            // A deviation of zero may come out as a negative variance.
            (None, Some(b)) | (Some(b), None) => b.abs() < 1e-6,
            (None, None) => true,
        });
        if !same {
            out.push((format!("demand {:?}", trace.demand), format!("demand {demand:?}")));
        }
        let t = self.level.totals();
        let rejected = t.queue_full + t.concurrency_limit + t.cancelled;
        compare(&mut out, "tot", json!(trace.tot), json!([rejected, self.cancels]));
        out
    }

    fn ticket(&self, id: u64) -> Result<TicketId> {
        self.tickets.get(&id).copied().with_context(|| format!("request {id} has no ticket"))
    }
}

fn compare(out: &mut Differences, what: &str, recorded: Value, ours: Value) {
    if recorded != ours {
        out.push((format!("{what} {recorded}"), format!("{what} {ours}")));
    }
}

fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!([]) } else { value.clone() }
}

/// `[queues, hand size, queue length limit, limit]`
fn config(cfg: &[i64; 4]) -> Result<Config> {
    let discipline = match cfg[0] {
        -1 => Discipline::Exempt,
        0 => Discipline::Reject,
        queues => Discipline::Queue {
            queues: queues.try_into()?,
            hand_size: cfg[1].try_into()?,
            queue_length_limit: cfg[2].try_into()?,
        },
    };
    Ok(Config { discipline, limit: cfg[3].try_into()? })
}

fn deck(discipline: Discipline) -> Option<Deck> {
    match discipline {
        Discipline::Queue { queues, hand_size, .. } => Deck::new(queues, hand_size).ok(),
        _ => None,
    }
}
