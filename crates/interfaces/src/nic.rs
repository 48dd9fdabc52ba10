//! A network interface, whatever the device: frames of Ethernet in and out.

use interface::{codes, interface};

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

/// Bytes for the frames of one call, with their lengths: those of a message.
pub const MAX_BATCH: usize = 4096;

/// Bytes of the length before each frame of a batch, lowest first.
pub const LENGTH_BYTES: usize = 2;

/// The first frame of a batch, and what stands behind it; `None` if there is no whole frame.
pub fn split_frame(batch: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = batch.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

/// A network interface. One client receives.
#[interface]
pub trait Nic {
    /// The hardware address, lowest byte first.
    #[repeatable]
    fn address(&self) -> Result<u64, NicError>;
    /// Sends a batch of frames, each behind its length; waits a little for room. What finds none is lost, as on any
    /// wire, and so is what stands behind a frame that is no whole one. Gives how many were sent.
    #[repeatable]
    fn send(&self, batch: &[u8]) -> Result<u64, NicError>;
    /// Waits for frames until an absolute time. Gives a batch of as many as there are and fit, and its bytes; 0 = none
    /// came, `wake` was called, or somebody else receives since. A frame finds room for sure if there is some for the
    /// longest.
    #[repeatable]
    fn receive(&self, deadline: u64, into: &mut [u8]) -> Result<usize, NicError>;
    /// Ends a wait in `receive`.
    #[repeatable]
    fn wake(&self) -> Result<(), NicError>;
}
