//! Where seeds come from.

use csprng::{Due, SEED_BYTES, SOURCES};
use protocols::entropy::EntropyClient;
use runtime::arch::RandomInstruction;
use runtime::connection::{Connection, Given};
use runtime::{op, thread};

/// For the log, in the order of the pool's sources.
pub const SOURCE_NAMES: [&str; SOURCES] = ["the processor", "the device"];

/// How often the driver is looked for at the start, and nanoseconds in between.
const TRIES: u32 = 50;
const PAUSE: u64 = 5_000_000;
/// How long a device may take for a whole seed, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// The driver. It may be missing, or dead at present: nobody waits for it then.
static DEVICE: Connection<Given> = Connection::new(Given("entropy"));

/// The contributions of the sources: nothing, or a whole seed.
pub struct Seeds {
    bytes: [[u8; SEED_BYTES]; SOURCES],
    count: [usize; SOURCES],
    /// A value that nobody outside can know exactly, though it is no source.
    pub salt: [u8; 16],
}

impl Seeds {
    /// The contribution of each source.
    pub fn given(&self) -> [&[u8]; SOURCES] {
        core::array::from_fn(|source| &self.bytes[source][..self.count[source]])
    }
}

impl Drop for Seeds {
    fn drop(&mut self) {
        self.bytes = [[0; SEED_BYTES]; SOURCES];
        // Else the compiler sees that nobody reads the zeros.
        core::hint::black_box(&mut self.bytes);
    }
}

/// Waits for the driver if the processor has no numbers: a source that is not there when it is asked is asked again only
/// a second later, and both are started at the same time.
pub fn wait() {
    for _ in 0..TRIES {
        if RandomInstruction::new().is_some() || EntropyClient(DEVICE.once()).fill(&mut []).is_ok() {
            return;
        }
        let _ = thread::sleep(PAUSE);
    }
}

/// Asks those that are due; `None` if none are.
pub fn ask(due: Due) -> Option<Seeds> {
    let mut seeds = Seeds { bytes: [[0; SEED_BYTES]; SOURCES], count: [0; SOURCES], salt: [0; 16] };
    if !(due.includes(0) || due.includes(1)) {
        return None;
    }
    if due.includes(0) && processor(&mut seeds.bytes[0]).is_some() {
        seeds.count[0] = SEED_BYTES;
    }
    if due.includes(1) && device(&mut seeds.bytes[1]).is_some() {
        seeds.count[1] = SEED_BYTES;
    }
    seeds.salt[..8].copy_from_slice(&runtime::arch::ticks().to_le_bytes());
    seeds.salt[8..].copy_from_slice(&op::clock().to_le_bytes());
    Some(seeds)
}

/// Asks the driver. A device that gives little at a time is waited for no longer than [`PATIENCE`], and one answer more.
fn device(into: &mut [u8]) -> Option<()> {
    let client = EntropyClient(DEVICE.once());
    let deadline = op::clock() + PATIENCE;
    let mut filled = 0;
    while filled < into.len() {
        if op::clock() >= deadline {
            return None;
        }
        match client.fill(&mut into[filled..]) {
            Ok(0) | Err(_) => return None,
            Ok(count) => filled += count.min(into.len() - filled),
        }
    }
    Some(())
}

/// Asks the processor.
fn processor(into: &mut [u8]) -> Option<()> {
    let instruction = RandomInstruction::new()?;
    for bytes in into.chunks_mut(8) {
        let word = instruction.word()?.to_le_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
    Some(())
}
