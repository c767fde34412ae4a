//! Documents and the objects in them.

use std::sync::Arc;

use maitred::error::FaultKind;
use serde_json::Value;

use crate::build::{self, Built, Remark};
use crate::scalar::Surprise;
use crate::split::{self, Piece};
use crate::tree::{Data, Found, Mark, Node};

/// One document of a file.
#[derive(Debug)]
pub struct Document {
    /// The file's name as it was given; `-` for standard input.
    pub file: Arc<str>,
    /// Number in the file, from 0. Documents without content are not counted.
    pub index: usize,
    /// The objects: one, or as many as a list holds.
    pub items: Vec<Item>,
    /// What keeps the document, or an item of its list, from being read as an object. Items that could be read are
    /// there nevertheless.
    pub problems: Vec<Remark>,
    /// Readings that surprise, in places that belong to no item.
    pub warnings: Vec<Remark>,
}

/// One object as it was written, before anything is decoded.
#[derive(Debug)]
pub struct Item {
    /// The object as JSON. What a typed list leaves to its items to inherit is filled in.
    pub value: Value,
    /// Group and version; never empty.
    pub api_version: String,
    /// Kind; never empty.
    pub kind: String,
    /// Name; empty when there is none.
    pub name: String,
    /// Readings that surprise, in order of their places.
    pub warnings: Vec<Remark>,
    node: Node,
}

/// Documents of one file that are read.
const MAX_DOCUMENTS: usize = 10_000;

/// Reads the text of a file named `name`. Never fails as a whole: what cannot be read is in the documents' problems, and
/// one bad document does not hide the others.
///
/// Cost: linear in the text and in what its aliases stand for, which is bounded.
pub fn read_str(name: &str, text: &str) -> Vec<Document> {
    let file: Arc<str> = name.into();
    let mut documents = Vec::new();
    for piece in split::pieces(text) {
        let mut document = Document {
            file: file.clone(),
            index: documents.len(),
            items: Vec::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        };
        if documents.len() == MAX_DOCUMENTS {
            let message = format!("the file has more than {MAX_DOCUMENTS} documents: split it");
            document.problems.push(Remark::syntax(piece.start, message));
            documents.push(document);
            break;
        }
        match read_piece(&piece) {
            Ok(Built { root: None, .. }) => continue,
            Ok(Built { root: Some(Node { data: Data::Scalar(Value::Null), .. }), .. }) => continue,
            Ok(Built { root: Some(root), remarks }) => document.fill(root, remarks),
            Err(remark) => document.problems.push(remark),
        }
        documents.push(document);
    }
    documents
}

pub(crate) fn read_piece(piece: &Piece<'_>) -> Result<Built, Remark> {
    if let Some(remark) = &piece.separator {
        return Err(remark.clone());
    }
    build::document(piece.text, piece.start, piece.notation).map_err(|mut remark| {
        if piece.text.contains("{{") {
            remark.message.push_str(" (this looks like a template: render it first)");
        }
        remark
    })
}

fn is_list(node: &Node) -> bool {
    node.text("kind").is_some_and(|kind| kind.ends_with("List"))
}

impl Document {
    /// The objects that are the items of a list in a file of another form.
    pub(crate) fn of_list(file: Arc<str>, items: Vec<Node>) -> Document {
        let mut document =
            Document { file, index: 0, items: Vec::new(), problems: Vec::new(), warnings: Vec::new() };
        document.add_all(items, &Inherited::default(), 0);
        document
    }

    fn fill(&mut self, root: Node, remarks: Vec<Remark>) {
        let list = matches!(root.text("kind"), Some(kind) if kind.ends_with("List"))
            && root.entry("items").is_none_or(|items| !matches!(items.value.data, Data::Mapping(_)));
        if list {
            self.fill_list(root, Inherited::default(), 0)
        } else {
            self.add(root, &Inherited::default())
        }
        // An item reaches to where the next one begins.
        for remark in remarks {
            let behind = self.items.partition_point(|item| item.node.at <= remark.at);
            let owner = self.items.get_mut(behind.saturating_sub(1));
            owner.map_or(&mut self.warnings, |item| &mut item.warnings).push(remark);
        }
        for item in &mut self.items {
            item.warnings.sort_by_key(|remark| remark.at);
            name_paths(&item.node, &mut String::new(), &mut item.warnings);
        }
    }

    fn fill_list(&mut self, list: Node, outer: Inherited, depth: usize) {
        let inherited = Inherited {
            api_version: list.text("apiVersion").map(str::to_owned).or(outer.api_version),
            kind: list.text("kind").and_then(|kind| kind.strip_suffix("List")).unwrap_or_default().to_owned(),
        };
        let Data::Mapping(entries) = list.data else { return };
        let Some(items) = entries.into_iter().find(|entry| entry.key == "items") else { return };
        match items.value.data {
            Data::Sequence(items) => self.add_all(items, &inherited, depth),
            Data::Scalar(Value::Null) => {}
            _ => self.problems.push(Remark::syntax(items.at, "`items` must be a list of objects")),
        }
    }

