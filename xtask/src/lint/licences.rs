//! Licences and sources of all dependencies, by the lists of `deny.toml`.
//!
//! cargo-deny judges the same file, and more (advisories, bans). It is a large program that few have at hand; what must
//! never slip is checked here, on every machine.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use super::verdict;
use crate::steps::Steps;
use crate::workspace::{Package, cargo, packages, root};

const VERSION: &str = "0.20";

/// The part of `deny.toml` that is judged here.
#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

pub fn run(steps: &mut Steps) {
    steps.check("licences and sources", check);
    let installed = cargo("deny").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if installed.is_ok_and(|status| status.success()) {
        let mut deny: Command = cargo("deny");
        steps.command("cargo deny", deny.args(["--locked", "check"]));
    } else {
        steps.not_run("cargo deny", &format!("not installed (cargo install --locked cargo-deny@{VERSION})"));
    }
}

fn check() -> Result<()> {
    let text = std::fs::read_to_string(root().join("deny.toml")).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("deny.toml")?;
    verdict(packages(true)?.iter().flat_map(|package| faults(&rules, package)).collect())
}

fn faults(rules: &Rules, package: &Package) -> Vec<String> {
    let name = format!("{} {}", package.name, package.version);
    let mut faults = Vec::new();
    match package.license.as_deref().map(|text| (text, Expression::parse_mode(text, ParseMode::LAX))) {
        None => faults.push(format!("{name} states no licence")),
        Some((text, Err(_))) => faults.push(format!("{name}: `{text}` is no licence expression")),
        Some((text, Ok(expression))) => {
            let exceptions = rules.licenses.exceptions.iter().filter(|rule| rule.name == package.name);
            let allowed: Vec<&String> =
                exceptions.flat_map(|rule| &rule.allow).chain(&rules.licenses.allow).collect();
            if !expression.evaluate(|asked| allowed.iter().any(|licence| **licence == asked.to_string())) {
                faults.push(format!("{name}: deny.toml does not allow `{text}`"));
            }
        }
    }
    let allowed = |source: &str| {
        let registry = source.strip_prefix("registry+");
        registry
            .is_some_and(|registry| rules.sources.allow_registry.iter().any(|allowed| allowed == registry))
    };
    if let Some(source) = package.source.as_deref().filter(|source| !allowed(source)) {
        faults.push(format!("{name} comes from {source}, which deny.toml does not allow"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "https://github.com/rust-lang/crates.io-index";

    fn judged(licence: Option<&str>, source: Option<&str>) -> Vec<String> {
        let rules = Rules {
            licenses: Licenses {
                allow: vec!["MIT".into(), "Apache-2.0".into()],
                exceptions: vec![Exception { name: "x".into(), allow: vec!["Unicode-3.0".into()] }],
            },
            sources: Sources { allow_registry: vec![INDEX.into()] },
        };
        let package = Package {
            name: "x".into(),
            version: "1.0.0".into(),
            license: licence.map(Into::into),
            rust_version: None,
            source: source.map(|source| format!("registry+{source}")),
            targets: Vec::new(),
        };
        faults(&rules, &package)
    }

    #[test]
    fn one_of_several_licences_is_enough_and_all_that_are_joined_are_needed() {
        assert!(judged(Some("GPL-3.0-only OR MIT"), None).is_empty());
        assert!(judged(Some("MIT/Apache-2.0"), None).is_empty());
        assert!(judged(Some("(MIT OR Apache-2.0) AND Unicode-3.0"), None).is_empty());
        assert!(!judged(Some("MIT AND GPL-3.0-only"), None).is_empty());
    }

    #[test]
    fn no_licence_or_another_source_is_a_fault() {
        assert!(judged(Some("MIT"), Some(INDEX)).is_empty());
        assert!(!judged(None, Some(INDEX)).is_empty());
        assert!(!judged(Some("MIT"), Some("https://registry.example/index")).is_empty());
    }
}
