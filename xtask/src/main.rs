//! Developer verbs: everything that CI does, anybody can run.
//!
//! | file | verbs |
//! |---|---|
//! | `test` | `test`: all that has to pass |
//! | `checks` | `fmt`, `clippy`, `doc`: what the tools of the toolchain say |
//! | `models` | `loom`, `points`: the lock-free protocol, interleaving by interleaving |
//! | `mutants` | `mutants`: planted faults, each of which a test has to notice |
//! | `conformance` | `conformance`: recorded answers of the reference |
//! | `readme` | `readme`: the commands of the README, run |
//! | `lint/` | `lint`, `msrv`, `deny`: rules of this repository that no tool knows |

mod checks;
mod conformance;
mod lint;
mod models;
mod mutants;
mod readme;
mod steps;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use steps::Steps;

/// Developer verbs of maitred.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs every test: workspace, models, recorded answers, README. Names what is missing.
    Test(test::Options),
    /// The formatting is rustfmt's.
    Fmt,
    /// Clippy has nothing to say.
    Clippy,
    /// The documentation builds without a warning.
    Doc,
    /// Explores the interleavings of the lock-free protocol (loom).
    Loom(models::Options),
    /// Suspends threads at every point of the protocol and lets the others run.
    Points,
    /// Plants faults, one after the other; a test must notice each.
    Mutants(mutants::Options),
    /// Compares with recorded answers of the reference.
    Conformance(conformance::Options),
    /// Runs the commands of the README and compares what they print with what it shows.
    Readme,
    /// Rules of this repository: doors to atomics and unsafe, no path of a machine, links that lead somewhere.
    Lint,
    /// The stated minimum Rust version is the same everywhere, and no dependency asks for more.
    Msrv,
    /// Licences and sources of all dependencies are allowed by deny.toml.
    Deny,
}

fn main() -> ExitCode {
    let mut steps = Steps::new();
    match Arguments::parse().verb {
        Verb::Test(options) => test::run(&mut steps, &options),
        Verb::Fmt => checks::fmt(&mut steps),
        Verb::Clippy => checks::clippy(&mut steps),
        Verb::Doc => checks::doc(&mut steps),
        Verb::Loom(options) => models::loom(&mut steps, &options),
        Verb::Points => models::points(&mut steps),
        Verb::Mutants(options) => mutants::run(&mut steps, &options),
        Verb::Conformance(options) => conformance::run(&mut steps, &options),
        Verb::Readme => readme::run(&mut steps),
        Verb::Lint => lint::run(&mut steps),
        Verb::Msrv => steps.check("minimum Rust version", lint::msrv::check),
        Verb::Deny => lint::licences::run(&mut steps),
    }
    steps.report()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_parser_is_sound() {
        super::Arguments::command().debug_assert();
    }
}
