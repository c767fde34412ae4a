//! What flow control sees of a request, taken from its event.

use std::borrow::Cow;

use maitred::estimate;

use crate::event::{Event, Text, User};

/// What the request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// An API object or a collection of them. Empty text stands for what the event does not tell: the core group, no
    /// subresource, cluster scope, no name.
    Resource {
        api_group: &'a str,
        resource: &'a str,
        subresource: &'a str,
        namespace: &'a str,
        name: &'a str,
    },
    /// Any other path, without the query and with its escapes undone, as the server matches it.
    Path(Cow<'a, str>),
}

/// Who asks for what.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    /// The user; the impersonated one where somebody impersonates.
    pub user: &'a str,
    /// The groups of that user.
    pub groups: Vec<&'a str>,
    /// API verb, or HTTP method in lower case.
    pub verb: &'a str,
    /// What is asked for.
    pub target: Target<'a>,
}

impl<'a> Attributes<'a> {
    /// The attributes of the request; `None` where its user is unknown, so that it never came to flow control.
    pub fn of(event: &'a Event<'a>) -> Option<Self> {
        // An empty name says that nobody was impersonated, as an absent one does.
        let named = |user: &&'a User<'a>| !text(&user.username).is_empty();
        let user = event.impersonated_user.as_ref().filter(named).or(event.user.as_ref()).filter(named)?;
        let target = match &event.object_ref {
            Some(object) => Target::Resource {
                api_group: text(&object.api_group),
                resource: text(&object.resource),
                subresource: text(&object.subresource),
                namespace: text(&object.namespace),
                name: text(&object.name),
            },
            None => Target::Path(path(&event.request_uri)),
        };
        Some(Self {
            user: text(&user.username),
            groups: user.groups.iter().flatten().map(|group| &**group).collect(),
            verb: &event.verb,
            target,
        })
    }

    /// The request for a resource, as work estimators see it.
    pub fn for_estimate(&self) -> Option<estimate::Request<'_>> {
        match self.target {
            Target::Resource { api_group, resource, subresource, namespace, name } => {
                Some(estimate::Request { verb: self.verb, api_group, resource, subresource, namespace, name })
            }
            Target::Path(_) => None,
        }
    }

    /// Whether the request is a watch.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether the server lets the request pass flow control by, because it may run for as long as its client likes.
    ///
    /// The server counts every `log` among these, with `follow` or without. Watches are long as well, but do not pass by.
    pub fn passes_by(&self) -> bool {
        if self.is_watch() {
            return false;
        }
        match &self.target {
            Target::Resource { subresource, .. } => {
                self.verb == "proxy"
                    || matches!(*subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
            }
            Target::Path(path) => path.starts_with("/debug/pprof/"),
        }
    }
}

fn text<'a>(text: &'a Option<Text<'a>>) -> &'a str {
    text.as_deref().unwrap_or_default()
}

/// The path of a request URI: without query and fragment, `%2F` and its like undone. A broken escape is left as it is.
fn path(uri: &str) -> Cow<'_, str> {
    let raw = &uri[..uri.find(['?', '#']).unwrap_or(uri.len())];
    if !raw.contains('%') {
        return Cow::Borrowed(raw);
    }
    let bytes = raw.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| Some((hex(*bytes.get(at + 1)?)?, hex(*bytes.get(at + 2)?)?)))
            .flatten();
        if let Some((high, low)) = escaped {
            plain.push(high << 4 | low);
            at += 3;
        } else {
            plain.push(bytes[at]);
            at += 1;
        }
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_impersonated_user_and_groups_count() {
        let event = event(
            r#"{"verb":"get","requestURI":"/healthz","user":{"username":"admin","groups":["system:masters"]},
                "impersonatedUser":{"username":"eve","groups":["guests"]}}"#,
        );
        let attributes = Attributes::of(&event).unwrap();
        assert_eq!((attributes.user, attributes.groups), ("eve", vec!["guests"]));
    }

    #[test]
    fn a_request_without_a_user_never_came_to_flow_control() {
        assert!(Attributes::of(&event(r#"{"verb":"list","user":{}}"#)).is_none());
        assert!(Attributes::of(&event(r#"{"verb":"list"}"#)).is_none());
    }

    #[test]
    fn a_path_loses_its_query_and_its_escapes() {
        assert_eq!(path("/healthz?verbose"), "/healthz");
        assert_eq!(path("/a%2Fb%zz%2"), "/a/b%zz%2");
    }

    #[test]
    fn long_requests_other_than_watches_pass_by() {
        for (subresource, verb, passes) in [
            ("exec", "create", true),
            ("log", "get", true),
            ("portforward", "create", true),
            ("status", "get", false),
            ("", "watch", false),
            ("", "proxy", true),
        ] {
            let json = format!(
                r#"{{"verb":"{verb}","user":{{"username":"u"}},"objectRef":{{"resource":"pods","subresource":"{subresource}"}}}}"#
            );
            assert_eq!(Attributes::of(&event(&json)).unwrap().passes_by(), passes, "{subresource} {verb}");
        }
    }
}
