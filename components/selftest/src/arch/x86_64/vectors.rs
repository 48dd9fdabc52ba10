//! Floating-point registers (AMD64 manual, volume 1, 4.2 and 6.2).

use core::arch::asm;

/// XMM0, XMM15, MXCSR and the x87 control word.
pub type Registers = [u64; 4];

/// All clear.
pub const CLEAR: Registers = [0, 0, 0x1f80, 0x37f];

/// Makes registers derived from this value.
pub fn set(value: u64) {
    let control = 0x1f80u32 | (value as u32 & 3) << 13;
    // SAFETY: this domain may use the unit, and compiled code does not.
    unsafe {
        asm!("movq xmm0, {0}", "movq xmm15, {1}", "ldmxcsr [{2}]", in(reg) value, in(reg) !value, in(reg) &control);
    }
}

/// Reads registers.
pub fn get() -> Registers {
    let (first, last): (u64, u64);
    let (mut control, mut word) = (0u32, 0u16);
    // SAFETY: this domain may use the unit, and what is written lies in our own variables.
    unsafe {
        asm!("movq {0}, xmm0", "movq {1}, xmm15", "stmxcsr [{2}]", "fnstcw [{3}]",
            out(reg) first, out(reg) last, in(reg) &mut control, in(reg) &mut word);
    }
    [first, last, control.into(), word.into()]
}

/// The registers that [`get`] reads after [`set`].
pub const fn expected(value: u64) -> Registers {
    [value, !value, 0x1f80 | (value & 3) << 13, 0x37f]
}
