//! What every object has: names, labels, versions, and who wrote what.
//!
//! Everything that a real server keeps is kept here, so that an object can be read and written back unharmed.
//! Source of the fields: `ObjectMeta` of the Kubernetes API, `k8s.io/apimachinery` 0.37.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::decode::{Cursor, Decode, decode_fields};

/// `metadata` of an object. Empty and zero stand for absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta {
    /// Unique name among the objects of its kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix from which a server makes a name when `name` is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Not allowed on these kinds; kept so that it can be reported.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// No longer written by servers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub self_link: String,
    /// Tells this object from an earlier one of the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Opaque version of the stored object; changes with every write.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts the changes of `spec`.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// When it will go, once its deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Seconds that it was given to end in peace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// For selecting objects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// For tools to keep notes in.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Objects that this one depends on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must act before the object may go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Which writer owns which fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

decode_fields!(ObjectMeta {
    "name" => name,
    "generateName" => generate_name,
    "namespace" => namespace,
    "selfLink" => self_link,
    "uid" => uid,
    "resourceVersion" => resource_version,
    "generation" => generation,
    "creationTimestamp" => creation_timestamp,
    "deletionTimestamp" => deletion_timestamp,
    "deletionGracePeriodSeconds" => deletion_grace_period_seconds,
    "labels" => labels,
    "annotations" => annotations,
    "ownerReferences" => owner_references,
    "finalizers" => finalizers,
    "managedFields" => managed_fields,
});

/// An object that this one depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// API group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether the owner manages this object; at most one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether the owner must wait for this object to go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

decode_fields!(OwnerReference {
    "apiVersion" => api_version,
    "kind" => kind,
    "name" => name,
    "uid" => uid,
    "controller" => controller,
    "blockOwnerDeletion" => block_owner_deletion,
});

/// The fields that one writer owns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedFieldsEntry {
    /// Name of the writer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// `Apply` or `Update`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operation: String,
    /// Version in which the fields are named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// When the writer last wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// `FieldsV1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fields_type: String,
    /// The set of fields, in the form that `fields_type` names.
    #[serde(rename = "fieldsV1", skip_serializing_if = "Option::is_none")]
    pub fields_v1: Option<Value>,
    /// Subresource that was written, such as `status`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

decode_fields!(ManagedFieldsEntry {
    "manager" => manager,
    "operation" => operation,
    "apiVersion" => api_version,
    "time" => time,
    "fieldsType" => fields_type,
    "fieldsV1" => fields_v1,
    "subresource" => subresource,
});

/// A moment, in whole seconds since 1970-01-01T00:00:00Z; written as RFC 3339 in UTC.
///
/// Fractions of a second are read and dropped, as servers do when they store an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub i64);

/// What servers take for "no time": the first moment of the year 1.
const NO_TIME: i64 = -62_135_596_800;

impl Time {
    /// Reads RFC 3339 as the API server does: an hour may have one digit, a fraction may follow a comma.
    pub fn parse(text: &str) -> Option<Time> {
        let (date, time) = text.split_once('T')?;
        let [year, month, day] = parts(date, '-', &[4, 2, 2])?;
        let zone_at = time.find(['Z', '+', '-'])?;
        let (clock, zone) = time.split_at(zone_at);
        let clock = match clock.split_once(['.', ',']) {
            None => clock,
            Some((whole, fraction)) => {
                let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
                digits.then_some(whole)?
            }
        };
        let padded = if clock.find(':') == Some(1) { format!("0{clock}") } else { clock.to_owned() };
        let [hour, minute, second] = parts(&padded, ':', &[2, 2, 2])?;
        let offset = match zone.as_bytes() {
            b"Z" => 0,
            [sign @ (b'+' | b'-'), ..] => {
                let [hours, minutes] = parts(&zone[1..], ':', &[2, 2])?;
                let seconds = (hours <= 24 && minutes <= 60).then_some(hours * 3600 + minutes * 60)?;
                if *sign == b'-' { -seconds } else { seconds }
            }
            _ => return None,
        };
        let valid = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        valid.then(|| {
            Time(days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset)
        })
    }
}

/// The numbers of a text such as `12:05:09`, each with exactly so many digits.
fn parts<const N: usize>(text: &str, separator: char, digits: &[usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut rest = text.split(separator);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = rest.next()?;
        let plain = part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = plain.then(|| part.parse().ok())??;
    }
    rest.next().is_none().then_some(numbers)
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March.
const fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0.div_euclid(86_400) + 719_468, self.0.rem_euclid(86_400));
        // Eras of 400 years, so that leap days fall regularly.
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + i64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// An absent time is `null`, and so is the first moment of the year 1.
impl Decode for Option<Time> {
    fn decode(value: &Value, at: &mut Cursor) -> Option<Time> {
        let time = match value {
            Value::Null => None,
            Value::String(text) => match Time::parse(text) {
                Some(time) => Some(time),
                None => at.mismatch(value, "must be a time such as 2006-01-02T15:04:05Z"),
            },
            other => at.mismatch(other, "must be a time such as \"2006-01-02T15:04:05Z\", in quotes"),
        };
        time.filter(|time| time.0 != NO_TIME)
    }
}

pub(crate) fn is_zero(number: &i64) -> bool {
    *number == 0
}
