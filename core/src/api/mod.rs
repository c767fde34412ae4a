//! The objects of `flowcontrol.apiserver.k8s.io`: FlowSchema and PriorityLevelConfiguration.
//!
//! Everything here runs at configuration time and may allocate. [`v1`] is the hub: whatever version an object comes
//! in, the rest of the crate sees it in the form of [`v1`], defaults filled in. The way in:
//!
//! 1. [`decode()`] reads a JSON value strictly, every fault with its path, converts it and fills in defaults.
//! 2. [`validate()`] checks it as the API server does, every fault at once.
//! 3. [`update`] decides whether a server may store it.
//!
//! [`encode`] is the way out.

use serde_json::{Map, Value, json};

use crate::error::{Fault, FaultKind};

pub mod builtin;
pub mod convert;
pub(crate) mod decode;
pub mod defaults;
pub mod meta;
pub mod update;
pub mod v1;
pub mod v1beta2;
pub mod v1beta3;
mod validate;

use decode::{Cursor, Decode};
use meta::ObjectMeta;
pub use validate::{Reference, validate, validate_status, validate_with};

/// The API group of these objects.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A flow schema.
    FlowSchema,
    /// A priority level.
    PriorityLevelConfiguration,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 2] = [Kind::FlowSchema, Kind::PriorityLevelConfiguration];

    /// As `kind` of an object has it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::FlowSchema => "FlowSchema",
            Kind::PriorityLevelConfiguration => "PriorityLevelConfiguration",
        }
    }

    /// As URLs have it.
    pub const fn resource(self) -> &'static str {
        match self {
            Kind::FlowSchema => "flowschemas",
            Kind::PriorityLevelConfiguration => "prioritylevelconfigurations",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The versions that are understood, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// `v1`, Kubernetes 1.29 and later.
    V1,
    /// `v1beta3`, Kubernetes 1.26 to 1.31.
    V1Beta3,
    /// `v1beta2`, Kubernetes 1.23 to 1.28.
    V1Beta2,
}

impl Version {
    /// Every version, newest first.
    pub const ALL: [Version; 3] = [Version::V1, Version::V1Beta3, Version::V1Beta2];

    /// The version alone, such as `v1`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V1Beta3 => "v1beta3",
            Version::V1Beta2 => "v1beta2",
        }
    }

    /// As `apiVersion` of an object has it, with the group.
    pub const fn api_version(self) -> &'static str {
        match self {
            Version::V1 => "flowcontrol.apiserver.k8s.io/v1",
            Version::V1Beta3 => "flowcontrol.apiserver.k8s.io/v1beta3",
            Version::V1Beta2 => "flowcontrol.apiserver.k8s.io/v1beta2",
        }
    }

    /// The version that `apiVersion` names.
    pub fn from_api_version(text: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.api_version() == text)
    }
}

/// An object in the hub form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A flow schema.
    FlowSchema(v1::FlowSchema),
    /// A priority level.
    PriorityLevelConfiguration(v1::PriorityLevelConfiguration),
}

impl Object {
    /// Which kind it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Object::FlowSchema(_) => Kind::FlowSchema,
            Object::PriorityLevelConfiguration(_) => Kind::PriorityLevelConfiguration,
        }
    }

    /// Its metadata.
    pub const fn metadata(&self) -> &ObjectMeta {
        match self {
            Object::FlowSchema(schema) => &schema.metadata,
            Object::PriorityLevelConfiguration(level) => &level.metadata,
        }
    }

    /// Its metadata, to change.
    pub const fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Object::FlowSchema(schema) => &mut schema.metadata,
            Object::PriorityLevelConfiguration(level) => &mut level.metadata,
        }
    }
}

/// A whole set of objects in the hub form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Objects {
    /// Flow schemas in the order given.
    pub flow_schemas: Vec<v1::FlowSchema>,
    /// Priority levels in the order given.
    pub priority_levels: Vec<v1::PriorityLevelConfiguration>,
}

