//! Immutable records, and the cells that hold them.
//!
//! A record is never changed while a word points to it. Whoever changes state fills a spare cell of its own, makes a
//! word point to it, and takes the displaced cell as its next spare. Cells belong to an engine, not to a level.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::virtual_time::Clock;
use super::word::{CellRef, MAX_CELLS};
use crate::sync::{RecordCell, zeroed_slice};

/// No ticket, no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// Queues of one group word.
pub(crate) const GROUP: u32 = 16;

const HEADER_WORDS: usize = 17;
const QUEUE_WORDS: usize = 7;

/// What a level does with requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Admits everything.
    Exempt = 0,
    /// Admits what fits, refuses the rest.
    #[default]
    Reject = 1,
    /// Admits what fits in its turn.
    Queue = 2,
}

/// The whole state of a level but its queues.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Header {
    pub(crate) clock: Clock,
    /// Seats held by running and lingering requests.
    pub(crate) in_use: u32,
    /// Current concurrency limit.
    pub(crate) limit: u32,
    /// Queues with waiting or running requests.
    pub(crate) active: u32,
    /// Waiting requests.
    pub(crate) waiting: u32,
    /// Their seats.
    pub(crate) waiting_seats: u64,
    /// What the reference's count of waiting seats has too much (always 0 when corrected).
    pub(crate) leaked_seats: u64,
    /// Queue slot last granted + 1; 0: none.
    pub(crate) last: u32,
    pub(crate) mode: Mode,
    /// More grants are due than one commit could hold: whoever comes next makes them first.
    pub(crate) pending: bool,
    pub(crate) hand_size: u8,
    /// Hands dealt, ever.
    pub(crate) arrivals: u64,
    pub(crate) version: u64,
    /// Queues configured. 0 without queues.
    pub(crate) desired: u32,
    /// Queues there are: more than configured while surplus ones drain.
    pub(crate) live: u32,
    /// Slots ever used; those of them that are not live were removed.
    pub(crate) slots: u32,
    pub(crate) queue_length_limit: u32,
    /// Seats in use that no live queue answers for.
    pub(crate) off_queue_seats: u32,
    /// Seats of requests that have ended (kept only where a rule of the reference asks for it).
    pub(crate) lingering_seats: u32,
}

impl Header {
    fn encode(&self) -> [u64; HEADER_WORDS] {
        let [a, b, c, d, e, f, g] = self.clock.encode();
        [
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            pair(self.in_use, self.limit),
            pair(self.active, self.waiting),
            self.waiting_seats,
            self.leaked_seats,
            pair(self.last, self.hand_size as u32 | (self.pending as u32) << 8 | (self.mode as u32) << 9),
            self.arrivals,
            self.version,
            pair(self.desired, self.live),
            pair(self.slots, self.queue_length_limit),
            pair(self.off_queue_seats, self.lingering_seats),
        ]
    }

    fn decode(w: [u64; HEADER_WORDS]) -> Self {
        let flags = low(w[11]);
        Header {
            clock: Clock::decode([w[0], w[1], w[2], w[3], w[4], w[5], w[6]]),
            in_use: high(w[7]),
            limit: low(w[7]),
            active: high(w[8]),
            waiting: low(w[8]),
            waiting_seats: w[9],
            leaked_seats: w[10],
            last: high(w[11]),
            hand_size: flags as u8,
            pending: flags >> 8 & 1 == 1,
            mode: match flags >> 9 {
                0 => Mode::Exempt,
                2 => Mode::Queue,
                _ => Mode::Reject,
            },
            arrivals: w[12],
            version: w[13],
            desired: high(w[14]),
            live: low(w[14]),
            slots: high(w[15]),
            queue_length_limit: low(w[15]),
            off_queue_seats: high(w[16]),
            lingering_seats: low(w[16]),
        }
    }
}

