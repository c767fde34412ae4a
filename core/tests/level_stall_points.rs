//! A thread that is suspended anywhere in a call stops nobody: the others admit, grant and finish (invariant 7). When it
//! goes on, its call ends well, and nothing is left over.
//!
//! For each kind of call and each labelled point that it reaches, a thread is held there while others work; and two
//! threads are held at once: one in its own operation and one that helps it. Needs `--cfg maitred_points`.
#![cfg(all(maitred_points, not(loom)))]

mod watch;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use maitred::fidelity::Fidelity;
use maitred::level::{Arena, ArenaSize, Config, Context, Discipline, Finished, Level, Point, hook};
use maitred::ticket::{State, TicketId, Width};

const POINTS: [Point; 15] = [
    Point::LevelRead,
    Point::QueueReady,
    Point::ArrivedInQueue,
    Point::LevelReady,
    Point::ClockReady,
    Point::FinishClaimed,
    Point::FinishedInQueue,
    Point::StepBegins,
    Point::OperationReady,
    Point::OperationBegun,
    Point::OperationInstalling,
    Point::OperationInstalled,
    Point::OperationWriting,
    Point::OperationReleasing,
    Point::OperationDone,
];

/// A point, when it is reached for the so manieth time since the last stop.
type Stop = (Point, usize);

/// Where this thread is to be held, and whom it tells.
struct Stops {
    left: Vec<Stop>,
    news: Sender<()>,
    go: Receiver<()>,
}

thread_local! {
    static STOPS: RefCell<Option<Stops>> = const { RefCell::new(None) };
}

fn reach(point: Point) {
    STOPS.with_borrow_mut(|stops| {
        let Some(stops) = stops else { return };
        let Some((at, times)) = stops.left.first_mut() else { return };
        if *at != point {
            return;
        }
        if *times > 0 {
            *times -= 1;
            return;
        }
        stops.left.remove(0);
        let _ = stops.news.send(());
        let _ = stops.go.recv();
    });
}

/// A call in a thread that stops on the way.
struct Held<'scope, T> {
    news: Receiver<()>,
    go: Sender<()>,
    thread: ScopedJoinHandle<'scope, T>,
}

impl<T> Held<'_, T> {
    /// Until it is held; false if it ends before.
    fn is_held(&self) -> bool {
        self.news.recv().is_ok()
    }

    fn go_on(&self) {
        let _ = self.go.send(());
    }

    /// Lets it go, wherever it is yet to stop.
    fn end(self) -> T {
        drop(self.go);
        self.thread.join().unwrap()
    }
}

fn hold<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    stops: Vec<Stop>,
    call: impl FnOnce() -> T + Send + 'scope,
) -> Held<'scope, T> {
    hook(reach);
    let (tell, news) = channel();
    let (go, wait) = channel();
    let thread = scope.spawn(move || {
        STOPS.set(Some(Stops { left: stops, news: tell, go: wait }));
        let result = call();
        STOPS.set(None);
        result
    });
    Held { news, go, thread }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    ArriveAtOnce,
    ArriveToWait,
    ArriveToBeRefused,
    /// It took its place in a queue without a step; then others came to wait.
    ArriveTooLate,
    FinishAtOnce,
    FinishAndGrant,
    /// It left its queue without a step; then others came to wait.
    FinishTooLate,
    FinishAndLinger,
    Release,
    CancelTheOldest,
    CancelAnother,
    RaiseTheLimit,
    MoreQueues,
    FewerQueues,
    TakeDemand,
}

const KINDS: [Kind; 15] = [
    Kind::ArriveAtOnce,
    Kind::ArriveToWait,
    Kind::ArriveToBeRefused,
    Kind::ArriveTooLate,
    Kind::FinishAtOnce,
    Kind::FinishAndGrant,
    Kind::FinishTooLate,
    Kind::FinishAndLinger,
    Kind::Release,
    Kind::CancelTheOldest,
    Kind::CancelAnother,
    Kind::RaiseTheLimit,
    Kind::MoreQueues,
    Kind::FewerQueues,
    Kind::TakeDemand,
];

