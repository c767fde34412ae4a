//! The lines of a log: a file or standard input, plain or gzip, of any length, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A line longer than this is not read into memory. The largest request that an API server takes is a small part of it.
pub const LONGEST_LINE: usize = 64 << 20;

const BUFFER: usize = 256 << 10;

/// Bytes taken from the source so far, as they lie on the disk (packed, if they are).
#[derive(Debug, Clone, Default)]
pub struct Position(Arc<AtomicU64>);

impl Position {
    /// The bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct Counted<R> {
    inner: R,
    position: Position,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.position.0.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// What the next line is.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A line is in the buffer, without its end.
    Line,
    /// The line was longer than [`LONGEST_LINE`] and was passed over.
    TooLong,
    /// There is no more.
    End,
}

/// A source of lines.
pub struct Lines {
    source: Box<dyn BufRead>,
    position: Position,
    size: Option<u64>,
}

impl Lines {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::new(io::stdin());
        }
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory, not a log"));
        }
        let mut lines = Self::new(file)?;
        lines.size = meta.is_file().then_some(meta.len());
        Ok(lines)
    }

    /// The lines of `source`, unpacked when it begins as gzip does.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn new(source: impl Read + 'static) -> io::Result<Self> {
        let position = Position::default();
        let mut packed =
            BufReader::with_capacity(BUFFER, Counted { inner: source, position: position.clone() });
        let gzip = packed.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let source: Box<dyn BufRead> = if gzip {
            Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(packed)))
        } else {
            Box::new(packed)
        };
        Ok(Self { source, position, size: None })
    }

    /// How far the source has been read; may be watched from another thread.
    pub fn position(&self) -> Position {
        self.position.clone()
    }

    /// Bytes of the file; `None` where that cannot be known.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Reads one line into `line`, which it empties first.
    ///
    /// # Errors
    /// When the source cannot be read or unpacked; lines before that were whole.
    pub fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Next> {
        line.clear();
        let mut limited = self.source.by_ref().take(LONGEST_LINE as u64);
        if limited.read_until(b'\n', line)? == 0 {
            return Ok(Next::End);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(Next::Line);
        }
        if line.len() < LONGEST_LINE {
            return Ok(Next::Line);
        }
        self.source.skip_until(b'\n')?;
        Ok(Next::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(bytes: Vec<u8>) -> Vec<String> {
        let mut lines = Lines::new(io::Cursor::new(bytes)).unwrap();
        let (mut found, mut line) = (Vec::new(), Vec::new());
        while lines.next(&mut line).unwrap() == Next::Line {
            found.push(String::from_utf8(line.clone()).unwrap());
        }
        found
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(all(b"a\nb".to_vec()), ["a", "b"]);
        assert_eq!(all(Vec::new()), [""; 0]);
    }

    #[test]
    fn several_gzip_members_are_one_log() {
        let pack = |text: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(all([pack(b"a\nb\n"), pack(b"c\n")].concat()), ["a", "b", "c"]);
    }

    #[test]
    fn a_cut_gzip_gives_its_whole_lines_then_an_error() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder.write_all(b"first\nsecond\n").unwrap();
        let mut packed = encoder.finish().unwrap();
        packed.truncate(packed.len() - 12);
        let mut lines = Lines::new(io::Cursor::new(packed)).unwrap();
        let mut line = Vec::new();
        assert_eq!(lines.next(&mut line).unwrap(), Next::Line);
        assert_eq!(line, b"first");
        assert!(std::iter::repeat_with(|| lines.next(&mut line)).take(3).any(|next| next.is_err()));
    }
}
