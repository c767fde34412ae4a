//! Blocking waits: a futex word a ticket.
//!
//! The waiter announces itself in the word, looks at the ticket again, and sleeps only while the word still says so.
//! Whoever grants changes the ticket's state first and then the word. Both change the word by exchange, so one of
//! them sees the other: no wake-up is lost. A wake-up too many (a late helper's) makes the waiter look once more.

use crate::sync::{AtomicU32, Ordering::AcqRel};

const IDLE: u32 = 0;
const ASLEEP: u32 = 1;

/// Where one thread may sleep.
pub(crate) struct Signal(AtomicU32);

impl Signal {
    pub(crate) fn new() -> Self {
        Signal(AtomicU32::new(IDLE))
    }

    /// Wakes the sleeper, if there is one. No system call if not.
    #[inline]
    pub(crate) fn notify(&self) {
        // AcqRel: releases the state set before; acquires the sleeper's announcement.
        if self.0.swap(IDLE, AcqRel) == ASLEEP {
            futex::wake(&self.0);
        }
    }

    /// Sleeps until `ready` or until the clock, read by `remaining`, has no nanoseconds left. Says whether `ready`.
    pub(crate) fn wait(
        &self,
        mut ready: impl FnMut() -> bool,
        mut remaining: impl FnMut() -> Option<u64>,
    ) -> bool {
        // Looked at before it is announced, so that who was woken leaves no announcement behind.
        while !ready() {
            self.0.swap(ASLEEP, AcqRel);
            if ready() {
                return true;
            }
            let Some(left) = remaining() else { return ready() };
            futex::wait(&self.0, ASLEEP, left);
        }
        true
    }
}

/// The seam to the system.
#[cfg(all(target_os = "linux", not(loom)))]
mod futex {
    use crate::sync::AtomicU32;

    pub(super) fn wait(word: &AtomicU32, expected: u32, ns: u64) {
        let timeout = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the word and the time-out live through the call; FUTEX_WAIT reads both and writes neither.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                expected,
                &timeout,
            );
        }
    }

    /// Wakes all: where a ticket was cancelled by number, its thread may still be on the way to sleep when the place, and
    /// with it the word, is another's.
    pub(super) fn wake(word: &AtomicU32) {
        // SAFETY: FUTEX_WAKE only uses the address.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                i32::MAX,
            );
        }
    }
}

/// Elsewhere, until a system has its own: look again every half millisecond.
#[cfg(all(not(target_os = "linux"), not(loom)))]
mod futex {
    use crate::sync::AtomicU32;
    use std::time::Duration;

    pub(super) fn wait(_: &AtomicU32, _: u32, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns).min(Duration::from_micros(500)));
    }

    pub(super) fn wake(_: &AtomicU32) {}
}

#[cfg(loom)]
mod futex {
    use crate::sync::AtomicU32;

    pub(super) fn wait(_: &AtomicU32, _: u32, _: u64) {
        crate::sync::yield_now();
    }

    pub(super) fn wake(_: &AtomicU32) {}
}
