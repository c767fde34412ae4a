//! `maitred convert`: the same objects in another version of the API.

use std::path::PathBuf;

use clap::ValueEnum;
use maitred::api::{Version, convert, encode};
use serde_json::{Value, json};

use crate::Verdict;
use crate::input::{load, warning_line};
use crate::output::{Format, Printer};

/// Rewrites objects in another version of the API, with defaults filled in.
///
/// Prints YAML that kubectl reads, or a List in JSON. What the version cannot say is told on standard error, and the exit
/// code is 1 then.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files, directories, or `-`.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The version wanted.
    #[arg(long, value_enum)]
    to: To,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum To {
    /// Kubernetes 1.29 and later.
    V1,
    /// Kubernetes 1.26 to 1.31.
    V1beta3,
    /// Kubernetes 1.23 to 1.28.
    V1beta2,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let version = match args.to {
        To::V1 => Version::V1,
        To::V1beta3 => Version::V1Beta3,
        To::V1beta2 => Version::V1Beta2,
    };
    let objects: Vec<_> = load(&args.files)?.into_iter().collect();
    let losses: Vec<_> = objects.iter().filter_map(|object| convert::loss(object, version)).collect();
    for loss in &losses {
        anstream::eprintln!("{}", warning_line(loss));
    }
    let items: Vec<Value> = objects.iter().map(|object| encode(object, version)).collect();
    match printer.format() {
        Format::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
            printer.print(&list, |_| Ok(()))?;
        }
        Format::Table | Format::Yaml => {
            let documents: Vec<_> = items.iter().map(maitred_manifest::to_yaml).collect();
            printer.raw(documents.join("---\n").as_bytes())?;
        }
    }
    Ok(if losses.is_empty() { Verdict::Fine } else { Verdict::Findings })
}
