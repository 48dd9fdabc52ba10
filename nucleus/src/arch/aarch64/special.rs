//! Processor state that most domains do not have: floating-point registers.
//! Users can write the thread pointer, so it is saved with the other registers.
//!
//! Arm ARM D19.2.33 (CPACR_EL1.FPEN), C5.2 (FPCR, FPSR).

use super::processor::CPACR_FPEN;
use crate::objects::arch::FpuState;
use crate::objects::{Activation, Cpu};
use crate::pointer::Ref;
use core::arch::asm;

/// Turns the floating-point unit off.
pub fn turn_off() {
    // SAFETY: a control bit that only concerns the unit.
    unsafe { asm!("msr cpacr_el1, xzr", "isb", options(nostack, nomem)) }
}

fn turn_on() {
    // SAFETY: a control bit that only concerns the unit.
    unsafe { asm!("msr cpacr_el1, {}", "isb", in(reg) CPACR_FPEN, options(nostack, nomem)) }
}

core::arch::global_asm!(
    ".globl fpu_save, fpu_load",
    ".arch_extension fp",
    ".arch_extension simd",
    "fpu_save:",
    "stp q0, q1, [x0]",
    "stp q2, q3, [x0, #32]",
    "stp q4, q5, [x0, #64]",
    "stp q6, q7, [x0, #96]",
    "stp q8, q9, [x0, #128]",
    "stp q10, q11, [x0, #160]",
    "stp q12, q13, [x0, #192]",
    "stp q14, q15, [x0, #224]",
    "stp q16, q17, [x0, #256]",
    "stp q18, q19, [x0, #288]",
    "stp q20, q21, [x0, #320]",
    "stp q22, q23, [x0, #352]",
    "stp q24, q25, [x0, #384]",
    "stp q26, q27, [x0, #416]",
    "stp q28, q29, [x0, #448]",
    "stp q30, q31, [x0, #480]",
    "mrs x1, fpsr",
    "mrs x2, fpcr",
    "add x0, x0, #512",
    "stp x1, x2, [x0]",
    "ret",
    "fpu_load:",
    "ldp q0, q1, [x0]",
    "ldp q2, q3, [x0, #32]",
    "ldp q4, q5, [x0, #64]",
    "ldp q6, q7, [x0, #96]",
    "ldp q8, q9, [x0, #128]",
    "ldp q10, q11, [x0, #160]",
    "ldp q12, q13, [x0, #192]",
    "ldp q14, q15, [x0, #224]",
    "ldp q16, q17, [x0, #256]",
    "ldp q18, q19, [x0, #288]",
    "ldp q20, q21, [x0, #320]",
    "ldp q22, q23, [x0, #352]",
    "ldp q24, q25, [x0, #384]",
    "ldp q26, q27, [x0, #416]",
    "ldp q28, q29, [x0, #448]",
    "ldp q30, q31, [x0, #480]",
    "add x0, x0, #512",
    "ldp x1, x2, [x0]",
    "msr fpsr, x1",
    "msr fpcr, x2",
    "ret",
);

unsafe extern "C" {
    fn fpu_save(state: *mut FpuState);
    fn fpu_load(state: *const FpuState);
}

/// Turns the unit on and loads its registers.
///
/// # Safety
/// No other CPU has them loaded.
pub unsafe fn load(state: Ref<FpuState>) {
    turn_on();
    // SAFETY: the area lives as long as its activation, and is aligned; the unit is on.
    unsafe { fpu_load(state.pointer()) }
}

/// Writes the registers to their area.
///
/// # Safety
/// They are loaded, and so the unit is on.
pub unsafe fn save(state: Ref<FpuState>) {
    // SAFETY: the area lives as long as its activation, and is aligned; by contract.
    unsafe { fpu_save(state.pointer()) }
}

/// Loads the thread pointer of `activation`: nothing to do, as every crossing switches it with the other registers.
pub fn load_pointer(_: Ref<Cpu>, _: Ref<Activation>) {}

/// Sets the thread pointer of the running activation.
pub fn set_pointer(_: Ref<Cpu>, activation: Ref<Activation>, pointer: u64) {
    activation.registers.pointer.set(pointer);
    // SAFETY: a register that only users use.
    unsafe { asm!("msr tpidr_el0, {}", in(reg) pointer, options(nostack, nomem)) }
}
