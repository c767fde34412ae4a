//! `maitred shuffle`: what shuffle sharding with given numbers of queues and hand sizes is worth.

use std::path::PathBuf;

use anyhow::Context as _;
use maitred::api::v1::PriorityLevelConfiguration;
use maitred::shuffle::Deck;
use serde::Serialize;

use crate::Verdict;
use crate::input::load;
use crate::output::{Printer, table, write_table};

/// Tells how likely it is that heavy flows share all queues of a light one.
///
/// A level deals each flow a hand of its queues, and a request waits in the shortest of them. A light flow (a mouse)
/// suffers only if heavy flows (elephants) hold every queue of its hand. Printed is the exact chance of that for one
/// mouse and k elephants.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files with levels whose settings are to be looked at.
    #[arg(value_name = "FILE", conflicts_with = "queues")]
    files: Vec<PathBuf>,
    /// Queues of the level. Without it and without files, the settings that the Kubernetes documentation tabulates.
    #[arg(long, requires = "hand_size")]
    queues: Option<u32>,
    /// Queues that a flow may use.
    #[arg(long, requires = "queues")]
    hand_size: Option<u32>,
    /// Numbers of elephants.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16", value_parser = clap::value_parser!(u32).range(1..=256))]
    elephants: Vec<u32>,
}

/// Hand size and queues as the documentation of the API lists them.
const DOCUMENTED: &[(u32, u32)] = &[
    (12, 32),
    (10, 32),
    (10, 64),
    (9, 64),
    (8, 64),
    (8, 128),
    (7, 128),
    (7, 256),
    (6, 256),
    (6, 512),
    (6, 1024),
];

#[derive(Debug, Serialize)]
struct Report {
    settings: Vec<Setting>,
}

#[derive(Debug, Serialize)]
struct Setting {
    /// The level that has these settings, where they come from an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_level: Option<String>,
    queues: i64,
    hand_size: i64,
    chances: Vec<Chance>,
}

#[derive(Debug, Serialize)]
struct Chance {
    elephants: u32,
    probability: f64,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let settings: Vec<_> = match args.queues.zip(args.hand_size) {
        Some((queues, hand_size)) => vec![(None, i64::from(queues), i64::from(hand_size))],
        None if args.files.is_empty() => {
            DOCUMENTED.iter().map(|&(hand_size, queues)| (None, queues.into(), hand_size.into())).collect()
        }
        None => load(&args.files)?.priority_levels.iter().filter_map(of_level).collect(),
    };
    let setting = |(level, queues, hand_size)| setting(level, queues, hand_size, &args.elephants);
    let report = Report { settings: settings.into_iter().map(setting).collect::<anyhow::Result<_>>()? };
    let named = report.settings.iter().any(|setting| setting.priority_level.is_some());
    printer.print(&report, |out| {
        let titles = args
            .elephants
            .iter()
            .map(|count| format!(">{count} ELEPHANT{}", if *count == 1 { "" } else { "S" }));
        let first =
            ["LEVEL", ">HAND SIZE", ">QUEUES"].into_iter().skip(usize::from(!named)).map(str::to_owned);
        let titles: Vec<_> = first.chain(titles).collect();
        let mut table = table(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        for setting in &report.settings {
            let chances = setting.chances.iter().map(|chance| probability(chance.probability));
            let numbers = [setting.hand_size, setting.queues].map(|number| number.to_string());
            table.add_row(setting.priority_level.iter().cloned().chain(numbers).chain(chances));
        }
        write_table(out, &table)
    })?;
    Ok(Verdict::Fine)
}

/// Name, queues and hand size of a level that queues.
fn of_level(level: &PriorityLevelConfiguration) -> Option<(Option<String>, i64, i64)> {
    let queuing = level.spec.limited.as_ref()?.limit_response.queuing.as_ref()?;
    Some((Some(level.metadata.name.clone()), queuing.queues.into(), queuing.hand_size.into()))
}

fn setting(
    priority_level: Option<String>,
    queues: i64,
    hand_size: i64,
    elephants: &[u32],
) -> anyhow::Result<Setting> {
    let deck = Deck::new(queues, hand_size)
        .with_context(|| format!("a hand of {hand_size} from {queues} queues cannot be dealt"))?;
    let chances = elephants
        .iter()
        .map(|&elephants| Chance { elephants, probability: deck.chance_all_shared(elephants) })
        .collect();
    Ok(Setting { priority_level, queues, hand_size, chances })
}

/// As the documentation prints chances: plain where that is short, with an exponent where it is not.
fn probability(chance: f64) -> String {
    if chance == 0.0 || chance >= 1e-4 { format!("{chance:.6}") } else { format!("{chance:.3e}") }
}
