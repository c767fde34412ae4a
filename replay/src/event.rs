//! One audit event, read without copying.
//!
//! Only the fields that the replay needs are kept; text is borrowed from the line unless it holds escapes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

/// Text borrowed from the line where possible. (serde borrows a bare `Cow`, but not one inside an `Option` or `Vec`.)
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// The stage of a request at which an event was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Stage {
    /// The request came.
    RequestReceived,
    /// The head of the response was sent; the body is still to come. Watches, and requests refused with 401.
    ResponseStarted,
    /// The response was sent whole.
    ResponseComplete,
    /// The server gave the request up.
    Panic,
}

/// What of an `audit.k8s.io/v1` Event is needed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event<'a> {
    #[serde(borrow, default)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow, rename = "auditID", default)]
    pub(crate) audit_id: Text<'a>,
    pub(crate) stage: Option<Stage>,
    #[serde(borrow, rename = "requestURI", default)]
    pub(crate) request_uri: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) verb: Text<'a>,
    #[serde(borrow)]
    pub(crate) user: Option<User<'a>>,
    #[serde(borrow)]
    pub(crate) impersonated_user: Option<User<'a>>,
    #[serde(borrow)]
    pub(crate) object_ref: Option<ObjectRef<'a>>,
    #[serde(borrow)]
    pub(crate) response_status: Option<Status<'a>>,
    #[serde(borrow)]
    pub(crate) request_received_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) stage_timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) annotations: Option<Annotations<'a>>,
}

/// Who asks.
#[derive(Debug, Default, Deserialize)]
pub struct User<'a> {
    #[serde(borrow)]
    pub(crate) username: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) groups: Option<Vec<Text<'a>>>,
}

/// What the request is about; absent for a path that is no resource.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef<'a> {
    #[serde(borrow)]
    pub(crate) resource: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) subresource: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) namespace: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) api_group: Option<Text<'a>>,
}

/// How it ended.
#[derive(Debug, Deserialize)]
pub struct Status<'a> {
    pub(crate) code: Option<u32>,
    #[serde(borrow)]
    pub(crate) message: Option<Text<'a>>,
}

/// The annotations that tell of time; the others are passed over.
#[derive(Debug, Default)]
pub struct Annotations<'a> {
    pub(crate) queue_wait: Option<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Annotations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnnotationsVisitor;
        impl<'de> Visitor<'de> for AnnotationsVisitor {
            type Value = Annotations<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations<'de>, A::Error> {
                let mut annotations = Annotations::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if &*key == "apiserver.latency.k8s.io/apf-queue-wait" {
                        annotations.queue_wait = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(annotations)
            }
        }
        deserializer.deserialize_map(AnnotationsVisitor)
    }
}
