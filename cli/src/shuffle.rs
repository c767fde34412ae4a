//! `maitred shuffle`: what shuffle sharding with given numbers of queues and hand sizes is worth.

use anyhow::Context as _;
use maitred::shuffle::Deck;
use serde::Serialize;

use crate::Verdict;
use crate::output::{Printer, table, write_table};

/// Tells how likely it is that heavy flows share all queues of a light one.
///
/// A level deals each flow a hand of its queues, and a request waits in the shortest of them. A light flow (a mouse)
/// suffers only if heavy flows (elephants) hold every queue of its hand. Printed is the exact chance of that for one
/// mouse and k elephants.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Queues of the level. Without it, the settings that the Kubernetes documentation tabulates.
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
    queues: u32,
    hand_size: u32,
    chances: Vec<Chance>,
}

#[derive(Debug, Serialize)]
struct Chance {
    elephants: u32,
    probability: f64,
}

/// Runs the verb.
pub fn run(args: &Args, printer: &mut Printer) -> anyhow::Result<Verdict> {
    let chosen = args.queues.zip(args.hand_size).map(|(queues, hand_size)| vec![(hand_size, queues)]);
    let settings = chosen.as_deref().unwrap_or(DOCUMENTED);
    let settings: Vec<_> = settings
        .iter()
        .map(|&(hand_size, queues)| setting(None, queues, hand_size, &args.elephants))
        .collect::<anyhow::Result<_>>()?;
    let report = Report { settings };
    printer.print(&report, |out| {
        let titles = args
            .elephants
            .iter()
            .map(|count| format!(">{count} ELEPHANT{}", if *count == 1 { "" } else { "S" }));
        let titles: Vec<_> = [">HAND SIZE", ">QUEUES"].into_iter().map(str::to_owned).chain(titles).collect();
        let mut table = table(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        for setting in &report.settings {
            let chances = setting.chances.iter().map(|chance| probability(chance.probability));
            table.add_row(
                [setting.hand_size, setting.queues]
                    .map(|number| number.to_string())
                    .into_iter()
                    .chain(chances),
            );
        }
        write_table(out, &table)
    })?;
    Ok(Verdict::Fine)
}

fn setting(
    priority_level: Option<String>,
    queues: u32,
    hand_size: u32,
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
