//! From the loader's device tree to `BootInfo` (Devicetree Specification, release 0.4: 3.4 memory, 3.5 reserved
//! memory, 3.6 chosen, 5.3 memory reservation).

use super::firmware;
use super::memory::{BOOT_MAPPED, DIRECT};
use super::processor::read;
use crate::objects::{FRAME, RAM_END, RECORD_BYTES};
use abi::boot::{BootInfo, LABELS_OFF, MAX_REGIONS, Region};
use devicetree::{HEADER_BYTES, Memory, Range, Tree};

/// Reads the device tree at `start_info`.
pub fn boot_info(start_info: u64) -> Result<BootInfo, &'static str> {
    let (tree, place) = tree(start_info)?;
    let empty = Region { start: 0, bytes: 0 };
    let mut info = BootInfo {
        ram: [empty; MAX_REGIONS],
        regions: 0,
        archive: empty,
        firmware: start_info,
        labels_off: firmware::says(&tree, LABELS_OFF),
        left_out: 0,
    };
    firmware::change(|noted| {
        noted.fdt = place;
        noted.semihosting = firmware::says(&tree, firmware::SEMIHOSTING);
    });
    if let Some(chosen) = tree.find("/chosen")
        && let (Some(start), Some(end)) = (chosen.number("linux,initrd-start"), chosen.number("linux,initrd-end"))
    {
        info.archive = Region { start, bytes: end.saturating_sub(start) };
    }
    firmware::note(&tree);
    super::paging::show_serial();
    let image = super::memory::image();
    // The boot tables map the GiB with the image.
    let first = image.start / BOOT_MAPPED as u64 * BOOT_MAPPED as u64;
    firmware::change(|noted| noted.first_frame = first as usize / FRAME);
    let ram = ram(&tree, first)?;
    info.left_out = ram.left_out();
    for (place, range) in info.ram.iter_mut().zip(ram.ranges()) {
        *place = Region { start: range.start, bytes: range.bytes };
        info.regions += 1;
    }
    if info.archive.bytes == 0 {
        return Err("the loader gave no boot archive");
    }
    for (region, error) in [
        (image, "the device tree has no RAM where the nucleus was loaded, or reserves it"),
        (info.archive, "the device tree has no RAM where the boot archive is, or reserves it"),
    ] {
        if !ram.holds(Range { start: region.start, bytes: region.bytes }) {
            return Err(error);
        }
    }
    Ok(info)
}

/// The device tree at a physical address, which the boot page tables map, and its place.
fn tree(physical: u64) -> Result<(Tree<'static>, Region), &'static str> {
    // Until the device tree was read, a panic can only be reported, and the machine stopped, by the emulator: see
    // `memory::emulator`.
    firmware::change(|noted| noted.semihosting = true);
    if physical == 0 || !physical.is_multiple_of(8) {
        return Err(devicetree::Error::NoTree.text());
    }
    let at = (DIRECT + physical as usize) as *const u8;
    // SAFETY: the loader vouches for a device tree there, with as many bytes as its header says, in the GiB that the boot
    // tables map. Nothing writes there yet.
    let bytes = unsafe {
        let bytes =
            devicetree::total_bytes(core::slice::from_raw_parts(at, HEADER_BYTES)).map_err(devicetree::Error::text)?;
        core::slice::from_raw_parts(at, bytes)
    };
    match Tree::new(bytes) {
        Ok(tree) => Ok((tree, Region { start: physical, bytes: Tree::used_bytes(bytes) as u64 })),
        Err(error) => {
            prepare_last_words(bytes);
            Err(error.text())
        }
    }
}

/// Reads what it can of a damaged device tree, to report the error: where the serial port is, and how to stop the machine.
#[cold]
fn prepare_last_words(bytes: &'static [u8]) {
    let Some(remains) = Tree::remains(bytes) else { return };
    firmware::note(&remains);
    super::paging::show_serial();
}

const _: () = assert!(devicetree::MAX_RANGES <= MAX_REGIONS);

/// The RAM to use, from `first` on, as far as the processor (ID_AA64MMFR0_EL1.PARange) and the direct map reach. It has only as
/// many frames as have room for their records in half of what the boot tables map.
fn ram(tree: &Tree<'_>, first: u64) -> Result<Memory, &'static str> {
    const BITS: [u32; 5] = [32, 36, 40, 42, 44];
    const DIRECT_BITS: u32 = 46;
    let reached = BITS.get(read!("id_aa64mmfr0_el1") as usize & 0xf).copied().unwrap_or(DIRECT_BITS);
    let most = (BOOT_MAPPED / 2 / RECORD_BYTES * FRAME) as u64;
    let memory =
        Memory::of(tree, first..(first + most).min(1 << reached).min(RAM_END)).map_err(devicetree::Error::text)?;
    if memory.ranges().is_empty() {
        return Err("the device tree names no RAM that can be used");
    }
    Ok(memory)
}
