//! The processor's own source of random numbers (Intel SDM, volume 1, 7.3.17: RDRAND).

use core::arch::asm;
use core::arch::x86_64::__cpuid;

/// The instruction, on a processor that has it.
#[derive(Clone, Copy, Debug)]
pub struct RandomInstruction(());

/// How often it may fail in a row before it counts as broken (SDM, 7.3.17.1).
const TRIES: usize = 10;

impl RandomInstruction {
    /// `None` if this processor has none (CPUID leaf 1, bit 30 of ECX).
    pub fn new() -> Option<Self> {
        (__cpuid(1).ecx >> 30 & 1 != 0).then_some(Self(()))
    }

    /// A random word. `None` if the processor gives none although it is asked ten times.
    pub fn word(self) -> Option<u64> {
        for _ in 0..TRIES {
            let (value, valid): (u64, u8);
            // SAFETY: the processor has the instruction: `new` looked. It touches a register and the flags.
            unsafe {
                asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) valid, options(nomem, nostack));
            }
            if valid != 0 {
                return Some(value);
            }
        }
        None
    }
}
