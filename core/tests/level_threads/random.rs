//! Random numbers (SplitMix64).

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// At a point of the protocol, now and then lets others go first.
#[cfg(maitred_points)]
pub fn dawdle(_: maitred::level::Point) {
    use std::cell::RefCell;
    thread_local! {
        static RANDOM: RefCell<Random> = RefCell::new(Random({
            use std::hash::{BuildHasher, RandomState};
            RandomState::new().hash_one(0)
        }));
    }
    RANDOM.with_borrow_mut(|random| {
        for _ in 0..random.below(40).saturating_sub(36) {
            std::thread::yield_now();
        }
    });
}
