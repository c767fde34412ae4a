//! The `maitred` command line: one file a verb.

mod convert;
mod cover;
mod diff;
mod explain;
mod fidelity;
mod input;
mod limits;
mod lint;
mod output;
mod probe;
mod quantity;
mod replay;
mod requester;
mod shuffle;
mod simulate;
mod validate;

use std::io;
use std::process::ExitCode;

use anyhow::bail;
use clap::{CommandFactory as _, Parser, Subcommand};

use output::{Format, Printer};

/// Says what Kubernetes API Priority and Fairness objects do to requests.
#[derive(Debug, Parser)]
#[command(name = "maitred", version, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    /// How results are printed. `json` and `yaml` are stable and documented in docs/output.md.
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(subcommand)]
    verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  fine
  1  findings: faults, differences, and what else the verb was asked to look for
  2  usage, or input that could not be read

Files are YAML or JSON, read as kubectl reads them; `-` stands for standard input, a directory \
for all .yaml, .yml and .json files below it.";

#[derive(Debug, Subcommand)]
enum Verb {
    Validate(validate::Args),
    Explain(explain::Args),
    Limits(limits::Args),
    Shuffle(shuffle::Args),
    Convert(convert::Args),
    Diff(diff::Args),
    Replay(replay::Args),
    Simulate(simulate::Args),
    /// Prints a script that completes the arguments of this command in a shell.
    #[command(long_about = "Prints a script that completes the arguments of this command in a shell.\n\n\
        Bash: source <(maitred completions bash)")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page of this command or of one of its verbs, for `man -l -`.
    Man {
        /// The verb.
        verb: Option<String>,
    },
}

/// What a verb that ran to its end found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to complain of.
    Fine,
    /// Something that the caller wants to know by the exit code.
    Findings,
    /// Some input could not be read; the rest was worked on.
    Unreadable,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Findings) => ExitCode::from(1),
        Ok(Verdict::Unreadable) => ExitCode::from(2),
        // Whoever read our output has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("{}error:{:#} {error:#}", output::BAD, output::BAD);
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Verdict> {
    let mut printer = Printer::new(cli.output);
    match cli.verb {
        Verb::Validate(args) => validate::run(&args, &mut printer),
        Verb::Explain(args) => explain::run(&args, &mut printer),
        Verb::Limits(args) => limits::run(&args, &mut printer),
        Verb::Convert(args) => convert::run(&args, &mut printer),
        Verb::Diff(args) => diff::run(&args, &mut printer),
        Verb::Replay(args) => replay::run(&args, &mut printer),
        Verb::Simulate(args) => simulate::run(&args, &mut printer),
        Verb::Shuffle(args) => shuffle::run(&args, &mut printer),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "maitred", &mut script);
            printer.raw(&script)
        }
        Verb::Man { verb } => printer.raw(&manual(verb.as_deref())?),
    }
}

fn manual(verb: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let mut command = Cli::command();
    command.build();
    let command = match verb {
        None => command,
        Some(verb) => match command.find_subcommand(verb) {
            Some(found) => found.clone(),
            None => bail!("there is no verb {verb}: see maitred --help"),
        },
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
