//! Devices on machines that describe themselves with a device tree, for the domain that has the machine.

extern crate alloc;

use crate::sync::Mutex;
use crate::{Entry, op};
use abi::PAGE_BYTES;
use abi::layout::{ARCHIVE, MORE_STACKS_END};
use alloc::string::{String, ToString};
pub use devicetree;
use devicetree::{Found, Tree};

/// Where pages of registers are mapped, one for each component that has a device.
const REGISTERS: u64 = MORE_STACKS_END + 0x100_0000;
/// Components that can have one.
const MOST: u16 = 64;
/// Where the device tree is mapped: after these pages, in the same table.
const FDT: u64 = REGISTERS + MOST as u64 * PAGE_BYTES as u64;
/// Free for programs that map registers of their own.
pub const MORE_REGISTERS: u64 = ARCHIVE - 0xe00_0000;
/// First cell of an interrupt that all CPUs share; its second is the line (binding "arm,gic-v3").
pub const SHARED: u32 = 0;

/// A device, as its owner sees it before giving it away.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Address of its first page of registers.
    pub registers: u64,
    /// Its interrupt line.
    pub line: Option<u64>,
}

/// Where the device tree begins in its first page, and its bytes, once it is mapped.
static PLACE: Mutex<Option<(usize, usize)>> = Mutex::new(None);

/// The device tree, mapped; `None` on a machine that has none.
pub fn tree() -> Option<Result<Tree<'static>, String>> {
    let mut place = PLACE.lock();
    let (offset, bytes) = match *place {
        Some(place) => place,
        None => {
            let found = op::machine_fdt(Entry::SPECIAL, 0, FDT).ok()?;
            let pages = (found.0 + found.1).div_ceil(PAGE_BYTES) as u64;
            for page in 1..pages {
                if let Err(error) = op::machine_fdt(Entry::SPECIAL, page, FDT + page * PAGE_BYTES as u64) {
                    return Some(Err(error.to_string()));
                }
            }
            *place.insert(found)
        }
    };
    // SAFETY: mapped just now or before, for ever and for reading only.
    let bytes = unsafe { core::slice::from_raw_parts((FDT as usize + offset) as *const u8, bytes) };
    Some(Tree::new(bytes).map_err(|error| error.text().to_string()))
}

/// The first device in `tree` that is compatible with this.
pub fn device<'a>(tree: &Tree<'a>, compatible: &str) -> Result<Found<'a>, String> {
    let found = tree.walk(|found| (found.is_compatible(&[compatible]) && found.is_enabled()).then_some(*found));
    found.ok_or_else(|| alloc::format!("the device tree has no {compatible}"))
}

/// The first device that is compatible with this; `None` on a machine without a device tree.
pub fn find(compatible: &str) -> Option<Result<Device, String>> {
    Some(tree()?.and_then(|tree| {
        let found = device(&tree, compatible)?;
        let registers = found.registers(0).ok_or_else(|| alloc::format!("{compatible} has no registers"))?;
        let line = found.cell("interrupts", 1).filter(|_| found.cell("interrupts", 0) == Some(SHARED));
        Ok(Device { registers: registers.start, line: line.map(u64::from) })
    }))
}

/// Maps a device's first page of registers here, once; says where.
pub fn map(device: &Device, number: u16) -> Result<u64, String> {
    if number >= MOST {
        return Err(alloc::format!("component {number} can have no device"));
    }
    let address = REGISTERS + u64::from(number) * PAGE_BYTES as u64;
    op::machine_device(Entry::SPECIAL, device.registers & !0xfff, address).map_err(|error| error.to_string())?;
    Ok(address)
}