/// One queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) next_dispatch_r: u64,
    pub(crate) running: u32,
    pub(crate) waiting: u32,
    /// Seats of its requests that have ended but linger.
    pub(crate) lingering_seats: u32,
    /// How often this slot's queue was removed; odd: it is not live now.
    pub(crate) removals: u32,
    /// Oldest and youngest waiting ticket, the work of all, and work and arrival R of the oldest. They mean nothing
    /// while nobody waits, and are neither written nor read then.
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) work: u64,
    pub(crate) head_work: u64,
    pub(crate) head_arrival_r: u64,
}

impl Queue {
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.running > 0 || self.waiting > 0
    }

    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.removals & 1 == 0
    }

    /// Virtual finish time of its oldest waiter.
    #[inline]
    pub(crate) fn tag(&self) -> u64 {
        self.next_dispatch_r.wrapping_add(self.head_work)
    }

    /// No request is served before it arrived: raises `next_dispatch_r` to the oldest waiter's arrival.
    #[inline]
    pub(crate) fn bound(&mut self) {
        if self.waiting > 0 && before(self.next_dispatch_r, self.head_arrival_r) {
            self.next_dispatch_r = self.head_arrival_r;
        }
    }
}

/// Sixteen neighbouring queue slots, as the scan for the next queue sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Group {
    /// Slots with waiters.
    pub(crate) waiting: u16,
    /// Slots whose queue was removed.
    pub(crate) removed: u16,
    /// Least tag, and the lowest slot that has it. They mean nothing while nobody waits.
    pub(crate) tag: u64,
    pub(crate) slot: u32,
}

#[inline]
fn pair(a: u32, b: u32) -> u64 {
    (a as u64) << 32 | b as u64
}

#[inline]
fn high(w: u64) -> u32 {
    (w >> 32) as u32
}

#[inline]
fn low(w: u64) -> u32 {
    w as u32
}

/// Order of two values of a meter that wraps.
#[inline]
pub(crate) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

type WideCell = RecordCell<HEADER_WORDS>;
type NarrowCell = RecordCell<QUEUE_WORDS>;

/// All cells of an engine: wide ones for headers and clocks, narrow ones for queues and groups.
pub(crate) struct Cells {
    wide: Box<[WideCell]>,
    narrow: Box<[NarrowCell]>,
    free: Mutex<FreeCells>,
}

#[derive(Default)]
struct FreeCells {
    wide: Vec<CellRef>,
    narrow: Vec<CellRef>,
    fresh_wide: usize,
    fresh_narrow: usize,
    /// Of those above, how many are for the contexts of threads that have yet to come.
    spares_wide: usize,
    spares_narrow: usize,
}

/// The engine's bound on memory leaves no cells for so many queues, levels or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfCells {
    /// Cells asked for.
    pub wanted: usize,
    /// Cells left.
    pub left: usize,
}

impl fmt::Display for OutOfCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the memory bound leaves {} cells where {} are needed: raise ArenaSize",
            self.left, self.wanted
        )
    }
}

impl std::error::Error for OutOfCells {}

impl Cells {
    /// Wide and narrow cells: for levels, and as spares of contexts.
    pub(crate) fn new(levels: (usize, usize), spares: (usize, usize)) -> Self {
        let number = |levels: usize, spares: usize| levels.saturating_add(spares).min(MAX_CELLS);
        Cells {
            wide: zeroed_slice(number(levels.0, spares.0)),
            narrow: zeroed_slice(number(levels.1, spares.1)),
            free: Mutex::new(FreeCells {
                spares_wide: spares.0,
                spares_narrow: spares.1,
                ..FreeCells::default()
            }),
        }
    }

