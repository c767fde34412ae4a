//! Prints results: as tables for people, as JSON or YAML for programs.

use std::io::{self, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::Verdict;

/// What is wrong. Escape codes are dropped by the stream where they would not be understood.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is doubtful.
pub const DOUBTFUL: Style = AnsiColor::Yellow.on_default().bold();
/// What is fine.
pub const GOOD: Style = AnsiColor::Green.on_default();

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For programs, and for kubectl where objects are printed.
    Yaml,
}

/// Standard output in the format that was asked for. Colours only on a terminal, and not if `NO_COLOR` is set.
pub struct Printer {
    format: Format,
    out: AutoStream<io::StdoutLock<'static>>,
}

impl Printer {
    /// A printer to standard output.
    pub fn new(format: Format) -> Printer {
        Printer { format, out: anstream::stdout().lock() }
    }

    /// The format that was asked for.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Prints `value` as data, or what `table` writes for people.
    pub fn print<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        table: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Table => table(&mut self.out)?,
            Format::Json => {
                serde_json::to_writer_pretty(&mut self.out, value).map_err(io::Error::from)?;
                writeln!(self.out)?;
            }
            Format::Yaml => {
                let text = maitred_manifest::to_yaml(&serde_json::to_value(value)?);
                self.out.write_all(text.as_bytes())?;
            }
        }
        Ok(self.out.flush()?)
    }

    /// Prints bytes that have a format of their own.
    pub fn raw(&mut self, bytes: &[u8]) -> anyhow::Result<Verdict> {
        self.out.write_all(bytes)?;
        self.out.flush()?;
        Ok(Verdict::Fine)
    }
}

/// A table with these column titles. A title that begins with `>` stands over numbers, which are set to the right.
pub fn table(titles: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(titles.iter().map(|title| title.trim_start_matches('>')));
    for (index, column) in table.column_iter_mut().enumerate() {
        // Columns are separated by two blanks, and the first one begins at the edge.
        column.set_padding((0, 2));
        column.set_constraint(ColumnConstraint::ContentWidth);
        if titles[index].starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Writes a table without the blanks that fill its last column.
pub fn write_table(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// A span of time, given in seconds, to about three digits.
pub fn short_span(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        s if s < 0.001 => format!("{:.0}us", s * 1e6),
        s if s < 0.1 => format!("{:.1}ms", s * 1e3),
        s if s < 1.0 => format!("{:.0}ms", s * 1e3),
        s if s < 100.0 => format!("{s:.2}s"),
        s => format!("{s:.0}s"),
    }
}
