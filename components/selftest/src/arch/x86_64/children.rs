//! What children run that see one page of this program, and have no stack.

use core::arch::naked_asm;

use abi::layout::ENTRY_BYTES;
use abi::op;

/// Writes where it is told, and ends well if it can.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn write() -> ! {
    naked_asm!("mov [rdi], rdi", "xor edi, edi", "mov eax, {exit}", "syscall", "ud2", exit = const op::EXIT * ENTRY_BYTES)
}

/// Reads where it is told, and ends with what it read as status.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!("mov rdi, [rdi]", "mov eax, {exit}", "syscall", "ud2", exit = const op::EXIT * ENTRY_BYTES)
}

/// What is tried with registers of a device, and where in the page: see [`crate::devices`].
pub const ODD: &[(unsafe extern "C" fn() -> !, u64)] = &[(read, 1), (read, 6), (read, 0xffc)];
