//! What a real server said to attempts to create and replace objects.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use maitred::api::meta::Time;
use maitred::api::update::{self, Answer, Birth, Request};
use maitred::api::{Kind, Object, Reference, Version, builtin, encode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::outcome::Outcome;
use crate::vectors;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    kind: String,
    api_version: String,
    method: String,
    path: String,
    object: Value,
    base: Option<Value>,
    accepted: bool,
    code: u16,
    reason: Option<String>,
    message: Option<String>,
    causes: Vec<Cause>,
    stored_spec: Option<Value>,
    stored_metadata: Option<Value>,
    stored_status: Option<Value>,
    warning: Option<String>,
    details: Option<Value>,
}

#[derive(Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    field: String,
    reason: String,
    message: String,
}

/// Every line is a case, in order and on one server, which has the objects of a fresh one.
pub fn run(path: &Path) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut server = Server::new();
    for line in vectors::lines(path)? {
        let place = || format!("{}:{}", path.display(), line.number);
        let case: Case = serde_json::from_value(line.value).with_context(place)?;
        let got = server.attempt(&case).with_context(place)?;
        outcome.check(|| format!("line {}: {}", line.number, case.name), &expected(&case), &got);
    }
    Ok(outcome)
}

/// The API server's side: objects by kind and name.
struct Server {
    objects: BTreeMap<(Kind, String), Object>,
    revision: u64,
}

/// What is judged of an answer.
#[derive(Debug, PartialEq)]
struct Judged {
    accepted: bool,
    code: u16,
    reason: String,
    /// Without what only the server's own structures say.
    message: Option<String>,
    causes: Vec<Cause>,
    spec: Option<Value>,
    metadata: Option<Value>,
    status: Option<Value>,
    /// The last of the `Warning` headers.
    warning: Option<String>,
}

impl Server {
    fn new() -> Server {
        let mut server = Server { objects: BTreeMap::new(), revision: 1 };
        builtin::fresh(Time(0)).into_iter().for_each(|object| server.store(object));
        server
    }

    fn store(&mut self, mut object: Object) {
        let key = (object.kind(), object.metadata().name.clone());
        if self.objects.get(&key) != Some(&object) {
            self.revision += 1;
            object.metadata_mut().resource_version = self.revision.to_string();
            self.objects.insert(key, object);
        }
    }

    fn attempt(&mut self, case: &Case) -> Result<Judged> {
        let kind = Kind::from_name(&case.kind).context("unknown kind")?;
        let version = Version::from_api_version(&case.api_version).context("unknown version")?;
        // v1beta3 was recorded from the last server that has it.
        let reference =
            if version == Version::V1Beta3 { Reference::Server1_31 } else { Reference::Server1_37 };
        let request = Request { kind, version, body: &case.object, reference };
        let birth =
            Birth { now: Time(0), uid: "0".into(), name_suffix: name_suffix(case).unwrap_or("xxxxx".into()) };
        let name_of = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if let Some(base) = &case.base {
            let base = Request { body: base, ..request };
            self.objects.remove(&(kind, name_of(base.body)));
            let answer = update::create(base, birth.clone(), |_| None);
            self.store(answer.result.context("the base is refused")?);
        }
        let segments: Vec<&str> = case.path.trim_matches('/').split('/').collect();
        let answer = match (case.method.as_str(), segments.as_slice()) {
            ("POST", [_, _, _, _]) => {
                if builtin::mandatory()
                    .into_iter()
                    .all(|object| object.metadata().name != name_of(&case.object))
                {
                    self.objects.remove(&(kind, name_of(&case.object)));
                }
                update::create(request, birth, |name| self.objects.get(&(kind, name.to_owned())))
            }
            ("PUT", [_, _, _, _, name]) => {
                update::replace(request, name, self.objects.get(&(kind, (*name).to_owned())))
            }
            ("PUT", [_, _, _, _, name, "status"]) => {
                update::replace_status(request, name, self.objects.get(&(kind, (*name).to_owned())))
            }
            _ => bail!("unknown method and path: {} {}", case.method, case.path),
        };
        let judged = judge(case, version, &answer);
        if let Ok(object) = answer.result {
            self.store(object);
        }
        Ok(judged)
    }
}

