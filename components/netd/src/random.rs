//! Numbers that nobody can guess, for ports, sequence numbers and identifiers: from the service `random`.
//!
//! A supply is kept, so that most connections cost no call, and last while `random` is restarted. It is filled where nobody
//! else waits: before a call takes the stack's lock, and between two batches of frames. Bytes that were taken out are not kept.

use core::sync::atomic::{AtomicUsize, Ordering};

use protocols::net::NetError;
use protocols::random::RandomClient;
use runtime::connection::{Connection, Name};
use runtime::sync::Mutex;
use runtime::{op, thread};

static SOURCE: Connection<Name<'static>> = Connection::named("random");

/// Bytes of the supply.
const SUPPLY: usize = 1024;
/// The supply is filled if less is left: a batch of frames may begin a connection with each of 66.
const LOW: usize = 640;
/// With less, a call waits: it takes two numbers, and one more for each port that is not free.
const ENOUGH: usize = 128;
/// How long to wait before `random` is asked again, in nanoseconds.
const PAUSE: u64 = 1_000_000;
/// How long a call waits: until `randomd` was restarted, and not long, as it takes one of two activations meanwhile.
const PATIENCE: u64 = 100_000_000;

static ALL: Mutex<[u8; SUPPLY]> = Mutex::new([0; SUPPLY]);
/// So many of the first bytes are left. Changed by who holds the lock.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// A number, if one is left. It asks nobody.
pub fn number() -> Option<u64> {
    let mut all = ALL.lock();
    let (rest, number) = all[..LEFT.load(Ordering::Relaxed)].split_last_chunk_mut::<8>()?;
    LEFT.store(rest.len(), Ordering::Relaxed);
    Some(u64::from_le_bytes(core::mem::take(number)))
}

/// Fills a supply that is low, if `random` has numbers.
pub fn fill() {
    if LEFT.load(Ordering::Relaxed) >= LOW {
        return;
    }
    let mut bytes = [0; SUPPLY];
    let Ok(count) = RandomClient(SOURCE.once()).fill(&mut bytes) else { return };
    let count = count.min(SUPPLY);
    let mut all = ALL.lock();
    if LEFT.load(Ordering::Relaxed) < count {
        all[..count].copy_from_slice(&bytes[..count]);
        LEFT.store(count, Ordering::Relaxed);
    }
    // The compiler would leave this out.
    bytes.fill(0);
    core::hint::black_box(&bytes);
}

/// Fills the supply; whether there are numbers for a call.
fn has_enough() -> bool {
    fill();
    LEFT.load(Ordering::Relaxed) >= ENOUGH
}

/// Waits until there are numbers for a call.
pub fn wait() -> Result<(), NetError> {
    if has_enough() {
        return Ok(());
    }
    let end = op::clock() + PATIENCE;
    while op::clock() < end {
        let _ = thread::sleep(PAUSE);
        if has_enough() {
            return Ok(());
        }
    }
    Err(NetError::NoRandom)
}