impl Objects {
    /// Every fault of every object, as [`validate`] finds them.
    pub fn validate(&self) -> Vec<Fault> {
        self.clone().into_iter().flat_map(|object| validate(&object)).collect()
    }

    /// Adds one object.
    pub fn push(&mut self, object: Object) {
        match object {
            Object::FlowSchema(schema) => self.flow_schemas.push(schema),
            Object::PriorityLevelConfiguration(level) => self.priority_levels.push(level),
        }
    }
}

impl FromIterator<Object> for Objects {
    fn from_iter<I: IntoIterator<Item = Object>>(objects: I) -> Objects {
        let mut set = Objects::default();
        objects.into_iter().for_each(|object| set.push(object));
        set
    }
}

impl IntoIterator for Objects {
    type Item = Object;
    type IntoIter = std::vec::IntoIter<Object>;

    /// Levels first, so that whoever adds them one by one never sees a schema before its level.
    fn into_iter(self) -> Self::IntoIter {
        let levels = self.priority_levels.into_iter().map(Object::PriorityLevelConfiguration);
        let schemas = self.flow_schemas.into_iter().map(Object::FlowSchema);
        levels.chain(schemas).collect::<Vec<_>>().into_iter()
    }
}

/// How an object is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Whether `50.0` is an integer: it is in files, which kubectl rewrites, and not in requests. Default: no.
    pub whole_floats: bool,
    /// Whether absent values are filled in. Default: yes.
    pub defaults: bool,
    /// Kind of an object that does not tell. Default: it must.
    pub kind: Option<Kind>,
    /// Version of an object that does not tell. Default: it must.
    pub version: Option<Version>,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        DecodeOptions { whole_floats: false, defaults: true, kind: None, version: None }
    }
}

/// An object that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The object in the hub form.
    pub object: Object,
    /// The version that it was written in.
    pub version: Version,
    /// Fields that the version does not have, and that were dropped. Faults for a strict reader.
    pub unknown: Vec<Fault>,
}

/// What became of reading an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The object in the hub form; `None` when there are faults.
    pub object: Option<Object>,
    /// The version that it is written in, where it could be told.
    pub version: Option<Version>,
    /// Why it cannot be read: wrong types, unknown kind or version.
    pub faults: Vec<Fault>,
    /// Fields that the version does not have, and that were dropped. Faults for a strict reader.
    pub unknown: Vec<Fault>,
}

/// Reads an object that names its kind and version, converts it to the hub form and fills in defaults.
///
/// Strict about types: a number in quotes, or `50.0` for an integer, is a fault. Nothing is validated:
/// see [`validate()`].
///
/// # Errors
/// Every value of a wrong type, with its path; or that kind or version are not known.
pub fn decode(value: &Value) -> Result<Decoded, Vec<Fault>> {
    match decode_with(value, DecodeOptions::default()) {
        Reading { object: Some(object), version: Some(version), unknown, .. } => {
            Ok(Decoded { object, version, unknown })
        }
        reading => Err(reading.faults),
    }
}

