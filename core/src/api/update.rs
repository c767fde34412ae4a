//! Whether a server may store what a client sends, and what exactly it then stores.
//!
//! The functions here decide and change nothing: the caller holds the objects, hands over the one that is stored, and
//! stores what comes back under a new resource version (when it differs from what is there). Source of the rules: the
//! transcripts of API servers 1.37 and 1.31 (`validation-*.jsonl`); who owns which field (`managedFields`) is left
//! to the caller.

use std::fmt;

use serde_json::Value;

use super::meta::{ObjectMeta, OwnerReference, Time};
use super::validate::validate_update;
use super::{DecodeOptions, GROUP, Kind, Object, Reading, Reference, Version, decode_with};
use super::{v1, validate_status, validate_with};
use crate::error::Fault;

/// A write that a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Kind that the URL names.
    pub kind: Kind,
    /// Version that the URL names.
    pub version: Version,
    /// The object sent.
    pub body: &'a Value,
    /// Whose checks and words are followed.
    pub reference: Reference,
}

/// What is new about an object that is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    /// When.
    pub now: Time,
    /// Its UID.
    pub uid: String,
    /// What is put behind `generateName`: five random letters and digits.
    pub name_suffix: String,
}

/// The answer to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What to store, or why not.
    pub result: Result<Object, Refusal>,
    /// What the client should know besides, in the order of the server's `Warning` headers.
    pub warnings: Vec<String>,
}

/// Why a write is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, as `reason` of a `Status`; may be empty.
    pub reason: &'static str,
    /// The whole story in one line.
    pub message: String,
    /// What is wrong with the object, one by one.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String) -> Refusal {
        Refusal { code, reason, message, faults: Vec::new() }
    }

    fn bad_request(message: String) -> Refusal {
        Refusal::new(400, "BadRequest", message)
    }

    fn conflict(kind: Kind, name: &str, why: &str) -> Refusal {
        let what = format!("{}.{GROUP} \"{name}\"", kind.resource());
        Refusal::new(409, "Conflict", format!("Operation cannot be fulfilled on {what}: {why}"))
    }

    fn invalid(kind: Kind, name: &str, faults: Vec<Fault>) -> Refusal {
        let message = format!("{}.{GROUP} \"{name}\" is invalid: {}", kind.name(), join(&faults));
        Refusal { faults, ..Refusal::new(422, "Invalid", message) }
    }
}

/// All faults in one line, each text once: `a`, or `[a, b]`.
fn join(faults: &[Fault]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for fault in faults {
        let text = fault.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if let [text] = texts.as_slice() { text.clone() } else { format!("[{}]", texts.join(", ")) }
}

/// Creates an object. `stored` finds the object of the same kind that has a given name.
///
/// What comes back has generation 1, the UID and time of `birth`, no status and no resource version.
pub fn create<'s>(
    request: Request<'_>,
    birth: Birth,
    stored: impl FnOnce(&str) -> Option<&'s Object>,
) -> Answer {
    request.answer(|object| {
        let Birth { now, uid, name_suffix } = birth;
        let kind = request.kind;
        let metadata = object.metadata_mut();
        let wanted = std::mem::take(&mut metadata.resource_version);
        if metadata.name.is_empty() && !metadata.generate_name.is_empty() {
            metadata.name = generated_name(&metadata.generate_name, &name_suffix);
        }
        metadata.uid = uid;
        metadata.generation = 1;
        metadata.creation_timestamp = Some(now);
        metadata.deletion_timestamp = None;
        metadata.deletion_grace_period_seconds = None;
        metadata.self_link.clear();
        metadata.managed_fields.clear();
        match object {
            Object::FlowSchema(schema) => schema.status = v1::FlowSchemaStatus::default(),
            Object::PriorityLevelConfiguration(level) => {
                level.status = v1::PriorityLevelConfigurationStatus::default();
            }
        }
        request.refuse_invalid(object, validate_with(object, request.version, request.reference))?;
        if revision(&wanted).is_ok_and(|wanted| wanted > 0) {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Refusal::new(500, "", message.to_owned()));
        }
        let name = &object.metadata().name;
        if stored(name).is_some() {
            let message = format!("{}.{GROUP} \"{name}\" already exists", kind.resource());
            return Err(Refusal::new(409, "AlreadyExists", message));
        }
        Ok(())
    })
}

