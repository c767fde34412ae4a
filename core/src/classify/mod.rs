//! Requests, and the choice of the flow schema that a request belongs to.
//!
//! [`rule`] has the rules of matching, one request against one schema, with the reasons of a refusal: it serves
//! explanations, and tests. The index that [`Policy::classify`](crate::policy::Policy::classify) asks answers the same
//! for all schemas at once.
//!
//! Source of the rules: `vectors/match.jsonl`.

pub(crate) mod index;
mod keys;
pub mod rule;
mod sets;

/// What is known of a request when it arrives. Borrowed bytes: nothing is copied, and no encoding is assumed.
///
/// Groups may be of any type that gives bytes (`&str`, `String`, `&[u8]`, a foreign pointer with a length).
#[derive(Debug)]
pub struct Request<'a, G = &'a str> {
    /// Name of the user.
    pub user: &'a [u8],
    /// Groups of the user, in any order; repetitions do no harm.
    pub groups: &'a [G],
    /// Verb, in lower case as in API rules: `get`, `list`, `create`, …; for paths the HTTP method in lower case.
    pub verb: &'a [u8],
    /// Namespace; empty where there is none. (A request for a path has none, as a rule.)
    pub namespace: &'a [u8],
    /// What is asked for.
    pub target: Target<'a>,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A resource of the API, or a collection of them.
    Resource {
        /// API group; empty for the core group.
        api_group: &'a [u8],
        /// Resource, in the plural: `pods`.
        resource: &'a [u8],
        /// Subresource, such as `status`; empty where there is none.
        subresource: &'a [u8],
    },
    /// Anything else on the server.
    Path(&'a [u8]),
}

impl<'a> Target<'a> {
    /// A resource; core group and no subresource are empty.
    pub fn resource(
        api_group: &'a (impl AsRef<[u8]> + ?Sized),
        resource: &'a (impl AsRef<[u8]> + ?Sized),
        subresource: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Target<'a> {
        Target::Resource {
            api_group: api_group.as_ref(),
            resource: resource.as_ref(),
            subresource: subresource.as_ref(),
        }
    }

    /// A path that is not a resource's.
    pub fn path(path: &'a (impl AsRef<[u8]> + ?Sized)) -> Target<'a> {
        Target::Path(path.as_ref())
    }
}

impl<'a, G> Request<'a, G> {
    /// A request without a namespace.
    pub fn new(
        user: &'a (impl AsRef<[u8]> + ?Sized),
        groups: &'a [G],
        verb: &'a (impl AsRef<[u8]> + ?Sized),
        target: Target<'a>,
    ) -> Request<'a, G> {
        Request { user: user.as_ref(), groups, verb: verb.as_ref(), namespace: b"", target }
    }

    /// The same request in a namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &'a (impl AsRef<[u8]> + ?Sized)) -> Request<'a, G> {
        Request { namespace: namespace.as_ref(), ..self }
    }
}

// By hand, because a request is copied by its references, whatever the groups are made of.
impl<G> Clone for Request<'_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for Request<'_, G> {}

/// The answer of a classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classified {
    /// Index in [`Policy::schemas`](crate::policy::Policy::schemas).
    pub schema: u32,
    /// Index in [`Policy::levels`](crate::policy::Policy::levels).
    pub level: u32,
    /// No schema matched: catch-all takes the request all the same.
    pub fallback: bool,
}
