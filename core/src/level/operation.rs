//! The multi-word compare-and-swap of a level, and its helping.
//!
//! An operation changes the level's word and some others as one step. Its steps, which any thread may do for its owner:
//!
//! 1. The owner writes the entries into the descriptor of its slot, then swaps the level's word, old → operation.
//! 2. Each *installed* word (header and clock, if the level was packed; queues): old → operation. One that holds
//!    something else decides *failed*; all installed decide *succeeded*.
//! 3. If it succeeded, each *written* word, in order: old → new. Nobody but a decided operation changes these.
//!    Tickets are woken here, while the level's word still shows the operation.
//! 4. Installed words: operation → new; or back, as a value that was never there, so that a late step 2 finds no old.
//! 5. The level's word: operation → new, or old.
//!
//! The level's word is in every operation, so one operation a level is past step 1 at a time: words need no order, and
//! helping needs no depth. No other word ever holds a value twice; the level's word may only where that is harmless
//! (see `word`).

use super::Level;
use super::context::Context;
use super::word::{CellRef, OpRef, is_operation};
use crate::sync::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
    Words, Zeroed,
};

/// Words of one operation at most, the level's not counted.
pub(super) const MAX_ENTRIES: usize = 32;

/// Which word of a level or ticket an entry is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Kind {
    Header = 0,
    Clock = 1,
    Queue = 2,
    Group = 3,
    Next = 4,
    Prev = 5,
    Start = 6,
    State = 7,
    Shape = 8,
}

/// kind 32 | index 32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Address(u64);

impl Address {
    #[inline]
    pub(super) fn new(kind: Kind, index: u32) -> Self {
        Address((kind as u64) << 32 | index as u64)
    }

    fn kind(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn index(self) -> u32 {
        self.0 as u32
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) at: Address,
    pub(super) old: u64,
    pub(super) new: u64,
}

const UNDECIDED: u64 = 0;
const SUCCEEDED: u64 = 1;
const FAILED: u64 = 2;

/// What others need to finish a thread's operation.
#[repr(align(128))]
pub(super) struct Descriptor {
    /// sequence 62 | decision 2.
    pub(super) status: AtomicU64,
    /// installed entries 32 | all entries 32; the level's word, old and new; address, old and new of each entry.
    body: Words<{ 3 + 3 * MAX_ENTRIES }>,
}

// SAFETY: atomic integers only.
unsafe impl Zeroed for Descriptor {
    #[cfg(loom)]
    fn zeroed() -> Self {
        Descriptor { status: AtomicU64::new(0), body: Words::zeroed() }
    }
}

/// An operation as whoever carries it out sees it.
struct View<'a> {
    op: OpRef,
    level_old: u64,
    level_new: u64,
    installed: &'a [Entry],
    written: &'a [Entry],
}

impl Level {
    /// Carries out the operation: `installed` and `written` entries, and the level's word. True if it succeeded; else
    /// nothing has changed.
    pub(super) fn operate(
        &self,
        cx: &mut Context,
        level_old: u64,
        level_new: u64,
        installed: &[Entry],
        written: &[Entry],
    ) -> bool {
        let d = &cx.arena.descriptors[cx.slot as usize];
        cx.sequence += 1;
        let op = OpRef::new(cx.slot, cx.sequence);
        // From here on whoever still reads the last operation learns that it is over. Release, here and below: a
        // helper that reads a word of this operation must see the new sequence when it checks.
        d.status.store(op.sequence() << 2 | UNDECIDED, Release);
        let counts = (installed.len() as u64) << 32 | (installed.len() + written.len()) as u64;
        let entries = installed.iter().chain(written).flat_map(|e| [e.at.0, e.old, e.new]);
        d.body.store([counts, level_old, level_new].into_iter().chain(entries));
        point!(OperationReady);
        // AcqRel: publishes the descriptor and the new records; sees what the last operation left.
        if self.word.compare_exchange(level_old, op.bits(), AcqRel, Acquire).is_err() {
            return false;
        }
        point!(OperationBegun);
        self.carry_out(d, &View { op, level_old, level_new, installed, written })
    }

