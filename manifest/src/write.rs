//! Writes JSON values as YAML that every reader takes the same, YAML 1.1 or 1.2.

use std::fmt::Write as _;

use serde_json::Value;

use crate::scalar;

/// `value` as a YAML document in the manner of kubectl: block style, two spaces, lists not indented. Ends with a line
/// break. [`read_str`](crate::read_str) gives the same value back.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(&mut out, value, 0),
        Value::Array(items) if !items.is_empty() => block(&mut out, value, 0),
        _ => {
            inline(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// Writes a list or mapping that is not empty; the cursor is where its first line is to begin.
fn block(out: &mut String, value: &Value, indent: usize) {
    let next_line = |out: &mut String| {
        let _ = write!(out, "{:indent$}", "");
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    next_line(out);
                }
                out.push_str("- ");
                nested(out, item, indent + 2);
            }
        }
        Value::Object(map) => {
            for (index, (key, member)) in map.iter().enumerate() {
                if index > 0 {
                    next_line(out);
                }
                text(out, key);
                out.push(':');
                match member {
                    Value::Array(items) if !items.is_empty() => {
                        out.push('\n');
                        next_line(out);
                        block(out, member, indent);
                    }
                    Value::Object(members) if !members.is_empty() => {
                        let _ = write!(out, "\n{:1$}", "", indent + 2);
                        block(out, member, indent + 2);
                    }
                    _ => {
                        out.push(' ');
                        nested(out, member, indent);
                    }
                }
            }
        }
        _ => {}
    }
}

fn nested(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => block(out, value, indent),
        Value::Object(map) if !map.is_empty() => block(out, value, indent),
        _ => {
            inline(out, value);
            out.push('\n');
        }
    }
}

fn inline(out: &mut String, value: &Value) {
    match value {
        Value::String(value) => text(out, value),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

/// Writes a string: bare where nobody can take it for anything else, in double quotes otherwise.
fn text(out: &mut String, text: &str) {
    if bare(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // Control characters, what YAML 1.1 takes for line breaks, and what a reader may not print.
            '\0'..'\u{20}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{fe00}'..='\u{feff}'
            | '\u{fff0}'..='\u{ffff}' => {
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out.push('"');
}

fn bare(text: &str) -> bool {
    let plain_character =
        |character: char| character.is_ascii_alphanumeric() || "_./-:@+$()".contains(character);
    text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '_' | '$' | '('))
        && text.chars().all(plain_character)
        && !text.ends_with(':')
        && matches!(scalar::plain(text), Ok((Value::String(_), _)))
}