    /// Bytes of address space held; the system backs only what has been used.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.wide) + size_of_val(&*self.narrow)
    }

    /// Cells for queues and groups that the common stock has.
    pub(crate) fn left_narrow(&self) -> usize {
        self.left(&self.stock()).1
    }

    fn stock(&self) -> MutexGuard<'_, FreeCells> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wide and narrow cells left, but for spares.
    fn left(&self, f: &FreeCells) -> (usize, usize) {
        let wide = f.wide.len() + self.wide.len() - f.fresh_wide;
        let narrow = f.narrow.len() + self.narrow.len() - f.fresh_narrow;
        (wide.saturating_sub(f.spares_wide), narrow.saturating_sub(f.spares_narrow))
    }

    /// Takes cells out of the common stock: when a level or its queues are made. Allocates.
    pub(crate) fn take(
        &self,
        wide: usize,
        narrow: usize,
    ) -> Result<(Vec<CellRef>, Vec<CellRef>), OutOfCells> {
        self.draw(&mut self.stock(), wide, narrow)
    }

    fn draw(
        &self,
        f: &mut FreeCells,
        wide: usize,
        narrow: usize,
    ) -> Result<(Vec<CellRef>, Vec<CellRef>), OutOfCells> {
        let (left_wide, left_narrow) = self.left(f);
        if wide > left_wide {
            return Err(OutOfCells { wanted: wide, left: left_wide });
        }
        if narrow > left_narrow {
            return Err(OutOfCells { wanted: narrow, left: left_narrow });
        }
        let FreeCells { wide: w, narrow: n, fresh_wide, fresh_narrow, .. } = f;
        Ok((draw(w, fresh_wide, wide), draw(n, fresh_narrow, narrow)))
    }

    /// Gives cells back that no word points to.
    pub(crate) fn give(
        &self,
        wide: impl IntoIterator<Item = CellRef>,
        narrow: impl IntoIterator<Item = CellRef>,
    ) {
        let mut f = self.stock();
        f.wide.extend(wide);
        f.narrow.extend(narrow);
        debug_assert!(all_differ(&f.wide) && all_differ(&f.narrow), "a cell had two owners");
    }

    /// Takes the spares of one context. Allocates.
    pub(crate) fn take_spares(
        &self,
        wide: usize,
        narrow: usize,
    ) -> Result<(Vec<CellRef>, Vec<CellRef>), OutOfCells> {
        let mut f = self.stock();
        let kept = (f.spares_wide, f.spares_narrow);
        f.spares_wide = f.spares_wide.saturating_sub(wide);
        f.spares_narrow = f.spares_narrow.saturating_sub(narrow);
        let taken = self.draw(&mut f, wide, narrow);
        if taken.is_err() {
            (f.spares_wide, f.spares_narrow) = kept;
        }
        taken
    }

    /// Gives the spares of one context back.
    pub(crate) fn give_spares(
        &self,
        wide: impl IntoIterator<Item = CellRef>,
        narrow: impl IntoIterator<Item = CellRef>,
    ) {
        let mut f = self.stock();
        let (wide_before, narrow_before) = (f.wide.len(), f.narrow.len());
        f.wide.extend(wide);
        f.narrow.extend(narrow);
        f.spares_wide += f.wide.len() - wide_before;
        f.spares_narrow += f.narrow.len() - narrow_before;
    }

    pub(crate) fn put_header(&self, at: CellRef, h: &Header) {
        self.wide[at.cell()].store(h.encode());
    }

    pub(crate) fn header(&self, at: CellRef) -> Header {
        Header::decode(self.wide[at.cell()].load())
    }

    /// Limit and leaked seats alone: what moving the clock of a packed level asks for.
    #[inline]
    pub(crate) fn limit_and_leak(&self, at: CellRef) -> (u32, u64) {
        let cell = &self.wide[at.cell()];
        (low(cell.load_at(7)), cell.load_at(10))
    }

    #[inline]
    pub(crate) fn put_clock(&self, at: CellRef, c: &Clock) {
        self.wide[at.cell()].store(c.encode());
    }

    #[inline]
    pub(crate) fn clock(&self, at: CellRef) -> Clock {
        Clock::decode(self.wide[at.cell()].load())
    }

    /// R and the time it was right, alone.
    #[inline]
    pub(crate) fn clock_reading(&self, at: CellRef) -> (u64, u64) {
        let [r, at] = self.wide[at.cell()].load();
        (r, at)
    }

    #[inline]
    pub(crate) fn put_queue(&self, at: CellRef, q: &Queue) {
        let cell = &self.narrow[at.cell()];
        let (a, b, c) = (q.next_dispatch_r, pair(q.running, q.waiting), pair(q.lingering_seats, q.removals));
        if q.waiting == 0 {
            cell.store([a, b, c]);
        } else {
            cell.store([a, b, c, pair(q.head, q.tail), q.work, q.head_work, q.head_arrival_r]);
        }
    }

    #[inline]
    pub(crate) fn queue(&self, at: CellRef) -> Queue {
        let cell = &self.narrow[at.cell()];
        let [a, b, c] = cell.load();
        let mut q = Queue {
            next_dispatch_r: a,
            running: high(b),
            waiting: low(b),
            lingering_seats: high(c),
            removals: low(c),
            ..Queue::default()
        };
        if q.waiting > 0 {
            let w: [u64; QUEUE_WORDS] = cell.load();
            (q.head, q.tail) = (high(w[3]), low(w[3]));
            (q.work, q.head_work, q.head_arrival_r) = (w[4], w[5], w[6]);
        }
        q
    }

    #[inline]
    pub(crate) fn put_group(&self, at: CellRef, g: &Group) {
        self.narrow[at.cell()].store([pair(g.slot, (g.removed as u32) << 16 | g.waiting as u32), g.tag]);
    }

    #[inline]
    pub(crate) fn group(&self, at: CellRef) -> Group {
        let [a, tag]: [u64; 2] = self.narrow[at.cell()].load();
        Group { waiting: a as u16, removed: (a >> 16) as u16, tag, slot: high(a) }
    }
}

