//! What the tools of the toolchain say about the code: formatting, clippy, documentation.

use crate::steps::Steps;
use crate::workspace::{cargo, locked};

pub fn fmt(steps: &mut Steps) {
    steps.command("formatting", cargo("fmt").args(["--all", "--", "--check"]));
}

pub fn clippy(steps: &mut Steps) {
    steps.command("clippy", locked("clippy").args(["--workspace", "--all-targets", "--", "-D", "warnings"]));
}

pub fn doc(steps: &mut Steps) {
    let mut doc = locked("doc");
    doc.args(["--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    steps.command("documentation", &mut doc);
}
