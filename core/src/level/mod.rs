//! level
