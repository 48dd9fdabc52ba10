//! From the device tree that the loader left to `BootInfo` (Devicetree Specification, release 0.4: 3.4 memory, 3.5 reserved
//! memory, 3.6 chosen, 5.3 memory reservation).

use super::firmware;
use abi::boot::{BootInfo, MAX_REGIONS, Region};
use devicetree::Found;

/// A word of the command line: the emulator takes calls from the machine.
const SEMIHOSTING: &[u8] = b"semihosting";

/// Reads the device tree at `start_info`.
pub fn boot_info(start_info: u64) -> Result<BootInfo, &'static str> {
    let (tree, place) = firmware::tree(start_info)?;
    let empty = Region { start: 0, bytes: 0 };
    let mut info =
        BootInfo { ram: [empty; MAX_REGIONS], regions: 0, archive: empty, firmware: start_info, command_line: empty };
    let noted = firmware::get();
    noted.tree = place;
    if let Some(chosen) = tree.find("/chosen") {
        let command_line = chosen.strings("bootargs").next().unwrap_or_default();
        noted.semihosting = command_line.split(|byte| *byte == b' ').any(|word| word == SEMIHOSTING);
        if let (Some(start), Some(end)) = (chosen.number("linux,initrd-start"), chosen.number("linux,initrd-end")) {
            info.archive = Region { start, bytes: end.saturating_sub(start) };
        }
    }
    firmware::note(&tree);
    super::paging::show_serial();
    tree.walk(|found| {
        if found.strings("device_type").next() == Some(b"memory") && found.is_enabled() {
            (0..MAX_REGIONS).map_while(|index| found.registers(index)).for_each(|range| {
                if range.bytes != 0 && info.regions < MAX_REGIONS {
                    info.ram[info.regions] = Region { start: range.start, bytes: range.bytes };
                    info.regions += 1;
                }
            });
        }
        None::<()>
    });
    tree.walk(|found| {
        if is_reserved(found) {
            (0..MAX_REGIONS).map_while(|index| found.registers(index)).for_each(|range| {
                take_out(&mut info, Region { start: range.start, bytes: range.bytes });
            });
        }
        None::<()>
    });
    let lowest =
        info.ram[..info.regions].iter().map(|region| region.start).min().ok_or("the device tree names no RAM")?;
    noted.first_frame = lowest as usize / crate::frames::FRAME;
    if info.archive.bytes == 0 {
        return Err("the loader gave no boot archive");
    }
    Ok(info)
}

/// Whether a node is one of memory that is not to be used.
fn is_reserved(found: &Found<'_>) -> bool {
    found.depth() == 2 && found.is_below("reserved-memory") && found.is_enabled()
}

/// Takes memory out of the RAM.
fn take_out(info: &mut BootInfo, taken: Region) {
    let end = taken.start.saturating_add(taken.bytes);
    for index in 0..info.regions {
        let region = info.ram[index];
        let region_end = region.start.saturating_add(region.bytes);
        if end <= region.start || taken.start >= region_end {
            continue;
        }
        let before = Region { start: region.start, bytes: taken.start.saturating_sub(region.start) };
        let after = Region { start: end, bytes: region_end.saturating_sub(end) };
        info.ram[index] = before;
        if before.bytes == 0 {
            info.ram[index] = after;
        } else if after.bytes != 0 && info.regions < MAX_REGIONS {
            info.ram[info.regions] = after;
            info.regions += 1;
        }
    }
}
