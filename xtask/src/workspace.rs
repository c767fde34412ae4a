//! Where things are: the root of the workspace, cargo, the tracked files, what cargo knows of the packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::steps;

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The cargo that runs this, in the root.
pub fn cargo(verb: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).arg(verb);
    command
}

/// The same for verbs that resolve dependencies: with the committed lock file, as it is.
pub fn locked(verb: &str) -> Command {
    let mut command = cargo(verb);
    command.arg("--locked");
    command
}

/// Where cargo puts what it builds with other flags than usual, so that the usual artefacts stay.
pub fn target(folder: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    root().join(target).join(folder)
}

/// `RUSTFLAGS` of the caller and `flags`.
pub fn rustflags(flags: &str) -> String {
    match std::env::var("RUSTFLAGS") {
        Ok(given) if !given.trim().is_empty() => format!("{given} {flags}"),
        _ => flags.into(),
    }
}

/// The files that git tracks or would track, relative to the root, in order.
pub fn files() -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.current_dir(root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = steps::output(&mut git)?;
    let mut files: Vec<PathBuf> = listed.split_terminator('\0').map(PathBuf::from).collect();
    // A file that was deleted and not yet committed is still listed.
    files.retain(|file| root().join(file).is_file());
    files.sort();
    files.dedup();
    if files.is_empty() {
        bail!("git lists no file in {}", root().display());
    }
    Ok(files)
}

/// A tracked file as text; nothing if it is not text.
pub fn text(file: &Path) -> Result<Option<String>> {
    let bytes =
        std::fs::read(root().join(file)).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(String::from_utf8(bytes).ok())
}

/// A package, as cargo tells it.
#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub rust_version: Option<String>,
    /// Absent for members of the workspace.
    pub source: Option<String>,
    pub targets: Vec<Target>,
}

/// Something that a package builds.
#[derive(Deserialize)]
pub struct Target {
    pub name: String,
    pub kind: Vec<String>,
}

/// The members of the workspace; with all that they depend on, on any platform, if `dependencies`.
pub fn packages(dependencies: bool) -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let mut cargo = locked("metadata");
    cargo.args(["--format-version", "1"]);
    if !dependencies {
        cargo.arg("--no-deps");
    }
    let metadata: Metadata =
        serde_json::from_str(&steps::output(&mut cargo)?).context("what `cargo metadata` printed")?;
    Ok(metadata.packages)
}

/// The integration tests of the engine whose names end with `suffix`. None is an error: a set of tests that vanished
/// must not pass.
pub fn engine_tests(suffix: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for package in packages(false)?.into_iter().filter(|package| package.name == "maitred") {
        let tests = package.targets.into_iter().filter(|target| target.kind == ["test"]);
        names.extend(tests.map(|target| target.name).filter(|name| name.ends_with(suffix)));
    }
    if names.is_empty() {
        bail!("core/tests has no test whose name ends with {suffix}");
    }
    names.sort();
    Ok(names)
}
