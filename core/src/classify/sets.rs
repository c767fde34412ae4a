//! Sparse sets of clause numbers, made to be intersected without touching what they do not share.
//!
//! A set is a list of tops, each a summary of 64 blocks of 64 numbers: bit b says that block b is not empty. Stored are
//! the blocks from the first to the last of these. Intersecting starts with the summaries, so thousands of clauses are
//! dismissed by one AND, and a set costs memory by what is in it.

use std::collections::BTreeMap;

/// Numbers of clauses, as they are collected: number of the block -> its bits.
#[derive(Debug, Clone, Default)]
pub(super) struct Collected(BTreeMap<u32, u64>);

impl Collected {
    pub(super) fn insert(&mut self, clause: u32) {
        *self.0.entry(clause / 64).or_default() |= 1 << (clause % 64);
    }

    pub(super) fn add(&mut self, other: &Collected) {
        for (&block, &bits) in &other.0 {
            *self.0.entry(block).or_default() |= bits;
        }
    }
}

/// A set in a store of [`Sets`]. The default is the empty set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Set(u32);

impl Set {
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Top {
    summary: u64,
    /// Where block 0 would be stored if it were; wraps.
    origin: u32,
}

/// All sets of one index, side by side.
#[derive(Debug)]
pub(super) struct Sets {
    /// `width` tops a set; the first are those of the empty set.
    tops: Vec<Top>,
    blocks: Vec<u64>,
    width: usize,
}

impl Sets {
    /// A store for sets of numbers below `clauses`.
    pub(super) fn new(clauses: u32) -> Sets {
        let width = clauses.div_ceil(64 * 64) as usize;
        Sets { tops: vec![Top::default(); width], blocks: Vec::new(), width }
    }

    pub(super) fn store(&mut self, collected: &Collected) -> Set {
        if collected.0.is_empty() {
            return Set::default();
        }
        let set = Set((self.tops.len() / self.width) as u32);
        let mut tops = vec![Top::default(); self.width];
        for (&block, &bits) in &collected.0 {
            let (top, block) = (&mut tops[block as usize / 64], block % 64);
            if top.summary == 0 {
                top.origin = (self.blocks.len() as u32).wrapping_sub(block);
            }
            top.summary |= 1 << block;
            self.blocks.resize(top.origin.wrapping_add(block) as usize, 0);
            self.blocks.push(bits);
        }
        self.tops.append(&mut tops);
        set
    }

    #[inline]
    fn top(&self, set: Set, at: usize) -> Top {
        self.tops[set.0 as usize * self.width + at]
    }

    #[inline]
    fn block(&self, top: Top, block: u32) -> u64 {
        if top.summary >> block & 1 == 0 { 0 } else { self.blocks[top.origin.wrapping_add(block) as usize] }
    }

    /// The least rank of the numbers that are in one of `any` and, for each pair of `all`, in one of the pair; `best` if
    /// none is less. Besides, how many blocks had to be looked into for it.
    ///
    /// `ranks` has the rank of each number; within a block it rises, and all of the first numbers of blocks are there.
    #[inline]
    pub(super) fn least_common<const D: usize>(
        &self,
        any: &[Set],
        all: &[[Set; 2]; D],
        ranks: &[u32],
        mut best: u32,
    ) -> (u32, u32) {
        let mut looked_into = 0;
        for at in 0..self.width {
            let mut live = any.iter().fold(0, |all, &set| all | self.top(set, at).summary);
            let mut pairs = [[Top::default(); 2]; D];
            for (tops, &[a, b]) in pairs.iter_mut().zip(all) {
                *tops = [self.top(a, at), self.top(b, at)];
                live &= tops[0].summary | tops[1].summary;
            }
            while live != 0 {
                let block = live.trailing_zeros();
                live &= live - 1;
                let first = (at * 64 + block as usize) * 64;
                if ranks[first] >= best {
                    continue;
                }
                looked_into += 1;
                let mut bits = any.iter().fold(0, |all, &set| all | self.block(self.top(set, at), block));
                for &[a, b] in &pairs {
                    bits &= self.block(a, block) | self.block(b, block);
                }
                if bits != 0 {
                    best = best.min(ranks[first + bits.trailing_zeros() as usize]);
                }
            }
        }
        (best, looked_into)
    }
}
