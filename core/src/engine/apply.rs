//! A new set of objects: validated whole, then swapped in; or refused whole, and what was in force stays.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crossbeam_epoch::{self as epoch, Owned};

use super::lingering::Due;
use super::snapshot::{Binding, Snapshot};
use super::{ADJUSTMENT_PERIOD, COUNTED_SCHEMAS, Engine, Seats};
use crate::api::Objects;
use crate::borrow::{Adjustment, Digest, LevelSpec, Limits};
use crate::error::{Fault, FaultKind};
use crate::fidelity::Fidelity;
use crate::level::{Config, Context, Discipline, Level, Occupancy, OutOfCells};
use crate::policy::{self, LevelKind, Policy, Resolver};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What only one thread at a time does: applying objects, adjusting limits, giving lingering seats back.
pub(super) struct Control {
    pub(super) limits: Limits,
    server_limit: u32,
    specs: Vec<LevelSpec>,
    /// Levels in force and draining, by name.
    pub(super) tenants: HashMap<Arc<str>, Tenant>,
    free_places: Vec<u32>,
    fresh_place: u32,
    rows: HashMap<Arc<str>, u32>,
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
            server_limit,
            specs: Vec::new(),
            tenants: HashMap::new(),
            free_places: Vec::new(),
            fresh_place: 0,
            rows: HashMap::new(),
            due: Due::default(),
            next_adjustment: 0,
        }
    }
}

