//! Cuts a file into the texts of its documents, where kubectl cuts it.

use serde::de::IgnoredAny;

use crate::build::{Notation, Remark};
use crate::tree::Mark;

const BOM: char = '\u{feff}';

/// The text of one document.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    /// Where the text begins in the file.
    pub(crate) start: Mark,
    pub(crate) notation: Notation,
    /// What is wrong with the line that begins the document.
    pub(crate) separator: Option<Remark>,
}

/// The documents of a file: JSON values one behind the other while the text goes on with `{` and is valid JSON, then
/// YAML between lines of `---`.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text.strip_prefix(BOM).unwrap_or(text);
    let mut start = Mark { line: 1, column: 1 };
    loop {
        let blank = rest.len() - rest.trim_start().len();
        if !rest[blank..].starts_with('{') {
            break;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let Some(Ok(_)) = values.next() else { break };
        let (value, behind) = rest.split_at(values.byte_offset());
        pieces.push(Piece { text: value, start, notation: Notation::Json, separator: None });
        start = advance(start, value);
        rest = behind;
    }
    yaml(rest, start, &mut pieces);
    pieces
}

/// Cuts at lines that begin with `---`. Behind it only a comment may stand; a document whose first line holds more is
/// refused by kubectl, and so it is here.
fn yaml<'a>(text: &'a str, start: Mark, pieces: &mut Vec<Piece<'a>>) {
    let mut piece = Piece { text: "", start, notation: Notation::Yaml, separator: None };
    let (mut from, mut offset, mut here) = (0, 0, start);
    for line in text.split_inclusive('\n') {
        if let Some(behind) = line.strip_prefix("---") {
            piece.text = &text[from..offset];
            pieces.push(piece);
            let behind = behind.trim();
            let separator = (!behind.is_empty() && !behind.starts_with('#')).then(|| {
                let shown = shorten(behind);
                Remark::syntax(
                    here,
                    format!("only a comment may stand behind `---`, not `{shown}`: put it on the next line"),
                )
            });
            from = offset + line.len();
            piece = Piece { text: "", start: advance(here, line), notation: Notation::Yaml, separator };
        }
        offset += line.len();
        here = advance(here, line);
    }
    piece.text = &text[from..];
    pieces.push(piece);
    for piece in pieces {
        piece.text = piece.text.strip_prefix(BOM).unwrap_or(piece.text);
    }
}

fn advance(mark: Mark, text: &str) -> Mark {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match text.rfind('\n') {
        None => Mark { column: mark.column.saturating_add(count(text.chars().count())), ..mark },
        Some(last) => Mark {
            line: mark.line.saturating_add(count(text.bytes().filter(|&byte| byte == b'\n').count())),
            column: 1 + count(text[last + 1..].chars().count()),
        },
    }
}

/// The beginning of `text`, for a message.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(&str, u32)> {
        pieces(text).into_iter().map(|piece| (piece.text, piece.start.line)).collect()
    }

    #[test]
    fn documents_end_at_lines_of_three_dashes_with_or_without_a_comment() {
        assert_eq!(
            texts("a: 1\n--- # next\nb: 2\r\n---\r\nc: 3"),
            [("a: 1\n", 1), ("b: 2\r\n", 3), ("c: 3", 5)]
        );
        assert_eq!(texts("a: |\n ---\n"), [("a: |\n ---\n", 1)]);
    }

    #[test]
    fn a_separator_with_content_is_refused() {
        assert!(pieces("a: 1\n--- {b: 2}\n")[1].separator.is_some());
        assert!(pieces("a: 1\n---b: 2\n")[1].separator.is_some());
    }

    #[test]
    fn json_values_follow_each_other_and_then_yaml() {
        assert_eq!(
            texts("{\"a\":1}\n{\"b\":2}\n---\nc: 3\n"),
            [("{\"a\":1}", 1), ("\n{\"b\":2}", 1), ("\n", 2), ("c: 3\n", 4)]
        );
        assert_eq!(texts("{a: 1}"), [("{a: 1}", 1)]);
    }

    #[test]
    fn a_byte_order_mark_may_begin_each_document() {
        assert_eq!(texts("\u{feff}a: 1\n---\n\u{feff}b: 2"), [("a: 1\n", 1), ("b: 2", 3)]);
    }
}
