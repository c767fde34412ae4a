//! Checks of `metadata`.

use serde_json::{Value, json};

use super::{Check, Reference, names};
use crate::api::meta::{ObjectMeta, OwnerReference};
use crate::api::update::generated_name;
use crate::error::FaultKind;

/// Bytes that all annotations of an object may have together, keys included.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Finalizers that the server itself uses; all others need a domain before a slash.
const FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

impl Check {
    /// Metadata of an object whose namespace, generation and managed fields the server has set.
    pub(super) fn metadata(&mut self, meta: &ObjectMeta) {
        self.names(meta, names::dns_subdomain_prefix, names::dns_subdomain);
        if meta.name.is_empty() && self.faults.is_empty() && !meta.generate_name.is_empty() {
            // The rule for beginnings lets some through that no end can save. A server finds out on the name it made.
            for wrong in names::dns_subdomain(&generated_name(&meta.generate_name, "xxxxx")) {
                self.invalid("metadata.generateName", meta.generate_name.as_str(), wrong);
            }
        }
        self.metadata_but_names(meta);
        for (index, finalizer) in meta.finalizers.iter().enumerate() {
            if !finalizer.contains('/') && !FINALIZERS.contains(&finalizer.as_str()) {
                let path = format!("metadata.finalizers[{index}]");
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                self.invalid(&path, finalizer.as_str(), detail);
            }
        }
    }

    /// Metadata of an object of any kind: names need only fit into a URL.
    pub(super) fn metadata_in_url(&mut self, meta: &ObjectMeta) {
        let prefix = |text: &str| names::path_segment(text, false);
        self.names(meta, prefix, |text| names::path_segment(text, true));
        self.metadata_but_names(meta);
    }

    fn names(
        &mut self,
        meta: &ObjectMeta,
        prefix: impl Fn(&str) -> Vec<String>,
        whole: impl Fn(&str) -> Vec<String>,
    ) {
        if !meta.generate_name.is_empty() {
            for wrong in prefix(&meta.generate_name) {
                self.invalid("metadata.generateName", meta.generate_name.as_str(), wrong);
            }
        }
        if !meta.name.is_empty() {
            for wrong in whole(&meta.name) {
                self.invalid("metadata.name", meta.name.as_str(), wrong);
            }
        } else if meta.generate_name.is_empty() {
            self.required("metadata.name", "name or generateName is required");
        }
    }

    fn metadata_but_names(&mut self, meta: &ObjectMeta) {
        self.labels_and_annotations(meta);
        self.owner_references(&meta.owner_references);
        self.finalizers(&meta.finalizers);
    }

    /// What an update may not change. Called with what the server lets through only: the rest it has put back.
    pub(super) fn metadata_change(&mut self, new: &ObjectMeta, old: &ObjectMeta) {
        let immutable = "field is immutable";
        if new.deletion_timestamp != old.deletion_timestamp {
            let value = new.deletion_timestamp.map(|time| time.to_string());
            self.invalid("metadata.deletionTimestamp", value, immutable);
        }
        if new.deletion_grace_period_seconds != old.deletion_grace_period_seconds {
            let value = new.deletion_grace_period_seconds;
            self.invalid("metadata.deletionGracePeriodSeconds", value, immutable);
        }
        self.labels_and_annotations(new);
        self.owner_references(&new.owner_references);
    }

    fn labels_and_annotations(&mut self, meta: &ObjectMeta) {
        let reference = self.reference;
        for (key, value) in &meta.labels {
            for wrong in names::label_key(key, reference) {
                self.invalid("metadata.labels", key.as_str(), wrong);
            }
            for wrong in names::label_value(value, reference) {
                self.invalid("metadata.labels", value.as_str(), wrong);
            }
        }
        for key in meta.annotations.keys() {
            // Annotations are lenient about case.
            for wrong in names::label_key(&key.to_lowercase(), reference) {
                self.invalid("metadata.annotations", key.as_str(), wrong);
            }
        }
        let size: usize = meta.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        if size > ANNOTATIONS_LIMIT {
            let limit =
                if reference == Reference::Server1_31 { "must have at most" } else { "may not be more than" };
            let detail = format!("{limit} {ANNOTATIONS_LIMIT} bytes");
            self.add(FaultKind::TooLong, "metadata.annotations", None, detail);
        }
    }

    fn owner_references(&mut self, owners: &[OwnerReference]) {
        let mut controller: Option<String> = None;
        for (index, owner) in owners.iter().enumerate() {
            self.owner_reference(index, owner);
            if owner.controller != Some(true) {
                continue;
            }
            let this = format!("{}/{}", owner.kind, owner.name);
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for \
                         {first} and {this}"
                    );
                    self.invalid("metadata.ownerReferences", json!(owners), detail);
                }
            }
        }
    }

    fn owner_reference(&mut self, index: usize, owner: &OwnerReference) {
        let old = self.reference == Reference::Server1_31;
        let path = if old {
            "metadata.ownerReferences".to_owned()
        } else {
            format!("metadata.ownerReferences[{index}]")
        };
        let version = match owner.api_version.split_once('/') {
            None => owner.api_version.as_str(),
            Some((_, version)) if !version.contains('/') => version,
            // More than one slash names no version at all.
            Some(_) => "",
        };
        if old {
            if version.is_empty() {
                let value = owner.api_version.as_str();
                self.invalid(&format!("{path}.apiVersion"), value, "version must not be empty");
            }
        } else if owner.api_version.is_empty() {
            self.required(&format!("{path}.apiVersion"), "must not be empty");
        } else if version.is_empty() {
            let value = owner.api_version.as_str();
            self.invalid(&format!("{path}.apiVersion"), value, "must be <group>/<version> or <version>");
        }
        for (field, value) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
            if !value.is_empty() {
                continue;
            }
            let path = format!("{path}.{field}");
            if old {
                self.invalid(&path, "", format!("{field} must not be empty"));
            } else {
                self.required(&path, "must not be empty");
            }
        }
        if owner.api_version == "v1" && owner.kind == "Event" {
            self.invalid(&path, json!(owner), "/v1, Kind=Event is disallowed from being an owner");
        }
    }

    fn finalizers(&mut self, finalizers: &[String]) {
        for finalizer in finalizers {
            for wrong in names::label_key(finalizer, self.reference) {
                self.invalid("metadata.finalizers", finalizer.as_str(), wrong);
            }
        }
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        if has("orphan") && has("foregroundDeletion") {
            let detail = "finalizer orphan and foregroundDeletion cannot be both set";
            self.invalid("metadata.finalizers", Value::from(finalizers.to_vec()), detail);
        }
    }
}
