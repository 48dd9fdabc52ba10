//! Processor state that most domains do not have: floating-point registers and the thread pointer.
//!
//! Both belong to the activation. Floating-point registers are saved when another activation becomes current, and never pass
//! to another domain in a crossing. The unit is off while an activation without such registers runs. For domains with
//! neither, the cost is one test of a flag (`Cpu::special`).

use super::cpu;
use crate::arch::special as machine;
use crate::objects::Activation;
use crate::pointer::{Held, Ref};

/// Loads the special state of `activation`, which becomes current.
#[cold]
pub fn load(activation: Ref<Activation>) {
    let held = activation.held();
    let cpu = cpu::this(held);
    machine::load_pointer(cpu, activation);
    let next = activation.fpu.map(|_| activation);
    if cpu.fpu.get() != next || cpu.fpu_is_stale.get() {
        save(held);
        match activation.fpu {
            Some(state) => {
                forget_elsewhere(activation);
                // SAFETY: `forget_elsewhere` just made sure that no other CPU counts as having them loaded.
                unsafe { machine::load(state) }
            }
            None => machine::turn_off(),
        }
        cpu.fpu.set(next);
        cpu.fpu_is_stale.set(false);
    }
    cpu.special.set((cpu.pointer.get() != 0 || cpu.fpu.get().is_some() || !cpu.again.is_empty()) as u8);
}

/// Saves the loaded floating-point registers to their owner. A CPU does so before it becomes quiescent, because others may
/// then resume what ran there.
pub fn save(held: Held) {
    if let Some(state) = cpu::this(held).fpu.get().and_then(|owner| owner.fpu) {
        // SAFETY: `fpu` names the owner of the loaded registers, and the unit is on while it has one.
        unsafe { machine::save(state) }
    }
}

/// Sets the thread pointer of the running activation.
pub fn set_pointer(activation: Ref<Activation>, pointer: u64) {
    machine::set_pointer(cpu::this(activation.held()), activation, pointer);
}

/// Discards the loaded floating-point registers of `activation`, on all CPUs.
pub fn forget(activation: Ref<Activation>) {
    forget_elsewhere(activation);
    let cpu = cpu::this(activation.held());
    if cpu.fpu.get() == Some(activation) {
        cpu.fpu.set(None);
        machine::turn_off();
    }
}

/// Marks the floating-point registers of `activation` as stale on each other CPU that has them loaded.
fn forget_elsewhere(activation: Ref<Activation>) {
    let held = activation.held();
    let own = cpu::this(held);
    for other in cpu::all(held).filter(|cpu| cpu.fpu.get() == Some(activation) && *cpu != own) {
        other.fpu.set(None);
        other.fpu_is_stale.set(true);
        other.special.set(1);
    }
}
