//! `maitred simulate`: what objects would do to made-up traffic.

mod fair;
mod fields;
mod play;
mod random;
mod report;
mod scenario;
mod table;
mod tally;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use maitred::api::{Objects, builtin};
use maitred::engine::{Engine, Options};
use maitred::error::Fault;
use maitred::level::ArenaSize;
use maitred::time::Manual;
use maitred_manifest::{Plain, Strictness, objects};

use crate::Verdict;
use crate::fidelity::FidelityArg;
use crate::input::{add_missing, fault_line, load, refuse};
use crate::output::{DOUBTFUL, Printer};
use scenario::{ObjectsFrom, Scenario};

/// Requests that may wait, run or linger at once. Address space is reserved for all; memory is used by those there are.
const TICKETS: usize = 1 << 20;

/// Sends made-up requests through objects, on simulated time.
///
/// A scenario says who sends which requests, when, how wide they are and for how long they run; and which objects are in
/// force. Its form is told in docs/scenarios.md, and examples/scenarios has some: elephant-and-mice, wide-lists,
/// borrowing, jail, overload. Same scenario and seed, same result.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario, YAML or JSON; `-` is standard input.
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    /// Another seed than the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// Files with FlowSchemas and PriorityLevelConfigurations in place of the scenario's.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    objects: Vec<PathBuf>,
    /// Seats of the whole server, where they are to be others than the scenario's.
    #[arg(long, value_name = "SEATS", value_parser = clap::value_parser!(u32).range(1..))]
    server_concurrency: Option<u32>,
    /// Whose rules decide where the reference implementation has a fault.
    #[arg(long, value_enum, default_value_t = FidelityArg::Corrected)]
    fidelity: FidelityArg,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let standard_input = |path: &PathBuf| path.as_os_str() == "-";
    if standard_input(&args.scenario) && args.objects.iter().any(standard_input) {
        bail!("standard input can be read once: give `-` once");
    }
    let file =
        Plain::read(&args.scenario, &mut io::stdin().lock()).or_else(|fault| refuse_scenario(&[*fault]))?;
    let mut scenario = scenario::read(&file).or_else(|faults| refuse_scenario(&faults))?;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.server_concurrency_limit = args.server_concurrency.unwrap_or(scenario.server_concurrency_limit);
    let set = if args.objects.is_empty() {
        objects_of(&args.scenario, &file, &scenario.objects)?
    } else {
        load(&args.objects)?
    };

    let (engine, clock) = engine(&scenario, args.fidelity, &set)?;
    let bar = bar(scenario.duration);
    let played = play::play(&engine, &clock, &scenario, |now| bar.set_position(now / NS_OF_A_STEP));
    bar.finish_and_clear();
    let name = args.scenario.display().to_string();
    let report = report::report(&name, &scenario, args.fidelity, &engine, &played);
    printer.print(&report, |out| table::write(out, &report))?;
    Ok(Verdict::Fine)
}

fn refuse_scenario<T>(faults: &[Fault]) -> anyhow::Result<T> {
    faults.iter().for_each(|fault| anstream::eprintln!("{}", fault_line(fault)));
    let count = faults.len();
    bail!("{count} fault{} in the scenario: nothing was done", if count == 1 { "" } else { "s" })
}

/// The objects that a scenario names. Files are looked for beside it.
fn objects_of(scenario: &Path, file: &Plain, from: &ObjectsFrom) -> anyhow::Result<Objects> {
    match from {
        ObjectsFrom::BuiltIn => {
            let mut set = builtin::mandatory();
            add_missing(&mut set, builtin::suggested());
            Ok(set)
        }
        ObjectsFrom::Inline => {
            let document = file.objects_at("objects").ok_or_else(|| anyhow!("objects must be a list"))?;
            let entries = document.into_entries(Strictness::Warn);
            let warnings = entries.iter().flat_map(|entry| &entry.warnings);
            warnings.for_each(|warning| anstream::eprintln!("{}", crate::input::warning_line(warning)));
            objects(&entries).or_else(|faults| refuse(&faults))
        }
        ObjectsFrom::Files(files) => {
            let folder = scenario.parent().unwrap_or(Path::new(""));
            load(&files.iter().map(|file| folder.join(file)).collect::<Vec<_>>())
        }
    }
}

/// An engine with `set` in force, at time 0.
fn engine(scenario: &Scenario, fidelity: FidelityArg, set: &Objects) -> anyhow::Result<(Engine, Manual)> {
    let clock = Manual::default();
    let options = Options {
        server_concurrency_limit: scenario.server_concurrency_limit,
        fidelity: fidelity.into(),
        arena: ArenaSize { tickets: TICKETS, threads: 1, ..ArenaSize::default() },
        wait_limit: scenario.wait_limit,
        clock_lag: 0,
        ..Options::default()
    };
    let engine = Engine::with_clock(options, clock.clone())
        .map_err(|out| anyhow!("the engine finds no memory for {} cells", out.wanted))?;
    let applied = engine.apply(set).or_else(|error| refuse(&error.0))?;
    for schema in &applied.dangling {
        anstream::eprintln!(
            "{DOUBTFUL}warning:{DOUBTFUL:#} FlowSchema/{schema} takes no part: its priority level does not exist"
        );
    }
    Ok((engine, clock))
}

const NS_OF_A_STEP: u64 = 1_000_000;

/// Shows on a terminal how far the simulation has come.
fn bar(duration: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {percent}% simulated, {eta} to go");
    ProgressBar::new(duration / NS_OF_A_STEP)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
