//! What the documents point to is there: files and headings by relative links, verbs of xtask and tests by their names.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use clap::CommandFactory as _;

use super::verdict;
use crate::workspace::{files, root, text};

/// Documents whose code of several words is the name of a test or of a planted fault.
const NAMING_TESTS: [&str; 2] = ["ARCHITECTURE.md", "docs/proofs.md"];

pub fn check() -> Result<()> {
    let verbs: Vec<String> =
        crate::Arguments::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let mut known = functions()?;
    known.extend(crate::mutants::names().map(str::to_owned));
    let mut faults = Vec::new();
    for file in files()? {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let Some(text) = text(&file)? else { continue };
        for (index, line) in text.lines().enumerate() {
            let mut fault = |what: String| faults.push(format!("{}:{}: {what}", file.display(), index + 1));
            for target in link_targets(line) {
                if !leads_somewhere(&file, target) {
                    fault(format!("the link `{target}` leads nowhere"));
                }
            }
            if NAMING_TESTS.iter().any(|naming| file == Path::new(naming)) {
                for test in sentences(line).filter(|name| !known.contains(*name)) {
                    fault(format!("there is no test and no planted fault `{test}`"));
                }
            }
            for verb in verbs_of(line) {
                if verb != "help" && !verbs.iter().any(|known| known == verb) {
                    fault(format!("`cargo xtask {verb}` is no verb"));
                }
            }
        }
    }
    verdict(faults)
}

/// The targets of `[text](target)` in a line.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Names of tests in a line: code of four or more words joined by underscores.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let is_name =
        |code: &&str| code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    line.split('`').skip(1).step_by(2).filter(is_name).filter(|code| code.matches('_').count() >= 3)
}

/// The names of all functions.
fn functions() -> Result<HashSet<String>> {
    let mut names = HashSet::new();
    for file in files()?.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")) {
        for rest in text(file)?.unwrap_or_default().split("fn ").skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            names.insert(rest[..end].to_owned());
        }
    }
    Ok(names)
}

/// The words after `cargo xtask`.
fn verbs_of(line: &str) -> impl Iterator<Item = &str> {
    line.split("cargo xtask ").skip(1).filter_map(|rest| {
        let verb = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next()?;
        (!verb.is_empty() && !verb.starts_with('-')).then_some(verb)
    })
}

/// Whether a link of `file` can be followed. The network is not asked.
fn leads_somewhere(file: &Path, target: &str) -> bool {
    if target.starts_with("https://") || target.starts_with("http://") || target.starts_with("mailto:") {
        return true;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = file.parent().unwrap_or(Path::new(""));
    let path = if path.is_empty() { file.to_owned() } else { folder.join(path) };
    if !root().join(&path).exists() {
        return false;
    }
    anchor.is_empty() || text(&path).is_ok_and(|text| text.is_some_and(|text| has_anchor(&text, anchor)))
}

/// Whether a heading of `text` gives `anchor`, by the rule of the common hosts.
fn has_anchor(text: &str, anchor: &str) -> bool {
    text.lines().filter_map(|line| line.strip_prefix('#')).any(|heading| {
        let heading = heading.trim_start_matches('#').trim();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).eq(anchor.chars())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_verbs_are_found() {
        assert_eq!(link_targets("see [a](b.md) and [c](d.md#e).").collect::<Vec<_>>(), ["b.md", "d.md#e"]);
        assert_eq!(
            verbs_of("`cargo xtask test`, then cargo xtask loom.").collect::<Vec<_>>(),
            ["test", "loom"]
        );
    }

    #[test]
    fn names_of_tests_are_told_from_other_code() {
        let line = "`a_test_that_is_named`, `a_type`, `core/tests/a_b_c_d.rs` and a_b_c_d";
        assert_eq!(sentences(line).collect::<Vec<_>>(), ["a_test_that_is_named"]);
    }

    #[test]
    fn a_dead_link_is_dead() {
        assert!(leads_somewhere(Path::new("README.md"), "Cargo.toml"));
        assert!(!leads_somewhere(Path::new("README.md"), "no-such-file.md"));
    }

    #[test]
    fn anchors_are_headings() {
        assert!(has_anchor("# A\n## When not to use it\n", "when-not-to-use-it"));
        assert!(!has_anchor("# A\n", "b"));
    }
}
