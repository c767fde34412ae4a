//! `maitred validate`: every fault and every doubt about objects in files.

use std::path::PathBuf;

use maitred::error::Fault;
use maitred_manifest::{Content, Entry, Strictness, Unreadable};
use serde::Serialize;

use crate::Verdict;
use crate::input::{entries, fault_line, fault_message, tell_unreadable, warning_line, warning_message};
use crate::lint;
use crate::output::{BAD, GOOD, Printer};

/// Checks objects in files as a server would, and tells what is legal but surely not meant.
///
/// Exits 1 when an object has a fault, 2 when a file cannot be read.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files, directories, or `-`.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Make faults of unknown fields, of keys given twice and of values that YAML reads in surprising ways.
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    objects: Vec<Object<'a>>,
    /// Objects of other APIs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped<'a>>,
    /// Files that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<UnreadableFile<'a>>,
}

#[derive(Debug, Serialize)]
struct Object<'a> {
    file: &'a str,
    document: usize,
    kind: &'a str,
    name: &'a str,
    accepted: bool,
    faults: Vec<Finding<'a>>,
    warnings: Vec<Finding<'a>>,
}

#[derive(Debug, Serialize)]
struct Finding<'a> {
    path: &'a str,
    reason: &'static str,
    message: String,
    line: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Skipped<'a> {
    file: &'a str,
    document: usize,
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
}

#[derive(Debug, Serialize)]
struct UnreadableFile<'a> {
    file: &'a str,
    message: &'a str,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Warn };
    let (mut entries, unreadable) = entries(&args.files, strictness);
    lint::add_warnings(&mut entries);
    tell_unreadable(&unreadable);
    printer.print(&report(&entries, &unreadable), |out| {
        for entry in &entries {
            if let Content::Foreign { api_version } = &entry.content {
                writeln!(
                    out,
                    "{}: note: {} is of {api_version}, none of ours: skipped",
                    entry.at, entry.object
                )?;
            }
            for (index, fault) in entry.faults.iter().enumerate() {
                // A server has two sets of checks, which say some things twice.
                let same = |other: &Fault| {
                    (&other.path, other.kind, &other.value) == (&fault.path, fault.kind, &fault.value)
                };
                if entry.faults[..index].iter().any(same) {
                    continue;
                }
                writeln!(out, "{}", fault_line(fault))?;
            }
            for warning in &entry.warnings {
                writeln!(out, "{}", warning_line(warning))?;
            }
        }
        let ours = entries.iter().filter(|entry| !matches!(entry.content, Content::Foreign { .. }));
        let accepted = entries.iter().filter(|entry| entry.accepted()).count();
        let refused = ours.count() - accepted;
        let warnings: usize = entries.iter().map(|entry| entry.warnings.len()).sum();
        let style = if refused > 0 { BAD } else { GOOD };
        let s = if warnings == 1 { "" } else { "s" };
        writeln!(out, "{style}{accepted} accepted, {refused} refused, {warnings} warning{s}{style:#}")
    })?;
    Ok(if !unreadable.is_empty() {
        Verdict::Unreadable
    } else if entries.iter().any(|entry| !entry.faults.is_empty()) {
        Verdict::Findings
    } else {
        Verdict::Fine
    })
}

fn report<'a>(entries: &'a [Entry], unreadable: &'a [Unreadable]) -> Report<'a> {
    let mut report = Report { objects: Vec::new(), skipped: Vec::new(), unreadable: Vec::new() };
    for entry in entries {
        let (file, document) = (entry.at.file.as_deref().unwrap_or("-"), entry.at.document);
        let (kind, name) = (entry.object.kind.as_str(), entry.object.name.as_str());
        if let Content::Foreign { api_version } = &entry.content {
            report.skipped.push(Skipped { file, document, api_version, kind, name });
            continue;
        }
        report.objects.push(Object {
            file,
            document,
            kind,
            name,
            accepted: entry.accepted(),
            faults: entry.faults.iter().map(|fault| finding(fault, fault_message(fault))).collect(),
            warnings: entry.warnings.iter().map(|fault| finding(fault, warning_message(fault))).collect(),
        });
    }
    let file = |Unreadable { file, message }: &'a Unreadable| UnreadableFile { file, message };
    report.unreadable = unreadable.iter().map(file).collect();
    report
}

fn finding(fault: &Fault, message: String) -> Finding<'_> {
    Finding {
        path: &fault.path,
        reason: fault.kind.reason(),
        message,
        line: fault.at.as_ref().map(|at| at.line).filter(|line| *line > 0),
    }
}
