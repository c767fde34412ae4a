//! A document as a tree in which every key and value knows its place.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::scalar::Surprise;

/// A place in a file. Both counts begin at 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: Mark,
    pub(crate) data: Data,
    pub(crate) surprise: Option<Box<Surprise>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// Null, a boolean, a number or a string.
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) at: Mark,
    pub(crate) value: Node,
    /// Came from a merge key; what the mapping itself says may replace it without a word.
    pub(crate) merged: bool,
}

impl Node {
    pub(crate) fn to_value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::Sequence(items) => items.iter().map(Node::to_value).collect(),
            Data::Mapping(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for entry in entries {
                    map.insert(entry.key.clone(), entry.value.to_value());
                }
                Value::Object(map)
            }
        }
    }

    /// Calls `visit` for every member with the place of its key, where it has one, and its field path.
    pub(crate) fn each_member(
        &self,
        path: &mut String,
        mut visit: impl FnMut(Option<Mark>, &Node, &mut String),
    ) {
        let length = path.len();
        match &self.data {
            Data::Scalar(_) => {}
            Data::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    let _ = write!(path, "[{index}]");
                    visit(None, item, path);
                    path.truncate(length);
                }
            }
            Data::Mapping(entries) => {
                for entry in entries {
                    if entry.key.contains(['.', '[']) {
                        let _ = write!(path, "[{}]", entry.key);
                    } else {
                        path.push_str(if length == 0 { "" } else { "." });
                        path.push_str(&entry.key);
                    }
                    visit(Some(entry.at), &entry.value, path);
                    path.truncate(length);
                }
            }
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.data {
            Data::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The string under `key`; `None` when it is absent, empty or of another type.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.entry(key)?.value.data {
            Data::Scalar(Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The node at a field path and the place of what names it (its key, or the item itself); of the nearest parent
    /// where the path leads out of the tree.
    pub(crate) fn find(&self, path: &str) -> (Mark, &Node, Found) {
        let (mut at, mut node) = (self.at, self);
        for step in steps(path) {
            let next = match &node.data {
                Data::Mapping(_) => node.entry(step).map(|entry| (entry.at, &entry.value)),
                Data::Sequence(items) => {
                    step.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item.at, item))
                }
                Data::Scalar(_) => None,
            };
            match next {
                Some(next) => (at, node) = next,
                None => return (at, node, Found::Parent),
            }
        }
        (at, node, Found::Exact)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Exact,
    Parent,
}

/// The steps of a JSON field path: `spec.rules[0].verbs`, `metadata.labels[app.kubernetes.io/name]`.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let step;
            (step, rest) = if let Some(inner) = rest.strip_prefix('[') {
                inner.split_once(']').unwrap_or((inner, ""))
            } else {
                rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()))
            };
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if !step.is_empty() {
                return Some(step);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_names_indices_and_keys_in_brackets() {
        let all = |path| steps(path).collect::<Vec<_>>();
        assert_eq!(
            all("spec.rules[0].resourceRules[12].verbs"),
            ["spec", "rules", "0", "resourceRules", "12", "verbs"]
        );
        assert_eq!(
            all("metadata.labels[app.kubernetes.io/name]"),
            ["metadata", "labels", "app.kubernetes.io/name"]
        );
        assert_eq!(all(""), [""; 0]);
        assert_eq!(all("a[[..]["), ["a", "[.."]);
    }
}
