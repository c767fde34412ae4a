//! The words of a priority level: their forms, and the transitions of the packed form, as pure functions.
//!
//! | form (bits 63..62) | bits 61..0 | where |
//! |---|---|---|
//! | record `00` | cell 22, sequence 40 | queue, group, header and clock words |
//! | version `00` | version 62 | the level's word, while something waits (its record hangs on the header word) |
//! | packed `01` | free 22, active 14, arrivals 12, last 14 | the level's word, while nobody waits |
//! | operation `10` | slot 12, sequence 50 | any word that a multi-word CAS under way has taken |
//!
//! *Widths.* A cell's sequence number counts its publications: 40 bits last two days at five million a second of one
//! cell, and only a thread asleep for exactly that long could be misled. A packed word may come back with the same
//! value. That is harmless, for it says all that its transitions use: the free seats (so none is ever given twice,
//! whatever became of the limit) and that nobody waits. A commit that starts from the packed form also takes the
//! header word, which never repeats.

const TAG: u32 = 62;
const PACKED: u64 = 1;
const OPERATION: u64 = 2;
const PAYLOAD: u64 = (1 << TAG) - 1;

const SEQUENCE_BITS: u32 = 40;
const SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;
/// Cells that a record word can name.
pub(crate) const MAX_CELLS: usize = 1 << (TAG - SEQUENCE_BITS);

const SLOT_SEQUENCE_BITS: u32 = 50;
const SLOT_SEQUENCE: u64 = (1 << SLOT_SEQUENCE_BITS) - 1;
/// Descriptor slots that an operation word can name.
pub(crate) const MAX_SLOTS: usize = 1 << (TAG - SLOT_SEQUENCE_BITS);

/// A word that points to a record: which cell, and its how manieth publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CellRef(u64);

impl CellRef {
    pub(crate) fn new(cell: u32) -> Self {
        CellRef((cell as u64) << SEQUENCE_BITS)
    }

    #[inline]
    pub(crate) fn cell(self) -> usize {
        (self.0 >> SEQUENCE_BITS) as usize
    }

    /// The same cell, as a word that was never there before.
    #[inline]
    pub(crate) fn next(self) -> Self {
        CellRef((self.0 & !SEQUENCE) | (self.0.wrapping_add(1) & SEQUENCE))
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// `word` must not be an operation.
    #[inline]
    pub(crate) fn from_bits(word: u64) -> Self {
        CellRef(word & PAYLOAD)
    }
}

/// A word taken by an operation: the descriptor's slot, and the operation's number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpRef(u64);

impl OpRef {
    pub(crate) fn new(slot: u32, sequence: u64) -> Self {
        OpRef((OPERATION << TAG) | ((slot as u64) << SLOT_SEQUENCE_BITS) | (sequence & SLOT_SEQUENCE))
    }

    pub(crate) fn slot(self) -> usize {
        ((self.0 & PAYLOAD) >> SLOT_SEQUENCE_BITS) as usize
    }

    pub(crate) fn sequence(self) -> u64 {
        self.0 & SLOT_SEQUENCE
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(word: u64) -> Self {
        OpRef(word)
    }
}

/// Whether a word is taken by an operation.
#[inline]
pub(crate) fn is_operation(word: u64) -> bool {
    word >> TAG == OPERATION
}

/// The level's word, read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Nobody waits.
    Packed(Packed),
    /// The state is in the header record.
    Version(u64),
    /// Help it, then look again.
    Operation(OpRef),
}

#[inline]
pub(crate) fn form(word: u64) -> Form {
    match word >> TAG {
        PACKED => Form::Packed(Packed(word)),
        OPERATION => Form::Operation(OpRef(word)),
        _ => Form::Version(word),
    }
}

/// The level's word in record form.
#[inline]
pub(crate) fn version(number: u64) -> u64 {
    number & PAYLOAD
}

const FREE_BITS: u32 = 22;
const ACTIVE_BITS: u32 = 14;
const ARRIVAL_BITS: u32 = 12;
const LAST_BITS: u32 = 14;
const ACTIVE_AT: u32 = FREE_BITS;
const ARRIVALS_AT: u32 = ACTIVE_AT + ACTIVE_BITS;
const LAST_AT: u32 = ARRIVALS_AT + ARRIVAL_BITS;

/// The most free seats that the packed form can say.
pub(crate) const MAX_FREE: u32 = (1 << FREE_BITS) - 1;
/// The most queue slots of a level that may be packed. Below the field's width, because each suspended finisher may
/// leave its queue counted once too often.
pub(crate) const MAX_QUEUES: u32 = (1 << LAST_BITS) - 1 - MAX_SLOTS as u32;
/// Arrivals that the packed form counts before a commit must carry them over.
pub(crate) const MAX_ARRIVALS: u32 = (1 << ARRIVAL_BITS) - 1;

/// The level's word while nobody waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packed(u64);

impl Packed {
    /// All arguments must be within the limits above; `last` is 0 for none, else slot + 1.
    #[inline]
    pub(crate) fn new(free: u32, active: u32, arrivals: u32, last: u32) -> Self {
        debug_assert!(free <= MAX_FREE && arrivals <= MAX_ARRIVALS && last < 1 << LAST_BITS);
        Packed(
            PACKED << TAG
                | free as u64
                | (active as u64) << ACTIVE_AT
                | (arrivals as u64) << ARRIVALS_AT
                | (last as u64) << LAST_AT,
        )
    }

