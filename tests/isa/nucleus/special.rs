//! Processor state that most domains do not have: floating-point registers, and the thread pointer.
//!
//! Both belong to the activation. Floating-point state is saved whenever another activation becomes current, never carried over
//! a crossing, and the unit is off while an activation without such state runs. Domains that have none pay one test of a flag for
//! it (`Cpu::special`).

use crate::activation::Activation;
use crate::pointer::{Held, Ref};

/// Floating-point registers.
pub struct FpuState([u64; 64]);

impl FpuState {
    /// All registers clear, nothing is trapped, rounding to nearest.
    pub fn reset(&mut self) {
        unimplemented!()
    }
}

/// Turns the unit off, and lets it be used when it is on.
pub fn init() {
    unimplemented!()
}

/// Makes the processor's special state the one of `activation`, which becomes current.
pub fn load(activation: Ref<Activation>) {
    unimplemented!()
}

/// Writes the loaded floating-point registers to whom they belong. A CPU that may be held up does so before: others may
/// go on with what ran there.
pub fn save(_: Held) {
    unimplemented!()
}

/// The running activation has this thread pointer from now on.
pub fn set_pointer(activation: Ref<Activation>, pointer: u64) {
    unimplemented!()
}

/// `activation` goes, and its state with it.
pub fn forget(activation: Ref<Activation>) {
    unimplemented!()
}
