//! The machine that the boot test has, and I/O ports.

use core::ops::Range;

use abi::{Error, NEVER, PAGE_BYTES, rights};
use alloc::vec::Vec;
use runtime::entry::Owned;
use runtime::{Entry, op};

use crate::check::{frames_record, hold};

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

/// The vendor and device of the emulated machine's host bridge, the first device.
const HOST_BRIDGE: u32 = 0x29c0_8086;

/// Where devices of the emulated machine have their registers, at the lowest.
const DEVICES: u64 = 0xb000_0000;

/// This one.
pub fn machine() -> Result<Machine, &'static str> {
    // I/O APIC, timer, local APIC, and where interrupts are written to.
    let interrupts = 0xfec0_0000..0xfef0_0000;
    // Of much memory the emulator puts two GiB below devices, and the rest above 4 GiB; firmware keeps some.
    let frames = frames_record()?.total;
    let bytes = (frames * PAGE_BYTES as u64).next_multiple_of(1 << 20);
    let low = if bytes < DEVICES { bytes } else { 2 << 30 };
    let high = (4 << 30)..(4 << 30) + (bytes - low);
    let ram = [0..low, high].into_iter().filter(|range| !range.is_empty()).collect();
    // The firmware shows the configuration of the emulated machine's devices there.
    Ok(Machine { ram, registers: DEVICES, first_word: HOST_BRIDGE, nothing: None, nucleus: [interrupts].into() })
}

/// Entries for ports reach these and no others.
pub fn ports() -> Result<(), &'static str> {
    let text = |error: Error| error.text();
    let read = |ports: &Owned, offset| op::io_read_long(ports.entry(), offset);
    let write = |ports: &Owned, offset| op::io_write_long(ports.entry(), offset, 0);
    // Address and data of the devices' configuration.
    let eight = Owned::new(op::machine_ports(Entry::SPECIAL, 0xcf8, 8).map_err(text)?);
    op::io_write_long(eight.entry(), 0, 1 << 31).map_err(text)?;
    hold(read(&eight, 0) == Ok(1 << 31), "four bytes written are not read again")?;
    hold(read(&eight, 4) == Ok(HOST_BRIDGE), "not four bytes")?;
    for offset in [5, 6, 7, 8, 1 << 16, (1 << 32) - 4, NEVER - 3, NEVER] {
        hold(read(&eight, offset) == Err(Error::NotItsPorts), "ports beyond the entry's were read")?;
        hold(write(&eight, offset) == Err(Error::NotItsPorts), "ports beyond the entry's were written")?;
    }
    for count in 1..4 {
        let few = Owned::new(op::machine_ports(Entry::SPECIAL, 0xcf8, count).map_err(text)?);
        hold(read(&few, 0) == Err(Error::NotItsPorts), "more ports than there are were read")?;
        hold(write(&few, 0) == Err(Error::NotItsPorts), "more ports than there are were written")?;
    }
    let look = Owned::new(op::entry_duplicate(eight.entry(), rights::READ).map_err(text)?);
    hold(read(&look, 0) == Err(Error::NoRight) && write(&look, 0) == Err(Error::NoRight), "without the right")?;
    hold(op::io_read_long(Entry::SPECIAL, 0) == Err(Error::WrongKind), "the machine is no ports")
}
