//! From the lines of a log to the requests that ended in it.
//!
//! Events of one request carry one `auditID` and one time of arrival. The event that ends a request tells nearly
//! everything; only for watches an earlier one is needed, the one that says when the initial events had been sent.

use std::fmt;
use std::io;

use maitred::estimate::{WatchGuard, WatchTracker};

use crate::attributes::Attributes;
use crate::event::{Event, Stage};
use crate::lines::{LONGEST_LINE, Lines, Next};
use crate::moment;
use crate::recent::Recent;

/// Bad lines that are shown; the others are only counted.
const SHOWN: usize = 5;

/// How a log is read.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Stop at the first line that makes no sense.
    pub strict: bool,
    /// An event that comes later than this after the arrival of a request that began later counts as late.
    pub horizon_ns: u64,
    /// Watches that may be open at once; beyond that the longest open ones are taken as if their start were unknown.
    pub open_watches: usize,
}

impl Default for Reading {
    /// Not strict; a horizon of 65 s, the longest that a request may take (60 s) and some; a million open watches.
    fn default() -> Self {
        Self { strict: false, horizon_ns: 65_000_000_000, open_watches: 1 << 20 }
    }
}

/// A request that ended in the log and came to flow control.
#[derive(Debug)]
pub struct Ended<'a> {
    /// Who asked for what.
    pub attributes: Attributes<'a>,
    /// When it came, in nanoseconds since 1970.
    pub received: i64,
    /// Nanoseconds from there until it gave its seats back; for a watch, until its initial events had been sent, and
    /// `None` where the log does not tell that.
    pub total_ns: Option<u64>,
    /// Nanoseconds in the queue, where the log tells them.
    pub told_wait_ns: Option<u64>,
    /// Whether flow control refused it.
    pub refused: bool,
    /// Watches that hear of the change that it makes, so far as the log tells when watches started.
    pub watches: u64,
    /// The query of its URI, without the `?`.
    pub query: &'a str,
}

/// A line that made no sense.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BadLine {
    /// The file that it is in.
    pub file: String,
    /// Its number there, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file, self.line, self.why)
    }
}

/// What was met on the way. Each request that ended is in exactly one of `requests`, `passed_by` and `unauthenticated`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Lines, empty ones too.
    pub lines: u64,
    /// Events.
    pub events: u64,
    /// Requests that ended and came to flow control.
    pub requests: u64,
    /// Those of them that the server gave up (stage Panic).
    pub panicked: u64,
    /// Those of them that came more than the horizon before one that was met earlier.
    pub late: u64,
    /// Those of them that are watches whose start the log does not tell.
    pub watches_without_start: u64,
    /// Requests whose user is unknown (401).
    pub unauthenticated: u64,
    /// Long-running requests other than watches.
    pub passed_by: u64,
    /// Requests refused before flow control because their user may not impersonate.
    pub impersonation_refused: u64,
    /// Watches that the log leaves open.
    pub open_watches: u64,
    /// Lines that made no sense.
    pub bad: u64,
    /// The first of them.
    pub bad_lines: Vec<BadLine>,
    /// Why the log could not be read to its end.
    pub cut_short: Option<String>,
    /// Earliest and latest time of any event, in nanoseconds since 1970.
    pub span: Option<(i64, i64)>,
}

/// Why a log was not read to its end.
#[derive(Debug)]
pub enum LogError {
    /// With [`Reading::strict`]: a line made no sense.
    BadLine(BadLine),
    /// With [`Reading::strict`]: a file could not be read or unpacked after so many lines.
    Io(String, u64, io::Error),
    /// The receiver of the requests failed.
    Receiver(io::Error),
}

