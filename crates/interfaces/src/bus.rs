//! The bus: what a driver gets of its device. The badge says which driver asks; each has one device.

use interface::{codes, interface};

codes! {
    /// Why the bus refused.
    pub enum BusError {
        1 NotFound "no such device, or another driver has it"
        2 NotClaimed "no device was claimed"
        3 NoMemory "the bus has no memory left"
        4 BadAddress "the pages cannot be mapped there"
        5 NoInterrupt "the device has no interrupt line"
    }
}

/// Frames that a device may read and write, at most so many in one call.
pub const MAX_FRAMES: usize = 64;
/// Bytes of a device's configuration that are told, and of the masks of its six base registers.
pub const CONFIGURATION_BYTES: usize = 256 + 6 * 4;

/// The bus, for drivers.
#[interface]
pub trait Bus {
    /// Claims the first free device `vendor | product << 16` for the caller, whose domain comes along. A
    /// device that the caller had (before it died) is stopped, reset and given again.
    fn claim(&self, device: u64, domain: Delegate) -> Result<(), BusError>;
    /// A copy of the device's configuration, followed by what its base registers read after all ones were
    /// written (four bytes each).
    fn configuration(&self, into: &mut [u8]) -> Result<usize, BusError>;
    /// Maps the registers behind a base register at an address of the caller; gives their bytes.
    fn registers(&self, base: u64, address: u64) -> Result<u64, BusError>;
    /// The device's interrupt line.
    fn interrupt(&self) -> Result<Delegated, BusError>;
    /// Maps `count` frames of the bus at an address of the caller; gives their physical addresses, eight
    /// bytes each. They stay the bus's, so that none is used anew while a device may still write it.
    fn frames(&self, count: u64, address: u64, into: &mut [u8]) -> Result<usize, BusError>;
}
