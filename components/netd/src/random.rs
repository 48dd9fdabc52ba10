//! Numbers that nobody can guess, for ports, sequence numbers and identifiers: from the service `random`.
//!
//! A supply is kept, so that most connections cost no call, and so that nobody waits while `random` is started again.
//! Bytes that were taken out are not kept.

use protocols::random::RandomClient;
use runtime::connection::{Connection, Name};
use runtime::sync::Mutex;
use runtime::thread;

static SOURCE: Connection<Name<'static>> = Connection::named("random");

/// Bytes of the supply.
const SUPPLY: usize = 512;
/// How long to wait before an empty supply is tried again, in nanoseconds.
const PAUSE: u64 = 1_000_000;

struct Supply {
    bytes: [u8; SUPPLY],
    /// So many of the first bytes are left.
    left: usize,
}

static ALL: Mutex<Supply> = Mutex::new(Supply { bytes: [0; SUPPLY], left: 0 });

/// A number.
pub fn number() -> u64 {
    let mut supply = ALL.lock();
    loop {
        let left = supply.left;
        if let Some((rest, number)) = supply.bytes[..left].split_last_chunk_mut::<8>() {
            let (left, number) = (rest.len(), u64::from_le_bytes(core::mem::take(number)));
            supply.left = left;
            return number;
        }
        match RandomClient(SOURCE.once()).fill(&mut supply.bytes) {
            Ok(count @ 8..) => supply.left = count.min(SUPPLY),
            // Without it there is no connection that is safe to begin.
            _ => drop(thread::sleep(PAUSE)),
        }
    }
}
