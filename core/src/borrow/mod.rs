//! borrow
