//! The wait of each request of a log, by its place in the order of arrival.
//!
//! They lie in memory while they are few, else in a temporary file.

use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use tempfile::SpooledTempFile;

/// Bytes kept in memory.
const IN_MEMORY: usize = 64 << 20;
/// Stands for a wait that is not known.
const UNKNOWN: u64 = u64::MAX;

/// Waits in nanoseconds, from the first request on.
#[derive(Debug)]
pub struct Waits(SpooledTempFile);

impl Waits {
    /// Reads them from the first on; `None` is a wait that is not known.
    ///
    /// # Errors
    /// When the temporary file cannot be read; the function returned also when there are no more.
    pub fn read(&mut self) -> io::Result<impl FnMut() -> io::Result<Option<u64>>> {
        self.0.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(&mut self.0);
        Ok(move || {
            let mut bytes = [0; 8];
            reader.read_exact(&mut bytes)?;
            Ok(Some(u64::from_le_bytes(bytes)).filter(|wait_ns| *wait_ns != UNKNOWN))
        })
    }
}

/// Takes waits in the order in which they become known, and writes them in the order of arrival.
#[derive(Debug)]
pub struct WaitsWriter {
    file: BufWriter<SpooledTempFile>,
    /// Place of the first wait that is not written.
    first: u64,
    /// It and those after it, where they were noted.
    held: VecDeque<Option<u64>>,
}

impl Default for WaitsWriter {
    fn default() -> Self {
        Self { file: BufWriter::new(SpooledTempFile::new(IN_MEMORY)), first: 0, held: VecDeque::new() }
    }
}

impl WaitsWriter {
    /// Notes the wait of the request at `place`, or that it is not known. Once for each request, and none may be noted
    /// so late that those after it no longer fit into memory.
    ///
    /// # Errors
    /// When the temporary file cannot be made or written.
    pub fn set(&mut self, place: u64, wait_ns: Option<u64>) -> io::Result<()> {
        let offset = usize::try_from(place - self.first).map_err(io::Error::other)?;
        if offset >= self.held.len() {
            self.held.resize(offset + 1, None);
        }
        self.held[offset] = Some(wait_ns.unwrap_or(UNKNOWN));
        while let Some(&Some(wait_ns)) = self.held.front() {
            self.file.write_all(&wait_ns.to_le_bytes())?;
            self.held.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// Ends the writing; every wait must have been noted.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub fn finish(self) -> io::Result<Waits> {
        debug_assert!(self.held.is_empty(), "every wait has been noted");
        Ok(Waits(self.file.into_inner()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_in_the_order_of_arrival() {
        let mut writer = WaitsWriter::default();
        for (place, wait) in [(1, Some(10)), (3, None), (0, Some(0)), (2, Some(20))] {
            writer.set(place, wait).unwrap();
        }
        let mut waits = writer.finish().unwrap();
        for _ in 0..2 {
            let mut next = waits.read().unwrap();
            assert_eq!(
                [next().unwrap(), next().unwrap(), next().unwrap(), next().unwrap()],
                [Some(0), Some(10), Some(20), None]
            );
            assert!(next().is_err());
        }
    }
}
