//! A request as it is kept between the passes: fixed size, no text.

/// What one set of objects makes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Class {
    /// Index of the flow schema.
    pub schema: u32,
    /// Hash of the flow.
    pub flow: u64,
    /// Seats while it runs.
    pub initial_seats: u32,
    /// Seats for `latency_ns` after its end.
    pub final_seats: u32,
    /// How long the final seats are held.
    pub latency_ns: u64,
}

/// A request of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// When it came, nanoseconds since 1970.
    pub received: i64,
    /// From there until it gave its seats back, its wait included.
    pub total_ns: Option<u64>,
    /// The wait, where the log tells it.
    pub told_wait_ns: Option<u64>,
    /// Whether it was refused.
    pub refused: bool,
    /// Which requests it is like (see `likeness`).
    pub kind: u32,
    /// By each set of objects, in their order; what is past the number of sets is not kept.
    pub classes: [Class; SETS],
}

/// Sets of objects that can be played side by side.
pub const SETS: usize = 2;

const HEAD: usize = 8 + 8 + 8 + 1 + 4;
const CLASS: usize = 4 + 8 + 4 + 4 + 8;
const TOTAL_KNOWN: u8 = 1;
const WAIT_KNOWN: u8 = 2;
const REFUSED: u8 = 4;

/// Bytes of a record that keeps the classes of `sets` sets.
pub const fn size(sets: usize) -> usize {
    HEAD + sets * CLASS
}

impl Record {
    /// Appends the record to `bytes`.
    pub fn write(&self, sets: usize, bytes: &mut Vec<u8>) {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        bytes.extend(self.received.to_le_bytes());
        bytes.extend(self.total_ns.unwrap_or(0).to_le_bytes());
        bytes.extend(self.told_wait_ns.unwrap_or(0).to_le_bytes());
        bytes.push(
            flag(self.total_ns.is_some(), TOTAL_KNOWN)
                | flag(self.told_wait_ns.is_some(), WAIT_KNOWN)
                | flag(self.refused, REFUSED),
        );
        bytes.extend(self.kind.to_le_bytes());
        for class in &self.classes[..sets] {
            bytes.extend(class.schema.to_le_bytes());
            bytes.extend(class.flow.to_le_bytes());
            bytes.extend(class.initial_seats.to_le_bytes());
            bytes.extend(class.final_seats.to_le_bytes());
            bytes.extend(class.latency_ns.to_le_bytes());
        }
    }

    /// The record that `bytes`, `size(sets)` long, were written from.
    pub fn read(sets: usize, mut bytes: &[u8]) -> Self {
        fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
            let (head, tail) = bytes.split_first_chunk().expect("a record has its full size");
            *bytes = tail;
            *head
        }
        let bytes = &mut bytes;
        let received = i64::from_le_bytes(take(bytes));
        let total_ns = u64::from_le_bytes(take(bytes));
        let told_wait_ns = u64::from_le_bytes(take(bytes));
        let [flags] = take(bytes);
        let kind = u32::from_le_bytes(take(bytes));
        let mut classes = [Class::default(); SETS];
        for class in &mut classes[..sets] {
            *class = Class {
                schema: u32::from_le_bytes(take(bytes)),
                flow: u64::from_le_bytes(take(bytes)),
                initial_seats: u32::from_le_bytes(take(bytes)),
                final_seats: u32::from_le_bytes(take(bytes)),
                latency_ns: u64::from_le_bytes(take(bytes)),
            };
        }
        Self {
            received,
            total_ns: (flags & TOTAL_KNOWN != 0).then_some(total_ns),
            told_wait_ns: (flags & WAIT_KNOWN != 0).then_some(told_wait_ns),
            refused: flags & REFUSED != 0,
            kind,
            classes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let class =
            Class { schema: 7, flow: u64::MAX - 1, initial_seats: 3, final_seats: 9, latency_ns: 5_000_000 };
        let record = Record {
            received: -5,
            total_ns: Some(0),
            told_wait_ns: None,
            refused: true,
            kind: 12,
            classes: [class, Class { schema: 1, ..class }],
        };
        for sets in [1, 2] {
            let mut bytes = Vec::new();
            record.write(sets, &mut bytes);
            assert_eq!(bytes.len(), size(sets));
            let mut kept = record;
            kept.classes[sets..].fill(Class::default());
            assert_eq!(Record::read(sets, &bytes), kept);
        }
    }
}
