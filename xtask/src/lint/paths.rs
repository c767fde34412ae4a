//! No path of a machine is in the repository: what names one works on one machine only, or tells whose it was.

use anyhow::Result;

use super::verdict;
use crate::workspace::{files, text};

/// Put together here, so that this file passes its own rule.
const ROOTS: [&str; 6] = [
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
    concat!("/", "work/"),
    concat!("/", "tmp/"),
    concat!("file", "://"),
];

/// Recorded data, in which such a path is somebody's data.
const RECORDED: [&str; 1] = ["core/tests/vectors/"];

pub fn check() -> Result<()> {
    let mut faults = Vec::new();
    for file in files()? {
        let name = file.to_string_lossy();
        if RECORDED.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let Some(text) = text(&file)? else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some(root) = ROOTS.iter().find(|root| names(line, root)) {
                faults.push(format!("{name}:{}: names a path of a machine ({root}…)", index + 1));
            }
        }
    }
    verdict(faults)
}

/// Whether `line` holds `root` where a path begins: not inside `a/home/b`.
fn names(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '*' | '}'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_machine_is_seen_where_it_begins() {
        let root = concat!("/", "home/");
        assert!(names(&format!("cd {root}x"), root));
        assert!(names(&format!("\"{root}x\""), root));
        assert!(!names(&format!("https://host.example{root}x"), root));
    }
}
