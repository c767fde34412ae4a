//! What holds after every event of any story of a level, told on the sequential model.
//!
//! The numbers are those of the design's list of invariants. Each is stated from what can be seen of the level before
//! and after an event, not in the terms in which the model keeps its books.
#![cfg(not(loom))]

mod model;

use model::{Config, Discipline, Fidelity, Model, Outcome, Phase, Queue, Width};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;

/// What a story asks for. An `Index` chooses among the requests of which that can be asked; there may be none.
#[derive(Debug, Clone)]
enum Wish {
    Arrive { hash: u64, width: Width },
    Finish(Index),
    Cancel(Index),
    TimeOut(Index),
    Reconfigure(Discipline, u32),
    Wait(u64),
}

#[derive(Debug, Clone)]
struct Story {
    discipline: Discipline,
    limit: u32,
    wishes: Vec<Wish>,
}

/// What then happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Arrived { id: u64, outcome: Outcome, place: i32 },
    Finished,
    Released,
    GaveUp,
    Reconfigured,
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    let queue = (1..=6u32, 1..=3u32, 1..=4u32).prop_map(|(queues, hand_size, queue_length_limit)| {
        Discipline::Queue { queues, hand_size: hand_size.min(queues), queue_length_limit }
    });
    prop_oneof![8 => queue, 1 => Just(Discipline::Reject), 1 => Just(Discipline::Exempt)]
}

fn widths() -> impl Strategy<Value = Width> {
    let latencies = prop_oneof![3 => Just(0), 2 => 0..20_000_000u64];
    (1..=5u32, 0..=5u32, latencies).prop_map(Width::from)
}

fn wishes() -> impl Strategy<Value = Wish> {
    prop_oneof![
        8 => (any::<u64>(), widths()).prop_map(|(hash, width)| Wish::Arrive { hash, width }),
        5 => any::<Index>().prop_map(Wish::Finish),
        1 => any::<Index>().prop_map(Wish::Cancel),
        1 => any::<Index>().prop_map(Wish::TimeOut),
        1 => (disciplines(), 0..=6u32).prop_map(|(discipline, limit)| Wish::Reconfigure(discipline, limit)),
        3 => (0..8_000_000u64).prop_map(Wish::Wait),
    ]
}

fn stories() -> impl Strategy<Value = Story> {
    let wishes = prop::collection::vec(wishes(), 1..120);
    (disciplines(), 0..=6u32, wishes).prop_map(|(discipline, limit, wishes)| Story {
        discipline,
        limit,
        wishes,
    })
}

fn fidelities() -> impl Strategy<Value = Fidelity> {
    prop_oneof![Just(Fidelity::Kubernetes), Just(Fidelity::Corrected)]
}

/// A level while its story is told.
struct World {
    level: Model,
    /// Widths as they arrived.
    asked: BTreeMap<u64, Width>,
    now: u64,
}

impl World {
    fn new(story: &Story, fidelity: Fidelity) -> Self {
        let level = Model::new(Config { discipline: story.discipline, limit: story.limit, fidelity });
        Self { level, asked: BTreeMap::new(), now: 0 }
    }

    fn ids(&self, of: impl Fn(Phase) -> bool) -> Vec<u64> {
        self.level.requests().iter().filter(|(_, request)| of(request.phase)).map(|(&id, _)| id).collect()
    }

    fn waiting(&self) -> Vec<u64> {
        self.ids(|phase| phase == Phase::Waiting)
    }

    fn running(&self) -> Vec<u64> {
        self.ids(|phase| matches!(phase, Phase::Running { .. }))
    }