const LIMIT: u32 = 3;

fn config(queues: u32) -> Config {
    let discipline = Discipline::Queue { queues, hand_size: 1, queue_length_limit: 4 };
    Config { discipline, limit: LIMIT }
}

const LINGERING: Width = Width { initial_seats: 1, final_seats: 1, additional_latency: 1000 };

/// Four queues, three seats. Hands of one card: flow f goes to queue f.
struct World {
    level: Level,
    arena: Arc<Arena>,
    /// For each kind of call: what it is about.
    own: Option<TicketId>,
    /// All others.
    open: Vec<TicketId>,
    cx: Context,
}

impl World {
    fn new(fidelity: Fidelity) -> World {
        let arena = Arena::new(ArenaSize { tickets: 64, queues: 64, levels: 1, threads: 8 });
        let level = Level::new(&arena, 0, config(4), fidelity, 0).unwrap();
        let cx = Context::new(&arena).unwrap();
        World { level, arena, own: None, open: Vec::new(), cx }
    }

    fn arrive(&mut self, flow: u64, width: Width) -> TicketId {
        self.level.arrive(&mut self.cx, flow, None, width, 10).outcome.unwrap().id
    }

    fn fill(&mut self, flows: impl IntoIterator<Item = u64>) {
        for flow in flows {
            let id = self.arrive(flow, Width::ONE);
            self.open.push(id);
        }
    }

    /// What must be so before the call.
    fn prepare(&mut self, kind: Kind) {
        match kind {
            // A new level is not packed before its first step.
            Kind::ArriveAtOnce => self.fill([0]),
            Kind::ArriveTooLate => self.fill([0, 2]),
            Kind::ArriveToWait | Kind::TakeDemand => self.fill([0, 1, 2, 3]),
            Kind::ArriveToBeRefused => self.fill([0, 2, 3, 1, 1, 1, 1]),
            Kind::RaiseTheLimit => self.fill([0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]),
            Kind::MoreQueues | Kind::FewerQueues => self.fill([0, 1, 2, 3, 3]),
            Kind::FinishAtOnce => {
                self.fill([0]);
                self.own = Some(self.arrive(1, Width::ONE));
            }
            Kind::FinishTooLate => {
                self.fill([0, 1]);
                self.own = Some(self.arrive(1, Width::ONE));
            }
            Kind::FinishAndGrant => {
                self.own = Some(self.arrive(1, Width::ONE));
                self.fill([0, 2, 1, 2]);
            }
            Kind::FinishAndLinger => {
                self.own = Some(self.arrive(1, LINGERING));
                self.fill([0, 2, 1]);
            }
            Kind::Release => {
                let id = self.arrive(1, LINGERING);
                self.fill([0, 2, 1, 2]);
                assert_eq!(self.level.finish(&mut self.cx, id, 20), Ok(Finished::Lingers(1000)));
                self.own = Some(id);
            }
            Kind::CancelTheOldest => {
                self.fill([0, 2, 3]);
                self.own = Some(self.arrive(1, Width::ONE));
                self.fill([1, 1]);
            }
            Kind::CancelAnother => {
                self.fill([0, 2, 3, 1]);
                self.own = Some(self.arrive(1, Width::ONE));
                self.fill([1]);
            }
        }
    }
}

/// A stop that the call must have come to first, so that its own is on the way it is named for.
fn before(kind: Kind) -> Option<Stop> {
    match kind {
        Kind::ArriveTooLate => Some((Point::ArrivedInQueue, 0)),
        Kind::FinishTooLate => Some((Point::FinishedInQueue, 0)),
        _ => None,
    }
}

