//! The objects of `flowcontrol.apiserver.k8s.io`: FlowSchema and PriorityLevelConfiguration.
//!
//! Everything here runs at configuration time and may allocate. [`v1`] is the hub: whatever version an object comes
//! in, the rest of the crate sees it in the form of [`v1`].

pub(crate) mod decode;
pub mod meta;
pub mod v1;

/// An object in the hub form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A flow schema.
    FlowSchema(v1::FlowSchema),
    /// A priority level.
    PriorityLevelConfiguration(v1::PriorityLevelConfiguration),
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
