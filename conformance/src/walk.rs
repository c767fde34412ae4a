//! Finds the files of a directory and its folders, in a fixed order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// All files below `dir`, sorted by path. Symbolic links are followed; a folder that was seen already (a loop of
/// links) is not entered again.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let real = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
        if !seen.insert(real) {
            continue;
        }
        let entries = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
