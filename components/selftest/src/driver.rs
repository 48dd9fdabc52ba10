//! Batches of frames that are none, for the driver of the network interface.

use alloc::boxed::Box;

use idl::Failure;
use protocols::names::{NamesClient, NamesError};
use protocols::nic::{LENGTH_BYTES, MAX_FRAME, MIN_FRAME, NicClient, NicError};
use runtime::connection::{Connection, NameService};
use runtime::window::Page;
use runtime::{Direct, program};

use crate::check::{Check, hold};
use crate::services::say;

pub const CHECKS: &[Check] = &[
    ("batches that hold no whole frames are refused, and the driver goes on", batches),
    ("the driver has no name", name),
];

/// The frames of a batch by their lengths: those that are said, and those that stand there.
type Lengths = &'static [(usize, usize)];

const BATCHES: [(Lengths, Result<u64, NicError>); 10] = [
    (&[], Ok(0)),
    (&[(MIN_FRAME, MIN_FRAME)], Ok(1)),
    (&[(MAX_FRAME, MAX_FRAME), (60, 60)], Ok(2)),
    (&[(0, 0)], Ok(0)),
    (&[(60, 60), (0, 60)], Ok(1)),
    (&[(MIN_FRAME - 1, MIN_FRAME - 1)], Err(NicError::TooShort)),
    (&[(MAX_FRAME + 1, MAX_FRAME + 1)], Err(NicError::TooLong)),
    (&[(60, 59)], Err(NicError::Incomplete)),
    (&[(usize::MAX, 60)], Err(NicError::TooLong)),
    (&[(60, 60), (60, 0)], Err(NicError::Incomplete)),
];

/// The same in a window of a page, up to whose end there are zeros.
const PAGES: [(Lengths, Result<u64, NicError>); 6] = [
    (&[], Ok(0)),
    (&[(60, 60), (MIN_FRAME, MIN_FRAME)], Ok(2)),
    (&[(60, 60), (MIN_FRAME - 1, MIN_FRAME - 1)], Err(NicError::TooShort)),
    (&[(MAX_FRAME, MAX_FRAME), (MAX_FRAME, MAX_FRAME), (1062, 1062)], Ok(3)),
    (&[(MAX_FRAME, MAX_FRAME), (MAX_FRAME, MAX_FRAME), (1063, 1062)], Err(NicError::Incomplete)),
    (&[(MAX_FRAME, MAX_FRAME), (MAX_FRAME, MAX_FRAME), (1061, 1061)], Err(NicError::Incomplete)),
];

/// Puts frames into a buffer of zeros, each after its length. Gives their bytes.
fn put(buffer: &mut [u8], lengths: Lengths) -> usize {
    buffer.fill(0);
    let mut bytes = 0;
    for (said, there) in lengths {
        buffer[bytes..bytes + LENGTH_BYTES].copy_from_slice(&(*said as u16).to_le_bytes());
        bytes += LENGTH_BYTES + there;
    }
    bytes
}

fn batches() -> Result<(), &'static str> {
    let driver = NicClient(Direct(program::portal("nic").ok_or("no portal")?));
    let mut buffer = [0; 2 * MAX_FRAME];
    // Twice: after what was refused, frames are sent as before.
    for (lengths, right) in BATCHES.iter().chain(&BATCHES) {
        let bytes = put(&mut buffer, lengths);
        let right = right.map_err(Failure::Refused);
        hold(driver.send(&buffer[..bytes]).map(|(_, sent)| sent) == right, "another answer")?;
    }
    let mut page = Box::new(Page::ZERO);
    for (lengths, right) in PAGES.iter().chain(&PAGES) {
        put(&mut page.0, lengths);
        let answer = driver.send(&page.0).map(|(_, sent)| sent);
        hold(answer == right.map_err(Failure::Refused), "another answer to a page")?;
    }
    hold(driver.send(&[0]) == Err(Failure::Refused(NicError::Incomplete)), "one byte is not refused")
}

fn name() -> Result<(), &'static str> {
    // The name service may start after us.
    let names = NamesClient(Connection::new(NameService));
    match names.open("nic") {
        Err(Failure::Refused(NamesError::NotFound)) => Ok(()),
        Ok(_) => Err("it has one"),
        Err(failure) => Err(say(failure)),
    }
}