/// Replaces all of an object but its status. `name` is the one in the URL, `stored` the object of that name.
///
/// What comes back has the resource version and managed fields of `stored`, and one generation more when the spec
/// differs.
pub fn replace(request: Request<'_>, name: &str, stored: Option<&Object>) -> Answer {
    request.answer(|object| {
        let stored = request.stored(object, name, stored)?;
        let old = stored.metadata();
        let metadata = object.metadata_mut();
        metadata.resource_version.clone_from(&old.resource_version);
        metadata.managed_fields.clone_from(&old.managed_fields);
        metadata.uid.clone_from(&old.uid);
        metadata.generation = old.generation;
        metadata.creation_timestamp = old.creation_timestamp.or(metadata.creation_timestamp);
        metadata.deletion_timestamp = old.deletion_timestamp.or(metadata.deletion_timestamp);
        metadata.deletion_grace_period_seconds =
            metadata.deletion_grace_period_seconds.or(old.deletion_grace_period_seconds);
        let spec_differs = match (&mut *object, stored) {
            (Object::FlowSchema(new), Object::FlowSchema(old)) => {
                new.status.clone_from(&old.status);
                new.spec != old.spec
            }
            (Object::PriorityLevelConfiguration(new), Object::PriorityLevelConfiguration(old)) => {
                new.status.clone_from(&old.status);
                new.spec != old.spec
            }
            _ => false,
        };
        if spec_differs {
            object.metadata_mut().generation += 1;
        }
        let faults = validate_update(object, stored, request.version, request.reference);
        request.refuse_invalid(object, faults)
    })
}

/// Replaces the status of an object and nothing else. `name` is the one in the URL, `stored` the object of that name.
pub fn replace_status(request: Request<'_>, name: &str, stored: Option<&Object>) -> Answer {
    request.answer(|object| {
        let stored = request.stored(object, name, stored)?;
        let mut new = stored.clone();
        match (&mut new, &*object) {
            (Object::FlowSchema(new), Object::FlowSchema(given)) => new.status.clone_from(&given.status),
            (Object::PriorityLevelConfiguration(new), Object::PriorityLevelConfiguration(given)) => {
                new.status.clone_from(&given.status);
            }
            _ => {}
        }
        *object = new;
        request.refuse_invalid(object, validate_status(object, request.reference))
    })
}

