//! The minimum Rust version: stated once in `Cargo.toml`, repeated truly elsewhere, and asked for by no dependency.
//!
//! One toolchain is at hand in CI, so this compares statements; that the code builds with that version is shown by a
//! build with it (`cargo +VERSION check`).

use anyhow::{Context as _, Result, bail};

use super::verdict;
use crate::workspace::{files, packages, text};

/// Documents that state the version, as `Rust 1.x`.
const STATED_IN: &str = "README.md";

pub fn check() -> Result<()> {
    let minimum = minimum()?;
    let mut faults = Vec::new();
    for package in packages(true)? {
        let asked = package.rust_version.as_deref();
        if package.source.is_none() {
            if asked.map(parse).transpose()? != Some(minimum) {
                faults.push(format!("{}: `rust-version` is not the workspace's", package.name));
            }
        } else if asked.map(parse).transpose()?.is_some_and(|asked| asked > minimum) {
            let asked = asked.unwrap_or_default();
            faults.push(format!("{} {} asks for Rust {asked}", package.name, package.version));
        }
    }
    let readme = files()?.into_iter().find(|file| file.as_os_str() == STATED_IN).context("no README.md")?;
    let readme = text(&readme)?.context("README.md is not text")?;
    let stated: Vec<&str> = readme.split("Rust 1.").skip(1).collect();
    if stated.is_empty() {
        faults.push(format!("{STATED_IN} does not say which Rust it needs (`Rust 1.{}`)", minimum.1));
    }
    for rest in stated {
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit()).collect();
        if digits.parse() != Ok(minimum.1) {
            faults.push(format!("{STATED_IN} says Rust 1.{digits}, Cargo.toml 1.{}", minimum.1));
        }
    }
    verdict(faults)
}

/// Fails if a compiler of `version` is too old.
pub fn at_least(version: &str) -> Result<()> {
    let minimum = minimum()?;
    if parse(version)? < minimum {
        bail!("Rust {version} is too old: {}.{} or later is needed (`rustup update`)", minimum.0, minimum.1);
    }
    Ok(())
}

/// What the workspace states.
fn minimum() -> Result<(u32, u32)> {
    let engine = packages(false)?.into_iter().find(|package| package.name == "maitred");
    let stated = engine.and_then(|package| package.rust_version).context("core states no `rust-version`")?;
    parse(&stated)
}

/// Major and minor number.
fn parse(version: &str) -> Result<(u32, u32)> {
    let mut numbers = version.split(['.', '-']).map(|part| part.parse().ok());
    let mut number = || numbers.next().flatten();
    match (number(), number()) {
        (Some(major), Some(minor)) => Ok((major, minor)),
        _ => bail!("`{version}` is no version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(parse("1.100.0").unwrap() > parse("1.92").unwrap());
        assert_eq!(parse("1.95.0-nightly").unwrap(), (1, 95));
        assert!(parse("one").is_err());
    }
}
