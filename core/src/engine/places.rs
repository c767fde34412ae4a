//! Places: where levels live. A place is used anew when its level is gone, with the memory of its queues.
//!
//! Places are never freed before the engine is, so a ticket or flow that is out of date may name a wrong level but never
//! memory that is gone. Whoever was sent to a level that has gone meanwhile finds out by the place's tenancy, after it
//! has arrived there, and leaves: see [`Engine::is_inhabited`].

use std::cmp::Reverse;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::Engine;
use super::apply::{Control, Tenant};
use crate::error::{Fault, FaultKind};
use crate::estimate::RetryAfter;
use crate::level::{Config, Context, Discipline, Level, OutOfCells, cells_of_new};
use crate::policy::{self, LevelKind, Policy};
use crate::sync::{AtomicU32, Ordering::AcqRel};

/// A level in its place.
pub(super) struct Seats {
    pub(super) level: Level,
    /// How many times the place's level was taken out of force.
    pub(super) tenancy: AtomicU32,
    /// Most seats that a work estimator may give; 0: not set.
    pub(super) max_seats: AtomicU32,
    /// Apart from what each request reads: refusals write it.
    pub(super) retry_after: CachePadded<RetryAfter>,
}

impl Seats {
    fn new(level: Level) -> Self {
        Seats {
            level,
            tenancy: AtomicU32::new(0),
            max_seats: AtomicU32::new(0),
            retry_after: CachePadded::new(RetryAfter::new()),
        }
    }

    /// Notes that a request of the level was turned away.
    pub(super) fn turned_away(&self, now: u64) {
        self.retry_after.record(FIRST_SECOND + now / 1_000_000_000);
    }
}

/// What the clock of the refusals reads when the engine's reads zero: any number well past the memory of refusals.
const FIRST_SECOND: u64 = 1 << 20;

/// Where a level of a policy will live.
enum Home {
    /// Where it does.
    Own(Tenant),
    /// Where another did.
    Free(u32),
    Fresh,
}

struct Plan<'a> {
    level: &'a policy::Level,
    config: Config,
    home: Home,
}