impl Request<'_> {
    /// Reads the body, lets `decide` make of it what shall be stored, and gathers warnings.
    fn answer(self, decide: impl FnOnce(&mut Object) -> Result<(), Refusal>) -> Answer {
        let mut warnings: Vec<String> = deprecation(self.kind, self.version).into_iter().collect();
        let result = self.read(&mut warnings).and_then(|mut object| {
            let metadata = object.metadata_mut();
            // These kinds have no namespace; one that is sent anyway is dropped without a word.
            metadata.namespace.clear();
            warnings.extend(drop_repeated(&mut metadata.owner_references));
            decide(&mut object)?;
            Ok(object)
        });
        Answer { result, warnings }
    }

    fn read(self, warnings: &mut Vec<String>) -> Result<Object, Refusal> {
        let options =
            DecodeOptions { kind: Some(self.kind), version: Some(self.version), ..DecodeOptions::default() };
        let Reading { object, version, faults, unknown } = decode_with(self.body, options);
        let Some(object) = object else {
            let what = self.body.get("kind").and_then(Value::as_str).filter(|kind| !kind.is_empty());
            let message = self.cannot_handle(what, version, &join(&faults));
            return Err(Refusal { faults, ..Refusal::bad_request(message) });
        };
        if object.kind() != self.kind {
            let why = format!("this place is for objects of kind {}", self.kind.name());
            let message = self.cannot_handle(Some(object.kind().name()), version, &why);
            return Err(Refusal::bad_request(message));
        }
        warnings.extend(unknown.iter().map(Fault::to_string));
        match version {
            Some(version) if version != self.version => Err(Refusal::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                version.api_version(),
                self.version.api_version()
            ))),
            _ => Ok(object),
        }
    }

    fn cannot_handle(self, kind: Option<&str>, version: Option<Version>, why: &str) -> String {
        let expected = self.kind.name();
        let given = self.body.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let version = match version {
            Some(version) => version.name(),
            None => given.rsplit('/').next().unwrap_or_default(),
        };
        let kind = kind.unwrap_or(expected);
        format!("{kind} in version \"{version}\" cannot be handled as a {expected}: {why}")
    }

    /// The stored object, when the one that was sent may take its place as far as name, UID and version go.
    fn stored<'s>(
        self,
        given: &Object,
        name: &str,
        stored: Option<&'s Object>,
    ) -> Result<&'s Object, Refusal> {
        let given = given.metadata();
        if given.name != name {
            return Err(Refusal::bad_request(if given.name.is_empty() {
                format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be provided"
                )
            } else {
                format!("the name of the object ({}) does not match the name on the URL ({name})", given.name)
            }));
        }
        let Some(stored) = stored else {
            let message = format!("{}.{GROUP} \"{name}\" not found", self.kind.resource());
            return Err(Refusal::new(404, "NotFound", message));
        };
        self.preconditions(given, stored.metadata())?;
        Ok(stored)
    }

    fn preconditions(self, given: &ObjectMeta, stored: &ObjectMeta) -> Result<(), Refusal> {
        if !given.uid.is_empty() && given.uid != stored.uid {
            let why = format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                given.uid, stored.uid
            );
            return Err(Refusal::conflict(self.kind, &stored.name, &why));
        }
        let wanted = revision(&given.resource_version)?;
        // Zero and absent: whatever is stored.
        if wanted != 0 && wanted != revision(&stored.resource_version)? {
            let why =
                "the object has been modified; please apply your changes to the latest version and try again";
            return Err(Refusal::conflict(self.kind, &stored.name, why));
        }
        Ok(())
    }

    fn refuse_invalid(self, object: &Object, faults: Vec<Fault>) -> Result<(), Refusal> {
        if faults.is_empty() {
            return Ok(());
        }
        Err(Refusal::invalid(self.kind, &object.metadata().name, faults))
    }
}

/// A resource version as a number.
fn revision(text: &str) -> Result<u64, Refusal> {
    if text.is_empty() {
        return Ok(0);
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let why = if digits { "value out of range" } else { "invalid syntax" };
    let refusal = || Refusal::new(500, "", format!("strconv.ParseUint: parsing \"{text}\": {why}"));
    text.parse().ok().filter(|_| digits).ok_or_else(refusal)
}

/// A name of at most 63 bytes that begins as asked.
pub(super) fn generated_name(base: &str, suffix: &str) -> String {
    let room = 63_usize.saturating_sub(suffix.len());
    let mut end = base.len().min(room);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// Drops owners that are named twice, with a warning.
fn drop_repeated(owners: &mut Vec<OwnerReference>) -> Option<String> {
    let mut seen: Vec<OwnerReference> = Vec::with_capacity(owners.len());
    let mut repeated: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        if seen.contains(&owner) {
            repeated.push(owner.uid);
        } else {
            seen.push(owner);
        }
    }
    *owners = seen;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// What a server says to whoever uses an old version.
fn deprecation(kind: Kind, version: Version) -> Option<String> {
    let (deprecated, gone, instead) = match version {
        Version::V1 => return None,
        Version::V1Beta3 => ("1.29", "1.32", Version::V1),
        Version::V1Beta2 => ("1.26", "1.29", Version::V1Beta3),
    };
    let (kind, version, instead) = (kind.name(), version.api_version(), instead.api_version());
    Some(format!(
        "{version} {kind} is deprecated in v{deprecated}+, unavailable in v{gone}+; use {instead} {kind}"
    ))
}
