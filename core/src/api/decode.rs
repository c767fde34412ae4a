//! Strict reading of JSON values into API types, every fault with its path.
//!
//! serde's derived readers stop at the first fault and know no paths, so the API types are read by [`Decode`], which
//! [`decode_fields!`] writes for a struct. The rules are those of the API server's JSON reader: `null` is the same as
//! absent, keys are compared byte by byte, numbers in quotes are not numbers, unknown keys are noted and dropped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::error::{Fault, FaultKind};

/// A type that can be read from a JSON value. Whatever does not fit is left at its zero value, with a fault.
pub(crate) trait Decode: Sized + Default {
    fn decode(value: &Value, at: &mut Cursor) -> Self;
}

/// Where the reader is, and what it has found so far.
pub(crate) struct Cursor {
    path: String,
    whole_floats: bool,
    pub faults: Vec<Fault>,
    pub unknown: Vec<Fault>,
}

impl Cursor {
    /// A reader at the root. `whole_floats`: whether `50.0` is an integer, as it is in files but not in requests.
    pub fn new(whole_floats: bool) -> Cursor {
        Cursor { path: String::new(), whole_floats, faults: Vec::new(), unknown: Vec::new() }
    }

    /// Reads `value` as the field `key` of where we are.
    pub fn field<T: Decode>(&mut self, key: &str, value: &Value) -> T {
        self.below(|path| push_key(path, key), |at| T::decode(value, at))
    }

    fn below<T>(&mut self, step: impl FnOnce(&mut String), read: impl FnOnce(&mut Cursor) -> T) -> T {
        let length = self.path.len();
        step(&mut self.path);
        let result = read(self);
        self.path.truncate(length);
        result
    }

    /// The members of an object; `None` for `null`, and for anything else with a fault.
    pub fn object<'v>(&mut self, value: &'v Value) -> Option<&'v Map<String, Value>> {
        match value {
            Value::Object(map) => Some(map),
            Value::Null => None,
            other => self.mismatch(other, "must be an object"),
        }
    }

    /// Notes that the API knows no field `key` here.
    pub fn unknown(&mut self, key: &str) {
        let mut path = self.path.clone();
        push_key(&mut path, key);
        self.unknown.push(Fault::new(FaultKind::UnknownField, path, ""));
    }

    /// Notes that `value` has the wrong type or cannot be read as what it must be.
    pub fn mismatch<T>(&mut self, value: &Value, must: &str) -> Option<T> {
        let fault = Fault::new(FaultKind::TypeInvalid, self.path.clone(), must).with_value(shorten(value));
        self.faults.push(fault);
        None
    }

    fn integer(&mut self, value: &Value, min: i64, max: i64) -> Option<i64> {
        let number = match value {
            Value::Null => return None,
            Value::Number(number) => number,
            Value::String(text) if text.parse::<f64>().is_ok() => {
                return self.mismatch(value, "must be a whole number, without quotes");
            }
            other => return self.mismatch(other, "must be a whole number"),
        };
        let whole = number.as_i64().or_else(|| {
            let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
            // `-0` reads as a float, too.
            let fits = (self.whole_floats || float == 0.0) && float.abs() < 9e15;
            fits.then_some(float as i64)
        });
        match whole {
            Some(whole) if (min..=max).contains(&whole) => Some(whole),
            None if number.is_f64() => self.mismatch(value, "must be a whole number"),
            _ => self.mismatch(value, &format!("must be a whole number from {min} to {max}")),
        }
    }
}

/// Adds a step into a member to a field path: `a` becomes `a.key`.
fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// What a message shows of a value of the wrong type: the whole of a plain one, a hint of a list or object.
fn shorten(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(Map::new()),
        plain => plain.clone(),
    }
}

impl Decode for String {
    fn decode(value: &Value, at: &mut Cursor) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => at.mismatch(other, "must be a string").unwrap_or_default(),
        }
    }
}

impl Decode for bool {
    fn decode(value: &Value, at: &mut Cursor) -> bool {
        match value {
            Value::Bool(value) => *value,
            Value::Null => false,
            other => at.mismatch(other, "must be true or false").unwrap_or_default(),
        }
    }
}

impl Decode for i32 {
    fn decode(value: &Value, at: &mut Cursor) -> i32 {
        at.integer(value, i32::MIN.into(), i32::MAX.into()).unwrap_or(0) as i32
    }
}

impl Decode for i64 {
    fn decode(value: &Value, at: &mut Cursor) -> i64 {
        at.integer(value, i64::MIN, i64::MAX).unwrap_or(0)
    }
}

/// A value kept as it is.
impl Decode for Value {
    fn decode(value: &Value, _: &mut Cursor) -> Value {
        value.clone()
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(value: &Value, at: &mut Cursor) -> Option<T> {
        (!value.is_null()).then(|| T::decode(value, at))
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(value: &Value, at: &mut Cursor) -> Vec<T> {
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    let step = |path: &mut String| _ = write!(path, "[{index}]");
                    at.below(step, |at| T::decode(item, at))
                })
                .collect(),
            Value::Null => Vec::new(),
            other => at.mismatch(other, "must be a list").unwrap_or_default(),
        }
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(value: &Value, at: &mut Cursor) -> BTreeMap<String, T> {
        let Some(map) = at.object(value) else { return BTreeMap::new() };
        map.iter().map(|(key, value)| (key.clone(), at.field(key, value))).collect()
    }
}

/// Writes [`Decode`] for a struct, and serde's `Deserialize` on top of it, so that there is one way to read.
///
/// Every field must be listed with its JSON name. Names after `ignoring` are known but read elsewhere.
macro_rules! decode_fields {
    ($type:ident { $($name:literal => $field:ident),+ $(,)? } $(ignoring $($ignored:literal),+)?) => {
        impl $crate::api::decode::Decode for $type {
            fn decode(value: &serde_json::Value, at: &mut $crate::api::decode::Cursor) -> Self {
                let mut this = Self::default();
                // A field that is missing from the list does not compile.
                let $type { $($field: _),+ } = &this;
                for (key, value) in at.object(value).into_iter().flatten() {
                    match key.as_str() {
                        $($name => this.$field = at.field(key, value),)+
                        $($($ignored)|+ => {})?
                        _ => at.unknown(key),
                    }
                }
                this
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(from)?;
                let mut at = $crate::api::decode::Cursor::new(false);
                let this = $crate::api::decode::Decode::decode(&value, &mut at);
                match at.faults.first() {
                    None => Ok(this),
                    Some(fault) => Err(serde::de::Error::custom(fault)),
                }
            }
        }
    };
}
pub(crate) use decode_fields;
