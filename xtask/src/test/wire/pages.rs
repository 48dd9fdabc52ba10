//! Pages that are added to those of the system.

use crate::test::random::Random;

/// Bytes of each.
pub const PAGES: [usize; 9] = [1 << 10, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 300 << 10];

/// The content of the pages of each size.
pub fn page(bytes: usize) -> Vec<u8> {
    Random(bytes as u64).bytes(bytes)
}
