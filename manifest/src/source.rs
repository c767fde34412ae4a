//! Files, directories and standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::document::{Document, read_str};

/// Bytes of a file that are read; a larger one is refused.
pub const MAX_FILE: usize = 16 << 20;

/// A file or directory that could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its name as it was given.
    pub file: String,
    /// Why, and what to do.
    pub message: String,
}

/// Reads the bytes of a file named `name`: UTF-8, with or without a byte order mark.
///
/// # Errors
/// What is larger than [`MAX_FILE`] or not UTF-8 is refused. UTF-16 is so, too: kubectl cannot read such files either.
pub fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<Document>, Unreadable> {
    text(name, bytes).map(|text| read_str(name, text))
}

/// The text that `bytes` of the file `name` are.
pub(crate) fn text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, Unreadable> {
    let refuse = |message: String| Err(Unreadable { file: name.to_owned(), message });
    if bytes.len() > MAX_FILE {
        return refuse(format!("larger than {MAX_FILE} bytes ({} MiB): split it", MAX_FILE >> 20));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) => {
            refuse("this is UTF-16, which kubectl cannot read: save it as UTF-8".to_owned())
        }
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
            refuse(format!("line {line} is not UTF-8: is this a manifest? Save it as UTF-8"))
        }
    }
}

/// All bytes of `input`, or one more than are allowed: that tells what is too long.
pub(crate) fn bytes(name: &str, input: &mut dyn Read) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    match input.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Unreadable { file: name.to_owned(), message: error.to_string() }),
    }
}

/// What was read from a number of files.
#[derive(Debug, Default)]
pub struct Manifest {
    /// All documents, in the order of the files.
    pub documents: Vec<Document>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

impl Manifest {
    /// Reads `paths`: files, directories (all `.yaml`, `.yml` and `.json` files in them and in their folders, in order
    /// of their paths) and `-` for `stdin`.
    ///
    /// Blocks as reading files does.
    pub fn read(paths: &[impl AsRef<Path>], stdin: &mut dyn Read) -> Manifest {
        let mut manifest = Manifest::default();
        for path in paths.iter().map(AsRef::as_ref) {
            if path == Path::new("-") {
                manifest.add("-", stdin);
            } else if path.is_dir() {
                manifest.add_directory(path);
            } else {
                manifest.add_file(path);
            }
        }
        manifest
    }

    fn add_file(&mut self, path: &Path) {
        let name = path.to_string_lossy();
        match File::open(path) {
            Ok(mut file) => self.add(&name, &mut file),
            Err(error) => {
                self.unreadable.push(Unreadable { file: name.into_owned(), message: error.to_string() })
            }
        }
    }

    fn add(&mut self, name: &str, input: &mut dyn Read) {
        match bytes(name, input).and_then(|bytes| read_bytes(name, &bytes)) {
            Ok(documents) => self.documents.extend(documents),
            Err(unreadable) => self.unreadable.push(unreadable),
        }
    }

    fn add_directory(&mut self, directory: &Path) {
        let mut files = Vec::new();
        let mut seen = Vec::new();
        match manifests_below(directory, &mut seen, &mut files) {
            Ok(()) if files.is_empty() => {
                let message = "holds no .yaml, .yml or .json file".to_owned();
                self.unreadable.push(Unreadable { file: directory.to_string_lossy().into_owned(), message });
            }
            Ok(()) => {
                files.sort();
                files.iter().for_each(|file| self.add_file(file));
            }
            Err((folder, error)) => {
                let file = folder.to_string_lossy().into_owned();
                self.unreadable.push(Unreadable { file, message: error.to_string() });
            }
        }
    }
}

/// Finds the manifests below `folder`; a folder that a loop of links leads to again is not entered twice.
fn manifests_below(
    folder: &Path,
    seen: &mut Vec<PathBuf>,
    files: &mut Vec<PathBuf>,
) -> Result<(), (PathBuf, io::Error)> {
    let at = |error| (folder.to_owned(), error);
    let real = folder.canonicalize().map_err(at)?;
    if seen.contains(&real) {
        return Ok(());
    }
    seen.push(real);
    for entry in folder.read_dir().map_err(at)? {
        let path = entry.map_err(at)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            manifests_below(&path, seen, files)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(path);
        }
    }
    Ok(())
}
