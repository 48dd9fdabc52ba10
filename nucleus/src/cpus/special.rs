//! Processor state that most domains do not have: floating-point registers and the thread pointer.
//!
//! Both belong to the activation. Floating-point registers are saved whenever another activation becomes current, never
//! carried over a crossing, and the unit is off while an activation without such registers runs. Domains that have neither
//! pay one test of a flag for it (`Cpu::special`).

use super::cpu;
use crate::arch::special as machine;
use crate::objects::Activation;
use crate::pointer::{Held, Ref};

/// Makes the processor's special state the one of `activation`, which becomes current.
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
                // SAFETY: no other CPU has them loaded any more.
                unsafe { machine::load(state) }
            }
            None => machine::turn_off(),
        }
        cpu.fpu.set(next);
        cpu.fpu_is_stale.set(false);
    }
    cpu.special.set((cpu.pointer.get() != 0 || cpu.fpu.get().is_some() || !cpu.again.is_empty()) as u8);
}

/// Writes the loaded floating-point registers to their owner. A CPU does so before it can be stopped: others may
/// continue what ran there.
pub fn save(held: Held) {
    if let Some(state) = cpu::this(held).fpu.get().and_then(|owner| owner.fpu) {
        // SAFETY: the unit is on while somebody's registers are loaded.
        unsafe { machine::save(state) }
    }
}

/// The running activation has this thread pointer from now on.
pub fn set_pointer(activation: Ref<Activation>, pointer: u64) {
    machine::set_pointer(cpu::this(activation.held()), activation, pointer);
}

/// The floating-point registers of `activation` are not kept any more.
pub fn forget(activation: Ref<Activation>) {
    forget_elsewhere(activation);
    let cpu = cpu::this(activation.held());
    if cpu.fpu.get() == Some(activation) {
        cpu.fpu.set(None);
        machine::turn_off();
    }
}

/// What another CPU has loaded of the floating-point registers of `activation` is not its state any more.
fn forget_elsewhere(activation: Ref<Activation>) {
    let held = activation.held();
    let own = cpu::this(held);
    for other in cpu::all(held).filter(|cpu| cpu.fpu.get() == Some(activation) && *cpu != own) {
        other.fpu.set(None);
        other.fpu_is_stale.set(true);
        other.special.set(1);
    }
}