    fn add_all(&mut self, items: Vec<Node>, inherited: &Inherited, depth: usize) {
        for item in items {
            if is_list(&item) && depth < build::MAX_DEPTH {
                self.fill_list(item, inherited.clone(), depth + 1);
            } else {
                self.add(item, inherited);
            }
        }
    }

    fn add(&mut self, node: Node, inherited: &Inherited) {
        match Item::new(node, inherited) {
            Ok(item) => self.items.push(item),
            Err(remark) => self.problems.push(remark),
        }
    }
}

/// What a typed list says for its items. An item that names either says both itself.
#[derive(Debug, Clone, Default)]
struct Inherited {
    api_version: Option<String>,
    kind: String,
}

impl Item {
    fn new(node: Node, inherited: &Inherited) -> Result<Item, Remark> {
        let fail = |at, message: &str| Err(Remark::syntax(at, message));
        if !matches!(node.data, Data::Mapping(_)) {
            let got = match &node.data {
                Data::Sequence(_) => "a list",
                Data::Scalar(Value::Null) => "empty",
                Data::Scalar(Value::String(_)) => "text",
                _ => "a single value",
            };
            return fail(node.at, &format!("an object begins with apiVersion and kind, but this is {got}"));
        }
        let own = (node.text("apiVersion"), node.text("kind"));
        let (api_version, kind) = match own {
            (None, None) => (
                inherited.api_version.as_deref(),
                Some(inherited.kind.as_str()).filter(|kind| !kind.is_empty()),
            ),
            own => own,
        };
        for (key, found) in [("kind", kind), ("apiVersion", api_version)] {
            if found.is_some() {
                continue;
            }
            let Some(entry) = node.entry(key) else {
                return fail(
                    node.at,
                    &format!("{key} is missing: every object names its apiVersion and kind"),
                );
            };
            let hint = entry.value.surprise.as_deref().map(|surprise| format!(" ({})", surprise.explain()));
            return fail(
                entry.at,
                &format!("{key} must be a string that is not empty{}", hint.unwrap_or_default()),
            );
        }
        let (api_version, kind) =
            (api_version.unwrap_or_default().to_owned(), kind.unwrap_or_default().to_owned());
        let name = node
            .entry("metadata")
            .and_then(|metadata| metadata.value.text("name"))
            .unwrap_or_default()
            .to_owned();
        let mut value = node.to_value();
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".to_owned(), api_version.as_str().into());
            fields.insert("kind".to_owned(), kind.as_str().into());
        }
        let mut warnings = Vec::new();
        surprises(&node, &mut String::new(), &mut warnings);
        Ok(Item { value, api_version, kind, name, warnings, node })
    }

    /// Where the field at `path` (`spec.rules[0].verbs`) is written: its key, or the item of a list. The nearest parent
    /// that is written when the field itself is not.
    pub fn place_of(&self, path: &str) -> Mark {
        self.node.find(path).0
    }

    /// Why the value at `path` may not be what its writer meant: what YAML 1.1 makes of the words and numbers there.
    pub fn surprise_at(&self, path: &str) -> Option<String> {
        match self.node.find(path) {
            (_, node, Found::Exact) => node.surprise.as_deref().map(Surprise::explain),
            _ => None,
        }
    }

    /// Where the object begins.
    pub fn start(&self) -> Mark {
        self.node.at
    }
}

/// Warns of numbers in unusual notation. Words that are booleans are left to the decoder: where a boolean is wanted
/// they are right, and elsewhere they are a fault.
pub(crate) fn surprises(node: &Node, path: &mut String, warnings: &mut Vec<Remark>) {
    match node.surprise.as_deref() {
        None | Some(Surprise::Word(_)) => {}
        Some(surprise) => {
            let remark = Remark::new(FaultKind::Invalid, node.at, surprise.explain());
            warnings.push(Remark { path: path.clone(), ..remark });
        }
    }
    node.each_member(path, |_, member, path| surprises(member, path, warnings));
}

/// Finds the paths of remarks, sorted by their places, that were made before there were paths. They stand at keys.
pub(crate) fn name_paths(node: &Node, path: &mut String, remarks: &mut [Remark]) {
    if remarks.is_empty() {
        return;
    }
    node.each_member(path, |key, member, path| {
        if let Some(key) = key {
            let first = remarks.partition_point(|remark| remark.at < key);
            for remark in remarks[first..].iter_mut().take_while(|remark| remark.at == key) {
                remark.path.clone_from(path);
            }
        }
        name_paths(member, path, remarks);
    });
}
