//! Floating-point registers and the thread pointer; see `cpus::special`.

use crate::objects::arch::FpuState;
use crate::objects::{Activation, Cpu};
use crate::pointer::Ref;

/// Turns the unit off.
pub fn turn_off() {
    unimplemented!()
}

/// Turns the unit on and loads its registers.
///
/// # Safety
/// Nobody else has them loaded.
pub unsafe fn load(state: Ref<FpuState>) {
    unimplemented!()
}

/// Writes the registers to their area.
///
/// # Safety
/// They are loaded, and so the unit is on.
pub unsafe fn save(state: Ref<FpuState>) {
    unimplemented!()
}

/// Loads the thread pointer of `activation`, which becomes current.
pub fn load_pointer(cpu: Ref<Cpu>, activation: Ref<Activation>) {
    unimplemented!()
}

/// The running activation has this thread pointer from now on.
pub fn set_pointer(cpu: Ref<Cpu>, activation: Ref<Activation>, pointer: u64) {
    unimplemented!()
}
