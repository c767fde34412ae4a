//! The report of a replay for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use maitred_replay::report::{Against, Figures, LevelReport, Report, SchemaReport};

use crate::output::{DOUBTFUL, short_span as seconds, table, write_table};

/// Writes the report.
pub fn write(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    log(out, report)?;
    writeln!(out)?;
    levels(out, &report.per_level)?;
    writeln!(out)?;
    schemas(out, &report.per_schema)?;
    writeln!(out)?;
    flows(out, report)?;
    writeln!(out)?;
    recorded(out, report)?;
    match &report.against {
        Some(against) => {
            writeln!(out)?;
            self::against(out, report, against)
        }
        None => Ok(()),
    }
}

fn log(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let log = &report.log;
    let span = log.from.as_deref().zip(log.to.as_deref()).map(|(from, to)| format!(", {from} to {to}"));
    writeln!(out, "{} events, {} requests{}", log.events, log.requests, span.unwrap_or_default())?;
    let asides = [
        (log.unauthenticated, "requests of unknown users (401), which flow control never saw"),
        (log.long_running, "long-running requests, which flow control lets pass"),
        (log.impersonation_refused, "requests refused because their user may not impersonate"),
        (log.open_watches, "watches that the log leaves open, not counted"),
        (log.watches_without_start, "watches of which the log does not tell when they had started"),
        (log.panicked, "requests that the server gave up (Panic)"),
        (log.late, "late requests, met beyond the horizon; played at their time all the same"),
    ];
    for (count, what) in asides.iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count} {what}")?;
    }
    if log.bad_lines > 0 {
        writeln!(out, "{DOUBTFUL}{} bad lines{DOUBTFUL:#}, left out", log.bad_lines)?;
    }
    if let Some(cut_short) = &log.cut_short {
        writeln!(out, "{DOUBTFUL}the log could not be read to its end:{DOUBTFUL:#} {cut_short}")?;
    }
    let settings = &report.settings;
    let from_log = if settings.first_adjustment_from_log { ", found from the log" } else { "" };
    writeln!(
        out,
        "played with {} seats, {} rules, speed {}, first adjustment of limits after {}{from_log}",
        settings.server_concurrency,
        settings.fidelity,
        settings.speed,
        seconds(settings.first_adjustment_seconds),
    )
}

fn levels(out: &mut dyn Write, levels: &[LevelReport]) -> io::Result<()> {
    let mut table = table(&[
        "LEVEL",
        ">SEATS",
        ">NOMINAL",
        ">REQUESTS",
        ">RAN",
        ">REJECTED",
        ">WAIT P50",
        ">P90",
        ">P99",
        ">MAX",
        ">USED",
    ]);
    for level in levels {
        let figures = &level.figures;
        let seats = level.seats.map_or("any".into(), |seats| match (seats.least, seats.greatest) {
            (least, greatest) if least == greatest => least.to_string(),
            (least, greatest) => format!("{least}-{greatest}"),
        });
        let used = level.seats.and_then(|seats| seats.utilisation);
        let mut row = vec![
            level.priority_level.clone(),
            seats,
            level.seats.map_or_else(String::new, |seats| seats.nominal.to_string()),
        ];
        row.extend(counts(figures));
        row.extend(waits(figures));
        row.push(used.map_or_else(String::new, |used| format!("{:.0}%", used * 100.0)));
        table.add_row(row);
    }
    write_table(out, &table)
}

fn schemas(out: &mut dyn Write, schemas: &[SchemaReport]) -> io::Result<()> {
    let mut table = table(&[
        "LEVEL",
        "SCHEMA",
        ">REQUESTS",
        ">RAN",
        ">REJECTED",
        ">WAIT P50",
        ">P90",
        ">P99",
        ">MAX",
        "WHY",
    ]);
    for schema in schemas {
        let figures = &schema.figures;
        let mut row = vec![schema.priority_level.clone(), schema.flow_schema.clone()];
        row.extend(counts(figures));
        row.extend(waits(figures));
        row.push(reasons(&figures.rejected));
        table.add_row(row);
    }
    write_table(out, &table)
}

