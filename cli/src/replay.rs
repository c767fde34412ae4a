//! `maitred replay`: what objects would have done to the requests of an audit log.

mod table;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use maitred::api::{Objects, builtin};
use maitred::engine::ADJUSTMENT_PERIOD;
use maitred_replay::{Lines, Options, Plan, Position, Progress, Reading, Stored, replay};

use crate::Verdict;
use crate::fidelity::FidelityArg;
use crate::input;
use crate::output::{DOUBTFUL, Printer};
use crate::quantity::{Stock, parse_span, parse_speed};

/// Plays the requests of an audit log through objects, on simulated time.
///
/// Reads what an API server logged, plain or gzip, sorts each request to its schema and level as a server would, and
/// plays arrivals and running times through the engine: who would have run, waited, been turned away. Needs ResponseComplete
/// events; with ResponseStarted too it knows how long watches take to start.
///
/// How long a request ran is its time from arrival to end less its wait. Of the wait a log tells only where a request was
/// slow; the rest follows from when seats became free, given the objects that were in force. Those are taken to be the
/// ones of --against where it is given, else those of --objects. A request that was turned away when the log was made is
/// given the mean of those like it: same schema, verb and resource.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Audit logs, one event a line, in the order in which they were written; `-` is standard input.
    #[arg(value_name = "AUDIT-LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Files with FlowSchemas and PriorityLevelConfigurations. Without any, those of a fresh server.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    objects: Vec<PathBuf>,
    /// Add the suggested objects of a fresh server where the files have none of the same name.
    #[arg(long)]
    suggested: bool,
    /// Seats of the whole server: --max-requests-inflight plus --max-mutating-requests-inflight.
    #[arg(long, value_name = "SEATS", value_parser = clap::value_parser!(u32).range(1..))]
    server_concurrency: u32,
    /// Files with the objects that were in force when the log was made: tells what changes.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    against: Vec<PathBuf>,
    /// Seats of the server when the log was made, where they were others. Alone, it compares the same objects.
    #[arg(long, value_name = "SEATS", value_parser = clap::value_parser!(u32).range(1..))]
    against_server_concurrency: Option<u32>,
    /// Whose rules decide where the reference implementation has a fault.
    #[arg(long, value_enum, default_value_t = FidelityArg::Kubernetes)]
    fidelity: FidelityArg,
    /// Let the requests come so many times as fast as in the log.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    speed: f64,
    /// For how long a request may wait.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_span)]
    wait_limit: u64,
    /// When after the first request the server first adjusted its limits, as it does every ten seconds; without it, the
    /// moment that explains the log best.
    #[arg(long, value_name = "TIME", value_parser = parse_first_adjustment)]
    first_adjustment: Option<u64>,
    /// For how long a watch holds its seats where the log has no ResponseStarted event of it.
    #[arg(long, value_name = "TIME", default_value = "3ms", value_parser = parse_span)]
    watch_start: u64,
    /// Count a request as late if the log has it more than this after one that came later. It is played all the same.
    #[arg(long, value_name = "TIME", default_value = "65s", value_parser = parse_span)]
    horizon: u64,
    /// Objects stored of a resource, as in `pods=5000` or `deployments.apps=300x4096` (bytes of one, on average): makes
    /// its lists as wide as a server takes them for. Without it a list takes one seat.
    #[arg(long, value_name = "RESOURCE=COUNT", value_delimiter = ',')]
    stored: Vec<Stock>,
    /// Stop at the first line that makes no sense.
    #[arg(long)]
    strict: bool,
    /// Flows reported.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    if args.logs.iter().filter(|log| log.as_os_str() == "-").count() > 1 {
        bail!("standard input can be read once: give `-` once");
    }
    let objects = objects(&args.objects, args.suggested)?;
    let plan = |objects: &Objects, seats: u32| {
        Plan::new(objects, seats, args.fidelity.into()).map_err(|faults| {
            faults.iter().for_each(|fault| anstream::eprintln!("{}", input::fault_line(fault)));
            anyhow::anyhow!("the objects cannot be put into force together: nothing was done")
        })
    };
    let against = if args.against.is_empty() && args.against_server_concurrency.is_none() {
        None
    } else {
        let others = if args.against.is_empty() {
            objects.clone()
        } else {
            self::objects(&args.against, args.suggested)?
        };
        Some(plan(&others, args.against_server_concurrency.unwrap_or(args.server_concurrency))?)
    };
    let plan = plan(&objects, args.server_concurrency)?;

    let mut files = Vec::new();
    for path in &args.logs {
        let name = path.display().to_string();
        let lines = Lines::open(path).with_context(|| format!("cannot read {name}"))?;
        files.push((name, lines));
    }
    let mut stored = Stored::default();
    for Stock { api_group, resource, count, average_bytes } in &args.stored {
        stored.add(api_group, resource, *count, *average_bytes);
    }
    let options = Options {
        reading: Reading { strict: args.strict, horizon_ns: args.horizon, ..Reading::default() },
        stored,
        speed: args.speed,
        wait_limit_ns: args.wait_limit,
        first_adjustment_ns: args.first_adjustment,
        watch_ns: args.watch_start,
        top_flows: args.top,
    };
    let mut bar = Bar::new(&files);
    let report = replay(&mut files, plan, against, &options, &mut |progress| bar.show(progress));
    bar.end();
    let report = report.context("the log cannot be replayed")?;
    for bad in &report.log.bad_lines_shown {
        anstream::eprintln!("{DOUBTFUL}bad line:{DOUBTFUL:#} {bad}");
    }
    printer.print(&report, |out| table::write(out, &report))?;
    Ok(Verdict::Fine)
}

