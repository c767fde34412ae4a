//! The runner, run on the vector files that are checked in.

use std::path::Path;
use std::process::Command;

/// (exit code, output) of the runner for a directory.
fn run(directory: &Path) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_maitred-conformance")).arg(directory).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn every_checked_in_vector_passes() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/vectors");
    let (code, output) = run(&vectors);
    assert_eq!(code, Some(0), "{output}");
}
