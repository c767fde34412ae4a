//! Counters that nobody reads on the path: a row of numbers for each thing counted, a copy of all rows for each thread.
//!
//! Each copy has one writer, so counting is a load and a store, without a locked instruction. Reading sums the copies.

use std::sync::OnceLock;

use crate::sync::uncontrolled::{AtomicU64, Ordering::Relaxed};
use crate::sync::zeroed_slice;

/// `rows` rows of `N` counters.
pub(crate) struct Counters<const N: usize> {
    rows: usize,
    copies: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl<const N: usize> Counters<N> {
    pub(crate) fn new(rows: usize, writers: usize) -> Self {
        Counters { rows, copies: (0..writers).map(|_| OnceLock::new()).collect() }
    }

    /// Makes a writer's copy, which lasts. Allocates; the system backs only the rows that are counted in.
    pub(crate) fn enlist(&self, writer: u32) {
        self.copies[writer as usize].get_or_init(|| zeroed_slice(self.rows * N));
    }

    /// Bytes of the copies that there are; the system backs only the rows that were counted in.
    pub(crate) fn bytes(&self) -> usize {
        self.copies.iter().filter_map(OnceLock::get).map(|copy| size_of_val(&**copy)).sum()
    }

    /// Adds to a counter. Only the thread that owns the writer's number may; rows past the end are not counted.
    #[inline]
    pub(crate) fn add(&self, writer: u32, row: u32, counter: usize, n: u64) {
        debug_assert!(counter < N);
        if let Some(copy) = self.copies.get(writer as usize).and_then(OnceLock::get)
            && let Some(cell) = copy.get(row as usize * N + counter)
        {
            // Relaxed, and no exchange: one writer; readers want a number, not an order.
            cell.store(cell.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// Sums of a row. Counts of this moment may be missing.
    pub(crate) fn read(&self, row: u32) -> [u64; N] {
        let mut sums = [0u64; N];
        for copy in self.copies.iter().filter_map(OnceLock::get) {
            for (i, sum) in sums.iter_mut().enumerate() {
                if let Some(cell) = copy.get(row as usize * N + i) {
                    *sum = sum.wrapping_add(cell.load(Relaxed));
                }
            }
        }
        sums
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn reading_sums_all_writers_and_rows_do_not_touch() {
        let c = Counters::<2>::new(3, 2);
        c.enlist(0);
        c.enlist(1);
        c.add(0, 1, 0, 5);
        c.add(1, 1, 0, 6);
        c.add(1, 2, 1, 1);
        c.add(1, 3, 0, 9);
        assert_eq!((c.read(0), c.read(1), c.read(2)), ([0, 0], [11, 0], [0, 1]));
    }
}
