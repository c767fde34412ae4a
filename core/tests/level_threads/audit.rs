//! A run in which requests may be seated without a step, held against the invariants at each step.
//!
//! Whoever ever waits is queued, granted and cancelled by steps, so the lines of all queues are known at each of them.

use std::collections::{HashMap, VecDeque};

use maitred::fidelity::Fidelity;
use maitred::level::{Config, Discipline, Refusal, Step};
use maitred::ticket::{TicketId, Width};

use crate::replay::in_order;
use crate::run::{Asked, Event, Run};

struct Audit {
    fidelity: Fidelity,
    config: Config,
    /// Who waits in which queue, oldest first. Where queues come and go their positions change, so they are told apart
    /// only where none do.
    lines: HashMap<u32, VecDeque<TicketId>>,
    told_apart: bool,
    widths: HashMap<TicketId, Width>,
}

pub fn audit(run: &Run) {
    let mut audit = Audit {
        fidelity: run.shape.fidelity,
        config: run.shape.config,
        lines: HashMap::new(),
        told_apart: !run.shape.reshaped,
        widths: HashMap::new(),
    };
    for event in &run.events {
        if let Asked::Arrive { width, outcome: Ok(id), .. } = event.asked {
            assert!(audit.widths.insert(id, width).is_none(), "a name for two tickets: {event:?}");
        }
    }
    each_ticket_ends_once(run);
    for (step, granted, event) in in_order(run) {
        if let Some(event) = event {
            audit.happen(event, &step);
        }
        audit.grant(&step, granted);
        audit.look(&step, event);
    }
}

/// Invariant 4, as the callers were told.
fn each_ticket_ends_once(run: &Run) {
    let mut lives: HashMap<TicketId, [u32; 4]> = HashMap::new();
    for event in &run.events {
        let (id, what) = match event.asked {
            Asked::Arrive { outcome: Ok(id), .. } => (id, 0),
            Asked::Finish(id) => (id, 1),
            Asked::Release(id) => (id, 2),
            Asked::Cancel(id) => (id, 3),
            _ => continue,
        };
        lives.entry(id).or_default()[what] += 1;
    }
    for (id, life) in lives {
        assert!(matches!(life, [1, 1, 0 | 1, 0] | [1, 0, 0, 1]), "{id:?}: {life:?}");
    }
}

impl Audit {
    fn line(&mut self, queue: u32) -> &mut VecDeque<TicketId> {
        self.lines.entry(if self.told_apart { queue } else { 0 }).or_default()
    }

    fn waiting(&self) -> usize {
        self.lines.values().map(VecDeque::len).sum()
    }

    fn happen(&mut self, event: &Event, step: &Step) {
        match event.asked {
            Asked::Arrive { outcome: Ok(id), queue: Some(queue), .. } => self.line(queue).push_back(id),
            Asked::Arrive { outcome: Err(Refusal::QueueFull), queue: Some(queue), .. } => {
                let Discipline::Queue { queue_length_limit, .. } = self.config.discipline else {
                    panic!("{event:?} by a level that does not queue")
                };
                let length = self.line(queue).len();
                // Invariant 6.
                assert!(length >= queue_length_limit as usize, "full with {length} of {queue_length_limit}");
                if self.fidelity == Fidelity::Kubernetes {
                    assert!(step.seats_in_use >= step.limit, "full with a seat free: {step:?}");
                }
            }
            Asked::Cancel(id) => {
                let line =
                    self.lines.values_mut().find(|line| line.contains(&id)).expect("who is cancelled waits");
                line.retain(|other| *other != id);
            }
            Asked::Configure(Config { discipline: Discipline::Exempt, limit }) => self.config.limit = limit,
            Asked::Configure(config) => self.config = config,
            _ => {}
        }
    }

    fn grant(&mut self, step: &Step, granted: &[TicketId]) {
        let mut queued = false;
        for id in granted {
            let Some((_, line)) = self.lines.iter_mut().find(|(_, line)| line.contains(id)) else {
                // Seated by a step, without a queue.
                assert!(!matches!(self.config.discipline, Discipline::Queue { .. }), "{id:?} was in no line");
                continue;
            };
            queued = true;
            // Invariant 5.
            if self.told_apart {
                assert_eq!(line.front(), Some(id), "step {}: granted before its elders", step.version);
            }
            line.retain(|other| other != id);
        }
        // Invariant 1.
        if self.config.discipline != Discipline::Exempt
            && !granted.is_empty()
            && step.seats_in_use > step.limit
        {
            let alone = granted.len() == 1 && self.widths[&granted[0]].max_seats() > step.limit;
            assert!(alone, "{step:?}: granted past the limit");
            if self.fidelity == Fidelity::Corrected {
                let width = self.widths[&granted[0]];
                // Who comes through a queue has its final seats cut to the limit.
                let cut = width.initial_seats.max(width.final_seats.min(step.limit));
                let seats = if queued { cut } else { width.max_seats() };
                assert_eq!(step.seats_in_use, seats, "{step:?}: wider than the limit, and not alone");
            }
        }
    }

    fn look(&self, step: &Step, event: Option<&Event>) {
        assert_eq!(step.waiting as usize, self.waiting(), "{step:?} {event:?}");
        assert_eq!(step.limit, self.config.limit);
        let grants = match event.map(|e| e.asked) {
            Some(Asked::Cancel(_)) => self.fidelity == Fidelity::Corrected,
            Some(Asked::Arrive { outcome, .. }) => {
                outcome.is_ok() && matches!(self.config.discipline, Discipline::Queue { .. })
            }
            Some(_) => true,
            None => step.leftover,
        };
        if !grants || step.pending || step.waiting == 0 || step.seats_in_use >= step.limit {
            return;
        }
        // Invariant 3: of those who may be next, somebody does not fit.
        let mut heads: Box<dyn Iterator<Item = &TicketId>> = if self.told_apart {
            Box::new(self.lines.values().filter_map(VecDeque::front))
        } else {
            Box::new(self.lines.values().flatten())
        };
        let blocked = heads.any(|id| {
            let seats = self.widths[id].max_seats();
            // In the reference, a wide one asks who runs, which is not known here.
            let alone = self.fidelity == Fidelity::Kubernetes || step.seats_in_use > 0;
            if seats > step.limit { alone } else { step.seats_in_use + seats > step.limit }
        });
        assert!(blocked, "{step:?}: a seat is free and whoever is next fits");
    }
}