fn flows(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut table =
        table(&["SCHEMA", "FLOW", ">REQUESTS", ">RAN", ">REJECTED", ">MEAN WAIT", ">MAX", ">SEAT SECONDS"]);
    for flow in &report.top_flows {
        let mean = flow.wait_seconds / flow.dispatched.max(1) as f64;
        table.add_row([
            flow.flow_schema.clone(),
            flow.flow.clone(),
            flow.requests_in_log.to_string(),
            flow.dispatched.to_string(),
            flow.rejected.values().sum::<u64>().to_string(),
            seconds(mean),
            seconds(flow.max_wait_seconds),
            format!("{:.1}", flow.seat_seconds),
        ]);
    }
    write_table(out, &table)?;
    if report.top_flows_missed_at_most > 0 {
        writeln!(
            out,
            "A flow that is not listed has at most {} requests, or fewer than the last.",
            report.top_flows_missed_at_most
        )?;
    }
    Ok(())
}

/// What the log tells, beside what the engine predicts.
fn recorded(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let mut table = table(&[
        "SCHEMA",
        ">429 LOGGED",
        ">REJECTED NOW",
        ">WAITS LOGGED",
        ">THEIR SUM",
        ">ALL WAITS, ESTIMATED",
        ">WAITS NOW",
    ]);
    let told = |figures: &Figures| {
        figures.recorded_429 + figures.recorded_waits > 0
            || !figures.rejected.is_empty()
            || figures.wait_seconds >= 0.001
            || figures.estimated_wait_seconds >= 0.001
    };
    let row = |name: &str, figures: &Figures| {
        [
            name.to_owned(),
            figures.recorded_429.to_string(),
            rejected(figures).to_string(),
            figures.recorded_waits.to_string(),
            seconds(figures.recorded_wait_seconds),
            seconds(figures.estimated_wait_seconds),
            seconds(figures.wait_seconds),
        ]
    };
    for schema in report.per_schema.iter().filter(|schema| told(&schema.figures)) {
        table.add_row(row(&schema.flow_schema, &schema.figures));
    }
    table.add_row(row("all", &report.total));
    write_table(out, &table)
}

fn against(out: &mut dyn Write, report: &Report, against: &Against) -> io::Result<()> {
    writeln!(
        out,
        "Against the other objects, with {} seats: {} rejected then, {} now; waits of {} in sum then, {} now.",
        against.server_concurrency,
        rejected(&against.total),
        rejected(&report.total),
        seconds(against.total.wait_seconds),
        seconds(report.total.wait_seconds),
    )?;
    let mut table = table(&[
        "LEVEL",
        ">REQUESTS THEN",
        ">NOW",
        ">REJECTED THEN",
        ">NOW",
        ">P99 WAIT THEN",
        ">NOW",
        ">MAX THEN",
        ">NOW",
    ]);
    let mut rows: BTreeMap<&str, [Option<&Figures>; 2]> = BTreeMap::new();
    for level in &against.per_level {
        rows.entry(&level.priority_level).or_default()[0] = Some(&level.figures);
    }
    for level in &report.per_level {
        rows.entry(&level.priority_level).or_default()[1] = Some(&level.figures);
    }
    for (name, figures) in rows {
        let pairs = [
            figures.map(|figures| figures.map_or("-".into(), |figures| figures.requests_in_log.to_string())),
            figures.map(|figures| figures.map_or("-".into(), |figures| rejected(figures).to_string())),
            figures.map(|figures| figures.map_or("-".into(), |figures| seconds(figures.wait.p99))),
            figures.map(|figures| figures.map_or("-".into(), |figures| seconds(figures.wait.max))),
        ];
        table.add_row([name.to_owned()].into_iter().chain(pairs.into_iter().flatten()));
    }
    write_table(out, &table)?;
    for moved in &against.moved {
        writeln!(
            out,
            "{} requests go from {} ({}) to {} ({})",
            moved.requests,
            moved.from.flow_schema,
            moved.from.priority_level,
            moved.to.flow_schema,
            moved.to.priority_level,
        )?;
    }
    Ok(())
}

fn counts(figures: &Figures) -> [String; 3] {
    [figures.requests_in_log, figures.dispatched, rejected(figures)].map(|count| count.to_string())
}

fn waits(figures: &Figures) -> [String; 4] {
    let wait = &figures.wait;
    if figures.dispatched == 0 {
        return std::array::from_fn(|_| String::new());
    }
    [wait.p50, wait.p90, wait.p99, wait.max].map(seconds)
}

fn rejected(figures: &Figures) -> u64 {
    figures.rejected.values().sum()
}

fn reasons(rejected: &BTreeMap<&'static str, u64>) -> String {
    rejected.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
}
