//! Builds the tree of one document from the parser's events.
//!
//! Anchors are copied where an alias names them, and merge keys are resolved, as the reference does it: in the order of
//! the file, so that a merge overrides what stands before it. Depth and size are bounded, also those of the copies.

use std::collections::HashMap;

use granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle, options,
};
use maitred::error::FaultKind;
use serde_json::Value;

use crate::scalar::{self, Tag};
use crate::tree::{Data, Entry, Mark, Node};

/// Nesting of lists and mappings, copies of anchors included.
pub(crate) const MAX_DEPTH: usize = 100;
/// Scalars, lists and mappings of one document.
pub(crate) const MAX_NODES: usize = 1_000_000;
/// Nodes that aliases may add to a document.
pub(crate) const MAX_ALIASED: usize = 250_000;

/// Something to say about a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Where.
    pub at: Mark,
    /// JSON field path within the object; empty where it is not about a field.
    pub path: String,
    /// What sort of fault it is to a reader who tolerates nothing.
    pub kind: FaultKind,
    /// What is the matter and what to do about it.
    pub message: String,
}

impl Remark {
    /// About text that cannot be read.
    pub(crate) fn syntax(at: Mark, message: impl Into<String>) -> Remark {
        Remark::new(FaultKind::Syntax, at, message)
    }

    pub(crate) fn new(kind: FaultKind, at: Mark, message: impl Into<String>) -> Remark {
        Remark { at, path: String::new(), kind, message: message.into() }
    }
}

/// What a document's text holds.
pub(crate) struct Built {
    /// `None` for a document of comments only.
    pub(crate) root: Option<Node>,
    /// Readings that surprise, but for those that the nodes carry.
    pub(crate) remarks: Vec<Remark>,
}

/// Which of the two notations the text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    Yaml,
    /// Known to be valid JSON.
    Json,
}

/// Reads the first document of `text`, which begins at `start` in its file.
pub(crate) fn document(text: &str, start: Mark, notation: Notation) -> Result<Built, Remark> {
    let mut options = options! { bom_inside_document_as_content: true };
    options.set_emit_comments(false);
    if notation == Notation::Json {
        options.simple_key_max_lookahead = usize::MAX;
    }
    let mut builder = Builder {
        text,
        start,
        notation,
        parser: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        nodes: 0,
        aliased: 0,
        tabs_allowed: Vec::new(),
        remarks: Vec::new(),
    };
    let root = builder.root()?;
    if notation == Notation::Yaml {
        builder.check_tabs()?;
        builder.line_breaks();
    }
    Ok(Built { root, remarks: builder.remarks })
}

struct Builder<'a> {
    text: &'a str,
    start: Mark,
    notation: Notation,
    parser: Parser<'a, StrInput<'a>>,
    /// Finished nodes by anchor number, with their sizes. One that is still being built is not there.
    anchors: HashMap<usize, (Node, Extent)>,
    nodes: usize,
    aliased: usize,
    /// Lines after the first and up to the second of each pair may begin with a tab.
    tabs_allowed: Vec<(usize, usize)>,
    remarks: Vec<Remark>,
}

/// How many nodes a node is made of, and how deep they nest.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    nodes: usize,
    depth: usize,
}

