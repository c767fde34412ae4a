//! A new set of objects: validated whole, then swapped in; or refused whole, and what was in force stays.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::lingering::Due;
use super::outcome::Rows;
use super::snapshot::{Binding, Snapshot};
use super::{ADJUSTMENT_PERIOD, Engine, GENERATION};
use crate::api::Objects;
use crate::borrow::{Adjustment, Digest, LevelSpec, Limits, PeriodDemand};
use crate::error::Fault;
use crate::fidelity::Fidelity;
use crate::level::{Config, Context, OutOfCells};
use crate::policy::{Policy, Resolver};
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// What only one thread at a time does: applying objects, adjusting limits, giving lingering seats back.
pub(super) struct Control {
    pub(super) limits: Limits,
    /// What the last adjustment did.
    pub(super) adjusted: Adjustment,
    server_limit: u32,
    specs: Vec<LevelSpec>,
    /// Levels in force and draining, by name.
    pub(super) tenants: HashMap<Arc<str>, Tenant>,
    /// How many of them drain.
    draining: usize,
    pub(super) free_places: Vec<u32>,
    pub(super) fresh_place: u32,
    pub(super) rows: Rows,
    pub(super) due: Due,
    pub(super) next_adjustment: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Tenant {
    pub(super) place: u32,
    pub(super) config: Config,
}

impl Control {
    pub(super) fn new(fidelity: Fidelity, server_limit: u32) -> Self {
        Control {
            limits: Limits::new(fidelity),
            adjusted: Adjustment::default(),
            server_limit,
            specs: Vec::new(),
            tenants: HashMap::new(),
            draining: 0,
            free_places: Vec::new(),
            fresh_place: 0,
            rows: Rows::default(),
            due: Due::default(),
            next_adjustment: 0,
        }
    }
}

/// What applying a set of objects did.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Number of the set: 1 for the mandatory objects that an engine begins with, then one more with each.
    pub generation: u64,
    /// Flow schemas that take no part, because their level does not exist.
    pub dangling: Vec<Arc<str>>,
    /// Levels that came, went, or stay until their last request has gone.
    pub levels: Digest,
    /// What became of the limits.
    pub limits: Adjustment,
}

/// Why a set of objects was refused; all reasons. What was in force stays in force.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyError(pub Vec<Fault>);

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the objects were refused; those in force stay:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for ApplyError {}

impl Engine {
    /// Puts a set of objects in force in place of the one before. It is the whole configuration: objects that are missing
    /// are gone. Mandatory ones that are missing are imagined.
    ///
    /// Objects must have their defaults (decoded ones have). All faults are reported at once, those of validation first and
    /// alone; a level for which the engine has no place or no memory is a fault too. Then nothing has changed, memory
    /// included.
    ///
    /// Requests in flight go on: levels live on by name, and one that is gone drains. Limits are adjusted at once, besides
    /// the adjustments every ten seconds. Any thread may call. Allocates; takes turns with other calls of this kind, but no
    /// request waits for it. Costs microseconds an object, and some more a queue that is new.
    pub fn apply(&self, objects: &Objects) -> Result<Applied, ApplyError> {
        let faults = objects.validate();
        if !faults.is_empty() {
            return Err(ApplyError(faults));
        }
        self.install(objects).map_err(ApplyError)
    }

    /// Changes the number of seats of the whole server. Limits follow at once: requests that run keep their seats, those that
    /// wait are granted what is new.
    ///
    /// Any thread may call; takes turns with [`apply`](Engine::apply). Allocates. With 0, all levels but the exempt one are
    /// without seats.
    pub fn set_server_concurrency_limit(&self, seats: u32) -> Adjustment {
        let mut control = self.control();
        let now = self.now();
        control.server_limit = seats;
        control.limits.set_server_limit(seats);
        self.threads.with(|cx| self.adjust(&mut control, cx, now))
    }

    /// The mandatory objects, in force from the beginning.
    pub(super) fn start(&self) -> Result<(), OutOfCells> {
        let next = self.now().saturating_add(ADJUSTMENT_PERIOD);
        self.control().next_adjustment = next;
        self.wake_at.store(next, Release);
        self.install(&Objects::default())
            .map(drop)
            .map_err(|_| OutOfCells { wanted: 2, left: self.levels.len() })
    }

