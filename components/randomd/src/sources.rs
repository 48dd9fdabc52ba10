//! Where seeds come from.

use chance::{Due, SEED_BYTES, SOURCES};
use interfaces::entropy::EntropyClient;
use runtime::arch::RandomInstruction;
use runtime::connection::{Direct, Name, Source};
use runtime::entry::Owned;
use runtime::{op, thread};

/// For the log, in the order of the pool's sources.
pub const SOURCE_NAMES: [&str; SOURCES] = ["the processor", "the device"];

/// How often the driver is looked for at the start, and nanoseconds in between.
const TRIES: u32 = 50;
const PAUSE: u64 = 5_000_000;

/// The sources.
pub struct Sources {
    /// The driver, once it was there.
    device: Option<Owned>,
}

/// What they gave: nothing, or a whole seed.
pub struct Seeds {
    bytes: [[u8; SEED_BYTES]; SOURCES],
    count: [usize; SOURCES],
    /// What nobody outside can know exactly, though it is no source.
    pub salt: [u8; 16],
}

impl Seeds {
    /// What each source gave.
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

impl Sources {
    /// Nobody was asked yet.
    pub const fn new() -> Self {
        Self { device: None }
    }

    /// Waits for the driver if the processor has no numbers: a source that is not there when it is asked is asked again only
    /// a second later, and both are started at the same time.
    pub fn wait(&mut self) {
        for _ in 0..TRIES {
            self.device = Name("entropy").open().ok().map(Owned::new);
            if self.device.is_some() || RandomInstruction::new().is_some() {
                return;
            }
            let _ = thread::sleep(PAUSE);
        }
    }

    /// Asks those that are due; `None` if none are.
    pub fn ask(&mut self, due: Due) -> Option<Seeds> {
        let mut seeds = Seeds { bytes: [[0; SEED_BYTES]; SOURCES], count: [0; SOURCES], salt: [0; 16] };
        if !(due.includes(0) || due.includes(1)) {
            return None;
        }
        if due.includes(0) && processor(&mut seeds.bytes[0]).is_some() {
            seeds.count[0] = SEED_BYTES;
        }
        if due.includes(1) && self.device(&mut seeds.bytes[1]).is_some() {
            seeds.count[1] = SEED_BYTES;
        }
        seeds.salt[..8].copy_from_slice(&runtime::arch::ticks().to_le_bytes());
        seeds.salt[8..].copy_from_slice(&op::clock().to_le_bytes());
        Some(seeds)
    }

    /// Asks the driver. It may be missing, or dead at present: nobody waits for it then.
    fn device(&mut self, into: &mut [u8]) -> Option<()> {
        let entry = match self.device.take() {
            Some(device) => device,
            None => Owned::new(Name("entropy").open().ok()?),
        };
        let client = EntropyClient(Direct(entry.entry()));
        let mut filled = 0;
        while filled < into.len() {
            match client.fill(&mut into[filled..]) {
                Ok(0) | Err(_) => return None,
                Ok(count) => filled += count.min(into.len() - filled),
            }
        }
        self.device = Some(entry);
        Some(())
    }
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
