//! The report of a simulation for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::report::{Figures, FlowReport, LevelReport, Report};
use crate::output::{short_span, table, write_table};

/// Writes the report.
pub fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    if !report.description.is_empty() {
        writeln!(out, "{}\n", report.description)?;
    }
    let settings = &report.settings;
    writeln!(
        out,
        "{} simulated with seed {}, {} seats, {} rules\n",
        short_span(settings.duration_seconds),
        settings.seed,
        settings.server_concurrency,
        match settings.fidelity {
            crate::fidelity::FidelityArg::Kubernetes => "kubernetes",
            crate::fidelity::FidelityArg::Corrected => "corrected",
        },
    )?;
    flows(out, &report.per_flow)?;
    writeln!(out)?;
    levels(out, &report.per_level)
}

fn flows(out: &mut dyn Write, flows: &[FlowReport]) -> io::Result<()> {
    let mut table = table(&[
        "FLOW",
        "LEVEL",
        ">OFFERED",
        ">RAN",
        ">REJECTED",
        ">WAIT MEAN",
        ">P50",
        ">P90",
        ">P99",
        ">MAX",
        ">A SECOND",
        ">SEAT SECONDS",
        ">OF FAIR",
        "WHY REJECTED",
    ]);
    for flow in flows {
        let mut name = flow.flow.clone();
        if flow.count > 1 {
            name = format!("{name} x{}", flow.count);
        }
        let mut row = vec![name, flow.priority_level.clone()];
        row.extend(counts(&flow.figures));
        row.extend(waits(&flow.figures));
        row.extend([
            format!("{:.1}", flow.figures.throughput_per_second),
            format!("{:.1}", flow.figures.seat_seconds),
            flow.share_of_fair.map_or_else(String::new, percent),
            reasons(&flow.figures.rejected),
        ]);
        table.add_row(row);
    }
    write_table(out, &table)
}

fn levels(out: &mut dyn Write, levels: &[LevelReport]) -> io::Result<()> {
    let mut table = table(&[
        "LEVEL",
        ">NOMINAL",
        ">SEATS",
        ">AT END",
        ">USED",
        ">OFFERED",
        ">RAN",
        ">REJECTED",
        ">WAIT MEAN",
        ">P50",
        ">P90",
        ">P99",
        ">MAX",
        ">A SECOND",
    ]);
    for level in levels {
        let mut row = vec![level.priority_level.clone()];
        row.extend(match &level.seats {
            Some(seats) => [
                seats.nominal.to_string(),
                if seats.least == seats.greatest {
                    seats.least.to_string()
                } else {
                    format!("{}-{}", seats.least, seats.greatest)
                },
                seats.at_end.to_string(),
                seats.utilisation.map_or_else(String::new, percent),
            ],
            None => ["", "any", "", ""].map(str::to_owned),
        });
        row.extend(counts(&level.figures));
        row.extend(waits(&level.figures));
        row.push(format!("{:.1}", level.figures.throughput_per_second));
        table.add_row(row);
    }
    write_table(out, &table)
}

fn counts(figures: &Figures) -> [String; 3] {
    let rejected = figures.rejected.values().sum();
    [figures.offered, figures.dispatched, rejected].map(|count: u64| count.to_string())
}

fn waits(figures: &Figures) -> [String; 5] {
    if figures.dispatched == 0 {
        return std::array::from_fn(|_| String::new());
    }
    let wait = &figures.wait;
    [wait.mean, wait.p50, wait.p90, wait.p99, wait.max].map(short_span)
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn reasons(rejected: &BTreeMap<&'static str, u64>) -> String {
    rejected.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}
