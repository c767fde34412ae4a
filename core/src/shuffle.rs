//! shuffle
