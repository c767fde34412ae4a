//! The only door to atomics: `std` in builds, `loom` in models. Nothing else names either.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Lets another thread of the model go on, where builds would ask the system to sleep.
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;

use Ordering::{Acquire, Release};

/// Words that are read while their owner may already be filling them anew.
///
/// A reader learns afterwards, from the word that pointed here, whether what it read was whole. That only works if
/// no field is seen before the change of that word which preceded its store: hence Release stores and Acquire loads.
///
/// In models the words are one unit: what the models explore is the order of the words that point to records.
#[cfg(not(loom))]
#[repr(align(64))]
pub(crate) struct RecordCell<const N: usize>([AtomicU64; N]);

#[cfg(not(loom))]
impl<const N: usize> RecordCell<N> {
    #[inline]
    pub(crate) fn store<const M: usize>(&self, words: [u64; M]) {
        for (cell, word) in self.0.iter().zip(words) {
            cell.store(word, Release);
        }
    }

    /// The first `M` words.
    #[inline]
    pub(crate) fn load<const M: usize>(&self) -> [u64; M] {
        std::array::from_fn(|i| self.0[i].load(Acquire))
    }

    #[inline]
    pub(crate) fn load_at(&self, i: usize) -> u64 {
        self.0[i].load(Acquire)
    }
}

#[cfg(loom)]
pub(crate) struct RecordCell<const N: usize>(std::sync::Mutex<[u64; N]>);

#[cfg(loom)]
impl<const N: usize> RecordCell<N> {
    pub(crate) fn store<const M: usize>(&self, words: [u64; M]) {
        self.0.lock().unwrap()[..M].copy_from_slice(&words);
    }

    pub(crate) fn load<const M: usize>(&self) -> [u64; M] {
        let words = self.0.lock().unwrap();
        std::array::from_fn(|i| words[i])
    }

    pub(crate) fn load_at(&self, i: usize) -> u64 {
        self.0.lock().unwrap()[i]
    }
}

/// Types for which all zero bytes are a value.
///
/// # Safety
/// An all-zero bit pattern is valid for the type.
pub(crate) unsafe trait Zeroed: Sized {
    /// That value.
    #[cfg(loom)]
    fn zeroed() -> Self;
}

/// A boxed slice of zeroed values. The pages are the system's zero pages until they are first written, so a large
/// slice costs address space, not memory.
#[cfg(not(loom))]
pub(crate) fn zeroed_slice<T: Zeroed>(len: usize) -> Box<[T]> {
    // SAFETY: `T: Zeroed` says that zero bytes are a valid `T`.
    unsafe { Box::<[T]>::new_zeroed_slice(len).assume_init() }
}

#[cfg(loom)]
pub(crate) fn zeroed_slice<T: Zeroed>(len: usize) -> Box<[T]> {
    (0..len).map(|_| T::zeroed()).collect()
}

// SAFETY: an atomic integer has the representation of the integer.
unsafe impl Zeroed for AtomicU64 {
    #[cfg(loom)]
    fn zeroed() -> Self {
        AtomicU64::new(0)
    }
}

// SAFETY: an array of atomic integers.
unsafe impl<const N: usize> Zeroed for RecordCell<N> {
    #[cfg(loom)]
    fn zeroed() -> Self {
        RecordCell(std::sync::Mutex::new([0; N]))
    }
}
