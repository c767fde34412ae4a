//! What names, labels and their keys may look like. Each rule answers with what is wrong, in the server's words.
//!
//! Sources: RFC 1123 as the Kubernetes API reads it, and the "object names and labels" rules of its documentation.
//! The expressions stand in the texts; the checks are written out, as they are on plain bytes.

use super::Reference;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// `text` begins and ends with `edge` and has nothing but `edge` and `inner`.
fn bounded(text: &str, edge: fn(&u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|byte| edge(byte) || inner.contains(byte))
}

fn lower_or_digit(byte: &u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    bounded(text, lower_or_digit, b"-")
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    bounded(text, u8::is_ascii_alphanumeric, b"-_.")
}

fn form(rule: &str, examples: &[&str], expression: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{expression}')", examples.join(" or "))
}

fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

/// Names of most objects: labels joined by dots.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, "characters")
}

fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_long(253, unit));
    }
    if !is_subdomain(text) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                    and must start and end with an alphanumeric character";
        wrong.push(form(rule, &["example.com"], SUBDOMAIN));
    }
    wrong
}

/// The beginning of a name: a dash at the end is fine, because something will follow it.
pub(crate) fn dns_subdomain_prefix(text: &str) -> Vec<String> {
    // As in the reference, the byte before the dash goes unread and does not count.
    match text.as_bytes() {
        [rest @ .., before, b'-'] if before.is_ascii() => dns_subdomain(&format!("{}a", &text[..rest.len()])),
        _ => dns_subdomain(text),
    }
}

/// Names of namespaces: one label.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63, "characters"));
    }
    if is_label(text) {
        return wrong;
    }
    if is_subdomain(text) {
        wrong.push("must not contain dots".to_owned());
    } else {
        let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                    start and end with an alphanumeric character";
        wrong.push(form(rule, &["my-name", "123-abc"], LABEL));
    }
    wrong
}

/// Keys of labels and annotations, and names of finalizers: a name, perhaps after a domain and a slash.
pub(crate) fn label_key(text: &str, reference: Reference) -> Vec<String> {
    let unit = reference.unit();
    let rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                alphanumeric character";
    let examples = ["MyName", "my.name", "123-abc"];
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    if name.contains('/') {
        let kind = if reference == Reference::Server1_31 { "a qualified name" } else { "a valid label key" };
        let form = form(&format!("{kind} {rule}"), &examples, KEY);
        return vec![format!(
            "{form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )];
    }
    let mut wrong: Vec<String> = match prefix {
        None => Vec::new(),
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => {
            subdomain(prefix, unit).into_iter().map(|wrong| format!("prefix part {wrong}")).collect()
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", too_long(63, unit)));
    }
    if !is_key(name) {
        wrong.push(format!("name part {}", form(rule, &examples, KEY)));
    }
    wrong
}

/// Values of labels.
pub(crate) fn label_value(text: &str, reference: Reference) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63, reference.unit()));
    }
    if !text.is_empty() && !is_key(text) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                    and must start and end with an alphanumeric character";
        wrong.push(form(rule, &["MyValue", "my_value", "12345"], &format!("({KEY})?")));
    }
    wrong
}

/// What a URL can carry as one segment. `whole`: the name is complete, so that it must not be a dot or two.
pub(crate) fn path_segment(text: &str, whole: bool) -> Vec<String> {
    if whole && (text == "." || text == "..") {
        return vec![format!("may not be '{text}'")];
    }
    let illegal = ["/", "%"].into_iter().filter(|illegal| text.contains(illegal));
    illegal.map(|illegal| format!("may not contain '{illegal}'")).collect()
}