    /// Finishes somebody's operation, read from a word of this level.
    #[cold]
    pub(super) fn help(&self, cx: &Context, word: u64) {
        if cfg!(maitred_mutant = "helpers_wait") {
            return;
        }
        let op = OpRef::from_bits(word);
        let d = &cx.arena.descriptors[op.slot()];
        if d.status.load(Acquire) >> 2 != op.sequence() {
            return;
        }
        let body = d.body.read();
        let (counts, level_old, level_new) = (body(0), body(1), body(2));
        let n = (counts as u32 as usize).min(MAX_ENTRIES);
        let split = ((counts >> 32) as usize).min(n);
        let mut entries = [Entry::default(); MAX_ENTRIES];
        for (i, e) in entries[..n].iter_mut().enumerate() {
            let k = 3 + 3 * i;
            *e = Entry { at: Address(body(k)), old: body(k + 1), new: body(k + 2) };
        }
        // The copy is whole only if the owner has not begun another since.
        if d.status.load(Acquire) >> 2 != op.sequence() {
            return;
        }
        let (installed, written) = entries[..n].split_at(split);
        self.carry_out(d, &View { op, level_old, level_new, installed, written });
    }

    fn carry_out(&self, d: &Descriptor, v: &View) -> bool {
        let undecided = v.op.sequence() << 2 | UNDECIDED;
        if d.status.load(Acquire) == undecided {
            let verdict = if self.install(v) { SUCCEEDED } else { FAILED };
            point!(OperationInstalled);
            // Fails where somebody decided before: their decision stands.
            let _ = d.status.compare_exchange(undecided, undecided | verdict, AcqRel, Acquire);
        }
        let status = d.status.load(Acquire);
        if status >> 2 != v.op.sequence() {
            // Over, and its owner is on to the next; only a helper can see this.
            return true;
        }
        let succeeded = status & 3 == SUCCEEDED;
        if cfg!(maitred_mutant = "level_word_first") {
            let _ = self.word.compare_exchange(
                v.op.bits(),
                if succeeded { v.level_new } else { v.level_old },
                AcqRel,
                Acquire,
            );
        }
        if succeeded {
            for e in v.written {
                point!(OperationWriting);
                let _ = self.resolve(e.at).compare_exchange(e.old, e.new, AcqRel, Acquire);
                // Granted, or cancelled perhaps by another thread than the one that waits.
                if e.at.kind() == Kind::State as u32 {
                    self.wake(e.at.index());
                }
            }
        }
        for e in v.installed {
            point!(OperationReleasing);
            let back = if cfg!(maitred_mutant = "old_value_back") {
                e.old
            } else {
                CellRef::from_bits(e.old).next().bits()
            };
            let to = if succeeded { e.new } else { back };
            let _ = self.resolve(e.at).compare_exchange(v.op.bits(), to, AcqRel, Acquire);
        }
        point!(OperationDone);
        let to = if succeeded { v.level_new } else { v.level_old };
        let _ = self.word.compare_exchange(v.op.bits(), to, AcqRel, Acquire);
        succeeded
    }

    /// Step 2. False if a word is not what the operation was made from.
    fn install(&self, v: &View) -> bool {
        for e in v.installed {
            let word = self.resolve(e.at);
            loop {
                let now = word.load(Acquire);
                if now == v.op.bits() {
                    break;
                }
                if now != e.old {
                    return false;
                }
                point!(OperationInstalling);
                if word.compare_exchange(e.old, v.op.bits(), AcqRel, Acquire).is_ok() {
                    break;
                }
            }
        }
        true
    }

    /// The word an entry is about. Entries are made from indices that were looked up, by this level.
    fn resolve(&self, at: Address) -> &AtomicU64 {
        let i = at.index();
        let ticket = || self.arena.tickets.get(i).expect("entries name tickets of the slab");
        match at.kind() {
            0 => &self.header,
            1 => &self.clock,
            2 => self.queues.get(i),
            3 => self.groups.get(i),
            4 => &ticket().next,
            5 => &ticket().prev,
            6 => &ticket().start,
            7 => &ticket().state,
            _ => &self.shape,
        }
    }

    /// A word of this level that may be taken by an operation: helped until it is not.
    #[inline]
    pub(super) fn settled(&self, cx: &Context, word: &AtomicU64) -> u64 {
        loop {
            let w = word.load(Acquire);
            if !is_operation(w) {
                return w;
            }
            self.help(cx, w);
        }
    }
}
