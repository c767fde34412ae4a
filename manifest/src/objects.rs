//! From items to API objects: decoded, given defaults and checked as a server does, every fault with its place.

use maitred::api::{DecodeOptions, GROUP, Kind, Object, Objects, Version, decode_with, validate_with};
use maitred::api::{Reading, Reference};
use maitred::error::{Fault, FaultKind, Location, ObjectRef};

use crate::build::Remark;
use crate::document::{Document, Item};
use crate::names;
use crate::source::{Manifest, Unreadable};
use crate::tree::Mark;

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// As kubectl and a server that only warns read them.
    #[default]
    Warn,
    /// Everything that would be a warning is a fault: unknown fields, keys given twice, numbers that surprise.
    Strict,
}

/// An object in a file and what a server would make of it.
#[derive(Debug)]
pub struct Entry {
    /// Kind and name, as far as they are told.
    pub object: ObjectRef,
    /// Where it begins.
    pub at: Location,
    /// What it is.
    pub content: Content,
    /// Why a server, or kubectl before it, would not take it; in order of their places.
    pub faults: Vec<Fault>,
    /// What is legal but may not be meant, as faults that nobody has to act on; in order of their places.
    pub warnings: Vec<Fault>,
    /// As it was written; `None` where that could not be told.
    item: Option<Item>,
}

/// What an entry is.
#[derive(Debug)]
pub enum Content {
    /// An object of flow control, with defaults. It may have faults all the same, and must not be used then.
    Object {
        /// In hub form.
        object: Box<Object>,
        /// The version that it was written in.
        version: Version,
    },
    /// Nothing that can be read as an object; the faults say why.
    Unreadable,
    /// An object of another API, which is none of ours.
    Foreign {
        /// Its `apiVersion`.
        api_version: String,
    },
}

impl Entry {
    /// Whether it is an object of flow control without a fault.
    pub fn accepted(&self) -> bool {
        self.faults.is_empty() && matches!(self.content, Content::Object { .. })
    }

    /// The object, if the entry is one; with or without faults.
    pub fn decoded(&self) -> Option<&Object> {
        match &self.content {
            Content::Object { object, .. } => Some(object),
            _ => None,
        }
    }

    /// Where the field at `path` is written; the nearest parent that is where the field itself is not.
    pub fn place_of(&self, path: &str) -> Location {
        match &self.item {
            Some(item) => {
                let Mark { line, column } = item.place_of(path);
                Location { line, column, ..self.at.clone() }
            }
            None => self.at.clone(),
        }
    }

    /// A fault of this object, with its place.
    pub fn fault(&self, kind: FaultKind, path: &str, detail: impl Into<String>) -> Fault {
        let fault = Fault::new(kind, path, detail);
        Fault { object: Some(self.object.clone()), at: Some(self.place_of(path)), ..fault }
    }
}

impl Manifest {
    /// Every object in the files, decoded and checked one by one, and what could not be read at all.
    pub fn into_entries(self, strictness: Strictness) -> (Vec<Entry>, Vec<Unreadable>) {
        let documents = self.documents.into_iter();
        (documents.flat_map(|document| document.into_entries(strictness)).collect(), self.unreadable)
    }
}

impl Document {
    /// Every object in the document, decoded and checked; then what could not be read.
    pub fn into_entries(mut self, strictness: Strictness) -> Vec<Entry> {
        let items = std::mem::take(&mut self.items);
        let mut entries: Vec<_> = items.into_iter().map(|item| self.entry(item, strictness)).collect();
        entries.extend(self.problems.iter().map(|problem| {
            let at = self.location(problem.at);
            Entry {
                object: ObjectRef { kind: String::new(), name: String::new() },
                at: at.clone(),
                content: Content::Unreadable,
                faults: vec![Fault { at: Some(at), ..Fault::new(problem.kind, "", &problem.message) }],
                warnings: Vec::new(),
                item: None,
            }
        }));
        // A warning that belongs to no object goes with the first.
        if let Some(first) = entries.first_mut() {
            first.warnings.extend(self.warnings.iter().map(|remark| self.fault(remark, &first.object)));
            first.settle(strictness);
        }
        entries
    }