fn parse_first_adjustment(text: &str) -> Result<u64, String> {
    let first = parse_span(text)?;
    if first > ADJUSTMENT_PERIOD {
        Err("limits are adjusted every 10s: give no more".to_owned())
    } else {
        Ok(first)
    }
}

fn objects(files: &[PathBuf], suggested: bool) -> anyhow::Result<Objects> {
    let mut objects = if files.is_empty() { Objects::default() } else { input::load(files)? };
    if suggested || files.is_empty() {
        input::add_missing(&mut objects, builtin::mandatory());
        input::add_missing(&mut objects, builtin::suggested());
    }
    Ok(objects)
}

/// Shows on a terminal how far the replay has come.
struct Bar {
    bar: Option<ProgressBar>,
    positions: Vec<Position>,
    phase: std::mem::Discriminant<Progress>,
}

impl Bar {
    fn new(files: &[(String, Lines)]) -> Bar {
        let size: Option<u64> = files.iter().map(|(_, lines)| lines.size()).sum();
        let bar = io::stderr().is_terminal().then(|| match size {
            Some(size) => ProgressBar::new(size).with_style(style("{bar:30} {bytes} of {total_bytes} {msg}")),
            None => ProgressBar::no_length().with_style(style("{bytes} {msg}")),
        });
        let positions = files.iter().map(|(_, lines)| lines.position()).collect();
        Bar { bar, positions, phase: std::mem::discriminant(&Progress::Reading(0)) }
    }

    fn show(&mut self, progress: Progress) {
        let Some(bar) = &self.bar else { return };
        let new_phase = std::mem::replace(&mut self.phase, std::mem::discriminant(&progress)) != self.phase;
        match progress {
            Progress::Reading(events) => {
                bar.set_position(self.positions.iter().map(Position::bytes).sum());
                bar.set_message(format!("{events} events read"));
            }
            Progress::Estimating => bar.set_message("finding out who waited how long"),
            Progress::Playing(done, all) => {
                if new_phase {
                    bar.set_style(style("{bar:30} {human_pos} of {human_len} requests played"));
                    bar.set_length(all);
                }
                bar.set_position(done);
            }
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
