//! Runs every vector file below a directory through the public API of maitred.
//!
//! One line a file, `NAME passed P of T`, with the first mismatches of each below it; a last line for all. What the
//! directory holds besides is listed too: nothing is skipped in silence. Exits 1 if anything falls short.

mod outcome;
mod report;
mod suites;
mod vectors;
mod walk;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: maitred-conformance DIR\n\nRuns every vector file that it knows in DIR and the folders below it.\nExit codes: 0 all passed, 1 something fell short, 2 usage or unreadable directory.";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [dir] = arguments.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if dir == "-h" || dir == "--help" {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let dir = Path::new(dir);
    let files = match walk::files(dir) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("maitred-conformance: {error:#}");
            return ExitCode::from(2);
        }
    };
    let mut stdout = std::io::stdout().lock();
    match report::run(dir, &files, &mut stdout) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        // The reader of our output went away: nothing can be told to anybody any more.
        Err(_) => ExitCode::from(1),
    }
}
