//! Developer verbs: everything that CI does, anybody can run.
fn main() {}
