//! Random numbers that nobody can foretell, for everyone.

use idl::{codes, interface};

codes! {
    /// Why there are none.
    pub enum RandomError {
        1 NotReady "no good source of randomness yet: neither the processor nor a device gave a seed"
    }
}

/// Bytes that one call gives, at most.
pub const MAX_RANDOM: usize = 1024;

/// In the result of `Random::sources`: the processor's instruction contributed to the seed.
pub const PROCESSOR: u64 = 1;
/// As [`PROCESSOR`]: a device did.
pub const DEVICE: u64 = 2;

/// The generator. Its past output cannot be found out from its memory.
#[interface]
pub trait Random {
    /// Fills the buffer, up to [`MAX_RANDOM`] bytes; gives how many.
    #[repeatable]
    fn fill(&self, into: &mut [u8]) -> Result<usize, RandomError>;
    /// The sources that contributed since the start ([`PROCESSOR`], [`DEVICE`]), and how often it was seeded.
    #[repeatable]
    fn sources(&self) -> Result<(u64, u64), RandomError>;
}