/// Makes the call. What it leaves open.
fn call(level: &Level, cx: &mut Context, kind: Kind, own: Option<TicketId>) -> Option<TicketId> {
    match kind {
        Kind::ArriveAtOnce | Kind::ArriveToWait | Kind::ArriveToBeRefused | Kind::ArriveTooLate => {
            // With a hand, lest a step be needed to deal one.
            let hand = maitred::shuffle::Deck::new(4, 1).unwrap().deal(1);
            level.arrive(cx, 1, Some(&hand), Width::ONE, 100).outcome.ok().map(|a| a.id)
        }
        Kind::FinishAtOnce | Kind::FinishAndGrant | Kind::FinishTooLate => {
            assert_eq!(level.finish(cx, own.unwrap(), 100), Ok(Finished::Released));
            None
        }
        Kind::FinishAndLinger => {
            assert_eq!(level.finish(cx, own.unwrap(), 100), Ok(Finished::Lingers(1000)));
            own
        }
        Kind::Release => {
            level.release(cx, own.unwrap(), 1100).unwrap();
            None
        }
        Kind::CancelTheOldest | Kind::CancelAnother => {
            // Others may grant it meanwhile.
            level.cancel(cx, own.unwrap(), 100).err().and(own)
        }
        Kind::RaiseTheLimit => {
            level.set_limit(cx, 40, 100);
            None
        }
        Kind::MoreQueues => {
            level.configure(cx, &config(8), 100).unwrap();
            None
        }
        Kind::FewerQueues => {
            level.configure(cx, &config(2), 100).unwrap();
            None
        }
        Kind::TakeDemand => {
            level.take_demand(cx, 100);
            None
        }
    }
}

/// Ends what is open, each as soon as it runs. All of it must come to run.
fn end_all(level: &Level, cx: &mut Context, open: &mut Vec<TicketId>, who: &str) {
    let since = Instant::now();
    while !open.is_empty() {
        open.retain(|&id| match level.poll(cx, id) {
            State::Running => {
                if level.finish(cx, id, 1000) == Ok(Finished::Lingers(1000)) {
                    level.release(cx, id, 2000).unwrap();
                }
                false
            }
            State::Lingering => {
                level.release(cx, id, 2000).unwrap();
                false
            }
            State::Waiting => true,
            State::Free => false,
        });
        assert!(since.elapsed() < Duration::from_secs(20), "{who}: {open:?} are not granted");
        std::thread::yield_now();
    }
}

/// Two threads come and go.
fn others_go_on(level: &Level, arena: &Arc<Arena>, who: &str) {
    let start = &Barrier::new(2);
    std::thread::scope(|scope| {
        for flow in [1, 2] {
            scope.spawn(move || {
                let mut cx = Context::new(arena).unwrap();
                start.wait();
                let since = Instant::now();
                let mut seated = 0;
                while seated < 30 {
                    // Their queues may be full of what waits before them.
                    if let Ok(admitted) = level.arrive(&mut cx, flow, None, Width::ONE, 1500).outcome {
                        end_all(level, &mut cx, &mut vec![admitted.id], who);
                        seated += 1;
                    }
                    assert!(since.elapsed() < Duration::from_secs(20), "{who}: only {seated} seated");
                }
            });
        }
    });
}

fn is_at_rest(world: &mut World, who: &str) {
    let o = world.level.occupancy(&mut world.cx);
    assert_eq!((o.seats_in_use, o.waiting, o.active_queues), (0, 0, 0), "{who}: {o:?}");
    for position in 0..o.queues {
        let q = world.level.queue(&mut world.cx, position).unwrap();
        assert_eq!((q.running, q.waiting), (0, 0), "{who}: queue {position}");
    }
    assert_eq!(world.level.requests(&mut world.cx), [], "{who}");
}