/// As [`decode()`], with options, and telling unknown fields also when there are faults.
pub fn decode_with(value: &Value, options: DecodeOptions) -> Reading {
    let mut at = Cursor::new(options.whole_floats);
    let (kind, version) = identify(value, options, &mut at);
    let object = match (kind, version) {
        (Some(kind), Some(version)) => Some(read(value, kind, version, &mut at)),
        _ => None,
    };
    let Cursor { mut faults, mut unknown, .. } = at;
    // Who the object is, as far as it tells.
    let kind = kind.map_or_else(|| text(value, "/kind"), |kind| kind.name().to_owned());
    let name = text(value, "/metadata/name");
    for fault in faults.iter_mut().chain(&mut unknown) {
        *fault = fault.clone().of(&kind, &name);
    }
    let object = object.filter(|_| faults.is_empty()).map(|mut object| {
        if options.defaults {
            defaults::apply(&mut object);
        }
        object
    });
    Reading { object, version, faults, unknown }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Kind and version of an object, with a fault for each that is not known.
fn identify(value: &Value, options: DecodeOptions, at: &mut Cursor) -> (Option<Kind>, Option<Version>) {
    let empty = Map::new();
    let map = match value {
        Value::Object(map) => map,
        // As everywhere, the same as absent.
        Value::Null => &empty,
        other => {
            at.mismatch::<()>(other, "must be an object");
            return (None, None);
        }
    };
    let mut read = |key| map.get(key).map(|value| at.field::<String>(key, value)).unwrap_or_default();
    let (api_version, kind) = (read("apiVersion"), read("kind"));
    if !at.faults.is_empty() {
        return (None, None);
    }
    let found = match api_version.as_str() {
        // A lone slash is nothing to the server, too.
        "" | "/" => options.version,
        text => Version::from_api_version(text),
    };
    if found.is_none() {
        at.faults.push(version_fault(&api_version));
    }
    let kind_found = if kind.is_empty() { options.kind } else { Kind::from_name(&kind) };
    if kind_found.is_none() {
        let fault = if kind.is_empty() { FaultKind::Required } else { FaultKind::NotSupported };
        let fault =
            Fault::new(fault, "kind", "supported values: \"FlowSchema\", \"PriorityLevelConfiguration\"");
        at.faults.push(if kind.is_empty() { fault } else { fault.with_value(kind) });
    }
    (kind_found, found)
}

fn version_fault(api_version: &str) -> Fault {
    let supported: Vec<String> =
        Version::ALL.iter().map(|version| format!("\"{}\"", version.api_version())).collect();
    let supported = format!("supported values: {}", supported.join(", "));
    if api_version.is_empty() {
        return Fault::new(FaultKind::Required, "apiVersion", supported);
    }
    let served = api_version.split_once('/').filter(|(group, _)| *group == GROUP);
    let detail = match served {
        Some((_, "v1alpha1" | "v1beta1")) => format!("no longer served; {supported}"),
        Some(_) => supported,
        None => format!("these kinds are in the group {GROUP}; {supported}"),
    };
    Fault::new(FaultKind::NotSupported, "apiVersion", detail).with_value(api_version)
}

fn read(value: &Value, kind: Kind, version: Version, at: &mut Cursor) -> Object {
    match (kind, version) {
        // Flow schemas have the same shape in every version.
        (Kind::FlowSchema, _) => Object::FlowSchema(Decode::decode(value, at)),
        (Kind::PriorityLevelConfiguration, version) => Object::PriorityLevelConfiguration(match version {
            Version::V1 => Decode::decode(value, at),
            Version::V1Beta3 => v1beta3::PriorityLevelConfiguration::decode(value, at).into(),
            Version::V1Beta2 => v1beta2::PriorityLevelConfiguration::decode(value, at).into(),
        }),
    }
}

/// The object in `version`, with `kind` and `apiVersion`, members in the order of the API.
///
/// [`convert::loss`] tells what `version` cannot say.
pub fn encode(object: &Object, version: Version) -> Value {
    let body = match (object, version) {
        (Object::FlowSchema(schema), _) => json!(schema),
        (Object::PriorityLevelConfiguration(level), Version::V1) => json!(level),
        (Object::PriorityLevelConfiguration(level), Version::V1Beta3) => {
            json!(v1beta3::PriorityLevelConfiguration::from(level.clone()))
        }
        (Object::PriorityLevelConfiguration(level), Version::V1Beta2) => {
            json!(v1beta2::PriorityLevelConfiguration::from(level.clone()))
        }
    };
    let mut object_map = Map::new();
    object_map.insert("kind".to_owned(), object.kind().name().into());
    object_map.insert("apiVersion".to_owned(), version.api_version().into());
    if let Value::Object(body) = body {
        object_map.extend(body);
    }
    Value::Object(object_map)
}
