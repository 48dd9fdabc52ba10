//! The machine that the device tree describes, and I/O ports, of which there are none.

use core::ops::Range;

use abi::layout::FREE_START;
use abi::{Error, PAGE_BYTES};
use alloc::vec::Vec;
use devicetree::{Found, Tree};
use runtime::sync::Mutex;
use runtime::{Entry, op};

use crate::check::hold;

/// The devices and memory at physical addresses.
pub struct Machine {
    /// RAM.
    pub ram: Vec<Range<u64>>,
    /// A page of registers that may be given away, as the one after it.
    pub registers: u64,
    /// Its first word.
    pub first_word: u32,
    /// An address where nothing answers, and a reader dies; `None`: a reader gets ones.
    pub nothing: Option<u64>,
    /// Registers that are the nucleus's alone.
    pub nucleus: Vec<Range<u64>>,
}

/// Where the device tree is mapped.
const FDT: u64 = FREE_START + (3 << 30);
/// The emulated machine has several of these, one after the other; each begins with this word (VIRTIO 1.2, 4.2.2).
const TRANSPORT: &str = "virtio,mmio";
const MAGIC: u32 = u32::from_le_bytes(*b"virt");
/// Above all RAM and registers of the emulated machine, below what its smallest processor reaches.
const NOTHING: u64 = 3 << 37;
/// Bindings of the Generic Interrupt Controller, and how many of its ranges are the nucleus's: distributor, then CPU
/// interface (version 2) or redistributors (version 3).
const CONTROLLERS: [&str; 3] = ["arm,gic-v3", "arm,gic-400", "arm,cortex-a15-gic"];
const RANGES: usize = 2;
/// The devices that make interrupts of messages.
const MESSAGES: [&str; 2] = ["arm,gic-v3-its", "arm,gic-v2m-frame"];

/// Where the device tree begins in its first page, and its bytes, once it is mapped.
static FOUND: Mutex<Option<(usize, usize)>> = Mutex::new(None);

fn tree() -> Result<Tree<'static>, &'static str> {
    let mut found = FOUND.lock();
    let (offset, bytes) = match *found {
        Some(found) => found,
        None => {
            let map = |page| op::machine_fdt(Entry::SPECIAL, page, FDT + page * PAGE_BYTES as u64);
            let (offset, bytes) = map(0).map_err(|error| error.text())?;
            let pages = (offset + bytes).div_ceil(PAGE_BYTES) as u64;
            for page in 1..pages {
                map(page).map_err(|error| error.text())?;
            }
            hold(map(pages) == Err(Error::AtEnd), "a page after the last")?;
            *found.insert((offset, bytes))
        }
    };
    // SAFETY: mapped for reading and for ever.
    let bytes = unsafe { core::slice::from_raw_parts((FDT as usize + offset) as *const u8, bytes) };
    Tree::new(bytes).map_err(|error| error.text())
}

/// This one.
pub fn machine() -> Result<Machine, &'static str> {
    let tree = tree()?;
    let range = |found: &Found<'_>, index| found.registers(index).map(|range| range.start..range.start + range.bytes);
    let memory = tree.find("/memory").and_then(|found| range(&found, 0));
    let registers = tree.walk(|found| {
        let at = range(found, 0).filter(|_| found.is_compatible(&[TRANSPORT]))?.start;
        at.is_multiple_of(PAGE_BYTES as u64).then_some(at)
    });
    let controller = tree.walk(|found| found.is_compatible(&CONTROLLERS).then_some(*found));
    let controller = controller.ok_or("no interrupt controller that is known")?;
    let nucleus: Vec<_> = (0..RANGES).filter_map(|index| range(&controller, index)).collect();
    hold(nucleus.len() == RANGES, "an interrupt controller without registers")?;
    let mut nucleus = nucleus;
    tree.walk(|found| {
        nucleus.extend(range(found, 0).filter(|_| found.is_compatible(&MESSAGES)));
        None::<()>
    });
    hold(nucleus.len() > RANGES, "an interrupt controller that takes no messages")?;
    Ok(Machine {
        ram: [memory.ok_or("no RAM")?].into(),
        registers: registers.ok_or("no virtio transport")?,
        first_word: MAGIC,
        nothing: Some(NOTHING),
        nucleus,
    })
}

/// There are none that an entry could be for.
pub fn ports() -> Result<(), &'static str> {
    for (first, count) in [(0, 1), (0x3f8, 8), (0xcf8, 8), (0xffff, 1), (0, u16::MAX)] {
        let made = op::machine_ports(Entry::SPECIAL, first, count);
        hold(made == Err(Error::NotThere), "an entry for ports that there are not")?;
    }
    hold(op::machine_ports(Entry::SPECIAL, 0, 0) == Err(Error::BadArgument), "an entry for no ports")?;
    hold(op::io_read_long(Entry::SPECIAL, 0) == Err(Error::WrongKind), "the machine is no ports")
}
