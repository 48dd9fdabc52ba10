//! A network interface, whatever the device: frames of Ethernet in and out.

use interface::{codes, interface};

codes! {
    /// Why the driver refused.
    pub enum NicError {
        1 TooLong "longer than a frame may be"
        2 Failed "the device does not work"
        3 Busy "the device makes no room for more frames"
    }
}

/// Bytes of the longest frame, without check sum.
pub const MAX_FRAME: usize = 1514;

/// Bytes for the frames of one call of `receive`: those of a message.
pub const MAX_BATCH: usize = 4096;

/// A network interface. One client receives.
#[interface]
pub trait Nic {
    /// The hardware address, lowest byte first.
    fn address(&self) -> Result<u64, NicError>;
    /// Sends a frame; waits a little for room. What finds none is lost, as on any wire.
    fn send(&self, frame: &[u8]) -> Result<(), NicError>;
    /// Waits for frames until an absolute time. Gives as many as there are and fit, each behind its length in two
    /// bytes, lowest first, and the bytes of all; 0 = none came, `wake` was called, or somebody else receives since.
    /// A frame finds room for sure if there is some for the longest.
    fn receive(&self, deadline: u64, into: &mut [u8]) -> Result<usize, NicError>;
    /// Ends a wait in `receive`.
    fn wake(&self) -> Result<(), NicError>;
}
