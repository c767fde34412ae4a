//! An engine for tests: one sequential model a level.

#[path = "../../core/tests/model/mod.rs"]
mod model;

use std::collections::{BTreeMap, HashMap};

use maitred::borrow::{Integrator, Limits, PeriodDemand};
use maitred::engine::ADJUSTMENT_PERIOD;
use maitred::fidelity::Fidelity;
use model::{Config, Discipline, Model, Outcome, Width};

use crate::plan::Plan;
use crate::play::{Answer, Refusal, Seats};
use crate::record::Class;

pub struct StandIn {
    names: Vec<String>,
    models: Vec<(Model, Integrator)>,
    level_of: Vec<usize>,
    limits: Limits,
    at: HashMap<u64, usize>,
    granted: Vec<u64>,
    next_adjustment: u64,
    ahead: u64,
}

impl StandIn {
    pub fn new(plan: &Plan, first_adjustment: u64) -> Self {
        let limits = plan.limits();
        let fidelity = match plan.fidelity {
            Fidelity::Corrected => model::Fidelity::Corrected,
            Fidelity::Kubernetes => model::Fidelity::Kubernetes,
        };
        let models = plan
            .levels
            .iter()
            .map(|level| {
                let discipline = match level.discipline {
                    maitred::level::Discipline::Exempt => Discipline::Exempt,
                    maitred::level::Discipline::Reject => Discipline::Reject,
                    maitred::level::Discipline::Queue { queues, hand_size, queue_length_limit } => {
                        Discipline::Queue { queues, hand_size: hand_size.into(), queue_length_limit }
                    }
                };
                let limit = limits.level(&level.spec.name).unwrap().current as u32;
                (Model::new(Config { discipline, limit, fidelity }), Integrator::new(0))
            })
            .collect();
        Self {
            names: plan.levels.iter().map(|level| level.spec.name.to_string()).collect(),
            models,
            level_of: plan.schemas.iter().map(|(_, level)| *level).collect(),
            limits,
            at: HashMap::new(),
            granted: Vec::new(),
            next_adjustment: ADJUSTMENT_PERIOD,
            ahead: ADJUSTMENT_PERIOD - first_adjustment,
        }
    }

    fn after(&mut self, now: u64, level: usize, arrived: Option<u64>) {
        let (model, demand) = &mut self.models[level];
        demand.set(now, f64::from(model.seats_in_use() + model.seats_waiting()));
        self.granted.extend(model.granted().iter().filter(|id| Some(**id) != arrived));
    }

    fn adjust(&mut self, now: u64) {
        let mut demands: BTreeMap<&str, PeriodDemand> = self
            .names
            .iter()
            .zip(&mut self.models)
            .map(|(name, (_, demand))| (&**name, demand.reset(now)))
            .collect();
        self.limits.adjust(|name| demands.remove(name).unwrap_or(PeriodDemand::empty(0.0)));
        for level in 0..self.models.len() {
            let limit = self.limits.level(&self.names[level]).unwrap().current as u32;
            let config = Config { limit, ..self.models[level].0.config() };
            self.models[level].0.reconfigure(now, config);
            self.after(now, level, None);
        }
    }
}

impl Seats for StandIn {
    fn arrive(&mut self, now: u64, id: u64, class: &Class) -> Answer {
        let now = now + self.ahead;
        let level = self.level_of[class.schema as usize];
        let width =
            Width { initial: class.initial_seats, final_: class.final_seats, latency_ns: class.latency_ns };
        let (outcome, _) = self.models[level].0.arrive(now, id, class.flow, width);
        self.after(now, level, Some(id));
        let runs = self.models[level].0.granted().contains(&id);
        match outcome {
            Outcome::Run | Outcome::Wait => {
                self.at.insert(id, level);
                if runs || outcome == Outcome::Run { Answer::Runs } else { Answer::Waits }
            }
            Outcome::QueueFull => Answer::Refused(Refusal::QueueFull),
            Outcome::ConcurrencyLimit => Answer::Refused(Refusal::ConcurrencyLimit),
        }
    }

    fn finish(&mut self, now: u64, id: u64) {
        let now = now + self.ahead;
        let level = self.at[&id];
        if self.models[level].0.finish(now, id).is_none() {
            self.at.remove(&id);
        }
        self.after(now, level, None);
    }

    fn time_out(&mut self, now: u64, id: u64) {
        let now = now + self.ahead;
        let level = self.at.remove(&id).unwrap();
        self.models[level].0.time_out(now, id);
        self.after(now, level, None);
    }

    fn next_tick(&self) -> u64 {
        let releases = self.models.iter().filter_map(|(model, _)| model.next_release()).map(|(at, _)| at);
        releases.chain([self.next_adjustment]).min().unwrap() - self.ahead
    }

    fn tick(&mut self, now: u64) -> bool {
        let now = now + self.ahead;
        for level in 0..self.models.len() {
            while let Some((_, id)) = self.models[level].0.next_release().filter(|(at, _)| *at <= now) {
                self.models[level].0.release(now, id);
                self.at.remove(&id);
                self.after(now, level, None);
            }
        }
        let due = self.next_adjustment <= now;
        if due {
            self.next_adjustment += ADJUSTMENT_PERIOD;
            self.adjust(now);
        }
        due
    }

    fn granted(&mut self, ids: &mut Vec<u64>) {
        ids.append(&mut self.granted);
    }

    fn limits(&self, see: &mut dyn FnMut(usize, u64)) {
        for (level, (model, _)) in self.models.iter().enumerate() {
            see(level, model.config().limit.into());
        }
    }
}
