//! Floating-point registers (Arm ARM C5.2: FPCR, FPSR).

use core::arch::asm;

/// Lower half of V0, upper half of V31, FPCR and FPSR.
pub type Registers = [u64; 4];

/// All clear.
pub const CLEAR: Registers = [0; 4];

/// Rounding in FPCR.
const ROUNDING: u32 = 22;
/// Exceptions that came, in FPSR.
const EXCEPTIONS: u64 = 0x1f;

/// Makes registers derived from this value.
pub fn set(value: u64) {
    let [_, _, control, status] = expected(value);
    // SAFETY: this domain may use the unit, and compiled code does not.
    unsafe {
        asm!(".arch_extension fp", "fmov d0, {0}", "fmov v31.d[1], {1}", "msr fpcr, {2}", "msr fpsr, {3}",
            in(reg) value, in(reg) !value, in(reg) control, in(reg) status);
    }
}

/// Reads registers.
pub fn get() -> Registers {
    let (first, last, control, status): (u64, u64, u64, u64);
    // SAFETY: this domain may use the unit; reading its registers changes nothing.
    unsafe {
        asm!(".arch_extension fp", "fmov {0}, d0", "fmov {1}, v31.d[1]", "mrs {2}, fpcr", "mrs {3}, fpsr",
            out(reg) first, out(reg) last, out(reg) control, out(reg) status);
    }
    [first, last, control, status]
}

/// The registers that [`get`] reads after [`set`].
pub const fn expected(value: u64) -> Registers {
    [value, !value, (value & 3) << ROUNDING, value & EXCEPTIONS]
}