/// Holds one call at one point while others work. False if it does not come there.
fn suspend(kind: Kind, stop: Stop, fidelity: Fidelity) -> bool {
    let who = format!("{kind:?} held at {stop:?}, {fidelity:?}");
    let _watch = watch::watch(who.clone());
    let mut world = World::new(fidelity);
    world.prepare(kind);
    let mut open = std::mem::take(&mut world.open);
    let own = world.own;
    let (level, arena) = (&world.level, &world.arena);
    let (was_held, left) = std::thread::scope(|scope| {
        let mut cx = Context::new(arena).unwrap();
        let stops: Vec<Stop> = before(kind).into_iter().chain([stop]).collect();
        let held = hold(scope, stops, move || call(level, &mut cx, kind, own));
        if before(kind).is_some() {
            assert!(held.is_held(), "{who}");
            // The last seat, and one who waits.
            for flow in [0, 2] {
                let arrival = level.arrive(&mut world.cx, flow, None, Width::ONE, 50);
                open.push(arrival.outcome.unwrap().id);
            }
            held.go_on();
        }
        let is_held = held.is_held();
        if is_held {
            end_all(level, &mut world.cx, &mut open, &who);
            others_go_on(level, arena, &who);
        }
        (is_held, held.end())
    });
    open.extend(left);
    let World { level, cx, .. } = &mut world;
    end_all(level, cx, &mut open, &who);
    is_at_rest(&mut world, &who);
    was_held
}

#[test]
fn a_thread_held_at_any_point_of_any_call_stops_nobody_and_leaves_nothing_behind() {
    let mut places: BTreeMap<Kind, usize> = BTreeMap::new();
    let mut reached = BTreeSet::new();
    for fidelity in [Fidelity::Corrected, Fidelity::Kubernetes] {
        for kind in KINDS {
            for point in POINTS {
                let times = (0..6).take_while(|&n| suspend(kind, (point, n), fidelity)).count();
                *places.entry(kind).or_default() += times;
                if times > 0 {
                    reached.insert(format!("{point:?}"));
                }
            }
        }
    }
    println!("{} places: {places:?}", places.values().sum::<usize>());
    assert!(places.values().all(|n| *n > 3), "each kind of call was held: {places:?}");
    assert_eq!(reached.len(), POINTS.len(), "each point was reached: {reached:?}");
}

/// The first is held in its operation, which the second then helps; it is held in turn.
fn suspend_two(kind: Kind, first: Point, second: Point, times: usize) -> bool {
    let who = format!("{kind:?} held at {first:?}, then an arrival at {second:?} {times}");
    let _watch = watch::watch(who.clone());
    let mut world = World::new(Fidelity::Corrected);
    world.prepare(kind);
    let mut open = std::mem::take(&mut world.open);
    let own = world.own;
    let (level, arena) = (&world.level, &world.arena);
    let (were_held, left) = std::thread::scope(|scope| {
        let mut cx = Context::new(arena).unwrap();
        let one = hold(scope, vec![(first, 0)], move || call(level, &mut cx, kind, own));
        let one_is_held = one.is_held();
        let mut cx = Context::new(arena).unwrap();
        let arrive = move || level.arrive(&mut cx, 2, None, Width::ONE, 200).outcome.ok().map(|a| a.id);
        let two = hold(scope, vec![(second, times)], arrive);
        let two_is_held = two.is_held();
        end_all(level, &mut world.cx, &mut open, &who);
        // Each of the two may keep a seat, and one is left.
        others_go_on(level, arena, &who);
        (one_is_held && two_is_held, [one.end(), two.end()])
    });
    open.extend(left.into_iter().flatten());
    let World { level, cx, .. } = &mut world;
    end_all(level, cx, &mut open, &who);
    is_at_rest(&mut world, &who);
    were_held
}

#[test]
fn an_owner_and_its_helper_both_held_stop_nobody_and_leave_nothing_behind() {
    let mut pairs = 0;
    for kind in
        [Kind::FinishAndGrant, Kind::CancelTheOldest, Kind::ArriveTooLate, Kind::RaiseTheLimit, Kind::Release]
    {
        for first in POINTS {
            for second in POINTS {
                pairs += (0..3).take_while(|&n| suspend_two(kind, first, second, n)).count();
            }
        }
    }
    println!("{pairs} pairs");
    assert!(pairs > 100, "{pairs}");
}
