//! Reads vector files: JSON Lines, plain or gzip, with or without a header line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A data line with its number in the file (the first line is 1).
#[derive(Debug, Clone)]
pub struct Line {
    /// Line number, from 1.
    pub number: usize,
    /// The line as JSON.
    pub value: Value,
}

/// Opens `path`, unpacking it when it begins as gzip does, whatever its name.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let mut file =
        BufReader::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?);
    let head = file.fill_buf().with_context(|| format!("cannot read {}", path.display()))?;
    Ok(if head.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}

/// The lines of a JSON Lines file that has no header.
///
/// A line that is not JSON is an error that names file and line; so is a file without any line.
pub fn lines(path: &Path) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (index, line) in open(path)?.lines().enumerate() {
        let number = index + 1;
        let place = || format!("{}:{number}", path.display());
        let text = line.with_context(place)?;
        if !text.trim().is_empty() {
            lines.push(Line { number, value: serde_json::from_str(&text).with_context(place)? });
        }
    }
    if lines.is_empty() {
        bail!("{}: holds no line", path.display());
    }
    Ok(lines)
}

/// The header and the data lines of a golden vector file.
///
/// As [`lines`]; a first line without `fields` is no header and thus an error, so that a cut file is noticed.
pub fn with_header(path: &Path) -> Result<(Value, Vec<Line>)> {
    let mut all = lines(path)?;
    let header = all.remove(0).value;
    if header.get("fields").is_none() {
        bail!("{}:1: the first line is no header (it has no \"fields\")", path.display());
    }
    if all.is_empty() {
        bail!("{}: holds a header and no data", path.display());
    }
    Ok((header, all))
}

/// The data lines of a golden vector file as values of a type, with their line numbers.
///
/// As [`with_header`]; a line that is not of the type is an error that names file and line.
pub fn data<T: DeserializeOwned>(path: &Path) -> Result<Vec<(usize, T)>> {
    let (_, lines) = with_header(path)?;
    let typed = |Line { number, value }| {
        let value = serde_json::from_value(value).with_context(|| format!("{}:{number}", path.display()))?;
        Ok((number, value))
    };
    lines.into_iter().map(typed).collect()
}

/// A whole JSON file.
pub fn json(path: &Path) -> Result<Value> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}
