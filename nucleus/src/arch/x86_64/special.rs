//! Processor state that most domains do not have: floating-point registers and the thread pointer.
//!
//! Both belong to the activation. Floating-point state (x87 and SSE) is saved whenever another activation
//! becomes current, never carried over a crossing, and the unit is off while an activation without such
//! state runs. Domains that have neither pay one test of a flag for it (`Cpu::special`).
//!
//! Intel SDM volume 1, 10.5 (FXSAVE, FXRSTOR); volume 3, 2.5 (CR0.TS) and 6.15 (#NM).

use super::memory;
use crate::activation::Activation;
use crate::cpu;
use crate::domain;
use crate::pointer::{Held, Ref};
use core::arch::asm;

const CR0_SWITCHED: u64 = 1 << 3;

/// x87 and SSE registers as FXSAVE lays them out.
#[repr(C, align(64))]
pub struct FpuState([u16; 256]);

/// Word of the x87 control word, and of MXCSR.
const CONTROL: usize = 0;
const MXCSR: usize = 12;

impl FpuState {
    /// As after FNINIT, with all exceptions masked and all registers clear.
    pub fn reset(&mut self) {
        self.0.fill(0);
        self.0[CONTROL] = 0x37f;
        self.0[MXCSR] = 0x1f80;
    }
}

/// What x87 pointers lead to that are nobody's.
static NOTHING: u32 = 0;

/// Turns the unit off.
pub fn init() {
    turn_off();
}

fn turn_off() {
    // SAFETY: a control bit that only concerns the unit.
    unsafe {
        let cr0: u64;
        asm!("mov {}, cr0", out(reg) cr0, options(nostack, nomem));
        asm!("mov cr0, {}", in(reg) cr0 | CR0_SWITCHED, options(nostack, nomem));
    }
}

/// Makes the processor's special state the one of `activation`, which becomes current.
#[cold]
pub fn load(activation: Ref<Activation>) {
    let held = activation.held();
    let cpu = cpu::this(held);
    // Whoever ran may have cleared the base that is the same for both, by a selector (Intel SDM, MOV).
    if cpu.pointer.get() | activation.pointer.get() != 0 {
        cpu.pointer.set(activation.pointer.get());
        memory::load_thread_pointer(activation.pointer.get());
    }
    let next = activation.fpu.map(|_| activation);
    if cpu.fpu.get() != next || cpu.fpu_is_stale.get() {
        save(held);
        match activation.fpu {
            Some(state) => {
                cpu::forget_registers_elsewhere(activation);
                // Processors of AMD save and restore the pointers to the last x87 instruction and its operand only while an
                // exception is pending (APM volume 5, FXRSTOR): an instruction of ours takes the place of another's.
                // SAFETY: the area lives as long as its activation, and is aligned.
                unsafe {
                    asm!("clts", "fnclex", "emms", "fild dword ptr [rip + {nothing}]", "fxrstor64 [{state}]",
                        nothing = sym NOTHING, state = in(reg) state.pointer(), options(nostack));
                }
            }
            None => turn_off(),
        }
        cpu.fpu.set(next);
        cpu.fpu_is_stale.set(false);
    }
    cpu.special.set((cpu.pointer.get() != 0 || cpu.fpu.get().is_some()) as u8);
}

/// Writes the loaded floating-point registers to whom they belong. A CPU that may be held up does so before: others may
/// go on with what ran there.
pub fn save(held: Held) {
    if let Some(state) = cpu::this(held).fpu.get().and_then(|owner| owner.fpu) {
        // SAFETY: the area lives as long as its activation, and is aligned; the unit is on while somebody's registers
        // are loaded.
        unsafe { asm!("fxsave64 [{}]", in(reg) state.pointer(), options(nostack)) }
    }
}

/// The running activation has this thread pointer from now on.
pub fn set_pointer(activation: Ref<Activation>, pointer: u64) {
    let domain = activation.domain;
    domain.slow.update(|value| value | domain::SLOW_POINTER);
    activation.pointer.set(pointer);
    load(activation);
}

/// `activation` goes, and its state with it.
pub fn forget(activation: Ref<Activation>) {
    cpu::forget_registers_elsewhere(activation);
    if cpu::forget_registers(activation) {
        turn_off();
    }
}
