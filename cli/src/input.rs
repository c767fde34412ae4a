//! Reads the objects that a verb works on.

use std::io;
use std::path::PathBuf;

use anyhow::bail;
use maitred::api::{Objects, builtin};
use maitred::error::{Fault, FaultKind};
use maitred::policy::Policy;
use maitred_manifest::{Content, Entry, Manifest, Strictness, Unreadable, objects};

use crate::output::{BAD, DOUBTFUL};

/// Where objects come from, for verbs that work without, too.
#[derive(Debug, clap::Args)]
pub struct ObjectFiles {
    /// Files with FlowSchemas and PriorityLevelConfigurations. Without any, those of a fresh server.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The same, for those who like it named.
    #[arg(long = "objects", value_name = "FILE", num_args = 1..)]
    named: Vec<PathBuf>,
    /// Add the suggested objects of a fresh server where the files have none of the same name.
    #[arg(long)]
    suggested: bool,
}

impl ObjectFiles {
    /// The objects, without a fault.
    ///
    /// # Errors
    /// Prints every fault and says that there were some.
    pub fn load(&self) -> anyhow::Result<Objects> {
        let files: Vec<_> = self.files.iter().chain(&self.named).collect();
        let mut set = if files.is_empty() { Objects::default() } else { load(&files)? };
        if self.suggested || files.is_empty() {
            add_missing(&mut set, builtin::mandatory());
            add_missing(&mut set, builtin::suggested());
        }
        Ok(set)
    }
}

/// Adds those of `more` that `set` has no object of the same kind and name for.
pub fn add_missing(set: &mut Objects, more: Objects) {
    for schema in more.flow_schemas {
        if set.flow_schemas.iter().all(|known| known.metadata.name != schema.metadata.name) {
            set.flow_schemas.push(schema);
        }
    }
    for level in more.priority_levels {
        if set.priority_levels.iter().all(|known| known.metadata.name != level.metadata.name) {
            set.priority_levels.push(level);
        }
    }
}

/// Every object in `files`, and what could not be read.
pub fn entries(
    files: &[impl AsRef<std::path::Path>],
    strictness: Strictness,
) -> (Vec<Entry>, Vec<Unreadable>) {
    Manifest::read(files, &mut io::stdin().lock()).into_entries(strictness)
}

/// The objects in `files`, all of which must be free of faults.
///
/// # Errors
/// Prints every fault and says that there were some.
pub fn load(files: &[impl AsRef<std::path::Path>]) -> anyhow::Result<Objects> {
    let (entries, unreadable) = entries(files, Strictness::Warn);
    tell_unreadable(&unreadable);
    if !unreadable.is_empty() {
        bail!("some input could not be read");
    }
    let foreign = entries.iter().filter(|entry| matches!(entry.content, Content::Foreign { .. })).count();
    if foreign > 0 {
        anstream::eprintln!("{DOUBTFUL}note:{DOUBTFUL:#} {foreign} objects of other kinds are left out");
    }
    objects(&entries).or_else(|faults| refuse(&faults))
}

/// Compiles a set of objects.
///
/// # Errors
/// Prints every fault and says that there were some.
pub fn compile(set: &Objects, server_concurrency: u32) -> anyhow::Result<Policy> {
    Policy::compile(set, server_concurrency).or_else(|faults| refuse(&faults))
}

/// Prints faults and says that there were some.
pub fn refuse<T>(faults: &[Fault]) -> anyhow::Result<T> {
    faults.iter().for_each(|fault| anstream::eprintln!("{}", fault_line(fault)));
    let count = faults.len();
    bail!("{count} fault{} in the objects: nothing was done", if count == 1 { "" } else { "s" })
}

/// Prints what could not be read.
pub fn tell_unreadable(unreadable: &[Unreadable]) {
    for Unreadable { file, message } in unreadable {
        anstream::eprintln!("{BAD}error:{BAD:#} {file}: {message}");
    }
}

/// A fault in one line: place, object, field and what is wrong with it.
pub fn fault_line(fault: &Fault) -> String {
    marked(fault, "error", BAD, &with_advice(fault, fault.to_string()))
}

/// What is wrong, without the place and the field.
pub fn fault_message(fault: &Fault) -> String {
    with_advice(fault, fault.message())
}

/// Says what is allowed where the server only says that something is not.
fn with_advice(fault: &Fault, text: String) -> String {
    if !fault.detail.is_empty() {
        return text;
    }
    let field = fault.path.rsplit_once('.').map_or(fault.path.as_str(), |(_, field)| field);
    let advice = match (fault.kind, field) {
        (FaultKind::Forbidden, "queuing") => "only a limitResponse of type \"Queue\" may have it",
        (FaultKind::Required, "queuing") => "a limitResponse of type \"Queue\" needs it",
        (FaultKind::Forbidden, "limited") => "only a level of type \"Limited\" may have it",
        (FaultKind::Required, "limited") => "a level of type \"Limited\" needs it",
        (FaultKind::Forbidden, "exempt") => "only a level of type \"Exempt\" may have it",
        (FaultKind::Required, "exempt") => "a level of type \"Exempt\" needs it",
        (FaultKind::Required, "type") if fault.path.ends_with("limitResponse.type") => {
            "\"Queue\" or \"Reject\""
        }
        (FaultKind::Required, "type") if fault.path == "spec.type" => "\"Limited\" or \"Exempt\"",
        (FaultKind::Required, "type") if fault.path.contains("istinguisher") => {
            "\"ByUser\" or \"ByNamespace\""
        }
        (FaultKind::Required, _) => "must not be empty",
        _ => return text,
    };
    format!("{text}: {advice}")
}

/// A doubt in one line: place, object, field and what is doubtful about it.
pub fn warning_line(fault: &Fault) -> String {
    let text = match fault.kind {
        FaultKind::UnknownField => fault.to_string(),
        _ if fault.path.is_empty() => warning_message(fault),
        _ => format!("{}: {}", fault.path, warning_message(fault)),
    };
    marked(fault, "warning", DOUBTFUL, &text)
}

/// What is doubtful, without the words that a server begins with when it refuses.
pub fn warning_message(fault: &Fault) -> String {
    match (&fault.value, fault.detail.as_str()) {
        (_, "") => fault.message(),
        _ if fault.kind == FaultKind::UnknownField => fault.message(),
        (Some(value), detail) => format!("{value}: {detail}"),
        (None, detail) => detail.to_owned(),
    }
}

fn marked(fault: &Fault, weight: &str, style: anstyle::Style, text: &str) -> String {
    let place = fault.at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default();
    let object = match &fault.object {
        Some(object) if !object.kind.is_empty() => format!("{object}: "),
        _ => String::new(),
    };
    format!("{place}{style}{weight}:{style:#} {object}{text}")
}