impl fmt::Display for LogError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadLine(bad) => bad.fmt(formatter),
            Self::Io(file, lines, error) => write!(formatter, "{file}: after line {lines}: {error}"),
            Self::Receiver(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for LogError {}

/// A log being read, of one file or several that follow each other.
pub struct Log {
    pairing: Pairing,
    strict: bool,
    line: Vec<u8>,
}

impl Log {
    /// A log of which nothing has been read.
    pub fn new(reading: &Reading) -> Self {
        Self { pairing: Pairing::new(reading), strict: reading.strict, line: Vec::new() }
    }

    /// Reads the lines of `file` to their end and hands each request that ended to `receive`, in the order of the log;
    /// `progress` is called now and then with the number of events so far.
    ///
    /// # Errors
    /// When `receive` fails; with [`Reading::strict`] also at the first line that makes no sense and when the source
    /// cannot be read further. Otherwise these are counted, and what was read stands.
    pub fn read(
        &mut self,
        file: &str,
        lines: &mut Lines,
        mut receive: impl FnMut(&Ended<'_>) -> io::Result<()>,
        mut progress: impl FnMut(u64),
    ) -> Result<(), LogError> {
        let seen_before = self.pairing.seen.lines;
        loop {
            let next = lines.next(&mut self.line);
            let seen = &mut self.pairing.seen;
            let number = seen.lines - seen_before;
            let taken = match next {
                Ok(Next::End) => return Ok(()),
                Err(error) if self.strict => return Err(LogError::Io(file.into(), number, error)),
                Err(error) => {
                    let after = format!("{file}: after line {number}: {error}");
                    seen.cut_short.get_or_insert(after);
                    return Ok(());
                }
                Ok(Next::TooLong) => Err(format!("is longer than {LONGEST_LINE} bytes")),
                Ok(Next::Line) if self.line.iter().all(u8::is_ascii_whitespace) => Ok(Ok(())),
                Ok(Next::Line) => parse(&self.line).and_then(|event| self.pairing.take(&event, &mut receive)),
            };
            let seen = &mut self.pairing.seen;
            seen.lines += 1;
            if seen.lines.is_multiple_of(1 << 12) {
                progress(seen.events);
            }
            let why = match taken {
                Ok(received) => {
                    received.map_err(LogError::Receiver)?;
                    continue;
                }
                Err(why) => why,
            };
            let bad = BadLine { file: file.into(), line: number + 1, why };
            if self.strict {
                return Err(LogError::BadLine(bad));
            }
            seen.bad += 1;
            if seen.bad_lines.len() < SHOWN {
                seen.bad_lines.push(bad);
            }
        }
    }

    /// Ends the reading.
    pub fn finish(self) -> Seen {
        let mut seen = self.pairing.seen;
        seen.open_watches = self.pairing.watches.left();
        seen
    }
}

fn parse(line: &[u8]) -> Result<Event<'_>, String> {
    let event: Event<'_> = serde_json::from_slice(line).map_err(|error| {
        // serde_json counts the lines of its input, which is one: the column is what helps.
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(&*text, |(what, _)| what);
        format!("column {}: {what}", error.column())
    })?;
    match &*event.kind {
        "Event" => Ok(event),
        "EventList" => Err("is a list of events; a log has one event a line".into()),
        "" => Err("has no kind; an audit.k8s.io/v1 Event was expected".into()),
        other => Err(format!("is of kind {other:?}; an audit.k8s.io/v1 Event was expected")),
    }
}

struct Pairing {
    horizon_ns: i64,
    /// When the initial events of an open watch had been sent; and its place among those that hear of changes.
    watches: Recent<(i64, Option<WatchGuard>)>,
    tracker: WatchTracker,
    /// Requests that were counted at an event after which ResponseComplete may still come.
    ended: Recent<()>,
    newest_arrival: i64,
    seen: Seen,
}

impl Pairing {
    fn new(reading: &Reading) -> Self {
        Self {
            horizon_ns: i64::try_from(reading.horizon_ns).unwrap_or(i64::MAX),
            watches: Recent::new(reading.open_watches),
            tracker: WatchTracker::new(),
            ended: Recent::new(1 << 12),
            newest_arrival: i64::MIN,
            seen: Seen::default(),
        }
    }

