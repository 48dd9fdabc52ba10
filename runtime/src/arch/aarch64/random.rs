//! The processor's own source of random numbers (Arm ARM, FEAT_RNG: RNDR).

/// The instruction, on a processor that has it.
#[derive(Clone, Copy, Debug)]
pub struct RandomInstruction(());

impl RandomInstruction {
    /// `None` if this processor has none. Users cannot ask the processor what it has, and the nucleus does not tell yet.
    pub fn new() -> Option<Self> {
        None
    }

    /// A random word. `None` if the processor gives none.
    pub fn word(self) -> Option<u64> {
        None
    }
}