    #[inline]
    pub(crate) fn free(self) -> u32 {
        self.0 as u32 & MAX_FREE
    }

    #[inline]
    pub(crate) fn active(self) -> u32 {
        (self.0 >> ACTIVE_AT) as u32 & ((1 << ACTIVE_BITS) - 1)
    }

    /// Hands dealt: congruent, by the hand size, to the level's count of all.
    #[inline]
    pub(crate) fn arrivals(self) -> u32 {
        (self.0 >> ARRIVALS_AT) as u32 & MAX_ARRIVALS
    }

    #[inline]
    pub(crate) fn last(self) -> u32 {
        (self.0 >> LAST_AT) as u32 & ((1 << LAST_BITS) - 1)
    }

    /// A request runs at once without a queue.
    #[inline]
    pub(crate) fn seat(self, seats: u32) -> Self {
        Packed(self.0 - seats as u64)
    }

    /// A request runs at once, through the queue in `slot`, which it may have activated.
    #[inline]
    pub(crate) fn seat_queued(self, seats: u32, activated: bool, slot: u32) -> Self {
        Packed::new(self.free() - seats, self.active() + activated as u32, self.arrivals() + 1, slot + 1)
    }

    /// Seats come back, or none, and a queue may have become inactive. `None` if the packed form cannot say it.
    #[inline]
    pub(crate) fn unseat(self, seats: u32, deactivated: bool) -> Option<Self> {
        let free = self.free() + seats;
        (free <= MAX_FREE && self.active() >= deactivated as u32)
            .then(|| Packed(self.0 + seats as u64 - ((deactivated as u64) << ACTIVE_AT)))
    }

    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packed_fields_do_not_touch_each_other() {
        for (free, active, arrivals, last) in [
            (0, 0, 0, 0),
            (MAX_FREE, 16383, MAX_ARRIVALS, 16383),
            (1, 16383, 0, 16383),
            (MAX_FREE, 0, MAX_ARRIVALS, 0),
        ] {
            let p = Packed::new(free, active, arrivals, last);
            assert_eq!((p.free(), p.active(), p.arrivals(), p.last()), (free, active, arrivals, last));
            assert_eq!(form(p.bits()), Form::Packed(p));
        }
    }

    #[test]
    fn seating_and_unseating_give_the_word_back_but_for_count_and_place() {
        let p = Packed::new(10, 2, 7, 3);
        let q = p.seat_queued(4, true, 8);
        assert_eq!((q.free(), q.active(), q.arrivals(), q.last()), (6, 3, 8, 9));
        let r = q.unseat(4, true).unwrap();
        assert_eq!((r.free(), r.active()), (10, 2));
        assert_eq!(Packed::new(MAX_FREE, 0, 0, 0).unseat(1, false), None);
    }

    #[test]
    fn a_published_cell_never_looks_as_before() {
        let mut r = CellRef::new(MAX_CELLS as u32 - 1);
        for _ in 0..3 {
            let n = r.next();
            assert_ne!(n, r);
            assert_eq!(n.cell(), MAX_CELLS - 1);
            assert!(!is_operation(n.bits()));
            r = n;
        }
        assert_eq!(CellRef(SEQUENCE).next().cell(), 0);
    }

    #[test]
    fn an_operation_word_names_its_slot_and_number() {
        let op = OpRef::new(MAX_SLOTS as u32 - 1, SLOT_SEQUENCE);
        assert_eq!((op.slot(), op.sequence()), (MAX_SLOTS - 1, SLOT_SEQUENCE));
        assert!(is_operation(op.bits()));
    }
}
