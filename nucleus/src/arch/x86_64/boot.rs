//! From the PVH start information (Xen `hvm_start_info`, version 1) to `BootInfo`.

use super::memory::DIRECT;
use crate::objects::RAM_END;
use abi::boot::{self, BootInfo, MAX_REGIONS, Region};

const MAGIC: u32 = 0x336e_c578;
const RAM: u32 = 1;
/// Bytes of a command line that are read, at most.
const MAX_COMMAND_LINE: usize = 1024;

#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_entries: u32,
}

#[repr(C)]
struct Module {
    address: u64,
    bytes: u64,
}

#[repr(C)]
struct MemoryEntry {
    start: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

fn at<T>(physical: u64) -> &'static T {
    // SAFETY: the loader's tables lie in the first GiB, which the boot tables map.
    unsafe { &*((DIRECT + physical as usize) as *const T) }
}

/// A text up to its terminating 0, or its first [`MAX_COMMAND_LINE`] bytes.
fn text(physical: u64) -> &'static [u8] {
    let bytes: &[u8; MAX_COMMAND_LINE] = at(physical);
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reads the loader's start information at `start_info`.
pub fn boot_info(start_info: u64) -> Result<BootInfo, &'static str> {
    let start: &StartInfo = at(start_info);
    if start.magic != MAGIC || start.version == 0 {
        return Err("the loader gave no PVH start information of version 1");
    }
    let empty = Region { start: 0, bytes: 0 };
    let mut info = BootInfo {
        ram: [empty; MAX_REGIONS],
        regions: 0,
        archive: empty,
        firmware: start.rsdp,
        labels_off: false,
        left_out: 0,
    };
    for index in 0..start.memory_entries as u64 {
        let entry: &MemoryEntry = at(start.memory_map + index * size_of::<MemoryEntry>() as u64);
        if entry.kind != RAM {
            continue;
        }
        let bytes = RAM_END.saturating_sub(entry.start).min(entry.bytes);
        let place = info.ram.get_mut(info.regions).filter(|_| bytes != 0);
        info.left_out += entry.bytes;
        if let Some(place) = place {
            *place = Region { start: entry.start, bytes };
            info.regions += 1;
            info.left_out -= bytes;
        }
    }
    if start.modules == 0 {
        return Err("the loader gave no boot archive");
    }
    let module: &Module = at(start.module_list);
    info.archive = Region { start: module.address, bytes: module.bytes };
    if start.command_line != 0 {
        info.labels_off = boot::has_word(text(start.command_line), boot::LABELS_OFF);
    }
    Ok(info)
}
