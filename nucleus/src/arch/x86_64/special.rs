//! Processor state that most domains do not have: floating-point registers and the thread pointer.
//!
//! Intel SDM volume 1, 10.5 (FXSAVE, FXRSTOR); volume 3, 2.5 (CR0.TS) and 6.15 (#NM).

use super::memory;
use crate::objects::arch::FpuState;
use crate::objects::{Activation, Cpu, SLOW_POINTER};
use crate::pointer::Ref;
use core::arch::asm;

const CR0_TS: u64 = 1 << 3;

/// Operand of an x87 instruction that is executed only to overwrite the x87 pointers.
static NOTHING: u32 = 0;

/// Turns the floating-point unit off.
pub fn turn_off() {
    // SAFETY: a control bit that only concerns the unit.
    unsafe {
        let cr0: u64;
        asm!("mov {}, cr0", out(reg) cr0, options(nostack, nomem));
        asm!("mov cr0, {}", in(reg) cr0 | CR0_TS, options(nostack, nomem));
    }
}

/// Turns the unit on and loads its registers.
///
/// # Safety
/// No other CPU has them loaded.
pub unsafe fn load(state: Ref<FpuState>) {
    // AMD processors save and restore the pointers to the last x87 instruction and its operand only while an exception is
    // pending (APM volume 5, FXRSTOR). So an instruction of the nucleus replaces those of another activation. SAFETY: the
    // area lives as long as its activation, and is aligned.
    unsafe {
        asm!("clts", "fnclex", "emms", "fild dword ptr [rip + {nothing}]", "fxrstor64 [{state}]",
            nothing = sym NOTHING, state = in(reg) state.pointer(), options(nostack));
    }
}

/// Writes the registers to their area.
///
/// # Safety
/// They are loaded, and so the unit is on.
pub unsafe fn save(state: Ref<FpuState>) {
    // SAFETY: the area lives as long as its activation, and is aligned; by contract.
    unsafe { asm!("fxsave64 [{}]", in(reg) state.pointer(), options(nostack)) }
}

/// Loads the thread pointer of `activation`, which becomes current.
pub fn load_pointer(cpu: Ref<Cpu>, activation: Ref<Activation>) {
    // Not skipped if both are equal: the last activation may have cleared the base by loading a selector (Intel SDM, MOV).
    if cpu.pointer.get() | activation.pointer.get() != 0 {
        cpu.pointer.set(activation.pointer.get());
        memory::load_thread_pointer(activation.pointer.get());
    }
}

/// Sets the thread pointer of the running activation. From now on crossings of its domain take the slow path.
pub fn set_pointer(cpu: Ref<Cpu>, activation: Ref<Activation>, pointer: u64) {
    activation.domain.set_slow(SLOW_POINTER, true);
    activation.pointer.set(pointer);
    load_pointer(cpu, activation);
    cpu.special.set((pointer != 0 || cpu.fpu.get().is_some() || !cpu.again.is_empty()) as u8);
}
