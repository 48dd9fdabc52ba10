//! The list of CPUs in the tables that the firmware leaves (ACPI 6.5: RSDP 5.2.5, RSDT and XSDT 5.2.7 and 5.2.8, MADT
//! 5.2.12).
//!
//! The tables may be damaged: lengths are bounded, checksums are verified, and parts that do not fit are left out.

use super::memory::DIRECT;

/// Bytes of a table, at most.
const MOST: usize = 1 << 16;
const HEADER: usize = 36;
/// Where the entries of the MADT begin.
const ENTRIES: usize = 44;
const LOCAL_APIC: u8 = 0;
const LOCAL_X2APIC: u8 = 9;
/// Flag of a usable CPU.
const ENABLED: u32 = 1;

/// Maps firmware memory permanently and read-only, where the direct map has no RAM; None on failure.
type Show<'a> = &'a dyn Fn(u64, usize) -> Option<()>;

/// Bytes of firmware memory, if they can be mapped.
#[unsafe(link_section = ".init")]
fn bytes(show: Show, physical: u64, length: usize) -> Option<&'static [u8]> {
    show(physical, length)?;
    // SAFETY: just mapped, permanently; nothing writes there.
    Some(unsafe { core::slice::from_raw_parts((DIRECT + physical as usize) as *const u8, length) })
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at + width)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | *byte as u64))
}

/// A complete table with a valid checksum.
fn table(show: Show, physical: u64) -> Option<&'static [u8]> {
    let length = number(bytes(show, physical, HEADER)?, 4, 4)? as usize;
    let table = bytes(show, physical, length.clamp(HEADER, MOST))?;
    let sum = table.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    (sum == 0 && table.len() == length).then_some(table)
}

fn find_madt(show: Show, rsdp: u64) -> Option<&'static [u8]> {
    let pointer = bytes(show, rsdp, HEADER).filter(|bytes| bytes.starts_with(b"RSD PTR "))?;
    let (list, width) = match number(pointer, 24, 8)? {
        extended if pointer[15] >= 2 && extended != 0 => (table(show, extended)?, 8),
        _ => (table(show, number(pointer, 16, 4)?)?, 4),
    };
    let mut tables = list.get(HEADER..)?.chunks_exact(width);
    tables.find_map(|entry| table(show, number(entry, 0, width)?).filter(|table| table.starts_with(b"APIC")))
}

/// Calls `found` with the APIC ID of each usable CPU; false if there is no list.
pub(super) fn cpus(show: Show, rsdp: u64, mut found: impl FnMut(u32)) -> bool {
    let Some(madt) = (rsdp != 0).then(|| find_madt(show, rsdp)).flatten() else { return false };
    let mut rest = madt.get(ENTRIES..).unwrap_or_default();
    while let [kind, length, ..] = *rest {
        let Some((entry, next)) = rest.split_at_checked((length as usize).max(2)) else { break };
        let (identity, flags) = match kind {
            LOCAL_APIC => (number(entry, 3, 1), number(entry, 4, 4)),
            LOCAL_X2APIC => (number(entry, 4, 4), number(entry, 8, 4)),
            _ => (None, None),
        };
        if let (Some(identity), Some(flags)) = (identity, flags)
            && flags as u32 & ENABLED != 0
        {
            found(identity as u32);
        }
        rest = next;
    }
    true
}
