//! The processor's own source of random numbers (Arm ARM C5.2: RNDR, FEAT_RNG).

use core::arch::asm;

use abi::registers::AARCH64_RANDOM;

/// The instruction, on a processor that has it.
#[derive(Clone, Copy, Debug)]
pub struct RandomInstruction(());

/// How often it may fail in a row before it counts as broken: each time for what the architecture calls a reasonable period.
const TRIES: usize = 10;

impl RandomInstruction {
    /// `None` if this processor has none: users cannot ask it what it has, so the nucleus reports it.
    pub fn new() -> Option<Self> {
        let features: u64;
        // SAFETY: only reads a register.
        unsafe { asm!("mrs {}, tpidrro_el0", out(reg) features, options(nomem, nostack, preserves_flags)) };
        (features & AARCH64_RANDOM != 0).then_some(Self(()))
    }

    /// A random word. `None` if the processor gives none although it is asked ten times.
    pub fn word(self) -> Option<u64> {
        for _ in 0..TRIES {
            let (value, valid): (u64, u64);
            // SAFETY: the processor has the instruction: `new` looked. It touches a register and the flags: Z = it gave none.
            unsafe {
                asm!("mrs {}, S3_3_C2_C4_0", "cset {}, ne", out(reg) value, out(reg) valid, options(nomem, nostack));
            }
            if valid != 0 {
                return Some(value);
            }
        }
        None
    }
}