/// What applying a set of objects did.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Number of the set: grows by one with each.
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
    /// Objects must have their defaults (decoded ones have). All faults are reported at once, and then nothing has changed.
    /// Requests in flight go on: levels live on by name, and one that is gone drains. Allocates; takes turns with other
    /// calls of this kind, but no request waits for it.
    pub fn apply(&self, objects: &Objects) -> Result<Applied, ApplyError> {
        let faults = objects.validate();
        if !faults.is_empty() {
            return Err(ApplyError(faults));
        }
        self.install(objects).map_err(ApplyError)
    }

    /// Changes the number of seats of the whole server. Limits follow at once.
    pub fn set_server_concurrency_limit(&self, seats: u32) -> Adjustment {
        let mut control = self.control();
        control.server_limit = seats;
        control.limits.set_server_limit(seats);
        self.threads.with(|cx| self.adjust(&mut control, cx, self.now()))
    }

    /// The mandatory objects, in force from the beginning.
    pub(super) fn start(&self) -> Result<(), OutOfCells> {
        self.install(&Objects::default()).map(drop).map_err(|_| OutOfCells { wanted: 1, left: 0 })
    }

    fn install(&self, objects: &Objects) -> Result<Applied, Vec<Fault>> {
        let mut control = self.control();
        let control = &mut *control;
        let now = self.now();
        let policy = Policy::compile(objects, control.server_limit)?;
        self.threads.with(|cx| {
            let tenants = self.make_levels(control, cx, &policy)?;
            // From here on nothing fails.
            let specs = policy.level_specs();
            let levels = self.digest(control, cx, specs);
            self.leave(control, &levels);
            control.tenants.extend(tenants.iter().cloned());
            self.configure(control, cx, &tenants, now);
            let dangling = policy.dangling().iter().map(|d| d.name.clone()).collect();
            let generation = self.publish(control, policy);
            let limits = self.adjust(control, cx, now);
            Ok(Applied { generation, dangling, levels, limits })
        })
    }

    /// The tenants that a policy asks for: those there are, with their new configuration, and new ones. Memory for all of
    /// them is there afterwards; if not, faults, and nothing has changed.
    fn make_levels(
        &self,
        control: &mut Control,
        cx: &mut Context,
        policy: &Policy,
    ) -> Result<Vec<(Arc<str>, Tenant)>, Vec<Fault>> {
        let mut tenants = Vec::new();
        let mut places = Vec::new();
        let mut faults = Vec::new();
        for level in policy.levels() {
            let discipline = discipline(level);
            let config = Config { discipline, limit: 0 };
            let (made, tenant) = match control.tenants.get(&level.name) {
                Some(old) => {
                    let config = Config { limit: old.config.limit, ..config };
                    let made = self.seats_at(old.place).level.reserve(cx, discipline);
                    (made, Some(Tenant { config, ..*old }))
                }
                None => match self.settle_in(control, cx, config) {
                    Ok(place) => {
                        places.push(place);
                        (Ok(()), Some(Tenant { place, config }))
                    }
                    Err(e) => (Err(e), None),
                },
            };
            if let Err(e) = made {
                faults.push(out_of_memory(level, e));
            }
            tenants.extend(tenant.map(|t| (level.name.clone(), t)));
        }
        if faults.is_empty() {
            return Ok(tenants);
        }
        control.free_places.extend(places);
        Err(faults)
    }

    /// Finds a place for a new level.
    fn settle_in(&self, control: &mut Control, cx: &mut Context, config: Config) -> Result<u32, OutOfCells> {
        let exempt = config.discipline == Discipline::Exempt;
        if let Some(place) = control.free_places.pop() {
            let seats = self.seats_at(place);
            if !exempt {
                match seats.level.configure(cx, &config, self.now()) {
                    Ok(()) => {
                        // Release: whoever sees the new tenancy is not the old tenant's any more.
                        seats.tenancy.fetch_add(1, AcqRel);
                        seats.retry_after.reset();
                        return Ok(place);
                    }
                    Err(e) => {
                        control.free_places.push(place);
                        return Err(e);
                    }
                }
            }
            control.free_places.push(place);
        }
        let place = control.fresh_place;
        let cell = self
            .levels
            .get(place as usize)
            .ok_or(OutOfCells { wanted: place as usize + 1, left: self.levels.len() })?;
        let level = Level::new(&self.arena, place, config, self.options.fidelity, self.options.clock_lag)?;
        let _ = cell.set(Seats::new(level));
        control.fresh_place += 1;
        Ok(place)
    }

    fn digest(&self, control: &mut Control, cx: &mut Context, specs: Vec<LevelSpec>) -> Digest {
        let Control { limits, tenants, server_limit, .. } = control;
        let digest = limits.digest(*server_limit, &specs, |name| {
            tenants.get(name).is_some_and(|t| is_busy(self.seats_at(t.place).level.occupancy(cx)))
        });
        control.specs = specs;
        digest
    }

    /// Levels that are gone leave their places.
    fn leave(&self, control: &mut Control, digest: &Digest) {
        for name in &digest.removed {
            if let Some(tenant) = control.tenants.remove(name) {
                control.free_places.push(tenant.place);
            }
        }
    }

    fn configure(&self, control: &Control, cx: &mut Context, tenants: &[(Arc<str>, Tenant)], now: u64) {
        for (name, tenant) in tenants {
            let limit = control.limits.level(name).map_or(0, |l| clamp(l.current));
            // A new level has its first limit from the adjustment that follows; one that is there keeps its own till then.
            let config = Config {
                limit: if tenant.config.limit > 0 { tenant.config.limit } else { limit },
                ..tenant.config
            };
            // The slots were made above.
            let done = self.seats_at(tenant.place).level.configure(cx, &config, now);
            debug_assert!(done.is_ok());
        }
    }

    fn publish(&self, control: &mut Control, policy: Policy) -> u64 {
        // Relaxed: only written here, one thread at a time.
        let generation = self.generation.load(Relaxed) + 1;
        let bindings = policy.levels().iter().map(|level| {
            let tenant = &control.tenants[&level.name];
            Binding { place: tenant.place, tenancy: self.seats_at(tenant.place).tenancy.load(Acquire) }
        });
        let levels = bindings.collect();
        let rows = policy.schemas().iter().map(|s| row(&mut control.rows, &s.name)).collect();
        let resolver = Resolver::new(policy, self.options.hasher, self.options.cached_flows);
        let next = Owned::new(Snapshot { generation, resolver, levels, rows });
        let guard = epoch::pin();
        let old = self.snapshot.swap(next, AcqRel, &guard);
        // Release: who sees the number sees the snapshot.
        self.generation.store(generation, Release);
        if !old.is_null() {
            // SAFETY: it was the engine's own and is no longer reachable; readers of it are pinned.
            unsafe { guard.defer_destroy(old) };
        }
        generation
    }

    /// Ends the period of all levels and sets their limits.
    pub(super) fn adjust(&self, control: &mut Control, cx: &mut Context, now: u64) -> Adjustment {
        let Control { limits, tenants, next_adjustment, .. } = control;
        let adjustment = limits.adjust(|name| match tenants.get(name) {
            Some(tenant) => self.seats_at(tenant.place).level.take_demand(cx, now),
            None => crate::borrow::PeriodDemand::empty(0.0),
        });
        for level in limits.levels() {
            let Some(tenant) = tenants.get_mut(&level.spec.name) else { continue };
            let seats = self.seats_at(tenant.place);
            // Relaxed: a number that orders nothing.
            seats.max_seats.store(clamp(level.max_seats.unwrap_or(0)), Relaxed);
            let limit = clamp(level.current);
            if tenant.config.limit != limit {
                tenant.config.limit = limit;
                seats.level.set_limit(cx, limit, now);
            }
        }
        *next_adjustment = now.saturating_add(ADJUSTMENT_PERIOD);
        adjustment
    }

    /// Levels without an object whose last request has gone leave.
    pub(super) fn dismiss_drained(&self, control: &mut Control, cx: &mut Context) {
        let drained = control.limits.levels().any(|level| {
            let at = control.tenants.get(&level.spec.name);
            level.draining && at.is_some_and(|t| !is_busy(self.seats_at(t.place).level.occupancy(cx)))
        });
        if drained {
            let specs = std::mem::take(&mut control.specs);
            let digest = self.digest(control, cx, specs);
            self.leave(control, &digest);
        }
    }

    pub(super) fn seats_at(&self, place: u32) -> &Seats {
        self.seats(place).expect("tenants live in places that were made")
    }
}

