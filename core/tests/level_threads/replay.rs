//! A run in which each event is a step, replayed through the sequential model in the order of the steps.

use std::collections::HashMap;

use maitred::fidelity::Fidelity;
use maitred::level::{Config, Discipline, Refusal, Step};
use maitred::ticket::TicketId;

use crate::model::{self, Model, Outcome};
use crate::run::{Asked, Event, Run};

fn model_fidelity(fidelity: Fidelity) -> model::Fidelity {
    match fidelity {
        Fidelity::Kubernetes => model::Fidelity::Kubernetes,
        Fidelity::Corrected => model::Fidelity::Corrected,
    }
}

fn model_config(config: Config, fidelity: Fidelity) -> model::Config {
    let discipline = match config.discipline {
        Discipline::Exempt => model::Discipline::Exempt,
        Discipline::Reject => model::Discipline::Reject,
        Discipline::Queue { queues, hand_size, queue_length_limit } => {
            model::Discipline::Queue { queues, hand_size: hand_size.into(), queue_length_limit }
        }
    };
    model::Config { discipline, limit: config.limit, fidelity: model_fidelity(fidelity) }
}

/// All steps of a run by their numbers, which must be 1, 2, 3, …; each with the event that it is, if it is one.
pub fn in_order(run: &Run) -> Vec<(Step, &[TicketId], Option<&Event>)> {
    let mut all = Vec::new();
    for event in &run.events {
        let own = if matches!(event.asked, Asked::Nothing) { None } else { event.step() };
        for (step, granted) in &event.steps {
            let event = (own == Some(step.version)).then_some(event);
            all.push((*step, granted.as_slice(), event));
        }
    }
    all.sort_by_key(|s| s.0.version);
    for (i, (step, ..)) in all.iter().enumerate() {
        assert_eq!(step.version, i as u64 + 1, "each step has a number of its own");
    }
    all
}

pub fn replay(run: &Run) {
    let fidelity = run.shape.fidelity;
    let mut model = Model::new(model_config(run.shape.config, fidelity));
    let mut ids: HashMap<TicketId, u64> = HashMap::new();
    let steps = in_order(run);
    for group in steps.chunk_by(|_, next| next.0.leftover) {
        let (first, _, event) = group[0];
        let (last, ..) = group[group.len() - 1];
        assert!(!first.leftover, "grants are left over by an event");
        assert!(group[..group.len() - 1].iter().all(|s| s.0.pending) && !last.pending, "{group:?}");
        let Some(event) = event else {
            assert!(group.len() == 1 && first.grants == 0, "{group:?}");
            continue;
        };
        // Any thread may have made the grants left over.
        let granted: Vec<_> = group.iter().flat_map(|s| s.1).copied().collect();
        tell(&mut model, &mut ids, event, &granted, fidelity);
        let granted: Vec<_> = granted.iter().map(|t| ids[t]).collect();
        assert_eq!(granted, model.granted(), "step {}: {event:?}", first.version);
        assert_eq!(
            (last.seats_in_use, last.limit, last.waiting, last.at, last.r),
            (model.seats_in_use(), model.config().limit, model.waiting(), model.now(), model.r()),
            "step {}: {event:?}",
            first.version
        );
    }
    // What each queue was charged in the end.
    let charged: Vec<_> = model.queues().iter().map(|q| q.next_dispatch_r).collect();
    assert_eq!(run.charged, charged);
    let events = run.events.iter().filter(|e| !matches!(e.asked, Asked::Nothing));
    assert!(events.filter(|e| e.step().is_none()).all(refused_beforehand), "an event without a step");
}

/// For want of a ticket.
fn refused_beforehand(event: &Event) -> bool {
    matches!(event.asked, Asked::Arrive { outcome: Err(Refusal::OutOfTickets), .. })
}

fn tell(
    model: &mut Model,
    ids: &mut HashMap<TicketId, u64>,
    event: &Event,
    granted: &[TicketId],
    fidelity: Fidelity,
) {
    let now = event.now;
    match event.asked {
        Asked::Arrive { hash, width, outcome, queue } => {
            let id = ids.len() as u64;
            let (expected, place) = model.arrive(
                now,
                id,
                hash,
                (width.initial_seats, width.final_seats, width.additional_latency),
            );
            let got = match outcome {
                Ok(ticket) => {
                    assert_eq!(ids.insert(ticket, id), None, "a name for two tickets: {event:?}");
                    if granted.contains(&ticket) { Outcome::Run } else { Outcome::Wait }
                }
                Err(Refusal::QueueFull) => Outcome::QueueFull,
                Err(Refusal::ConcurrencyLimit) => Outcome::ConcurrencyLimit,
                Err(Refusal::OutOfTickets) => panic!("a step was made for {event:?}"),
            };
            assert_eq!(got, expected, "{event:?}");
            assert_eq!(queue.map_or(-1, |q| q as i32), place, "{event:?}");
        }
        Asked::Finish(ticket) => drop(model.finish(now, ids[&ticket])),
        Asked::Release(ticket) => model.release(now, ids[&ticket]),
        Asked::Cancel(ticket) => drop(model.cancel(now, ids[&ticket])),
        // A change of the limit alone.
        Asked::Configure(Config { discipline: Discipline::Exempt, limit }) => {
            model.reconfigure(now, model::Config { limit, ..model.config() });
        }
        Asked::Configure(config) => model.reconfigure(now, model_config(config, fidelity)),
        Asked::Nothing => panic!("nothing is no event"),
    }
}
