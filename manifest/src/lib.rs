//! Reads manifests as kubectl does, with places.
//!
//! A file is cut into documents where kubectl cuts it, each is parsed into a tree that knows the line and column of every
//! key and value, scalars mean what YAML 1.1 says (`no` is a boolean, `0144` is 100, `1e2` is an integer), and lists are
//! opened. What a reader of the file may not expect is a warning; what cannot be read is a problem with its place. No
//! input makes this panic, and none takes more time or memory than its size warrants.
//!
//! ```
//! let documents = maitred_manifest::read_str("jail.yaml", "
//! apiVersion: flowcontrol.apiserver.k8s.io/v1
//! kind: FlowSchema
//! metadata: {name: jail}
//! spec:
//!   matchingPrecedence: 0144
//! ");
//! let item = &documents[0].items[0];
//! assert_eq!(item.value["spec"]["matchingPrecedence"], 100);
//! assert_eq!(item.place_of("spec.matchingPrecedence").line, 6);
//! assert_eq!(item.warnings.len(), 1); // an octal number
//! ```

mod build;
mod document;
mod names;
mod objects;
mod plain;
mod scalar;
mod source;
mod split;
mod tree;
mod write;

pub use build::Remark;
pub use document::{Document, Item, read_str};
pub use objects::{Content, Entry, Strictness, duplicates, objects};
pub use plain::Plain;
pub use source::{MAX_FILE, Manifest, Unreadable, read_bytes};
pub use tree::Mark;
pub use write::to_yaml;