fn draw(free: &mut Vec<CellRef>, fresh: &mut usize, n: usize) -> Vec<CellRef> {
    let mut out = free.split_off(free.len() - n.min(free.len()));
    while out.len() < n {
        out.push(CellRef::new(*fresh as u32));
        *fresh += 1;
    }
    out
}

fn all_differ(cells: &[CellRef]) -> bool {
    let mut seen = std::collections::HashSet::new();
    cells.iter().all(|c| seen.insert(c.cell()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::borrow::Moments;

    #[test]
    fn records_read_back_as_written() {
        let cells = Cells::new((2, 2), (0, 0));
        let (w, n) = cells.take(2, 2).unwrap();
        let h = Header {
            clock: Clock {
                r: 1,
                at: 2,
                moments: Moments { seconds: 3.5, integral: 4.5, integral_of_squares: 5.5 },
                min: 6,
                max: 7,
            },
            in_use: 8,
            limit: 9,
            active: 10,
            waiting: 11,
            waiting_seats: 1 << 40,
            leaked_seats: 13,
            last: 14,
            mode: Mode::Queue,
            pending: true,
            hand_size: 60,
            arrivals: 1 << 50,
            version: 1 << 60,
            desired: 18,
            live: 19,
            slots: 20,
            queue_length_limit: 21,
            off_queue_seats: 22,
            lingering_seats: 23,
        };
        cells.put_header(w[0], &h);
        assert_eq!(cells.header(w[0]), h);
        assert_eq!(cells.limit_and_leak(w[0]), (9, 13));
        cells.put_clock(w[1], &h.clock);
        assert_eq!(cells.clock(w[1]), h.clock);
        assert_eq!(cells.clock_reading(w[1]), (1, 2));
        let q = Queue {
            next_dispatch_r: 1,
            running: 2,
            waiting: 3,
            lingering_seats: 4,
            removals: 5,
            head: 6,
            tail: 7,
            work: 8,
            head_work: 9,
            head_arrival_r: 10,
        };
        cells.put_queue(n[0], &q);
        assert_eq!(cells.queue(n[0]), q);
        let g = Group { waiting: 0x8001, removed: 0x4002, tag: u64::MAX, slot: 77 };
        cells.put_group(n[1], &g);
        assert_eq!(cells.group(n[1]), g);
    }

    #[test]
    fn the_stock_of_cells_says_when_it_is_empty_and_takes_cells_back() {
        let cells = Cells::new((1, 3), (0, 0));
        let (w, n) = cells.take(1, 2).unwrap();
        assert_eq!(cells.take(0, 2).unwrap_err(), OutOfCells { wanted: 2, left: 1 });
        cells.give(w, n);
        assert!(cells.take(1, 3).is_ok());
    }
}
