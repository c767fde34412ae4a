//! The order in which the reference visits bounds that tie.
//!
//! Its sort is not stable, and where large targets cancel to tiny ones the order of the sum shows in more than the last
//! bits of a division (`vectors/concalloc.jsonl`). So bounds are sorted as there: by a quicksort that is a function of
//! the keys alone. This is that algorithm (pattern-defeating quicksort, with the constants of Go's `sort`), and no more
//! than an order: nothing else should use it.

/// Shorter runs are sorted by insertion, which leaves ties as they are.
const LONGEST_INSERTION: usize = 12;
/// Longer runs take the median of three medians for a pivot, and are worth repairing.
const LONG: usize = 50;
/// Out-of-order neighbours that are repaired before a run is taken for unsorted.
const REPAIRS: usize = 5;

/// Sorts by ascending key. Keys that tie are left in an order that depends only on the keys.
pub(super) fn sort<T: Copy>(items: &mut [T], key: impl Fn(&T) -> f64) {
    let bits = usize::BITS - items.len().leading_zeros();
    let end = items.len();
    Sorter { items, key }.sort(0, end, bits);
}

struct Sorter<'a, T, K> {
    items: &'a mut [T],
    key: K,
}

impl<T: Copy, K: Fn(&T) -> f64> Sorter<'_, T, K> {
    fn less(&self, i: usize, j: usize) -> bool {
        (self.key)(&self.items[i]) < (self.key)(&self.items[j])
    }

    fn sort(&mut self, mut start: usize, mut end: usize, mut bad_pivots_left: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        loop {
            let length = end - start;
            if length <= LONGEST_INSERTION || bad_pivots_left == 0 {
                // The reference sorts by heap after that many bad pivots, which keys in quantity would have to be
                // made for; there any order will do.
                return self.insert(start, end);
            }
            if !balanced {
                self.scatter(start, end);
                bad_pivots_left -= 1;
            }
            let (mut pivot, exchanges) = self.pivot(start, end);
            let descending = exchanges == 12;
            if descending {
                self.items[start..end].reverse();
                pivot = end - 1 - (pivot - start);
            }
            if balanced && partitioned && (descending || exchanges == 0) && self.repair(start, end) {
                return;
            }
            if start > 0 && !self.less(start - 1, pivot) {
                // Nothing here is below the pivot: put what equals it first, and that is done.
                start = self.part_equal(start, end, pivot);
                continue;
            }
            let middle;
            (middle, partitioned) = self.part(start, end, pivot);
            let (left, right) = (middle - start, end - middle);
            balanced = left.min(right) >= length / 8;
            // The shorter side first, by itself; the longer in the next round.
            if left < right {
                self.sort(start, middle, bad_pivots_left);
                start = middle + 1;
            } else {
                self.sort(middle + 1, end, bad_pivots_left);
                end = middle;
            }
        }
    }

    fn insert(&mut self, start: usize, end: usize) {
        for i in start + 1..end {
            self.sink(start, i);
        }
    }

    /// Moves the item at `i` down to its place among those from `start` on.
    fn sink(&mut self, start: usize, i: usize) {
        let mut j = i;
        while j > start && self.less(j, j - 1) {
            self.items.swap(j, j - 1);
            j -= 1;
        }
    }

    /// The place of a pivot, and how many exchanges of places it took to find it.
    fn pivot(&self, start: usize, end: usize) -> (usize, u32) {
        let length = end - start;
        let quarter = length / 4;
        let [mut i, mut j, mut k] = [1, 2, 3].map(|n| start + quarter * n);
        let mut exchanges = 0;
        if length >= LONG {
            [i, j, k] = [i, j, k].map(|at| self.median([at - 1, at, at + 1], &mut exchanges));
        }
        j = self.median([i, j, k], &mut exchanges);
        (j, exchanges)
    }

    fn median(&self, [mut a, mut b, mut c]: [usize; 3], exchanges: &mut u32) -> usize {
        let mut order = |a: &mut usize, b: &mut usize| {
            if self.less(*b, *a) {
                std::mem::swap(a, b);
                *exchanges += 1;
            }
        };
        order(&mut a, &mut b);
        order(&mut b, &mut c);
        order(&mut a, &mut b);
        b
    }

    /// Tries to sort a run that is nearly sorted. True when it is.
    fn repair(&mut self, start: usize, end: usize) -> bool {
        let mut i = start + 1;
        for _ in 0..REPAIRS {
            while i < end && !self.less(i, i - 1) {
                i += 1;
            }
            if i == end {
                return true;
            }
            if end - start < LONG {
                return false;
            }
            self.items.swap(i, i - 1);
            if i - start >= 2 {
                // To the very first item, not to `start`: so it is there.
                self.sink(0, i - 1);
            }
            let mut j = i + 1;
            while j < end && self.less(j, j - 1) {
                self.items.swap(j, j - 1);
                j += 1;
            }
        }
        false
    }

    /// Puts what equals the pivot before what is above it. Returns where the latter begins.
    fn part_equal(&mut self, start: usize, end: usize, pivot: usize) -> usize {
        self.items.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        loop {
            while i <= j && !self.less(start, i) {
                i += 1;
            }
            while i <= j && self.less(start, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.items.swap(i, j);
            (i, j) = (i + 1, j - 1);
        }
    }

    /// Puts what is below the pivot before it, the rest after it. Returns its place, and whether all was so before.
    fn part(&mut self, start: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.items.swap(start, pivot);
        let (mut i, mut j) = (start + 1, end - 1);
        let mut was_parted = true;
        loop {
            while i <= j && self.less(i, start) {
                i += 1;
            }
            while i <= j && !self.less(j, start) {
                j -= 1;
            }
            if i > j {
                self.items.swap(j, start);
                return (j, was_parted);
            }
            was_parted = false;
            self.items.swap(i, j);
            (i, j) = (i + 1, j - 1);
        }
    }

    /// Exchanges a few items, so that the pattern that made a bad pivot is gone.
    fn scatter(&mut self, start: usize, end: usize) {
        let length = end - start;
        let mut random = length as u64;
        let mask = (1 << (usize::BITS - length.leading_zeros())) - 1;
        let middle = start + length / 4 * 2;
        for i in 0..3 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = random as usize & mask;
            let other = if other >= length { other - length } else { other };
            self.items.swap(middle - 1 + i, start + other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with many ties, and the places at which they were.
    fn keys(length: usize, different: u64, mut seed: u64) -> Vec<(f64, usize)> {
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 33
        };
        (0..length).map(|place| ((next() % different) as f64, place)).collect()
    }

    #[test]
    fn every_input_is_sorted_and_whole() {
        for length in 0..200 {
            for different in [1, 2, 3, 10, 1000] {
                let mut items = keys(length, different, length as u64 + different);
                if length % 7 == 0 {
                    items.sort_by(|a, b| b.0.total_cmp(&a.0));
                }
                let before = items.clone();
                sort(&mut items, |item| item.0);
                assert!(items.is_sorted_by(|a, b| a.0 <= b.0), "{length} {different}: {before:?}");
                let mut places: Vec<usize> = items.iter().map(|item| item.1).collect();
                places.sort_unstable();
                assert!(places.into_iter().eq(0..length));
            }
        }
    }

    #[test]
    fn few_items_keep_the_order_of_ties() {
        let mut items = keys(12, 3, 1);
        let mut stable = items.clone();
        stable.sort_by(|a, b| a.0.total_cmp(&b.0));
        sort(&mut items, |item| item.0);
        assert_eq!(items, stable);
    }
}
