//! A thread that serves requests.

use std::sync::atomic::Ordering::SeqCst;

use maitred::engine::{Admission, Engine, Rejection, ResolvedFlow, Ticket, Waiting};
use maitred::ticket::{State, TicketId, Width};

use super::random::Random;
use super::world::{exempt, to};
use super::{LIVES, Tally, World};
use crate::changer::{LEVELS, WIDE};

const USERS: u64 = 40;
const HELD: usize = 6;

/// Works through its lives, each on a thread of its own.
pub fn run(world: &World<'_>, random: &Random, steps: u64) {
    let mut random = random.clone();
    let mut cleanings = 0;
    for _ in 0..LIVES {
        let (seed, cleanings) = (random.next(), &mut cleanings);
        std::thread::scope(|s| s.spawn(|| live(world, Random::new(seed), steps, cleanings)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    world.working.fetch_sub(1, SeqCst);
}

struct Life<'w, 'e> {
    world: &'w World<'e>,
    engine: &'e Engine,
    random: Random,
    tally: Tally,
    running: Vec<Ticket<'e>>,
    waiting: Vec<Waiting<'e>>,
    /// Requests by number.
    numbers: Vec<TicketId>,
    /// Numbers of requests that have ended.
    past: Vec<TicketId>,
    flows: Vec<ResolvedFlow>,
}

fn live(world: &World<'_>, random: Random, steps: u64, cleanings: &mut u64) {
    let mut life = Life {
        world,
        engine: world.engine,
        random,
        tally: Tally::default(),
        running: Vec::new(),
        waiting: Vec::new(),
        numbers: Vec::new(),
        past: Vec::new(),
        flows: Vec::new(),
    };
    for _ in 0..steps {
        life.step();
        world.step();
        let wanted = world.cleanings.load(SeqCst);
        if wanted != *cleanings {
            *cleanings = wanted;
            life.end_all();
            world.cleaned.fetch_add(1, SeqCst);
        }
    }
    life.end_all();
    world.tally.lock().unwrap().add(life.tally);
}

impl<'e> Life<'_, 'e> {
    fn step(&mut self) {
        match self.random.below(12) {
            0..=4 => self.admit(),
            5 => self.submit(),
            6..=8 => self.finish(),
            9 => self.look_at_waiting(),
            10 => self.look_at_numbers(),
            _ => self.try_what_is_wrong(),
        }
        while self.running.len() > HELD {
            self.finish();
        }
        while self.waiting.len() > HELD {
            let waiting = self.waiting.remove(0);
            self.wait_for(waiting);
        }
    }

    fn width(&mut self) -> Width {
        let initial_seats = match self.random.below(40) {
            0 => WIDE,
            1..=4 => 3,
            _ => 1,
        };
        if self.random.one_in(8) {
            let final_seats = self.random.below(4) as u32;
            return Width { initial_seats, final_seats, additional_latency: self.random.below(100_000) };
        }
        Width::seats(initial_seats)
    }

    fn admit(&mut self) {
        let (user, level, width) =
            (format!("user-{}", self.random.below(USERS)), self.random.pick(&LEVELS), self.width());
        self.tally.arrived += 1;
        let answer = match self.random.below(8) {
            0 => self.engine.admit(&exempt(), width),
            1..=3 => {
                if self.flows.len() < 20 {
                    self.flows.push(self.engine.resolve(&to(level, &user)));
                }
                let at = self.random.below(self.flows.len() as u64) as usize;
                if self.random.one_in(4) {
                    self.engine.refresh(&mut self.flows[at]);
                }
                self.engine.admit_flow(&self.flows[at], width)
            }
            _ => self.engine.admit(&to(level, &user), width),
        };
        match answer {
            Ok(Admission::Running(ticket)) => self.running.push(ticket),
            Ok(Admission::Waiting(waiting)) => self.waiting.push(waiting),
            Err(why) => self.tally.rejected(why),
        }
    }

    fn submit(&mut self) {
        let (user, level, width) =
            (format!("user-{}", self.random.below(USERS)), self.random.pick(&LEVELS), self.width());
        self.tally.arrived += 1;
        match self.engine.submit(&to(level, &user), width, self.engine.now()).outcome {
            Ok(admitted) => self.numbers.push(admitted.id),
            Err(why) => self.tally.rejected(why),
        }
    }

    /// Ends a request of its own or of another thread; or hands one on.
    fn finish(&mut self) {
        if self.random.one_in(4) {
            let mut handed_on = self.world.handed_on.lock().unwrap();
            if let Some(ticket) = handed_on.pop() {
                drop(handed_on);
                self.end(ticket);
            }
            return;
        }
        let Some(ticket) = self.running.pop() else { return };
        if self.random.one_in(6) {
            self.world.handed_on.lock().unwrap().push(ticket);
        } else {
            self.end(ticket);
        }
    }

    fn end(&mut self, ticket: Ticket<'e>) {
        self.world.is_in_its_place(ticket.id());
        self.past.push(ticket.id());
        self.tally.finished += 1;
        match self.random.below(3) {
            0 => ticket.finish_at(self.engine.now()),
            1 => ticket.finish(),
            _ => drop(ticket),
        }
    }

    fn look_at_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.random.below(self.waiting.len() as u64) as usize;
        let waiting = self.waiting.swap_remove(at);
        match self.random.below(5) {
            0 => self.wait_for(waiting),
            1 => self.cancel_by_number(waiting),
            2 => match waiting.cancel() {
                Some(ticket) => self.running.push(ticket),
                None => self.gave_up(Rejection::Cancelled),
            },
            _ => match waiting.poll() {
                Ok(ticket) => self.running.push(ticket),
                Err(waiting) => self.waiting.push(waiting),
            },
        }
    }

    /// Asleep for up to a fifth of a millisecond; often granted meanwhile, often not.
    fn wait_for(&mut self, waiting: Waiting<'e>) {
        let deadline = self.engine.now() + self.random.below(200_000);
        match waiting.wait_until(deadline) {
            Ok(ticket) => self.running.push(ticket),
            Err(why) => {
                assert_eq!(why, Rejection::TimedOut);
                self.gave_up(why);
            }
        }
    }

    fn cancel_by_number(&mut self, waiting: Waiting<'e>) {
        let cancelled = self.engine.cancel(waiting.id(), Rejection::Cancelled, self.engine.now()).is_ok();
        match waiting.wait() {
            Ok(ticket) => self.running.push(ticket),
            Err(why) => {
                assert!(cancelled && why == Rejection::Cancelled);
                self.gave_up(why);
            }
        }
    }

    fn gave_up(&mut self, why: Rejection) {
        self.tally.rejected(counted_as(self.engine, why));
    }

    fn look_at_numbers(&mut self) {
        if self.numbers.is_empty() {
            return;
        }
        let at = self.random.below(self.numbers.len() as u64) as usize;
        let id = self.numbers[at];
        let ended = match self.engine.poll(id) {
            State::Running => self.end_number(id),
            State::Waiting => self.random.one_in(3) && self.give_up_number(id),
            other => panic!("{id:?} is {other:?}, and nobody has ended it"),
        };
        if ended {
            self.numbers.swap_remove(at);
            self.past.push(id);
        }
    }

    fn end_number(&mut self, id: TicketId) -> bool {
        self.world.is_in_its_place(id);
        let (start, now) = (self.engine.granted_at(id).expect("it runs"), self.engine.now());
        assert!(start < 1 << 62, "granted at {start}");
        self.engine.finish(id, now).expect("it runs");
        self.tally.finished += 1;
        true
    }

    /// False if it was granted meanwhile.
    fn give_up_number(&mut self, id: TicketId) -> bool {
        let why = self.random.pick(&[Rejection::TimedOut, Rejection::Cancelled]);
        let given_up = self.engine.cancel(id, why, self.engine.now()).is_ok();
        if given_up {
            self.gave_up(why);
        }
        given_up
    }

    /// Ends what has ended, and cancels what runs: both are refused.
    fn try_what_is_wrong(&mut self) {
        let now = self.engine.now();
        if let Some(id) = self.past.pop() {
            assert_eq!(self.engine.finish(id, now), Err(Rejection::BadTicket));
            assert_eq!(self.engine.cancel(id, Rejection::Cancelled, now), Err(Rejection::BadTicket));
        }
        self.past.truncate(100);
        if let Some(ticket) = self.running.last() {
            assert_eq!(self.engine.cancel(ticket.id(), Rejection::Cancelled, now), Err(Rejection::BadTicket));
            assert_eq!(self.engine.poll(ticket.id()), State::Running);
        }
    }

    fn end_all(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.cancel() {
                Some(ticket) => self.running.push(ticket),
                None => self.gave_up(Rejection::Cancelled),
            }
        }
        let handed_on = std::mem::take(&mut *self.world.handed_on.lock().unwrap());
        self.running.extend(handed_on);
        while let Some(ticket) = self.running.pop() {
            self.end(ticket);
        }
        for id in std::mem::take(&mut self.numbers) {
            if !(self.engine.poll(id) == State::Waiting && self.give_up_number(id)) {
                self.end_number(id);
            }
        }
    }
}

fn counted_as(engine: &Engine, why: Rejection) -> Rejection {
    match engine.options().fidelity {
        maitred::fidelity::Fidelity::Kubernetes => Rejection::TimedOut,
        maitred::fidelity::Fidelity::Corrected => why,
    }
}
