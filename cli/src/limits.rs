//! `maitred limits`: how the seats of a server are divided.

use maitred::borrow::{LevelLimits, LevelSpec, Limits};
use maitred::fidelity::Fidelity;
use serde::Serialize;

use crate::Verdict;
use crate::fidelity::FidelityArg;
use crate::input::ObjectFiles;
use crate::output::{DOUBTFUL, Printer, table, write_table};

/// Divides the seats of a server among its priority levels.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    objects: ObjectFiles,
    /// Seats of the whole server: --max-requests-inflight plus --max-mutating-requests-inflight.
    #[arg(long, value_name = "SEATS", value_parser = clap::value_parser!(u32).range(1..))]
    server_concurrency: u32,
    /// Whose rules decide where the reference implementation has a fault.
    #[arg(long, value_enum, default_value_t = FidelityArg::Kubernetes)]
    fidelity: FidelityArg,
}

#[derive(Debug, Serialize)]
struct Report {
    server_concurrency: u32,
    fidelity: FidelityArg,
    levels: Vec<Level>,
    nominal_sum: u64,
    current_sum: u64,
    /// Levels that are as if they were not there, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Level {
    priority_level: String,
    exempt: bool,
    shares: u32,
    nominal: u64,
    nominal_exact: f64,
    min: u64,
    max: u64,
    lendable_exact: f64,
    borrowing_exact: Option<f64>,
    /// Seats at rest, after the first adjustment.
    current: u64,
    current_exact: f64,
    /// Most seats that one request is estimated to need; absent where nothing queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_seats_of_a_request: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Refused {
    priority_level: String,
    reason: String,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let report = report(&args.objects.load()?.priority_levels, args.server_concurrency, args.fidelity);
    let verdict = if report.refused.is_empty() { Verdict::Fine } else { Verdict::Findings };
    printer.print(&report, |out| {
        let mut table = table(&["LEVEL", ">SHARES", ">NOMINAL", ">EXACT", ">MIN", ">MAX", ">AT REST", ">EXACT"]);
        for level in &report.levels {
            table.add_row([
                level.priority_level.clone(),
                level.shares.to_string(),
                level.nominal.to_string(),
                format!("{:.2}", level.nominal_exact),
                level.min.to_string(),
                level.max.to_string(),
                level.current.to_string(),
                format!("{:.2}", level.current_exact),
            ]);
        }
        write_table(out, &table)?;
        for Refused { priority_level, reason } in &report.refused {
            writeln!(out, "{DOUBTFUL}{priority_level} is left out:{DOUBTFUL:#} {reason}")?;
        }
        let (wanted, nominal, current) = (report.server_concurrency, report.nominal_sum, report.current_sum);
        writeln!(out, "\nNominal limits are rounded up, each by itself: {nominal} seats in sum, where the server has {wanted}.")?;
        writeln!(out, "At rest they come to {current}: what lies idle above the minimum is divided anew every ten seconds.")
    })?;
    Ok(verdict)
}

fn report(
    levels: &[maitred::api::v1::PriorityLevelConfiguration],
    seats: u32,
    fidelity: FidelityArg,
) -> Report {
    let mut refused = Vec::new();
    let mut specs = Vec::new();
    for level in levels {
        match LevelSpec::from_object(level) {
            Ok(spec) => specs.push(spec),
            Err(refusal) => refused
                .push(Refused { priority_level: level.metadata.name.clone(), reason: refusal.to_string() }),
        }
    }
    let (limits, digest, _) = Limits::at_rest(Fidelity::from(fidelity), seats, &specs);
    refused.extend(
        digest
            .refused
            .iter()
            .map(|(name, refusal)| Refused { priority_level: name.to_string(), reason: refusal.to_string() }),
    );
    let levels: Vec<_> = limits.levels().map(self::level).collect();
    Report {
        server_concurrency: seats,
        fidelity,
        nominal_sum: limits.nominal_sum(),
        current_sum: levels.iter().map(|level| level.current).sum(),
        levels,
        refused,
    }
}

fn level(level: &LevelLimits) -> Level {
    Level {
        priority_level: level.spec.name.to_string(),
        exempt: level.spec.exempt,
        shares: level.spec.shares,
        nominal: level.nominal,
        nominal_exact: level.exact.nominal,
        min: level.min,
        max: level.max,
        lendable_exact: level.exact.lendable,
        borrowing_exact: level.spec.borrowing_limit_percent.map(|_| level.exact.borrowing),
        current: level.current,
        current_exact: level.exact.current,
        max_seats_of_a_request: level.max_seats,
    }
}