    /// Releases what is due, then fulfils the wish where that can be done. `look` sees the level before each event.
    fn tell(&mut self, wish: &Wish, look: &mut Look<'_>) -> TestCaseResult {
        if let Wish::Wait(ns) = wish {
            self.now += ns;
            while let Some((due, id)) = self.level.next_release()
                && due <= self.now
            {
                self.happen(look, |level| {
                    level.release(due, id);
                    Event::Released
                })?;
            }
            return Ok(());
        }
        let now = self.now;
        let (waiting, running) = (self.waiting(), self.running());
        let chosen = |index: &Index, ids: &[u64]| (!ids.is_empty()).then(|| *index.get(ids));
        match wish {
            Wish::Wait(_) => Ok(()),
            &Wish::Arrive { hash, width } => {
                let id = self.asked.len() as u64;
                self.asked.insert(id, width);
                self.happen(look, |level| {
                    let (outcome, place) = level.arrive(now, id, hash, width);
                    Event::Arrived { id, outcome, place }
                })
            }
            Wish::Finish(index) => chosen(index, &running).map_or(Ok(()), |id| self.finish(id, look)),
            Wish::Cancel(index) => chosen(index, &waiting).map_or(Ok(()), |id| self.cancel(id, look)),
            Wish::TimeOut(index) => chosen(index, &waiting).map_or(Ok(()), |id| {
                self.happen(look, |level| {
                    level.time_out(now, id);
                    Event::GaveUp
                })
            }),
            &Wish::Reconfigure(discipline, limit) => self.happen(look, |level| {
                level.reconfigure(now, Config { discipline, limit, ..level.config() });
                Event::Reconfigured
            }),
        }
    }

    /// Until nothing is in flight: ends what runs; who can never run gives up.
    fn come_to_rest(&mut self, look: &mut Look<'_>) -> TestCaseResult {
        loop {
            if let Some(&id) = self.running().first() {
                self.finish(id, look)?;
            } else if let Some((due, _)) = self.level.next_release() {
                self.tell(&Wish::Wait(due - self.now), look)?;
            } else if let Some(&id) = self.waiting().first() {
                self.cancel(id, look)?;
            } else {
                return Ok(());
            }
        }
    }

    fn finish(&mut self, id: u64, look: &mut Look<'_>) -> TestCaseResult {
        let now = self.now;
        self.happen(look, |level| {
            level.finish(now, id);
            Event::Finished
        })
    }

    fn cancel(&mut self, id: u64, look: &mut Look<'_>) -> TestCaseResult {
        let now = self.now;
        self.happen(look, |level| {
            level.cancel(now, id);
            Event::GaveUp
        })
    }

    fn happen(&mut self, look: &mut Look<'_>, act: impl FnOnce(&mut Model) -> Event) -> TestCaseResult {
        let before = self.level.clone();
        let event = act(&mut self.level);
        look(&before, event, self)
    }
}

/// Sees the level before an event, the event, and the world after it.
type Look<'a> = dyn FnMut(&Model, Event, &World) -> TestCaseResult + 'a;

/// Tells the whole story, and then lets the level come to rest.
fn tell(
    story: &Story,
    fidelity: Fidelity,
    mut look: impl FnMut(&Model, Event, &World) -> TestCaseResult,
) -> Result<Model, TestCaseError> {
    let mut world = World::new(story, fidelity);
    for wish in &story.wishes {
        world.tell(wish, &mut look)?;
    }
    world.come_to_rest(&mut look)?;
    Ok(world.level)
}

fn limit(level: &Model) -> u32 {
    level.config().limit
}

fn is_exempt(level: &Model) -> bool {
    level.config().discipline == Discipline::Exempt
}

