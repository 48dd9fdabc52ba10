//! A network interface, whatever the device: frames of Ethernet in and out.

use interface::{codes, interface};

codes! {
    /// Why the driver refused.
    pub enum NicError {
        1 TooLong "longer than a frame may be"
        2 Failed "the device does not work"
    }
}

/// Bytes of the longest frame, without check sum.
pub const MAX_FRAME: usize = 1514;

/// A network interface. One client receives.
#[interface]
pub trait Nic {
    /// The hardware address, lowest byte first.
    fn address(&self) -> Result<u64, NicError>;
    /// Sends a frame. What finds no room is lost, as on any wire.
    fn send(&self, frame: &[u8]) -> Result<(), NicError>;
    /// Waits for a frame until an absolute time; gives its bytes, 0 = none came, `wake` was called, or somebody else
    /// receives since.
    fn receive(&self, deadline: u64, into: &mut [u8]) -> Result<usize, NicError>;
    /// Ends a wait in `receive`.
    fn wake(&self) -> Result<(), NicError>;
}