    /// The place of a mark in this document.
    pub fn location(&self, mark: Mark) -> Location {
        Location { file: Some(self.file.clone()), document: self.index, line: mark.line, column: mark.column }
    }

    fn fault(&self, remark: &Remark, object: &ObjectRef) -> Fault {
        Fault {
            object: Some(object.clone()),
            at: Some(self.location(remark.at)),
            ..Fault::new(remark.kind, &remark.path, &remark.message)
        }
    }

    fn entry(&self, item: Item, strictness: Strictness) -> Entry {
        let object = ObjectRef { kind: item.kind.clone(), name: item.name.clone() };
        let mut entry = Entry {
            at: self.location(item.start()),
            content: Content::Foreign { api_version: item.api_version.clone() },
            faults: Vec::new(),
            warnings: Vec::new(),
            object,
            item: None,
        };
        // The kind alone makes it ours, too: a wrong group is a likely mistake, a foreign FlowSchema is not likely.
        let group = item.api_version.split_once('/').map_or("", |(group, _)| group);
        if group != GROUP && Kind::from_name(&item.kind).is_none() {
            entry.item = Some(item);
            return entry;
        }
        // kubectl rewrites whole floats on their way to the server.
        let options = DecodeOptions { whole_floats: true, ..DecodeOptions::default() };
        let Reading { object, version, mut faults, unknown } = decode_with(&item.value, options);
        entry.content = match (object, version) {
            (Some(object), Some(version)) => {
                faults.extend(validate_with(&object, version, Reference::default()));
                if !object.metadata().namespace.is_empty() {
                    let detail = "these kinds have no namespace: kubectl drops it, delete the line";
                    entry.warnings.push(Fault::new(FaultKind::Forbidden, "metadata.namespace", detail));
                }
                Content::Object { object: Box::new(object), version }
            }
            _ => Content::Unreadable,
        };
        entry
            .warnings
            .extend(unknown.into_iter().map(|fault| Fault { detail: names::advice(&fault.path), ..fault }));
        for fault in faults.iter_mut().chain(&mut entry.warnings) {
            fault.object = Some(entry.object.clone());
            fault.at = Some(self.location(item.place_of(&fault.path)));
        }
        for fault in faults.iter_mut().filter(|fault| fault.kind == FaultKind::TypeInvalid) {
            if let Some(surprise) = item.surprise_at(&fault.path) {
                fault.detail = format!("{} ({surprise})", fault.detail);
            }
        }
        entry.warnings.extend(item.warnings.iter().map(|remark| self.fault(remark, &entry.object)));
        entry.faults = faults;
        entry.item = Some(item);
        entry.settle(strictness);
        entry
    }
}

impl Entry {
    /// Puts warnings where the strictness wants them, and everything in order.
    fn settle(&mut self, strictness: Strictness) {
        if strictness == Strictness::Strict {
            self.faults.append(&mut self.warnings);
        }
        for faults in [&mut self.faults, &mut self.warnings] {
            faults.sort_by_key(|fault| fault.at.as_ref().map(|at| (at.line, at.column)));
        }
    }
}

/// The objects of entries that were accepted.
///
/// # Errors
/// Every fault of every entry, if there is one; and an object that is given twice, by kind and name.
pub fn objects(entries: &[Entry]) -> Result<Objects, Vec<Fault>> {
    let mut faults: Vec<_> = entries.iter().flat_map(|entry| &entry.faults).cloned().collect();
    faults.extend(duplicates(entries));
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(entries.iter().filter_map(Entry::decoded).cloned().collect())
}

/// A fault for each object that was given before. (kubectl would write one over the other.)
pub fn duplicates(entries: &[Entry]) -> Vec<Fault> {
    let mut seen = std::collections::HashMap::new();
    let mut faults = Vec::new();
    for entry in entries.iter().filter(|entry| entry.decoded().is_some()) {
        if let Some(first) = seen.insert(&entry.object, &entry.at) {
            let detail = format!("this object is also in {first}: the later one would be written over it");
            let fault = entry.fault(FaultKind::Duplicate, "metadata.name", detail);
            faults.push(fault.with_value(entry.object.name.as_str()));
        }
    }
    faults
}
