//! Batches of frames that are none, for the driver of the network interface.

use alloc::format;
use alloc::string::{String, ToString};

use interface::Failure;
use interfaces::nic::{LENGTH_BYTES, MAX_FRAME, MIN_FRAME, NicClient, NicError};
use runtime::Connection;

use crate::Crime;

pub const ALL: &[Crime] = &[Crime::tried("frames", "batches of frames that are none, to the network's driver", all)];

/// The frames of a batch by their lengths: those that are said, and those that stand there.
type Lengths = &'static [(usize, usize)];

const BATCHES: [(Lengths, Result<u64, NicError>); 9] = [
    (&[], Ok(0)),
    (&[(MIN_FRAME, MIN_FRAME)], Ok(1)),
    (&[(MAX_FRAME, MAX_FRAME), (60, 60)], Ok(2)),
    (&[(0, 0)], Err(NicError::BadFrame)),
    (&[(MIN_FRAME - 1, MIN_FRAME - 1)], Err(NicError::BadFrame)),
    (&[(MAX_FRAME + 1, MAX_FRAME + 1)], Err(NicError::BadFrame)),
    (&[(60, 59)], Err(NicError::BadFrame)),
    (&[(usize::MAX, 60)], Err(NicError::BadFrame)),
    (&[(60, 60), (60, 0)], Err(NicError::BadFrame)),
];

fn all() -> Result<String, String> {
    let driver = NicClient(Connection::named("nic"));
    let mut buffer = [0; 2 * MAX_FRAME];
    for (lengths, right) in BATCHES {
        let mut bytes = 0;
        for (said, there) in lengths {
            buffer[bytes..bytes + LENGTH_BYTES].copy_from_slice(&(*said as u16).to_le_bytes());
            bytes += LENGTH_BYTES + there;
        }
        let outcome = match driver.send(&buffer[..bytes]) {
            Ok(sent) => Ok(sent),
            Err(Failure::Refused(error)) => Err(error),
            Err(error) => return Err(error.to_string()),
        };
        if outcome != right {
            return Err(format!("{lengths:?}: {outcome:?}, not {right:?}"));
        }
        buffer.fill(0);
    }
    match driver.send(&[0]) {
        Err(Failure::Refused(error @ NicError::BadFrame)) => Ok(format!("refused: {error}")),
        other => Err(format!("one byte: {other:?}")),
    }
}
