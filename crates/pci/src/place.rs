//! Places for registers of functions, where no firmware gave them any.

use crate::{BASES, Configuration, MEMORY, PORTS, register};

/// Addresses that are free, in bytes; those below have been given away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Free {
    /// The first.
    pub start: u64,
    /// After the last.
    pub end: u64,
}

impl Free {
    /// Takes so many bytes (a power of two), at a multiple of their number and of a page.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let step = bytes.max(crate::region::PAGE);
        let start = self.start.checked_next_multiple_of(step)?;
        let end = start.checked_add(step).filter(|end| *end <= self.end)?;
        self.start = end;
        Some(start)
    }
}

/// Gives each base register for memory of a function a place in `free`, by the masks that it has; those for ports, and what
/// has no room, keep what they have. The function does not answer meanwhile.
pub fn place(function: &impl Configuration, masks: [u32; BASES], free: &mut Free) {
    const IS_PORTS: u32 = 1;
    const IS_WIDE: u32 = 0b100;
    let command = function.read(register::COMMAND) & 0xffff;
    function.write(register::COMMAND, command & !(PORTS | MEMORY));
    let mut number = 0;
    while number < BASES {
        let at = register::BASE + 4 * number as u8;
        let kind = function.read(at) & 15;
        let is_wide = kind & IS_PORTS == 0 && kind & IS_WIDE != 0 && number + 1 < BASES;
        let high = if is_wide { masks[number + 1] } else { u32::MAX };
        let mask = u64::from(masks[number] & !15) | u64::from(high) << 32;
        if kind & IS_PORTS == 0
            && masks[number] & !15 != 0
            && let Some(start) = free.take((!mask).wrapping_add(1))
            && (is_wide || u32::try_from(start).is_ok())
        {
            function.write(at, start as u32 | kind);
            if is_wide {
                function.write(at + 4, (start >> 32) as u32);
            }
        }
        number += if is_wide { 2 } else { 1 };
    }
    function.write(register::COMMAND, command);
}
