//! Everything that the API server checks before it stores an object, every fault at once.
//!
//! The objects are checked in the hub form, after defaults. Sources: the API reference of `flowcontrol` v1, v1beta3
//! and v1beta2, and the golden vectors `validate.jsonl` and `validation-*.jsonl`, which decide paths, order and words.

mod flow_schema;
mod meta;
pub(crate) mod names;
mod priority_level;

use serde_json::Value;

use super::{Kind, Object, Version, v1};
use crate::error::{Fault, FaultKind};

/// Whose checks, paths and words are followed. They agree in what they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reference {
    /// API server 1.37 as it runs: the checks written by hand, then those generated for unions.
    #[default]
    Server1_37,
    /// The checks of 1.37 that are written by hand alone.
    Checks1_37,
    /// API server 1.31, the last that serves v1beta3.
    Server1_31,
}

impl Reference {
    /// What lengths of labels are said to be counted in. All count bytes.
    fn unit(self) -> &'static str {
        if self == Reference::Server1_31 { "characters" } else { "bytes" }
    }
}

/// What the API server 1.37 would refuse about `object` when it is created; empty when it would take it.
///
/// The object must have its defaults, as [`decode`](super::decode()) gives it. What a server sets or ignores on create
/// is not checked: status, UID, generation, timestamps, managed fields, and the namespace, which it drops.
pub fn validate(object: &Object) -> Vec<Fault> {
    validate_with(object, Version::V1, Reference::default())
}

/// As [`validate`], with paths named as `version` names them, and by the checks of `reference`.
pub fn validate_with(object: &Object, version: Version, reference: Reference) -> Vec<Fault> {
    let mut check = Check::new(version, reference);
    check.metadata(object.metadata());
    check.object(object);
    if check.faults.is_empty() && !check.union_faults && reference != Reference::Checks1_37 {
        check.metadata_in_url(object.metadata());
    }
    check.generated(object);
    check.finish(object)
}

/// What is wrong with the status of `object`, which may only be written apart from the rest.
pub fn validate_status(object: &Object, reference: Reference) -> Vec<Fault> {
    let mut check = Check::new(Version::V1, reference);
    check.conditions(object.conditions());
    check.finish(object)
}

/// What the API server would refuse about `new` as a replacement of `old`, which it holds.
///
/// Both must carry what the server has filled in: see [`update`](super::update).
pub(crate) fn validate_update(
    new: &Object,
    old: &Object,
    version: Version,
    reference: Reference,
) -> Vec<Fault> {
    let mut check = Check::new(version, reference);
    // The server checks metadata three times here; 1.31 says so three times.
    check.metadata_in_url(new.metadata());
    check.metadata_change(new.metadata(), old.metadata());
    check.metadata(new.metadata());
    check.object(new);
    check.generated(new);
    check.finish(new)
}

/// The faults so far, and how to look and speak.
struct Check {
    version: Version,
    reference: Reference,
    faults: Vec<Fault>,
    /// Whether there are faults that are left to the generated checks to tell.
    union_faults: bool,
}

impl Check {
    fn new(version: Version, reference: Reference) -> Check {
        Check { version, reference, faults: Vec::new(), union_faults: false }
    }

    fn finish(self, object: &Object) -> Vec<Fault> {
        let (kind, name) = (object.kind().name(), &object.metadata().name);
        self.faults.into_iter().map(|fault| fault.of(kind, name)).collect()
    }

    /// Everything but metadata and status.
    fn object(&mut self, object: &Object) {
        match object {
            Object::FlowSchema(schema) => self.flow_schema(schema),
            Object::PriorityLevelConfiguration(level) => self.priority_level(level),
        }
    }

    /// The checks that are generated from the definition of the API: they come last, with their own words. A server
    /// that has them says only once what the others find twice.
    fn generated(&mut self, object: &Object) {
        if self.reference != Reference::Server1_37 {
            return;
        }
        let mut once = Vec::with_capacity(self.faults.len());
        for fault in self.faults.drain(..) {
            if !once.contains(&fault) {
                once.push(fault);
            }
        }
        self.faults = once;
        if let Object::PriorityLevelConfiguration(level) = object {
            self.unions(&level.spec);
        }
    }

    fn conditions(&mut self, conditions: &[v1::Condition]) {
        for (index, condition) in conditions.iter().enumerate() {
            let path = format!("status.conditions[{index}].type");
            if conditions[..index].iter().any(|earlier| earlier.type_ == condition.type_) {
                self.add(FaultKind::Duplicate, &path, Some(condition.type_.clone().into()), "");
            }
            if condition.type_.is_empty() {
                let detail = if self.reference == Reference::Server1_31 { "must not be empty" } else { "" };
                self.required(&path, detail);
            }
        }
    }

    fn required(&mut self, path: &str, detail: &str) {
        self.add(FaultKind::Required, path, None, detail);
    }

    fn forbidden(&mut self, path: &str, detail: &str) {
        self.add(FaultKind::Forbidden, path, None, detail);
    }

    fn invalid(&mut self, path: &str, value: impl Into<Value>, detail: impl Into<String>) {
        self.add(FaultKind::Invalid, path, Some(value.into()), detail);
    }

    fn not_supported(&mut self, path: &str, value: impl Into<Value>, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.add(FaultKind::NotSupported, path, Some(value.into()), detail);
    }

    fn add(&mut self, kind: FaultKind, path: &str, value: Option<Value>, detail: impl Into<String>) {
        let fault = Fault::new(kind, path, detail);
        self.faults.push(match value {
            None => fault,
            Some(value) => fault.with_value(value),
        });
    }
}

impl Object {
    fn conditions(&self) -> &[v1::Condition] {
        match self {
            Object::FlowSchema(schema) => &schema.status.conditions,
            Object::PriorityLevelConfiguration(level) => &level.status.conditions,
        }
    }
}

impl Kind {
    /// The rule for names, of objects of this kind and of references to them.
    pub(crate) fn name_faults(self, name: &str) -> Vec<String> {
        names::dns_subdomain(name)
    }
}
