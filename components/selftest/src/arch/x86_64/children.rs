//! Code for children that see one page of this program, and have no stack.

use core::arch::naked_asm;

use abi::layout::ENTRY_BYTES;
use abi::op;

/// Writes to the given address, and ends well if it can.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn write() -> ! {
    naked_asm!("mov [rdi], rdi", "xor edi, edi", "mov eax, {exit}", "syscall", "ud2", exit = const op::EXIT * ENTRY_BYTES)
}

/// Reads the given address, and ends with the value as status.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!("mov rdi, [rdi]", "mov eax, {exit}", "syscall", "ud2", exit = const op::EXIT * ENTRY_BYTES)
}

/// A service behind `npai>a`. With a page, it adds 1 to the first word of it and gives it back, or keeps it if word 1 is not 0.
/// Without, it has pages go to the address in word 1 from then on.
///
/// # Safety
/// Only for an activation of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn keep_pages() -> ! {
    naked_asm!(
        "test rdi, rdi",
        "jnz 2f",
        "mov edi, {tear}",
        "mov eax, {set}",
        "syscall",
        "xor edi, edi",
        "jmp 3f",
        "2: mov rax, rdi",
        "and rax, -4096",
        "inc qword ptr [rax]",
        "test rsi, rsi",
        "jz 3f",
        "xor edi, edi",
        "3: xor r10d, r10d",
        "xor eax, eax",
        "syscall",
        "ud2",
        tear = const op::ACTIVATION_TEAR,
        set = const op::ACTIVATION_SET * ENTRY_BYTES,
    )
}

/// The accesses tried on registers of a device, and where in the page: see [`crate::devices`].
pub const ODD: &[(unsafe extern "C" fn() -> !, u64)] = &[(read, 1), (read, 6), (read, 0xffc)];
