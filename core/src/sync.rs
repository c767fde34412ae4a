//! The only door to atomics: `std` in builds, `loom` in models. Nothing else names either.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// The standard library's also in models: for numbers that no order hangs on, each of which would multiply what there is
/// to explore.
pub(crate) mod uncontrolled {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
}

/// Lets another thread of the model go on, where builds would ask the system to sleep.
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;

use Ordering::{Acquire, Release};

/// Words that are read while their owner may already be filling them anew.
///
/// A reader learns afterwards, from a word that its owner changed before, whether what it read was whole. That only
/// works if no field is seen before that change: hence Release stores and Acquire loads.
///
/// In models the words are one register, which is written and read whole: what is explored is which of its values
/// a reader meets, and when. That a torn value is noticed is the argument above.
#[cfg(not(loom))]
pub(crate) struct Words<const N: usize>([AtomicU64; N]);

#[cfg(not(loom))]
impl<const N: usize> Words<N> {
    /// Sets the first of them.
    #[inline]
    pub(crate) fn store(&self, words: impl IntoIterator<Item = u64>) {
        for (cell, word) in self.0.iter().zip(words) {
            cell.store(word, Release);
        }
    }

    /// To look at them, each as it is when it is asked for.
    #[inline]
    pub(crate) fn read(&self) -> impl Fn(usize) -> u64 {
        |i| self.0[i].load(Acquire)
    }
}

#[cfg(loom)]
pub(crate) struct Words<const N: usize> {
    /// Which of all values that it ever had.
    now: AtomicU64,
    values: std::sync::Mutex<Vec<[u64; N]>>,
}

#[cfg(loom)]
impl<const N: usize> Words<N> {
    fn new() -> Self {
        Words { now: AtomicU64::new(0), values: std::sync::Mutex::new(vec![[0; N]]) }
    }

    pub(crate) fn store(&self, words: impl IntoIterator<Item = u64>) {
        let next = {
            let mut values = self.values.lock().unwrap();
            // Only one thread at a time fills them, so the last is its own.
            let mut value = *values.last().unwrap();
            value.iter_mut().zip(words).for_each(|(cell, word)| *cell = word);
            values.push(value);
            values.len() as u64 - 1
        };
        self.now.store(next, Release);
    }

    pub(crate) fn read(&self) -> impl Fn(usize) -> u64 {
        let now = self.now.load(Acquire);
        let value = self.values.lock().unwrap()[now as usize];
        move |i| value[i]
    }
}

/// [`Words`] that make up a record.
#[cfg_attr(not(loom), repr(align(64)))]
pub(crate) struct RecordCell<const N: usize>(Words<N>);

impl<const N: usize> RecordCell<N> {
    #[inline]
    pub(crate) fn store<const M: usize>(&self, words: [u64; M]) {
        self.0.store(words);
    }

    /// The first `M` words.
    #[inline]
    pub(crate) fn load<const M: usize>(&self) -> [u64; M] {
        std::array::from_fn(self.0.read())
    }

    #[inline]
    pub(crate) fn load_at(&self, i: usize) -> u64 {
        self.0.read()(i)
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

// SAFETY: as above; for what stays out of the models.
#[cfg(loom)]
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {
    fn zeroed() -> Self {
        std::sync::atomic::AtomicU64::new(0)
    }
}

// SAFETY: an array of atomic integers.
unsafe impl<const N: usize> Zeroed for Words<N> {
    #[cfg(loom)]
    fn zeroed() -> Self {
        Words::new()
    }
}

// SAFETY: words.
unsafe impl<const N: usize> Zeroed for RecordCell<N> {
    #[cfg(loom)]
    fn zeroed() -> Self {
        RecordCell(Words::new())
    }
}
