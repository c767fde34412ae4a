//! Keeps the requests of a log, whatever their number, and gives them back in the order of their arrival.
//!
//! A log is nearly sorted, but a watch may end hours after it came. So requests are sorted in runs of a fixed size,
//! which go to a temporary file once there is more than one, and each pass merges the runs. Nearly sorted runs hardly
//! overlap: a pass holds a buffer only for those that it is inside of.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::record::{Record, size};

/// Requests of a run: some 20 MB.
const RUN: usize = 1 << 18;
/// Bytes, about, that a run is read by.
const BLOCK: usize = 64 << 10;

/// The requests of a log while it is read.
#[derive(Debug)]
pub struct Spill {
    sets: usize,
    run: usize,
    open: Vec<Record>,
    file: Option<File>,
    runs: Vec<Run>,
    count: u64,
}

#[derive(Debug)]
struct Run {
    first: i64,
    start: u64,
    records: usize,
}

impl Spill {
    /// An empty one, for records with the classes of `sets` sets of objects.
    pub fn new(sets: usize) -> Self {
        Self::with_run(sets, RUN)
    }

    fn with_run(sets: usize, run: usize) -> Self {
        Self { sets, run, open: Vec::new(), file: None, runs: Vec::new(), count: 0 }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// When the temporary file cannot be made or written.
    pub fn push(&mut self, record: Record) -> io::Result<()> {
        if self.open.len() == self.run {
            self.close_run()?;
        }
        self.open.push(record);
        self.count += 1;
        Ok(())
    }

    /// Ends the adding.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub fn finish(mut self) -> io::Result<Sorted> {
        if !self.runs.is_empty() && !self.open.is_empty() {
            self.close_run()?;
        }
        self.open.sort_by_key(|record| record.received);
        Ok(Sorted { sets: self.sets, memory: self.open, file: self.file, runs: self.runs, count: self.count })
    }

    fn close_run(&mut self) -> io::Result<()> {
        // Stable, so that requests of one moment keep the order of the log.
        self.open.sort_by_key(|record| record.received);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let record_size = size(self.sets);
        let mut start = self.runs.last().map_or(0, |run| run.start + (run.records * record_size) as u64);
        self.runs.push(Run { first: self.open[0].received, start, records: self.open.len() });
        let mut bytes = Vec::with_capacity(BLOCK + record_size);
        for records in self.open.chunks(BLOCK / record_size) {
            bytes.clear();
            records.iter().for_each(|record| record.write(self.sets, &mut bytes));
            file.seek(SeekFrom::Start(start))?;
            file.write_all(&bytes)?;
            start += bytes.len() as u64;
        }
        self.open.clear();
        Ok(())
    }
}

/// All requests of a log, by arrival; those of one moment in the order of the log.
#[derive(Debug)]
pub struct Sorted {
    sets: usize,
    memory: Vec<Record>,
    file: Option<File>,
    runs: Vec<Run>,
    count: u64,
}

impl Sorted {
    /// Their number.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Reads them from the first on.
    pub fn pass(&mut self) -> Pass<'_> {
        let mut waiting: Vec<usize> = (0..self.runs.len()).collect();
        waiting.sort_by_key(|&run| self.runs[run].first);
        Pass {
            sorted: self,
            next_in_memory: 0,
            waiting: waiting.into(),
            heads: BinaryHeap::new(),
            open: Vec::new(),
        }
    }
}

/// One reading of all requests.
#[derive(Debug)]
pub struct Pass<'a> {
    sorted: &'a mut Sorted,
    next_in_memory: usize,
    /// Runs not begun, the one with the earliest request first.
    waiting: VecDeque<usize>,
    /// Of each run begun: the arrival of its next request, the run, its place in `open`.
    heads: BinaryHeap<Reverse<(i64, usize, usize)>>,
    open: Vec<Cursor>,
}

#[derive(Debug, Default)]
struct Cursor {
    read: usize,
    block: VecDeque<Record>,
}

impl Pass<'_> {
    /// The next request.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        if self.sorted.runs.is_empty() {
            let record = self.sorted.memory.get(self.next_in_memory).copied();
            self.next_in_memory += 1;
            return Ok(record);
        }
        while let Some(&run) = self.waiting.front() {
            let first = self.sorted.runs[run].first;
            // A tie is begun as well: the order of runs then decides.
            if self.heads.peek().is_some_and(|Reverse((head, ..))| *head < first) {
                break;
            }
            self.waiting.pop_front();
            self.heads.push(Reverse((first, run, self.open.len())));
            self.open.push(Cursor::default());
        }
        let Some(Reverse((_, run, place))) = self.heads.pop() else { return Ok(None) };
        if self.open[place].block.is_empty() {
            self.fill(run, place)?;
        }
        let record = self.open[place].block.pop_front();
        if self.open[place].block.is_empty() {
            self.fill(run, place)?;
        }
        match self.open[place].block.front() {
            Some(next) => self.heads.push(Reverse((next.received, run, place))),
            None => self.open[place].block = VecDeque::new(),
        }
        Ok(record)
    }

    fn fill(&mut self, run: usize, place: usize) -> io::Result<()> {
        let (cursor, run) = (&mut self.open[place], &self.sorted.runs[run]);
        let record_size = size(self.sorted.sets);
        let count = (run.records - cursor.read).min(BLOCK / record_size);
        if count == 0 {
            return Ok(());
        }
        let file = self.sorted.file.as_mut().expect("runs lie in a file");
        let mut bytes = vec![0; count * record_size];
        file.seek(SeekFrom::Start(run.start + (cursor.read * record_size) as u64))?;
        file.read_exact(&mut bytes)?;
        cursor
            .block
            .extend(bytes.chunks_exact(record_size).map(|bytes| Record::read(self.sorted.sets, bytes)));
        cursor.read += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(run: usize, arrivals: &[i64]) -> Vec<(i64, u32)> {
        let mut spill = Spill::with_run(1, run);
        for (kind, &received) in (0..).zip(arrivals) {
            spill.push(Record { received, kind, ..Record::default() }).unwrap();
        }
        let mut sorted = spill.finish().unwrap();
        let mut once = || {
            let (mut pass, mut found) = (sorted.pass(), Vec::new());
            while let Some(record) = pass.next().unwrap() {
                found.push((record.received, record.kind));
            }
            found
        };
        let found = once();
        assert_eq!(once(), found, "a second pass gives the same");
        found
    }

    #[test]
    fn requests_come_by_arrival_and_ties_in_the_order_of_the_log() {
        let mut state = 1_u64;
        let arrivals: Vec<i64> = (0..5000)
            .map(|n| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let jitter = (state >> 33) as i64 % 50;
                // Now and then one that came long before, as a watch does.
                if n % 97 == 0 { n / 10 } else { n + jitter }
            })
            .collect();
        let mut expected: Vec<(i64, u32)> = arrivals.iter().copied().zip(0..).collect();
        expected.sort();
        for run in [1, 7, 100, 4999, 5000, 5001, 100_000] {
            assert_eq!(sorted(run, &arrivals), expected, "runs of {run}");
        }
    }

    #[test]
    fn an_empty_log_has_no_requests() {
        assert_eq!(sorted(3, &[]), []);
    }
}
