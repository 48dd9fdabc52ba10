//! A hardware source of randomness, whatever the device.

use idl::{codes, interface};

codes! {
    /// Why the driver refused.
    pub enum EntropyError {
        1 Failed "the device does not work"
        2 TooSlow "the device gave nothing within a second"
    }
}

/// Bytes that one call gives, at most.
pub const MAX_ENTROPY: usize = 64;

/// A source. Its bytes are raw: they are for seeding a generator ([`crate::random`]), which checks and mixes them.
#[interface]
pub trait Entropy {
    /// Fills the buffer as far as the device gives something at once; gives how many bytes, at least one of a
    /// buffer that is not empty. Waits for the device for a second.
    #[repeatable]
    fn fill(&self, into: &mut [u8]) -> Result<usize, EntropyError>;
}
