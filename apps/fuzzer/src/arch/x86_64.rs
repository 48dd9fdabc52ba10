//! x86-64. The registers are those of `abi::registers`.

use core::arch::naked_asm;

use crate::minion::{live, serve};

/// A call to a minion arrives here.
///
/// # Safety
/// Only the nucleus enters here, at the top of an empty stack.
#[unsafe(naked)]
pub unsafe extern "C" fn service_entry() -> ! {
    naked_asm!(
        "mov rcx, rax",
        "sub rsp, 8",
        "push r10",
        "call {serve}",
        "ud2",
        serve = sym serve,
    )
}

/// A minion's thread starts here, also when it is set back to its beginning.
///
/// # Safety
/// Only the nucleus enters here, at the top of an empty stack.
#[unsafe(naked)]
pub unsafe extern "C" fn thread_entry() -> ! {
    naked_asm!("call {live}", "ud2", live = sym live)
}
