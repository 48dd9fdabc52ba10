//! `/status.json`: the running system, as the component `status` reports it.

use protocols::status::StatusClient;
use runtime::connection::{Connection, Name};

/// Where it is found.
pub const PATH: &str = "/status.json";

/// While that component is away there is no answer: nobody else waits for it.
static STATUS: Connection<Name<'static>> = Connection::named("status");

/// The status of one moment, as text.
pub struct SystemStatus {
    number: u64,
    size: u64,
}

impl SystemStatus {
    /// Of now; `None` if nobody reports it.
    pub fn take() -> Option<Self> {
        StatusClient(STATUS.once()).take().ok().map(|(number, size)| Self { number, size })
    }

    /// Bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Reads from an offset; `None` = it is gone, since too many others were taken meanwhile.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Option<usize> {
        StatusClient(STATUS.once()).read(self.number, offset, into).ok()
    }
}
