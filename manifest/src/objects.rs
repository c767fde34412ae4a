//! From items to API objects: decoded, given defaults and checked as a server does, every fault with its place.

use maitred::api::{DecodeOptions, GROUP, Kind, Object, Objects, Version, decode_with, validate_with};
use maitred::api::{Reading, Reference};
use maitred::error::{Fault, FaultKind, Location, ObjectRef};

use crate::build::Remark;
use crate::document::{Document, Item};
use crate::source::Manifest;
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
#[derive(Debug, Clone)]
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
}

/// What an entry is.
#[derive(Debug, Clone)]
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
}

impl Manifest {
    /// Every object in the files, decoded and checked one by one.
    pub fn entries(&self, strictness: Strictness) -> Vec<Entry> {
        self.documents.iter().flat_map(|document| document.entries(strictness)).collect()
    }
}

impl Document {
    /// Every object in the document, decoded and checked; then what could not be read.
    pub fn entries(&self, strictness: Strictness) -> Vec<Entry> {
        let mut entries: Vec<_> = self.items.iter().map(|item| self.entry(item, strictness)).collect();
        entries.extend(self.problems.iter().map(|problem| {
            let at = self.location(problem.at);
            Entry {
                object: ObjectRef { kind: String::new(), name: String::new() },
                at: at.clone(),
                content: Content::Unreadable,
                faults: vec![Fault { at: Some(at), ..Fault::new(problem.kind, "", &problem.message) }],
                warnings: Vec::new(),
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

    fn entry(&self, item: &Item, strictness: Strictness) -> Entry {
        let object = ObjectRef { kind: item.kind.clone(), name: item.name.clone() };
        let mut entry = Entry {
            at: self.location(item.start()),
            content: Content::Foreign { api_version: item.api_version.clone() },
            faults: Vec::new(),
            warnings: Vec::new(),
            object,
        };
        // The kind alone makes it ours, too: a wrong group is a likely mistake, a foreign FlowSchema is not likely.
        let group = item.api_version.split_once('/').map_or("", |(group, _)| group);
        if group != GROUP && Kind::from_name(&item.kind).is_none() {
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
        entry.warnings.extend(unknown);
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
    let object = |entry: &Entry| match &entry.content {
        Content::Object { object, .. } => Some(Object::clone(object)),
        _ => None,
    };
    Ok(entries.iter().filter_map(object).collect())
}

/// A fault for each object that was given before. (kubectl would write one over the other.)
pub fn duplicates(entries: &[Entry]) -> Vec<Fault> {
    let mut seen = std::collections::HashMap::new();
    let mut faults = Vec::new();
    for entry in entries.iter().filter(|entry| matches!(entry.content, Content::Object { .. })) {
        if let Some(first) = seen.insert(&entry.object, &entry.at) {
            let detail = format!("this object is also in {first}: the later one would be written over it");
            let fault = Fault::new(FaultKind::Duplicate, "metadata.name", detail)
                .with_value(entry.object.name.as_str());
            faults.push(Fault { object: Some(entry.object.clone()), at: Some(entry.at.clone()), ..fault });
        }
    }
    faults
}
