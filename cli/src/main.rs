//! The `maitred` command line.
fn main() {}
