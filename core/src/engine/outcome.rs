//! What is counted of each flow schema at each priority level, and in which row.

use std::collections::HashMap;
use std::sync::Arc;

use super::Rejection;

/// Pairs of a priority level and a flow schema that can be counted apart, one row for all others included.
pub(super) const ROWS: usize = 1 << 14;

/// What is counted in a row, besides grants, which levels count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Handed in.
    Arrived,
    /// Ended after it ran.
    Finished,
    /// Nanoseconds from arrival to grant, of requests that ended after they ran.
    Waited,
    /// Nanoseconds from arrival to time-out or cancellation.
    WaitedInVain,
    /// Nanoseconds from grant to end.
    Served,
    /// Not admitted, or not for long.
    Rejected(Rejection),
}

const FIRST_REJECTION: usize = 5;
pub(super) const OUTCOMES: usize = FIRST_REJECTION + Rejection::ALL.len();

impl Outcome {
    #[inline]
    pub(super) const fn index(self) -> usize {
        match self {
            Outcome::Arrived => 0,
            Outcome::Finished => 1,
            Outcome::Waited => 2,
            Outcome::WaitedInVain => 3,
            Outcome::Served => 4,
            Outcome::Rejected(why) => FIRST_REJECTION + why.index(),
        }
    }
}

/// A priority level and a flow schema, by name.
pub(super) type Pair = (Arc<str>, Arc<str>);

/// Which pair is counted where. Rows live as long as the engine: counters never fall.
#[derive(Default)]
pub(super) struct Rows {
    index: HashMap<Pair, u32>,
    pairs: Vec<Pair>,
}

impl Rows {
    /// The row of a pair; the last one where there are no more.
    pub(super) fn of(&mut self, level: &Arc<str>, schema: &Arc<str>) -> u32 {
        let pair = (level.clone(), schema.clone());
        if let Some(&row) = self.index.get(&pair) {
            return row;
        }
        let row = self.pairs.len();
        if row < ROWS - 1 {
            self.pairs.push(pair.clone());
            self.index.insert(pair, row as u32);
        }
        row as u32
    }

    /// The pairs, by row.
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The row in which the pairs are counted that found none of their own.
    pub(super) const OTHERS: u32 = ROWS as u32 - 1;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn outcomes_do_not_share_a_counter() {
        let mut all: Vec<_> =
            [Outcome::Arrived, Outcome::Finished, Outcome::Waited, Outcome::WaitedInVain, Outcome::Served]
                .into_iter()
                .chain(Rejection::ALL.map(Outcome::Rejected))
                .map(Outcome::index)
                .collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..OUTCOMES));
    }

    #[test]
    fn pairs_past_the_rows_share_the_last_and_take_no_memory() {
        let mut rows = Rows::default();
        let level: Arc<str> = "l".into();
        let name = |i: usize| Arc::from(i.to_string());
        for i in 0..ROWS + 10 {
            assert_eq!(rows.of(&level, &name(i)) as usize, i.min(ROWS - 1));
        }
        assert_eq!(rows.of(&level, &name(7)), 7);
        assert_eq!((rows.pairs().len(), rows.index.len()), (ROWS - 1, ROWS - 1));
        assert_eq!(Rows::OTHERS as usize, ROWS - 1);
    }
}