    /// Takes one event; the outer error says why it makes no sense.
    fn take(
        &mut self,
        event: &Event<'_>,
        receive: &mut impl FnMut(&Ended<'_>) -> io::Result<()>,
    ) -> Result<io::Result<()>, String> {
        let stage = event.stage.ok_or("has no stage")?;
        if event.audit_id.is_empty() {
            return Err("has no auditID".into());
        }
        let received = time(event.request_received_timestamp.as_deref(), "requestReceivedTimestamp")?;
        let at = time(event.stage_timestamp.as_deref(), "stageTimestamp")?;
        let span = self.seen.span.get_or_insert((at, at));
        *span = (span.0.min(at), span.1.max(at));
        self.seen.events += 1;

        let key = (&*event.audit_id, received);
        let Some(attributes) = Attributes::of(event) else {
            if stage != Stage::RequestReceived && self.ended.take(key).is_none() {
                self.seen.unauthenticated += 1;
                if stage == Stage::ResponseStarted {
                    self.ended.put(key, ());
                }
            }
            return Ok(Ok(()));
        };
        match stage {
            Stage::RequestReceived => Ok(Ok(())),
            Stage::ResponseStarted => {
                let refused = event.response_status.as_ref().is_some_and(|status| status.code != Some(200));
                if attributes.is_watch() {
                    let guard = attributes
                        .for_estimate()
                        .filter(|_| !refused)
                        .and_then(|request| self.tracker.register(&request, query(event).as_bytes()));
                    self.watches.put(key, (at, guard));
                }
                Ok(Ok(()))
            }
            Stage::ResponseComplete | Stage::Panic => {
                if stage == Stage::Panic {
                    self.ended.put(key, ());
                } else if self.ended.take(key).is_some() {
                    return Ok(Ok(()));
                }
                self.end(event, attributes, stage, received, at, receive)
            }
        }
    }

    fn end(
        &mut self,
        event: &Event<'_>,
        attributes: Attributes<'_>,
        stage: Stage,
        received: i64,
        at: i64,
        receive: &mut impl FnMut(&Ended<'_>) -> io::Result<()>,
    ) -> Result<io::Result<()>, String> {
        let status = event.response_status.as_ref();
        let code = status.and_then(|status| status.code);
        let message = status.and_then(|status| status.message.as_deref()).unwrap_or_default();
        if attributes.passes_by() {
            self.seen.passed_by += 1;
            return Ok(Ok(()));
        }
        if code == Some(403) && message.contains("cannot impersonate resource") {
            self.seen.impersonation_refused += 1;
            return Ok(Ok(()));
        }
        // Flow control answers with bare text; a 429 that tells why comes from further in (an eviction, say).
        let refused = code == Some(429) && message.is_empty();
        let told_wait_ns = event
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.queue_wait.as_deref())
            .and_then(moment::span);
        let mut until = Some(at);
        if attributes.is_watch() {
            let started = self.watches.take((&event.audit_id, received)).map(|(started, _)| started);
            until = started.or(refused.then_some(at));
            self.seen.watches_without_start += u64::from(until.is_none());
        } else if self.newest_arrival.saturating_sub(received) > self.horizon_ns {
            self.seen.late += 1;
        }
        self.newest_arrival = self.newest_arrival.max(received);
        self.seen.requests += 1;
        self.seen.panicked += u64::from(stage == Stage::Panic);
        let total_ns = until.map(|until| u64::try_from(until.saturating_sub(received)).unwrap_or(0));
        let watches = attributes.for_estimate().map_or(0, |request| self.tracker.count(&request));
        let query = query(event);
        Ok(receive(&Ended { attributes, received, total_ns, told_wait_ns, refused, watches, query }))
    }
}

/// The query of the request's URI, without the `?`.
fn query<'a>(event: &'a Event<'_>) -> &'a str {
    event.request_uri.split_once('?').map_or("", |(_, query)| query)
}

fn time(text: Option<&str>, field: &str) -> Result<i64, String> {
    let text = text.ok_or_else(|| format!("has no {field}"))?;
    moment::moment(text).ok_or_else(|| format!("{field} {text:?} is no RFC 3339 time"))
}

#[cfg(test)]
mod tests;
