//! A test that hangs fails: whoever never comes back from a call cannot notice it himself.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// While it lives, the process is given up after a minute.
pub struct Watch(#[allow(dead_code, reason = "its end is the news")] Sender<()>);

/// Watches over what is named until the value is dropped.
pub fn watch(what: String) -> Watch {
    let (alive, news) = channel();
    std::thread::spawn(move || {
        if news.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{what}: no end after a minute");
            std::process::abort();
        }
    });
    Watch(alive)
}
