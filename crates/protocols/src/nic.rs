//! A network interface, whatever the device: frames of Ethernet in and out.

use idl::{Input, codes, interface};

codes! {
    /// Why the driver refused.
    pub enum NicError {
        1 TooShort "shorter than a frame's header"
        2 Failed "the device does not work"
        3 Busy "the device makes no room for more frames"
        4 TooLong "longer than a frame may be"
        5 Incomplete "the batch ends within a frame"
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
    /// Sends a batch of frames, each after its length, to the end of the bytes or a length of 0, as far as the device has room. Never
    /// waits. Gives the bytes up to where it stopped, and how many frames were sent: the client sends the rest later. Bytes
    /// after an incomplete frame are lost. A batch is less than a page, or one page.
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

/// Driver: calls `send` with first byte and length of each frame of a batch from byte `at` on, until it has no room for one; gives how many
/// it took. `at` is then where the next one stands, or the end of the batch.
///
/// The client may change a batch in a window meanwhile. So no byte is read twice: a length is compared and used as it was read.
#[inline]
pub fn send_each(
    batch: &Input<'_>,
    at: &mut usize,
    mut send: impl FnMut(usize, usize) -> bool,
) -> Result<u64, NicError> {
    let mut sent = 0;
    while let Some(left) = (batch.len() - *at).checked_sub(LENGTH_BYTES) {
        let length = length_at(batch, *at);
        if length == 0 {
            *at = batch.len();
            return Ok(sent);
        }
        if length < MIN_FRAME {
            return Err(NicError::TooShort);
        }
        if length > MAX_FRAME {
            return Err(NicError::TooLong);
        }
        if length > left {
            return Err(NicError::Incomplete);
        }
        if !send(*at + LENGTH_BYTES, length) {
            return Ok(sent);
        }
        sent += 1;
        *at += LENGTH_BYTES + length;
    }
    if *at == batch.len() { Ok(sent) } else { Err(NicError::Incomplete) }
}

#[inline]
fn length_at(batch: &Input<'_>, at: usize) -> usize {
    let mut length = [0; LENGTH_BYTES];
    batch.copy_to(at, &mut length);
    u16::from_le_bytes(length).into()
}