fn is_busy(o: Occupancy) -> bool {
    o.seats_in_use > 0 || o.waiting > 0
}

fn clamp(seats: u64) -> u32 {
    u32::try_from(seats).unwrap_or(u32::MAX)
}

fn row(rows: &mut HashMap<Arc<str>, u32>, name: &Arc<str>) -> u32 {
    let next = rows.len().min(COUNTED_SCHEMAS) as u32;
    *rows.entry(name.clone()).or_insert(next)
}

fn discipline(level: &policy::Level) -> Discipline {
    match &level.kind {
        LevelKind::Exempt => Discipline::Exempt,
        LevelKind::Reject => Discipline::Reject,
        LevelKind::Queue { deck, queue_length_limit } => Discipline::Queue {
            queues: deck.deck_size(),
            hand_size: deck.hand_size() as u8,
            queue_length_limit: *queue_length_limit,
        },
    }
}

fn out_of_memory(level: &policy::Level, e: OutOfCells) -> Fault {
    let (path, value, detail): (_, serde_json::Value, _) = match &level.kind {
        LevelKind::Queue { deck, .. } => (
            "spec.limited.limitResponse.queuing.queues",
            deck.deck_size().into(),
            format!(
                "takes {} cells of the engine's memory, of which {} are left: fewer queues, or a larger ArenaSize::queues",
                e.wanted, e.left
            ),
        ),
        _ => (
            "metadata.name",
            level.name.as_ref().into(),
            format!("the engine has room for {} levels: a larger ArenaSize::levels", e.left),
        ),
    };
    Fault::new(FaultKind::Invalid, path, detail)
        .with_value(value)
        .of("PriorityLevelConfiguration", &*level.name)
}
