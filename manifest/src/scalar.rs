//! What a scalar means: YAML 1.1, in the dialect of the library that kubectl reads with.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Number, Value};

/// A reading that a person who thinks in YAML 1.2, or does not think of YAML at all, may not expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Surprise {
    /// `yes`, `no`, `on`, `off`, `y`, `n`: a boolean.
    Word(String),
    /// A leading zero: octal.
    Octal(String),
    /// Underscores between digits.
    Underscore(String),
    /// Another form of number that means something only here: `0x1f`, `0b11`, `0o7`.
    Base(String),
}

impl Surprise {
    /// Says what was read and what to write instead.
    pub(crate) fn explain(&self) -> String {
        match self {
            Surprise::Word(text) => format!("YAML 1.1 reads {text} as a boolean: quote it to have text"),
            Surprise::Octal(text) => {
                format!(
                    "YAML 1.1 reads {text} as an octal number: drop the leading zero, or quote it to have text"
                )
            }
            Surprise::Underscore(text) => {
                format!(
                    "YAML 1.1 reads {text} as a number without the underscores: drop them, or quote it to have text"
                )
            }
            Surprise::Base(text) => {
                format!(
                    "{text} is read as a number in another base: write it in decimal, or quote it to have text"
                )
            }
        }
    }
}

/// Tags whose content is looked at. All others leave a scalar a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag<'a> {
    Null,
    Bool,
    Int,
    Float,
    Binary,
    /// A tag that is none of the above.
    Other(&'a str),
}

impl<'a> Tag<'a> {
    /// From the name behind `tag:yaml.org,2002:`.
    pub(crate) fn of(name: &'a str) -> Self {
        match name {
            "null" => Tag::Null,
            "bool" => Tag::Bool,
            "int" => Tag::Int,
            "float" => Tag::Float,
            "binary" => Tag::Binary,
            other => Tag::Other(other),
        }
    }
}

/// The value of a plain scalar without a tag.
pub(crate) fn plain(text: &str) -> Result<(Value, Option<Surprise>), String> {
    let (resolved, surprise) = resolve(text);
    Ok((resolved.into_value(text)?, surprise))
}

/// The value of a scalar of any style that has a tag.
pub(crate) fn tagged(tag: Tag<'_>, text: &str) -> Result<Value, String> {
    let (resolved, _) = resolve(text);
    match (tag, &resolved) {
        (Tag::Other(_), _) => Ok(Value::String(text.to_owned())),
        (Tag::Binary, _) => binary(text),
        (Tag::Null, Resolved::Null)
        | (Tag::Bool, Resolved::Bool(_))
        | (Tag::Int, Resolved::Int(_) | Resolved::Large(_))
        | (Tag::Float, Resolved::Float(_) | Resolved::Int(_) | Resolved::Large(_)) => {
            resolved.into_value(text)
        }
        (Tag::Null, _) => Err(format!("the tag says null, but `{text}` is not null")),
        (Tag::Bool, _) => Err(format!("the tag says boolean, but `{text}` is not one")),
        (Tag::Int, _) => Err(format!("the tag says integer, but `{text}` is not one")),
        (Tag::Float, _) => Err(format!("the tag says number, but `{text}` is not one")),
    }
}

/// A mapping key as JSON has it: always a string.
pub(crate) fn key(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Err("a key must not be empty or null"),
        Value::Array(_) | Value::Object(_) => Err("a key must be a scalar, not a list or a mapping"),
    }
}

enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    /// Past `i64`; the wire format keeps only what a double holds.
    Large(u64),
    Float(f64),
    Text,
}

impl Resolved {
    fn into_value(self, text: &str) -> Result<Value, String> {
        Ok(match self {
            Resolved::Null => Value::Null,
            Resolved::Bool(flag) => Value::Bool(flag),
            Resolved::Int(number) => number.into(),
            Resolved::Large(number) => (number as f64).into(),
            Resolved::Float(number) => {
                return float(number).ok_or_else(|| format!("JSON has no number for `{text}`"));
            }
            Resolved::Text => Value::String(text.to_owned()),
        })
    }
}

/// A whole float becomes an integer, as it is printed without a fraction on its way to the server.
pub(crate) fn float(number: f64) -> Option<Value> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
        return Some((number as i64).into());
    }
    Number::from_f64(number).map(Value::Number)
}

fn resolve(text: &str) -> (Resolved, Option<Surprise>) {
    let word = |flag| (Resolved::Bool(flag), Some(Surprise::Word(text.to_owned())));
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return (Resolved::Null, None),
        "true" | "True" | "TRUE" => return (Resolved::Bool(true), None),
        "false" | "False" | "FALSE" => return (Resolved::Bool(false), None),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return word(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => return word(false),
        ".nan" | ".NaN" | ".NAN" => return (Resolved::Float(f64::NAN), None),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return (Resolved::Float(f64::INFINITY), None);
        }
        "-.inf" | "-.Inf" | "-.INF" => return (Resolved::Float(f64::NEG_INFINITY), None),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return (Resolved::Text, None);
    }
    let bare = text.replace('_', "");
    let (resolved, base) = if text.starts_with('.') { (None, None) } else { integer(&bare) };
    let resolved = match resolved.or_else(|| decimal(&bare).map(Resolved::Float)) {
        Some(resolved) => resolved,
        None => return (Resolved::Text, None),
    };
    let surprise = match base {
        _ if bare.len() != text.len() => Some(Surprise::Underscore(text.to_owned())),
        Some(Base::Zero) => Some(Surprise::Octal(text.to_owned())),
        Some(Base::Letter) => Some(Surprise::Base(text.to_owned())),
        None => None,
    };
    (resolved, surprise)
}