    fn install(&self, objects: &Objects) -> Result<Applied, Vec<Fault>> {
        let mut control = self.control();
        let control = &mut *control;
        let now = self.now();
        let policy = Policy::compile(objects, control.server_limit)?;
        self.threads.with(|cx| {
            let tenants = self.house(control, cx, &policy, now)?;
            // From here on nothing fails.
            let specs = policy.level_specs();
            self.configure(control, cx, tenants, &specs, now);
            let dangling = policy.dangling().iter().map(|d| d.name.clone()).collect();
            let generation = self.publish(control, policy);
            let levels = self.digest(control, cx, specs);
            let limits = self.adjust(control, cx, now);
            Ok(Applied { generation, dangling, levels, limits })
        })
    }

    /// Gives levels their new numbers. One that is there keeps its limit till the adjustment that follows; a new one begins
    /// with what it will have then, but for what others have lent or want.
    fn configure(
        &self,
        control: &mut Control,
        cx: &mut Context,
        tenants: Vec<(Arc<str>, Tenant)>,
        specs: &[LevelSpec],
        now: u64,
    ) {
        let mut limits = control.limits.clone();
        limits.digest(control.server_limit, specs, |_| true);
        for (name, mut tenant) in tenants {
            if !control.tenants.contains_key(&name) {
                tenant.config.limit = limits.level(&name).map_or(0, |level| clamp(level.current));
            }
            let done = self.seats_at(tenant.place).level.configure(cx, &tenant.config, now);
            debug_assert!(done.is_ok(), "its queues were made before");
            control.tenants.insert(name, tenant);
        }
    }

    /// Takes levels in and out of the limits, by their objects. Those that are gone, and empty, leave their places.
    fn digest(&self, control: &mut Control, cx: &mut Context, specs: Vec<LevelSpec>) -> Digest {
        let Control { limits, tenants, server_limit, .. } = control;
        let digest = limits.digest(*server_limit, &specs, |name| {
            tenants.get(name).is_some_and(|tenant| self.is_inhabited(cx, tenant.place))
        });
        control.specs = specs;
        control.draining = digest.draining.len();
        for name in &digest.removed {
            control.free_places.extend(control.tenants.remove(name).map(|tenant| tenant.place));
        }
        digest
    }

    fn publish(&self, control: &mut Control, policy: Policy) -> u64 {
        // Relaxed: only written here, one thread at a time.
        let generation = self.generation.load(Relaxed) + 1;
        let bindings = policy.levels().iter().map(|level| {
            let tenant = &control.tenants[&level.name];
            Binding { place: tenant.place, tenancy: self.seats_at(tenant.place).tenancy.load(Acquire) }
        });
        let levels = bindings.collect();
        let (schemas, named) = (policy.schemas(), policy.levels());
        let rows = schemas.iter().map(|s| control.rows.of(&named[s.level as usize].name, &s.name)).collect();
        let resolver = Resolver::new(policy, self.options.hasher, self.options.cached_flows);
        self.current.replace(Box::new(Snapshot { generation, resolver, levels, rows }));
        // Release: who sees the number sees the snapshot.
        self.generation.store(generation, Release);
        generation & GENERATION
    }

    /// Ends the period of all levels and sets their limits.
    pub(super) fn adjust(&self, control: &mut Control, cx: &mut Context, now: u64) -> Adjustment {
        let Control { limits, tenants, .. } = control;
        let adjustment = limits.adjust(|name| match tenants.get(name) {
            Some(tenant) => self.seats_at(tenant.place).level.take_demand(cx, now),
            None => PeriodDemand::empty(0.0),
        });
        for level in limits.levels() {
            let Some(tenant) = tenants.get_mut(&level.spec.name) else { continue };
            let seats = self.seats_at(tenant.place);
            // Relaxed: a number that orders nothing.
            seats.max_seats.store(clamp(level.max_seats.unwrap_or(0)), Relaxed);
            let limit = clamp(level.current);
            tenant.config.limit = limit;
            // Also where the number is the same: a level that was just made has another one, and whoever may run after a
            // cancellation that granted nobody is granted now, as in the reference.
            seats.level.set_limit(cx, limit, now);
        }
        control.adjusted = adjustment.clone();
        adjustment
    }

    /// Levels without an object whose last request has gone leave. Says whether there were any; then limits have to be
    /// adjusted.
    pub(super) fn dismiss_drained(&self, control: &mut Control, cx: &mut Context) -> bool {
        if control.draining == 0 {
            return false;
        }
        let drained = control.limits.levels().any(|level| {
            let at = control.tenants.get(&level.spec.name);
            level.draining && at.is_some_and(|tenant| self.seats_at(tenant.place).level.is_idle(cx))
        });
        if drained {
            let specs = std::mem::take(&mut control.specs);
            self.digest(control, cx, specs);
        }
        drained
    }
}

pub(super) fn clamp(seats: u64) -> u32 {
    u32::try_from(seats).unwrap_or(u32::MAX)
}
