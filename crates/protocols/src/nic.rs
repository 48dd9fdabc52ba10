//! A network interface, whatever the device: frames of Ethernet in and out.

use idl::{codes, interface};

codes! {
    /// Why the driver refused.
    pub enum NicError {
        1 BadFrame "shorter than a frame's header, longer than a frame may be, or than what came"
        2 Failed "the device does not work"
        3 Busy "the device makes no room for more frames"
    }
}

/// Bytes of the shortest frame, which is a header.
pub const MIN_FRAME: usize = 14;

/// Bytes of the longest frame, without check sum.
pub const MAX_FRAME: usize = 1514;

/// Bytes of the length before each frame of a batch, lowest first.
pub const LENGTH_BYTES: usize = 2;

/// A network interface. One client receives.
#[interface]
pub trait Nic {
    /// The hardware address, lowest byte first.
    #[repeatable]
    fn address(&self) -> Result<u64, NicError>;
    /// Sends a batch of frames, each behind its length, to the end of the bytes or a length of 0, as far as the device has room. Never
    /// waits. Gives the bytes up to where it stopped, and how many frames were sent: the client sends the rest later. What stands
    /// behind a frame that is no whole one is lost. A batch is less than a page, or one page.
    #[repeatable]
    fn send(&self, #[window] batch: &[u8]) -> Result<(usize, u64), NicError>;
    /// Waits for frames until an absolute time. Gives a batch of as many as there are and fit, and its bytes; 0 = none
    /// came, `wake` was called, or somebody else receives since. A frame finds room for sure if there is some for the
    /// longest.
    #[repeatable]
    fn receive(&self, deadline: u64, #[window] into: &mut [u8]) -> Result<usize, NicError>;
    /// Ends a wait in `receive`.
    #[repeatable]
    fn wake(&self) -> Result<(), NicError>;
}