enum Base {
    /// `0144`
    Zero,
    /// `0x64`, `0o144`, `0b1100100`
    Letter,
}

/// An integer with an optional sign and an optional prefix that tells its base.
fn integer(text: &str) -> (Option<Resolved>, Option<Base>) {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..], Some(Base::Letter)),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..], Some(Base::Letter)),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..], Some(Base::Letter)),
        [b'0', _, ..] => (8, &digits[1..], Some(Base::Zero)),
        _ => (10, digits, None),
    };
    // `from_str_radix` would take a second sign.
    if !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return (None, None);
    }
    let Ok(magnitude) = u64::from_str_radix(digits, radix) else {
        return (None, None);
    };
    let number = match (negative, i64::try_from(magnitude)) {
        (false, Ok(number)) => Resolved::Int(number),
        (false, Err(_)) => Resolved::Large(magnitude),
        (true, Ok(number)) => Resolved::Int(-number),
        (true, Err(_)) if magnitude == i64::MIN.unsigned_abs() => Resolved::Int(i64::MIN),
        (true, Err(_)) => return (None, None),
    };
    (Some(number), base)
}

/// A decimal number with optional sign, fraction and exponent; nothing that only a programming language would take.
fn decimal(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let shaped = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent));
    // A number too large for a double stays text.
    if shaped { text.parse::<f64>().ok().filter(|number| number.is_finite()) } else { None }
}

fn binary(text: &str) -> Result<Value, String> {
    const ENGINE: GeneralPurpose =
        GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
    let packed: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    let bytes = ENGINE
        .decode(packed)
        .map_err(|error| format!("the tag says binary, but this is no base64: {error}"))?;
    Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        plain(text).unwrap().0
    }

    #[test]
    fn words_are_booleans_in_three_spellings_only() {
        for (text, value) in
            [("yes", true), ("Y", true), ("ON", true), ("True", true), ("no", false), ("Off", false)]
        {
            assert_eq!(read(text), json!(value), "{text}");
        }
        for text in ["yEs", "tRUE", "oN", "nope"] {
            assert_eq!(read(text), json!(text));
        }
    }

    #[test]
    fn integers_have_the_bases_and_signs_of_the_reference() {
        for (text, value) in [
            ("0144", 100),
            ("-0144", -100),
            ("0o14", 12),
            ("0x1F", 31),
            ("-0x10", -16),
            ("+0b1", 1),
            ("1_000", 1000),
            ("1__0", 10),
            ("+_1", 1),
            ("+5", 5),
            ("00", 0),
            ("08", 8),
            ("0_8", 8),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(read(text), json!(value), "{text}");
        }
    }

    #[test]
    fn whole_floats_are_integers_and_others_are_not() {
        for (text, value) in [
            ("50.0", json!(50)),
            ("1e2", json!(100)),
            (".5e3", json!(500)),
            ("1.", json!(1)),
            ("-0.0", json!(0)),
        ] {
            assert_eq!(read(text), value, "{text}");
        }
        for (text, value) in
            [("12.5", 12.5), (".5_0", 0.5), ("1e21", 1e21), ("18446744073709551616", 18446744073709551616.0)]
        {
            assert_eq!(read(text), json!(value), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_number_is_text() {
        for text in [
            "_1",
            "0x_",
            "+",
            ".",
            "1E400",
            "1:30",
            "2001-01-01",
            "0x1p3",
            "++5",
            "0b2",
            "0b",
            "5e",
            "1,000",
            "0xg",
            "+-5",
            "inf",
            "nan",
        ] {
            assert_eq!(read(text), json!(text));
        }
    }

    #[test]
    fn infinity_and_not_a_number_have_no_json() {
        for text in [".inf", "-.INF", ".nan"] {
            assert!(plain(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tag_that_the_content_contradicts_is_an_error() {
        assert_eq!(tagged(Tag::Int, "12").unwrap(), json!(12));
        assert_eq!(tagged(Tag::Bool, "yes").unwrap(), json!(true));
        assert_eq!(tagged(Tag::Other("str"), "5").unwrap(), json!("5"));
        assert_eq!(tagged(Tag::Binary, "aGVs\nbG8=").unwrap(), json!("hello"));
        assert!(tagged(Tag::Int, "12.5").is_err());
        assert!(tagged(Tag::Null, "x").is_err());
        assert!(tagged(Tag::Binary, "@").is_err());
    }
}
