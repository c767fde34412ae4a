//! Runs every vector file below a directory through the public API of maitred.
#[allow(dead_code)]
mod outcome;
mod suites;
fn main() {}
