//! Reads the fields of a scenario, and notes everything that is wrong with them, each with its place.

use std::ops::RangeInclusive;

use maitred::error::{Fault, FaultKind};
use maitred_manifest::Plain;
use serde_json::{Map, Value};

use crate::quantity::parse_span;

/// A value and its field path.
#[derive(Debug, Clone)]
pub struct At<'a> {
    pub value: &'a Value,
    pub path: String,
}

/// The members of a mapping, all of which have names that are known.
#[derive(Debug)]
pub struct Fields<'a> {
    map: Option<&'a Map<String, Value>>,
    path: String,
}

impl<'a> Fields<'a> {
    /// The member with this name. One without a value is absent.
    pub fn get(&self, name: &str) -> Option<At<'a>> {
        let value = self.map?.get(name).filter(|value| !value.is_null())?;
        Some(At { value, path: self.path_of(name) })
    }

    /// The path of a member, there or not.
    pub fn path_of(&self, name: &str) -> String {
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{name}", self.path)
    }
}

/// Where faults are noted.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a Plain,
    pub faults: Vec<Fault>,
}

/// Slips of the finger that are forgiven when a name is looked for that was meant.
const SLIPS: usize = 2;

impl<'a> Reader<'a> {
    pub fn new(file: &'a Plain) -> Self {
        Reader { file, faults: Vec::new() }
    }

    /// The whole document.
    pub fn root(&self) -> At<'a> {
        At { value: &self.file.value, path: String::new() }
    }

    /// Notes a fault.
    pub fn fault(&mut self, kind: FaultKind, path: &str, value: Option<&Value>, detail: impl Into<String>) {
        let mut fault = Fault::new(kind, path, detail);
        if let Some(value) = value {
            fault = fault.with_value(value.clone());
        }
        self.faults.push(Fault { at: Some(self.file.place_of(path)), ..fault });
    }

    /// Notes that a value breaks a rule.
    pub fn invalid(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.fault(FaultKind::Invalid, &at.path, Some(at.value), detail);
    }

    /// Notes that a value is of the wrong type.
    pub fn wrong_type<T>(&mut self, at: &At<'_>, expected: &str) -> Option<T> {
        let surprise =
            self.file.surprise_at(&at.path).map(|surprise| format!(" ({surprise})")).unwrap_or_default();
        let shown = if at.value.is_array() || at.value.is_object() { None } else { Some(at.value) };
        self.fault(FaultKind::TypeInvalid, &at.path, shown, format!("must be {expected}{surprise}"));
        None
    }

    /// The members of a mapping. Notes those whose names are not among `known`.
    pub fn fields(&mut self, at: &At<'a>, known: &[&str]) -> Fields<'a> {
        let Value::Object(map) = at.value else {
            let names = known.join(", ");
            self.wrong_type::<()>(at, &format!("a mapping with some of {names}"));
            return Fields { map: None, path: at.path.clone() };
        };
        let fields = Fields { map: Some(map), path: at.path.clone() };
        for name in map.keys().filter(|name| !known.contains(&name.as_str())) {
            let lower = name.to_lowercase();
            let near = known.iter().map(|known| (strsim::osa_distance(&known.to_lowercase(), &lower), known));
            let advice = match near.min() {
                Some((slips, known)) if slips <= SLIPS => format!("did you mean \"{known}\"?"),
                _ => format!("known here are {}", known.join(", ")),
            };
            self.fault(FaultKind::UnknownField, &fields.path_of(name), None, advice);
        }
        fields
    }

    /// A member that must be there.
    pub fn need(&mut self, fields: &Fields<'a>, name: &str, what: &str) -> Option<At<'a>> {
        let found = fields.get(name);
        // Where the mapping itself is none, that has been said.
        if found.is_none() && fields.map.is_some() {
            self.fault(FaultKind::Required, &fields.path_of(name), None, what);
        }
        found
    }

    /// The one member that is there, of several that exclude each other; `fields` knows no others.
    pub fn one_of(&mut self, fields: &Fields<'a>, names: &[&'static str]) -> Option<(&'static str, At<'a>)> {
        let mut found = names.iter().filter_map(|name| Some((*name, fields.get(name)?)));
        let (first, second) = (found.next(), found.next());
        match (&first, second) {
            (Some((name, _)), Some((_, at))) => {
                let detail = format!("may not be given beside {name}: give one of {}", names.join(", "));
                self.fault(FaultKind::Forbidden, &at.path, None, detail);
                None
            }
            (None, _)
                if fields.map.is_some_and(|map| map.keys().all(|key| names.contains(&key.as_str()))) =>
            {
                let detail = format!("give one of {}", names.join(", "));
                self.fault(FaultKind::Required, &fields.path, None, detail);
                None
            }
            // An unknown member has been told.
            (None, _) => None,
            _ => first,
        }
    }

    pub fn list(&mut self, at: &At<'a>, of: &str) -> Vec<At<'a>> {
        let Value::Array(items) = at.value else {
            self.wrong_type::<()>(at, &format!("a list of {of}"));
            return Vec::new();
        };
        let item = |(index, value)| At { value, path: format!("{}[{index}]", at.path) };
        items.iter().enumerate().map(item).collect()
    }

    pub fn text(&mut self, at: &At<'a>) -> Option<&'a str> {
        match at.value {
            Value::String(text) => Some(text),
            _ => self.wrong_type(at, "text"),
        }
    }

    /// A text that is not empty.
    pub fn name(&mut self, at: &At<'a>) -> Option<&'a str> {
        let text = self.text(at)?;
        if text.is_empty() {
            self.fault(FaultKind::Required, &at.path, None, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// A whole number.
    pub fn count(&mut self, at: &At<'a>, range: RangeInclusive<u64>) -> Option<u64> {
        let Some(number) = at.value.as_u64() else {
            return self.wrong_type(at, &format!("a whole number from {} to {}", range.start(), range.end()));
        };
        if !range.contains(&number) {
            self.invalid(at, format!("must be from {} to {}", range.start(), range.end()));
            return None;
        }
        Some(number)
    }

    /// A whole number of 32 bits.
    pub fn count32(&mut self, at: &At<'a>, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.count(at, u64::from(*range.start())..=u64::from(*range.end()))?;
        u32::try_from(number).ok()
    }

    /// Nanoseconds of a span of time, at most `most` of them.
    pub fn span(&mut self, at: &At<'a>, most: u64) -> Option<u64> {
        let Value::String(text) = at.value else {
            return self.wrong_type(at, "a span of time: 15s, 3ms or 1m30s");
        };
        match parse_span(text) {
            Ok(span) if span <= most => Some(span),
            Ok(_) => {
                self.invalid(at, format!("must be {}s or less", most / 1_000_000_000));
                None
            }
            Err(why) => {
                self.invalid(at, why);
                None
            }
        }
    }

    /// A span of time that is not 0.
    pub fn positive_span(&mut self, at: &At<'a>, most: u64) -> Option<u64> {
        let span = self.span(at, most)?;
        if span == 0 {
            self.invalid(at, "must be more than 0");
            return None;
        }
        Some(span)
    }
}