/// The request that the rules name next: least place of its queue in virtual time plus its work, round from just after
/// the queue granted last.
fn next_in_turn(level: &Model) -> Option<u64> {
    let after_last = (level.robin() + 1) as usize % level.queues().len().max(1);
    let (first, then) = level.queues().split_at(after_last);
    let oldest = then.iter().chain(first).filter_map(|queue| Some((queue, *queue.waiting.front()?)));
    let least = oldest.min_by_key(|&(queue, id)| queue.next_dispatch_r + level.requests()[&id].total_work);
    least.map(|(_, id)| id)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Invariant 1. In the reference "alone" is without others that run: their lingering seats may come on top.
    #[test]
    fn seats_in_use_pass_the_limit_only_for_one_wider_request_alone_and_for_those_that_ran_before(
        story in stories(),
        fidelity in fidelities(),
    ) {
        tell(&story, fidelity, |before, _, World { level, asked, .. }| {
            if is_exempt(level) || level.seats_in_use() <= limit(level) {
                return Ok(());
            }
            let [id] = level.granted() else {
                prop_assert!(level.granted().is_empty(), "granted past the limit: {:?}", level.granted());
                prop_assert!(level.seats_in_use() <= before.seats_in_use());
                return Ok(());
            };
            prop_assert!(asked[id].max() > limit(level), "{id} is not wider than the limit");
            prop_assert_eq!(level.executing(), 1);
            if fidelity == Fidelity::Corrected {
                prop_assert_eq!(level.seats_in_use(), level.requests()[id].width.max());
            }
            Ok(())
        })?;
    }

    /// Invariant 2, on the way.
    #[test]
    fn every_count_is_what_counting_gives(story in stories(), fidelity in fidelities()) {
        tell(&story, fidelity, |_, _, world| {
            let level = &world.level;
            let (waiting, running) = (world.waiting(), world.running());
            let seats = |ids: &[u64]| ids.iter().map(|id| level.requests()[id].width.max()).sum::<u32>();
            let lingering = world.ids(|phase| matches!(phase, Phase::Lingering { .. }));
            prop_assert_eq!(level.waiting() as usize, waiting.len());
            prop_assert_eq!(level.executing() as usize, running.len());
            prop_assert_eq!(level.seats_in_use(), seats(&running) + seats(&lingering));
            match fidelity {
                Fidelity::Kubernetes => prop_assert!(level.seats_waiting() >= seats(&waiting)),
                Fidelity::Corrected => prop_assert_eq!(level.seats_waiting(), seats(&waiting)),
            }
            let mut queued: Vec<u64> = level.queues().iter().flat_map(|queue| queue.waiting.clone()).collect();
            queued.sort_unstable();
            prop_assert_eq!(queued, waiting, "who waits is in one queue");
            for Queue { waiting, running, seats: held, seats_waiting, work_waiting, .. } in level.queues() {
                let waiting: Vec<u64> = waiting.iter().copied().collect();
                let running: Vec<u64> = running.iter().copied().collect();
                prop_assert_eq!(*seats_waiting, seats(&waiting));
                prop_assert_eq!(*work_waiting, waiting.iter().map(|id| level.requests()[id].total_work).sum::<u64>());
                prop_assert!(seats(&running) <= *held && *held <= seats(&running) + seats(&lingering));
            }
            Ok(())
        })?;
    }

    /// Invariant 2, at the end.
    #[test]
    fn at_rest_nothing_is_in_use_and_nothing_waits(story in stories(), fidelity in fidelities()) {
        let level = tell(&story, fidelity, |_, _, _| Ok(()))?;
        prop_assert!(level.requests().is_empty());
        prop_assert_eq!((level.waiting(), level.executing(), level.seats_in_use()), (0, 0, 0));
        if fidelity == Fidelity::Corrected {
            prop_assert_eq!(level.seats_waiting(), 0);
        }
        for queue in level.queues() {
            prop_assert!(!queue.is_active());
            prop_assert_eq!((queue.seats, queue.seats_waiting, queue.work_waiting), (0, 0, 0));
        }
    }

    /// Invariant 3. The reference keeps it after every event that looks for somebody to grant.
    #[test]
    fn when_a_seat_is_free_whoever_is_next_does_not_fit(story in stories(), fidelity in fidelities()) {
        let mut looks = true;
        tell(&story, fidelity, |_, event, World { level, .. }| {
            looks = match event {
                _ if fidelity == Fidelity::Corrected => true,
                Event::GaveUp => false,
                // Neither a refusal nor an admission past the queues looks; what was so stays so.
                Event::Arrived { outcome: Outcome::QueueFull, .. } | Event::Arrived { place: -1, .. } => looks,
                _ => true,
            };
            let Some(next) = next_in_turn(level) else { return Ok(()) };
            if !looks || level.seats_in_use() >= limit(level) {
                return Ok(());
            }
            let seats = level.requests()[&next].width.max();
            let wider = seats > limit(level);
            let fits = match fidelity {
                _ if is_exempt(level) => true,
                Fidelity::Kubernetes if wider => level.executing() == 0,
                Fidelity::Corrected if wider => level.seats_in_use() == 0,
                _ => level.seats_in_use() + seats <= limit(level),
            };
            prop_assert!(!fits, "{next} of {seats} seats could start after {event:?}: {level:?}");
            Ok(())
        })?;
    }

    /// Invariant 5. Ids rise in the order of arrival.
    #[test]
    fn within_a_queue_grants_are_in_arrival_order(story in stories(), fidelity in fidelities()) {
        tell(&story, fidelity, |before, event, World { level, .. }| {
            for (place, queue) in before.queues().iter().enumerate() {
                prop_assert!(queue.waiting.iter().is_sorted());
                let mut line: Vec<u64> = queue.waiting.iter().copied().collect();
                if let Event::Arrived { id, place: chosen, .. } = event
                    && chosen == place as i32
                {
                    line.push(id);
                }
                line.retain(|&id| level.granted().contains(&id) || level.requests().contains_key(&id));
                let granted: Vec<u64> = level.granted().iter().copied().filter(|id| line.contains(id)).collect();
                prop_assert!(line.starts_with(&granted), "of the line {line:?} were granted {granted:?}");
            }
            Ok(())
        })?;
    }

    /// Invariant 6, and its other half, which only the corrected rules keep: no arrival makes a queue longer.
    #[test]
    fn a_queue_is_full_when_its_limit_of_requests_waits_in_it(story in stories(), fidelity in fidelities()) {
        tell(&story, fidelity, |before, event, World { level, .. }| {
            let Event::Arrived { outcome, place, .. } = event else { return Ok(()) };
            let Discipline::Queue { queue_length_limit: longest, .. } = level.config().discipline else {
                prop_assert_eq!(place, -1);
                return Ok(());
            };
            let length = before.queues()[place as usize].waiting.len() as u32;
            if outcome == Outcome::QueueFull {
                prop_assert!(length >= longest, "full with {length} of {longest}");
            } else if fidelity == Fidelity::Corrected {
                prop_assert!(length < longest, "taken in with {length} of {longest}");
            }
            Ok(())
        })?;
    }

    /// Queues come at once and go one by one, never under somebody.
    #[test]
    fn no_queue_goes_while_a_request_of_it_holds_seats(story in stories()) {
        tell(&story, Fidelity::Corrected, |before, event, World { level, .. }| {
            let desired = match level.config().discipline {
                Discipline::Queue { queues, .. } => queues as usize,
                _ => 0,
            };
            prop_assert!(level.queues().len() >= desired);
            prop_assert!(level.queues().len() + 1 >= before.queues().len());
            prop_assert!((-1..level.queues().len().max(1) as i64).contains(&level.robin()));
            if event == Event::Reconfigured {
                prop_assert_eq!(level.queues().len(), before.queues().len().max(desired));
            }
            let held: u32 = level.queues().iter().map(|queue| queue.seats).sum();
            let held_before: u32 = before.queues().iter().map(|queue| queue.seats).sum();
            if level.granted().is_empty() {
                let freed = before.seats_in_use().saturating_sub(level.seats_in_use());
                prop_assert!(held + freed >= held_before, "seats went with a queue");
            }
            Ok(())
        })?;
    }
}