/// What the recorded server put behind `generateName`.
fn name_suffix(case: &Case) -> Option<String> {
    let given = case.object["metadata"]["name"].as_str().unwrap_or_default();
    let told = case.stored_metadata.as_ref().or(case.details.as_ref())?;
    let name = told["name"].as_str().filter(|_| given.is_empty())?;
    name.len().checked_sub(5).and_then(|from| name.get(from..)).map(str::to_owned)
}

fn expected(case: &Case) -> Judged {
    Judged {
        accepted: case.accepted,
        code: case.code,
        reason: case.reason.clone().unwrap_or_default(),
        message: case.message.clone().filter(|_| judges_message(case)),
        causes: judged_causes(case, case.causes.clone()),
        spec: case.stored_spec.clone(),
        metadata: case.stored_metadata.as_ref().map(|metadata| judged_metadata(case, metadata)),
        status: case.stored_status.as_ref().filter(|_| is_history_known(case)).map(judged_status),
        warning: case.warning.clone(),
    }
}

fn judge(case: &Case, version: Version, answer: &Answer) -> Judged {
    let warning = answer.warnings.last().map(|warning| format!("299 - {}", json!(warning)));
    match &answer.result {
        Ok(object) => {
            let object = encode(object, version);
            Judged {
                accepted: true,
                code: if case.method == "POST" { 201 } else { 200 },
                reason: String::new(),
                message: None,
                causes: Vec::new(),
                spec: Some(object["spec"].clone()),
                metadata: Some(judged_metadata(case, &object["metadata"])),
                status: Some(&object["status"]).filter(|_| is_history_known(case)).map(judged_status),
                warning,
            }
        }
        Err(refusal) => {
            // Faults of types are told in the message alone, as the server does.
            let faults = refusal.faults.iter().filter(|_| refusal.code == 422);
            let causes = faults.map(|fault| Cause {
                field: fault.path.clone(),
                reason: fault.kind.reason().to_owned(),
                message: fault.message(),
            });
            Judged {
                accepted: false,
                code: refusal.code,
                reason: refusal.reason.to_owned(),
                message: Some(refusal.message.clone()).filter(|_| judges_message(case)),
                causes: judged_causes(case, causes.collect()),
                spec: None,
                metadata: None,
                status: None,
                warning,
            }
        }
    }
}

/// Causes in order, without texts where the recorded server's text is not plain.
fn judged_causes(case: &Case, mut causes: Vec<Cause>) -> Vec<Cause> {
    for cause in &mut causes {
        let same = |other: &&Cause| other.field == cause.field && other.reason == cause.reason;
        if case.causes.iter().filter(same).any(|cause| !is_plain(&cause.message)) {
            cause.message.clear();
        }
    }
    causes.sort();
    causes
}

/// The text for the whole is judged when it is plain, and when nothing in it stands in the order of a hash map.
fn judges_message(case: &Case) -> bool {
    let of_map = |cause: &&Cause| ["metadata.labels", "metadata.annotations"].contains(&cause.field.as_str());
    case.message.as_deref().is_some_and(is_plain) && case.causes.iter().filter(of_map).count() < 2
}

/// Whether a text is in words: not in the structures of the recorded server's own language.
fn is_plain(text: &str) -> bool {
    let internal = [
        "Go struct field",
        "Go value",
        "[]string{",
        "flowcontrol.Flow",
        "flowcontrol.Priority",
        "v1.OwnerReference{",
        "unknown conversion",
        "in scheme",
        "StorageError",
        "parsing time",
        r#"{"Type":"#,
        r#"{"PriorityLevelConfiguration":"#,
    ];
    !internal.iter().any(|internal| text.contains(internal))
}

/// Metadata without what is of that server and moment alone.
fn judged_metadata(case: &Case, metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Value::Object(map) = &mut metadata {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            map.remove(field);
        }
        if !is_history_known(case) {
            map.remove("generation");
        }
    }
    metadata
}

/// The status without what a controller of the server writes into it when it gets round to it.
fn judged_status(status: &Value) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    json!(conditions.filter(|condition| condition["type"] != "Dangling").collect::<Vec<_>>())
}

/// Not of a mandatory object that is replaced: attempts that were not recorded may have changed it before.
fn is_history_known(case: &Case) -> bool {
    case.method == "POST" || case.base.is_some()
}
