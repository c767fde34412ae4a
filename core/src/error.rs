//! Configuration faults as data.
//!
//! Whatever is wrong with a set of objects is a list of [`Fault`]s, all of them at once, each with the place, the
//! offending value and what is allowed. [`Fault`]'s `Display` is the only formatter: the command line, a server and
//! the C interface all print it. The words are those of the Kubernetes API server where it has words for the fault.

use std::fmt;
use std::sync::Arc;

/// Where in a file something stands. Lines and columns count from 1; 0 means unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Location {
    /// File as the user named it; `None` for standard input or a value that came from no file.
    pub file: Option<Arc<str>>,
    /// Which document of the file, from 0.
    pub document: usize,
    /// Line, from 1; 0 when unknown.
    pub line: u32,
    /// Column in characters, from 1; 0 when unknown.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file.as_deref().unwrap_or("-"))?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// The object that a fault belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Kind, such as `FlowSchema`; may be empty when the document does not tell.
    pub kind: String,
    /// `metadata.name`; may be empty.
    pub name: String,
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// What sort of fault it is. The first ten are those of the Kubernetes API (`field.ErrorType` in its Go libraries).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// A value names something that does not exist.
    NotFound,
    /// A needed value is absent or empty.
    Required,
    /// A value that must be unique is given twice.
    Duplicate,
    /// A value breaks a rule.
    Invalid,
    /// A value is not one of the known ones.
    NotSupported,
    /// A value may not be given here at all.
    Forbidden,
    /// A text is too long.
    TooLong,
    /// A list is too long.
    TooMany,
    /// The fault is ours.
    Internal,
    /// The JSON type is wrong: a number in quotes, a list in place of an object.
    TypeInvalid,
    /// The API has no such field. A warning, unless the reader is strict.
    UnknownField,
    /// A key is given twice; the last one counts. A warning, unless the reader is strict.
    DuplicateField,
    /// The text cannot be read at all.
    Syntax,
}

impl FaultKind {
    /// The machine-readable reason, as `details.causes[].reason` of an API answer has it.
    pub const fn reason(self) -> &'static str {
        match self {
            FaultKind::NotFound => "FieldValueNotFound",
            FaultKind::Required => "FieldValueRequired",
            FaultKind::Duplicate => "FieldValueDuplicate",
            FaultKind::Invalid => "FieldValueInvalid",
            FaultKind::NotSupported => "FieldValueNotSupported",
            FaultKind::Forbidden => "FieldValueForbidden",
            FaultKind::TooLong => "FieldValueTooLong",
            FaultKind::TooMany => "FieldValueTooMany",
            FaultKind::Internal => "InternalError",
            FaultKind::TypeInvalid => "FieldValueTypeInvalid",
            FaultKind::UnknownField => "UnknownField",
            FaultKind::DuplicateField => "DuplicateField",
            FaultKind::Syntax => "Syntax",
        }
    }

    /// The words that a message begins with.
    const fn words(self) -> &'static str {
        match self {
            FaultKind::NotFound => "Not found",
            FaultKind::Required => "Required value",
            FaultKind::Duplicate => "Duplicate value",
            FaultKind::Invalid | FaultKind::TypeInvalid => "Invalid value",
            FaultKind::NotSupported => "Unsupported value",
            FaultKind::Forbidden => "Forbidden",
            FaultKind::TooLong => "Too long",
            FaultKind::TooMany => "Too many",
            FaultKind::Internal => "Internal error",
            FaultKind::UnknownField => "unknown field",
            FaultKind::DuplicateField => "duplicate field",
            FaultKind::Syntax => "cannot be read",
        }
    }
}

/// One thing that is wrong, or surely unmeant, in a configuration.
///
/// The offending value and the detail are ready to print: whoever makes the fault decides how a value looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The object, where known.
    pub object: Option<ObjectRef>,
    /// JSON field path as the API server writes it, such as `spec.rules[0].subjects[1].kind`; empty for the whole.
    pub path: String,
    /// What sort of fault.
    pub kind: FaultKind,
    /// The offending value in JSON, where a message shows it.
    pub value: Option<String>,
    /// What is allowed, or what to do; may be empty.
    pub detail: String,
    /// Where it stands, where known.
    pub at: Option<Location>,
}

impl Fault {
    /// A fault of `kind` at `path`, with `detail` and nothing else.
    pub fn new(kind: FaultKind, path: impl Into<String>, detail: impl Into<String>) -> Fault {
        Fault { object: None, path: path.into(), kind, value: None, detail: detail.into(), at: None }
    }

    /// The same fault showing `value`: a text in quotes, everything else as JSON.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<serde_json::Value>) -> Fault {
        self.value = Some(match value.into() {
            serde_json::Value::String(text) => quoted(&text),
            other => other.to_string(),
        });
        self
    }

    /// The same fault, of the object `kind`/`name`.
    #[must_use]
    pub fn of(mut self, kind: impl Into<String>, name: impl Into<String>) -> Fault {
        self.object = Some(ObjectRef { kind: kind.into(), name: name.into() });
        self
    }

    /// The fault in words, without path, object and place: `Invalid value: 1: must be …`.
    ///
    /// This is the `message` of a cause in an API answer.
    pub fn message(&self) -> String {
        let mut text = String::from(self.kind.words());
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for Fault {
    /// `spec.x: Invalid value: 1: must be …`: the path and the message, as the API server joins them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            // The API server puts the path in quotes behind the words here.
            FaultKind::UnknownField | FaultKind::DuplicateField => {
                write!(f, "{} \"{}\"", self.kind.words(), self.path)?;
                if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
            }
            _ if self.path.is_empty() => f.write_str(&self.message()),
            _ => write!(f, "{}: {}", self.path, self.message()),
        }
    }
}

impl std::error::Error for Fault {}

/// A text in quotes as the API server prints it, on one line and without invisible characters.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
