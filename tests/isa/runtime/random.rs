//! The processor's own source of random numbers, if it has one.

/// The instruction, on a processor that has it.
pub struct RandomInstruction(());

impl RandomInstruction {
    /// `None` if this processor has none (CPUID leaf 1, bit 30 of ECX).
    pub fn new() -> Option<Self> {
        unimplemented!()
    }
    /// A random word. `None` if the processor gives none although it is asked ten times.
    pub fn word(self) -> Option<u64> {
        unimplemented!()
    }
}