impl<'a> Builder<'a> {
    fn root(&mut self) -> Result<Option<Node>, Remark> {
        let root = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(None),
                (event, span) => break self.node(event, span, 0)?.0,
            }
        };
        // The reference reads one document between two `---` lines and never looks behind its end.
        loop {
            match self.next()? {
                (Event::DocumentStart(..), span) => {
                    let message =
                        "what follows `...` is ignored by kubectl: put `---` on a line of its own".to_owned();
                    self.remarks.push(Remark::syntax(self.mark(span), message));
                    return Ok(Some(root));
                }
                (Event::StreamEnd, _) => return Ok(Some(root)),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Remark> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn syntax(&self, error: &ScanError) -> Remark {
        let mut message = match error.kind() {
            // The parser looks ahead, and meets its own bound before we meet ours.
            ErrorKind::RecursionLimitExceeded => {
                format!("lists and mappings are nested more than {MAX_DEPTH} deep")
            }
            _ => error.info(),
        };
        let at = error.marker().byte_offset().unwrap_or_default();
        let before = self.text.get(..at).unwrap_or_default();
        if before.ends_with('*') || self.text.get(at..).is_some_and(|rest| rest.starts_with('*')) {
            message.push_str(" (an asterisk must be quoted: '*')");
        }
        Remark::syntax(self.at(error.marker().line(), error.marker().col()), message)
    }

    fn at(&self, line: usize, column: usize) -> Mark {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let before = if line <= 1 { self.start.column } else { 1 };
        let line = self.start.line.saturating_add(count(line.max(1)) - 1);
        Mark { line, column: count(column).saturating_add(before) }
    }

    fn mark(&self, span: Span) -> Mark {
        self.at(span.start.line(), span.start.col())
    }

    /// Builds the node that `event` begins, `depth` collections down.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<(Node, Extent), Remark> {
        let at = self.mark(span);
        let fail = |message: String| Remark::syntax(at, message);
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(fail(format!("the document has more than {MAX_NODES} values: split the file")));
        }
        if depth > MAX_DEPTH {
            return Err(fail(format!("lists and mappings are nested more than {MAX_DEPTH} deep")));
        }
        let (data, surprise, anchor, extent) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.check_escapes(style, span).map_err(fail)?;
                self.allow_tabs(span.start.line(), span.end.line());
                let (value, surprise) = match &tag {
                    Some(tag) => {
                        // A tag of one's own leaves a scalar the text that it is, and so does a lone `!`.
                        let name = tag.suffix_in_namespace("tag:yaml.org,2002:");
                        let tag = Tag::of(name.as_deref().unwrap_or_default());
                        (scalar::tagged(tag, &text).map_err(fail)?, None)
                    }
                    None if style == ScalarStyle::Plain => scalar::plain(&text).map_err(fail)?,
                    None => (Value::String(text.into_owned()), None),
                };
                (Data::Scalar(value), surprise.map(Box::new), anchor, Extent { nodes: 1, depth: 0 })
            }
            Event::SequenceStart(style, anchor, _) => {
                let (items, extent, end) = self.sequence(depth)?;
                if style == StructureStyle::Flow {
                    self.allow_tabs(span.start.line(), end);
                }
                (Data::Sequence(items), None, anchor, extent)
            }
            Event::MappingStart(style, anchor, _) => {
                let (entries, extent, end) = self.mapping(depth)?;
                if style == StructureStyle::Flow {
                    self.allow_tabs(span.start.line(), end);
                }
                (Data::Mapping(entries), None, anchor, extent)
            }
            Event::Alias(anchor) => return self.alias(anchor, at, depth),
            _ => return Err(fail("this is no value".to_owned())),
        };
        let node = Node { at, data, surprise };
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), extent));
            // The copy that is kept is paid for, too: nested anchors would else cost the square of their depth.
            self.spend(extent.nodes, at)?;
        }
        Ok((node, extent))
    }

    fn alias(&mut self, anchor: usize, at: Mark, depth: usize) -> Result<(Node, Extent), Remark> {
        let Some((_, extent)) = self.anchors.get(&anchor) else {
            return Err(Remark::syntax(at, "an anchor's value must not contain the anchor itself"));
        };
        let extent = *extent;
        if depth + extent.depth > MAX_DEPTH {
            let message =
                format!("with this alias, lists and mappings are nested more than {MAX_DEPTH} deep");
            return Err(Remark::syntax(at, message));
        }
        self.spend(extent.nodes, at)?;
        let (node, _) = &self.anchors[&anchor];
        Ok((Node { at, ..node.clone() }, extent))
    }

    fn spend(&mut self, nodes: usize, at: Mark) -> Result<(), Remark> {
        self.aliased += nodes;
        if self.aliased > MAX_ALIASED {
            let message =
                format!("anchors and aliases blow the document up by more than {MAX_ALIASED} values");
            return Err(Remark::syntax(at, message));
        }
        Ok(())
    }

    /// The items, and the line in which the list ends.
    fn sequence(&mut self, depth: usize) -> Result<(Vec<Node>, Extent, usize), Remark> {
        let mut items = Vec::new();
        let mut extent = Extent { nodes: 1, depth: 1 };
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok((items, extent, span.end.line()));
            }
            let (item, inner) = self.node(event, span, depth + 1)?;
            extent.add(inner);
            items.push(item);
        }
    }

    /// The entries, and the line in which the mapping ends.
    fn mapping(&mut self, depth: usize) -> Result<(Vec<Entry>, Extent, usize), Remark> {
        let mut entries = Entries::default();
        let mut extent = Extent { nodes: 1, depth: 1 };
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok((entries.list, extent, span.end.line()));
            }
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            self.check_key(&event, span)?;
            let (key, inner) = self.node(event, span, depth + 1)?;
            extent.add(inner);
            let (event, span) = self.next()?;
            let (value, inner) = self.node(event, span, depth + 1)?;
            extent.add(inner);
            if merge {
                self.merge(&mut entries, key.at, value)?;
                continue;
            }
            let name = scalar::key(&key.to_value()).map_err(|message| Remark::syntax(key.at, message))?;
            if let Some(surprise) = &key.surprise {
                let message = format!("{}; the key is read as \"{name}\"", surprise.explain());
                self.remarks.push(Remark::new(FaultKind::Invalid, key.at, message));
            }
            if let Some(first) = entries.put(Entry { key: name.clone(), at: key.at, value, merged: false }) {
                let message =
                    format!("\"{name}\" is given twice, first in line {}: the last one counts", first.line);
                self.remarks.push(Remark::new(FaultKind::DuplicateField, key.at, message));
            }
        }
    }

    fn merge(&mut self, entries: &mut Entries, at: Mark, value: Node) -> Result<(), Remark> {
        let refused = || Remark::syntax(at, "`<<` takes a mapping or a list of mappings");
        let sources = match value.data {
            Data::Mapping(source) => vec![source],
            // Earlier ones take precedence: put them last.
            Data::Sequence(items) => items
                .into_iter()
                .rev()
                .map(|item| match item.data {
                    Data::Mapping(source) => Ok(source),
                    _ => Err(refused()),
                })
                .collect::<Result<_, _>>()?,
            Data::Scalar(_) => return Err(refused()),
        };
        for entry in sources.into_iter().flatten() {
            let key = entry.key.clone();
            if entries.put(Entry { merged: true, ..entry }).is_some() {
                let message = format!("`<<` overrides the \"{key}\" that stands before it: put `<<` first");
                self.remarks.push(Remark::new(FaultKind::DuplicateField, at, message));
            }
        }
        Ok(())
    }

    fn allow_tabs(&mut self, from: usize, to: usize) {
        if from < to {
            self.tabs_allowed.push((from, to));
        }
    }

    /// Refuses a key that goes on in the next line, unless `?` announces it: mostly a bracket is missing before it.
    fn check_key(&self, event: &Event<'_>, span: Span) -> Result<(), Remark> {
        let one_line = span.start.line() == span.end.line() || !matches!(event, Event::Scalar(..));
        let before = span.byte_range().and_then(|range| self.text.get(..range.start)).unwrap_or_default();
        if one_line || before.trim_end().ends_with('?') {
            return Ok(());
        }
        let message =
            "a key must end in the line that it begins in: is a bracket or a comma missing before it?";
        Err(Remark::syntax(self.mark(span), message))
    }

    /// Refuses tabs that indent. Within brackets and within text of several lines they are harmless.
    fn check_tabs(&mut self) -> Result<(), Remark> {
        self.tabs_allowed.sort_unstable();
        let mut allowed = self.tabs_allowed.iter().peekable();
        let mut allowed_to = 0;
        for (index, line) in self.text.split('\n').enumerate() {
            let number = index + 1;
            while let Some((_, to)) = allowed.next_if(|(from, _)| *from < number) {
                allowed_to = allowed_to.max(*to);
            }
            let blanks = line.len() - line.trim_start_matches(' ').len();
            if line[blanks..].starts_with('\t') && number > allowed_to {
                let message = "kubectl takes no tab here: indent with spaces".to_owned();
                return Err(Remark::syntax(self.at(number, blanks), message));
            }
        }
        Ok(())
    }

    /// Warns of characters that YAML 1.1 takes for line breaks and nobody sees.
    fn line_breaks(&mut self) {
        for (index, line) in self.text.split('\n').enumerate() {
            let hidden = line
                .chars()
                .enumerate()
                .find(|(_, character)| matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}'));
            if let Some((column, character)) = hidden {
                let message = format!(
                    "kubectl takes the character U+{:04X} for a line break: remove it",
                    u32::from(character)
                );
                let at = self.at(index + 1, column);
                self.remarks.push(Remark::syntax(at, message));
            }
        }
    }

    /// Refuses the escapes that JSON and YAML 1.2 have and kubectl's YAML has not.
    fn check_escapes(&self, style: ScalarStyle, span: Span) -> Result<(), String> {
        if self.notation == Notation::Json || style != ScalarStyle::DoubleQuoted {
            return Ok(());
        }
        let mut characters = span.slice(self.text).unwrap_or_default().chars();
        while let Some(character) = characters.next() {
            if character != '\\' {
                continue;
            }
            match characters.next() {
                Some('/') => return Err("kubectl does not know the escape `\\/`: write `/`".to_owned()),
                Some('u')
                    if characters.as_str().starts_with(['d', 'D'])
                        && characters.as_str()[1..].starts_with(|digit: char| digit >= '8') =>
                {
                    return Err(
                        "kubectl does not know surrogate escapes: write the character itself, or `\\U`"
                            .to_owned(),
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Extent {
    fn add(&mut self, inner: Extent) {
        self.nodes += inner.nodes;
        self.depth = self.depth.max(inner.depth + 1);
    }
}

/// The entries of a mapping in the order of their first appearance.
#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    places: HashMap<String, usize>,
}

impl Entries {
    /// Puts `entry`, replacing one of the same key; the place of that one is returned unless a merge had put it there.
    fn put(&mut self, entry: Entry) -> Option<Mark> {
        match self.places.get(&entry.key) {
            None => {
                self.places.insert(entry.key.clone(), self.list.len());
                self.list.push(entry);
                None
            }
            Some(&place) => {
                let old = std::mem::replace(&mut self.list[place], entry);
                (!old.merged).then_some(old.at)
            }
        }
    }
}
