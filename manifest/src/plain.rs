//! Files that are no API objects, though they may hold some: one document, read by the same rules, with places.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use maitred::error::{Fault, FaultKind, Location};
use serde_json::Value;

use crate::build::Remark;
use crate::document::{Document, name_paths, read_piece, surprises};
use crate::scalar::Surprise;
use crate::source::{self, Unreadable};
use crate::split;
use crate::tree::{Data, Found, Mark, Node};

/// A document of any form.
#[derive(Debug)]
pub struct Plain {
    /// What it says, as JSON.
    pub value: Value,
    /// Keys given twice, and readings that surprise, in order of their places.
    pub warnings: Vec<Fault>,
    file: Arc<str>,
    node: Node,
}

impl Plain {
    /// Reads the file at `path`; `-` is `stdin`. Blocks as reading files does.
    ///
    /// # Errors
    /// The one fault that keeps it from being read, with its place; an empty file, or one of several documents, too.
    pub fn read(path: &Path, stdin: &mut dyn Read) -> Result<Plain, Box<Fault>> {
        let name = path.to_string_lossy();
        let bytes = match File::open(path) {
            _ if path == Path::new("-") => source::bytes(&name, stdin),
            Ok(mut file) => source::bytes(&name, &mut file),
            Err(error) => Err(Unreadable { file: name.to_string(), message: error.to_string() }),
        };
        let unreadable = |Unreadable { file, message }| {
            Box::new(Fault {
                at: Some(Location { file: Some(file.into()), ..Location::default() }),
                ..Fault::new(FaultKind::Syntax, "", message)
            })
        };
        let bytes = bytes.map_err(unreadable)?;
        Plain::read_str(&name, source::text(&name, &bytes).map_err(unreadable)?)
    }

    /// Reads the text of a file named `name`.
    ///
    /// # Errors
    /// As [`read`](Plain::read).
    pub fn read_str(name: &str, text: &str) -> Result<Plain, Box<Fault>> {
        let file: Arc<str> = name.into();
        let fault = |remark: &Remark| Fault {
            at: Some(place(&file, remark.at)),
            ..Fault::new(remark.kind, &remark.path, &remark.message)
        };
        let mut read: Option<(Node, Vec<Remark>)> = None;
        for piece in split::pieces(text) {
            let built = read_piece(&piece).map_err(|remark| Box::new(fault(&remark)))?;
            let Some(root) = built.root else { continue };
            if matches!(root.data, Data::Scalar(Value::Null)) {
                continue;
            }
            if read.is_some() {
                let message = "one document is expected, and here begins another";
                return Err(Box::new(fault(&Remark::syntax(root.at, message))));
            }
            read = Some((root, built.remarks));
        }
        let Some((node, mut remarks)) = read else {
            let start = Mark { line: 1, column: 1 };
            return Err(Box::new(fault(&Remark::syntax(start, "there is nothing in it"))));
        };
        remarks.sort_by_key(|remark| remark.at);
        name_paths(&node, &mut String::new(), &mut remarks);
        surprises(&node, &mut String::new(), &mut remarks);
        remarks.sort_by_key(|remark| remark.at);
        let warnings = remarks.iter().map(fault).collect();
        Ok(Plain { value: node.to_value(), warnings, file, node })
    }

    /// Where the field at `path` (`flows[0].name`) is written; the nearest parent that is where the field itself is not.
    pub fn place_of(&self, path: &str) -> Location {
        place(&self.file, self.node.find(path).0)
    }

    /// Why the value at `path` may not be what its writer meant: what YAML 1.1 makes of the words and numbers there.
    pub fn surprise_at(&self, path: &str) -> Option<String> {
        match self.node.find(path) {
            (_, node, Found::Exact) => node.surprise.as_deref().map(Surprise::explain),
            _ => None,
        }
    }

    /// The API objects in the list at `path`; `None` if there is no list.
    pub fn objects_at(&self, path: &str) -> Option<Document> {
        match self.node.find(path) {
            (_, Node { data: Data::Sequence(items), .. }, Found::Exact) => {
                Some(Document::of_list(self.file.clone(), items.clone()))
            }
            _ => None,
        }
    }
}

fn place(file: &Arc<str>, mark: Mark) -> Location {
    Location { file: Some(file.clone()), document: 0, line: mark.line, column: mark.column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Strictness;

    #[test]
    fn values_know_their_places() {
        let plain = Plain::read_str("f", "# a\nflows:\n- {name: x,\n   rate: 010}\n").unwrap();
        assert_eq!(plain.value["flows"][0]["rate"], 8);
        assert_eq!(plain.place_of("flows[0].rate").to_string(), "f:4:4");
        assert_eq!(plain.place_of("flows[0].none").to_string(), "f:3:3");
        assert_eq!(plain.warnings.len(), 1);
        assert_eq!(plain.warnings[0].path, "flows[0].rate");
    }

    #[test]
    fn a_key_given_twice_is_told_with_its_path() {
        let plain = Plain::read_str("f", "a: {b: 1}\nc:\n  d: 1\n  d: 2\n").unwrap();
        assert_eq!((plain.warnings[0].kind, &*plain.warnings[0].path), (FaultKind::DuplicateField, "c.d"));
    }

    #[test]
    fn nothing_and_two_documents_are_refused_with_a_place() {
        assert_eq!(Plain::read_str("f", "# nothing\n").unwrap_err().at.unwrap().line, 1);
        assert_eq!(Plain::read_str("f", "a: 1\n---\nb: 1\n").unwrap_err().at.unwrap().line, 3);
        assert!(Plain::read_str("f", "---\na: 1\n---\n# no more\n").is_ok());
    }

    #[test]
    fn objects_in_a_list_keep_their_places() {
        let text = "objects:\n- apiVersion: flowcontrol.apiserver.k8s.io/v1\n  kind: FlowSchema\n  metadata: {name: x}\n";
        let plain = Plain::read_str("f", text).unwrap();
        let entries = plain.objects_at("objects").unwrap().into_entries(Strictness::Warn);
        assert_eq!(entries[0].at.line, 2);
        assert!(!entries[0].faults.is_empty());
        assert!(plain.objects_at("flows").is_none());
    }
}
