//! Doors: what only named files of the engine may use.
//!
//! All atomics go through `sync`, so that loom can replace them; what goes past it would not be explored by the models,
//! and no test would notice. `unsafe` stays in few files, so that it can be read.

use anyhow::Result;

use super::verdict;
use crate::workspace::{files, text};

/// Ways to get an atomic or a model's type without the door.
const ATOMICS: [&str; 5] = ["sync::atomic", "atomic::", "{atomic", "loom::", "portable_atomic"];
const ATOMICS_DOOR: [&str; 1] = ["core/src/sync.rs"];

/// Files of the engine that may hold `unsafe`.
const UNSAFE_DOORS: [&str; 5] = [
    "core/src/engine/current.rs",
    "core/src/level/operation.rs",
    "core/src/sync.rs",
    "core/src/ticket.rs",
    "core/src/wait/blocking.rs",
];

pub fn check() -> Result<()> {
    let mut faults = Vec::new();
    for file in files()? {
        let name = file.to_string_lossy();
        if !name.starts_with("core/src/") || !name.ends_with(".rs") {
            continue;
        }
        let Some(text) = text(&file)? else { continue };
        for (number, line) in code_lines(&text) {
            if !ATOMICS_DOOR.contains(&&*name) && ATOMICS.iter().any(|word| line.contains(word)) {
                faults.push(format!("{name}:{number}: atomics and loom only through crate::sync"));
            }
            if !UNSAFE_DOORS.contains(&&*name) && has_word(line, "unsafe") {
                faults.push(format!("{name}:{number}: `unsafe` only in {}", UNSAFE_DOORS.join(", ")));
            }
        }
    }
    verdict(faults)
}

/// Numbered lines up to the tests, without what follows `//`. A string that holds `//` is cut too: it hides nothing
/// that matters here.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_code = |line: &&str| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test");
    text.lines()
        .take_while(is_code)
        .enumerate()
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or("")))
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_are_no_code() {
        let text = "a // std::sync::atomic\n// unsafe\nb\n#[cfg(test)]\nmod tests {}\n";
        let lines: Vec<_> = code_lines(text).collect();
        assert_eq!(lines, [(1, "a "), (2, ""), (3, "b")]);
    }

    #[test]
    fn a_word_is_not_a_part_of_a_name() {
        assert!(has_word("    unsafe { x }", "unsafe"));
        assert!(!has_word("deny(unsafe_op_in_unsafe_fn)", "unsafe"));
    }
}