impl Engine {
    /// Finds places and memory for all levels of a policy: those there are, with their new configuration, and new ones. Or
    /// faults, and nothing has changed.
    pub(super) fn house(
        &self,
        control: &mut Control,
        cx: &mut Context,
        policy: &Policy,
        now: u64,
    ) -> Result<Vec<(Arc<str>, Tenant)>, Vec<Fault>> {
        let (mut housed, mut new, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for plan in self.plan(control, cx, policy)? {
            let Plan { level, config, home } = plan;
            let made = match home {
                Home::Own(tenant) => {
                    self.seats_at(tenant.place).level.reserve(cx, config.discipline).map(|()| tenant.place)
                }
                Home::Free(place) => {
                    self.move_in(control, cx, place, &config, now).inspect(|place| new.push(*place))
                }
                Home::Fresh => self.build(control, config).inspect(|place| new.push(*place)),
            };
            match made {
                Ok(place) => housed.push((level.name.clone(), Tenant { place, config })),
                Err(e) => faults.push(no_memory(level, e)),
            }
        }
        if faults.is_empty() {
            return Ok(housed);
        }
        control.free_places.extend(new);
        Err(faults)
    }

    /// Where all levels of a policy can live. As only callers of this take cells for queues, and they take turns, what is
    /// planned can be done; only somebody on the way through a free place may be in its way.
    fn plan<'a>(
        &self,
        control: &Control,
        cx: &mut Context,
        policy: &'a Policy,
    ) -> Result<Vec<Plan<'a>>, Vec<Fault>> {
        let mut left = self.arena().cells.left_narrow();
        let mut fresh = self.levels.len() - control.fresh_place as usize;
        let mut free: Vec<_> =
            control.free_places.iter().map(|&place| (self.seats_at(place).level.room(), place)).collect();
        free.sort_unstable();
        // The largest first, so that it gets the largest place there is.
        let mut levels: Vec<_> = policy.levels().iter().map(|level| (discipline(level), level)).collect();
        levels.sort_by_key(|(discipline, _)| Reverse(queues(*discipline)));
        let (mut plans, mut faults) = (Vec::new(), Vec::new());
        for (discipline, level) in levels {
            let (mut config, queues) = (Config { discipline, limit: 0 }, queues(discipline));
            let (home, wanted) = if let Some(tenant) = control.tenants.get(&level.name) {
                config.limit = tenant.config.limit;
                let there = &self.seats_at(tenant.place).level;
                there.tidy(cx);
                (Home::Own(*tenant), there.lacks(cx, discipline))
            } else if discipline != Discipline::Exempt
                && let Some(at) = free.iter().position(|f| f.0 >= queues).or(free.len().checked_sub(1))
            {
                let (_, place) = free.remove(at);
                (Home::Free(place), self.seats_at(place).level.cells_up_to(queues))
            } else if fresh > 0 {
                fresh -= 1;
                (Home::Fresh, cells_of_new(queues))
            } else {
                faults.push(no_place(level, self.levels.len()));
                continue;
            };
            if wanted > left {
                faults.push(no_memory(level, OutOfCells { wanted, left }));
                continue;
            }
            left -= wanted;
            plans.push(Plan { level, config, home });
        }
        if faults.is_empty() { Ok(plans) } else { Err(faults) }
    }

    /// A new level in the place of one that is gone; in a fresh one if somebody is on the way through that.
    fn move_in(
        &self,
        control: &mut Control,
        cx: &mut Context,
        place: u32,
        config: &Config,
        now: u64,
    ) -> Result<u32, OutOfCells> {
        let seats = self.seats_at(place);
        if !seats.level.renew(cx, config, now)? {
            return self.build(control, *config);
        }
        control.free_places.retain(|free| *free != place);
        seats.retry_after.reset();
        Ok(place)
    }

    /// A new level in a fresh place.
    fn build(&self, control: &mut Control, config: Config) -> Result<u32, OutOfCells> {
        let place = control.fresh_place;
        let cell = self.levels.get(place as usize).ok_or(OutOfCells { wanted: 1, left: 0 })?;
        let level = Level::new(self.arena(), place, config, self.options.fidelity, self.options.clock_lag)?;
        let _ = cell.set(Box::new(Seats::new(level)));
        control.fresh_place += 1;
        Ok(place)
    }

    /// Takes a level out of force, for which new objects have been published, and says whether somebody is in it.
    ///
    /// Newcomers change the level's word first and look at the tenancy then; here it is the other way round. So either
    /// they are seen here, or they see that they have come too late, and leave.
    pub(super) fn is_inhabited(&self, cx: &mut Context, place: u32) -> bool {
        let seats = self.seats_at(place);
        // Release: who sees this sees the new objects. The step after it orders the rest.
        seats.tenancy.fetch_add(1, AcqRel);
        !seats.level.is_idle(cx)
    }

    pub(super) fn seats_at(&self, place: u32) -> &Seats {
        self.seats(place).expect("tenants live in places that were made")
    }
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

fn queues(discipline: Discipline) -> u32 {
    match discipline {
        Discipline::Queue { queues, .. } => queues,
        Discipline::Exempt | Discipline::Reject => 0,
    }
}

fn no_memory(level: &policy::Level, e: OutOfCells) -> Fault {
    let OutOfCells { wanted, left } = e;
    let (path, value): (_, serde_json::Value) = match queues(discipline(level)) {
        0 => ("metadata.name", level.name.as_ref().into()),
        queues => ("spec.limited.limitResponse.queuing.queues", queues.into()),
    };
    let detail = format!(
        "takes {wanted} cells of the engine's memory, of which {left} are left: fewer queues, or a larger ArenaSize::queues"
    );
    Fault::new(FaultKind::Invalid, path, detail)
        .with_value(value)
        .of("PriorityLevelConfiguration", &*level.name)
}

fn no_place(level: &policy::Level, places: usize) -> Fault {
    let detail = format!(
        "the engine has room for {places} levels, draining ones included: a larger ArenaSize::levels"
    );
    Fault::new(FaultKind::Invalid, "metadata.name", detail)
        .with_value(level.name.as_ref())
        .of("PriorityLevelConfiguration", &*level.name)
}
