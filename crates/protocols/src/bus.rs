//! The bus: a driver's access to its device. The badge says which driver asks; each has one device.

use idl::{codes, interface};

codes! {
    /// Why the bus refused.
    pub enum BusError {
        1 NotFound "the machine has no such device"
        2 NotClaimed "no device was claimed"
        3 NoMemory "bus has no memory left: give it a larger `account` in the system description"
        4 BadAddress "not an address at which the driver can have pages"
        5 NoInterrupt "the device has no interrupt line of its own"
        6 NotAllowed "a device needs a portal from the system description"
        7 NotADomain "what came along is not a domain that memory can be mapped into"
        8 HasDevice "the caller has a device already"
        9 SharedPage "the registers share a page with those of something else"
        10 NotASemaphore "what came along is not a semaphore that can be waited for"
        11 NoRegion "the device has no such registers"
        12 NoRoom "the driver's account has no frames for page tables"
        13 Occupied "a page is mapped there"
        14 Gone "the driver's domain ended"
        15 Failed "it could not be done: dmesg says why"
        16 Taken "another driver has the device"
        17 Withheld "the nucleus keeps the registers for itself"
        18 Watched "earlier drivers of the device have not ended yet"
    }
}

/// Frames that a device may read and write: as many as the network's takes, and a few. The account of `bus` has room for all.
pub const MAX_FRAMES: usize = 40;
/// Bytes of a device's configuration that are passed, and of the masks of its six base registers.
pub const CONFIGURATION_BYTES: usize = 256 + 6 * 4;

/// The bus, for drivers.
#[interface]
pub trait Bus {
    /// Claims the first free device `vendor | product << 16` for the caller, whose domain comes along. A
    /// device that the caller had (before it died) is stopped, reset and given again. It answers at its registers,
    /// and does not work yet.
    fn claim(&self, device: u64, domain: Delegate) -> Result<(), BusError>;
    /// A copy of the device's configuration, followed by what its base registers read after all ones were
    /// written (four bytes each).
    fn configuration(&self, into: &mut [u8]) -> Result<usize, BusError>;
    /// Maps the registers behind a base register at an address of the caller; gives how many bytes (64 KiB at most).
    fn registers(&self, base: u64, address: u64) -> Result<u64, BusError>;
    /// The device's interrupt line.
    fn interrupt(&self) -> Result<Delegated, BusError>;
    /// Maps `count` frames of the bus at an address of the caller; gives their physical addresses, eight
    /// bytes each. They stay the bus's, so that none is used again while a device may still write it.
    fn frames(&self, count: u64, address: u64, into: &mut [u8]) -> Result<usize, BusError>;
    /// From now on the device reads and writes memory and raises interrupts, as long as a semaphore that comes along
    /// exists and is not raised: with the caller's death it goes, and the device is stopped and reset.
    fn work(&self, life: Delegate) -> Result<(), BusError>;
}
