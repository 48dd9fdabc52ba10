//! The code that children run; see [`crate::child`].

use core::arch::naked_asm;

use runtime::abi::layout::ENTRY_BYTES;
use runtime::abi::rights::MAP_READ;
use runtime::abi::{NEVER, PAGE_BYTES, op};

use crate::arch::START;

/// All code of children.
pub const CODE: &[unsafe extern "C" fn() -> !] =
    &[exit_and_write, one_call, ping_pong, read, read_again, three_calls, wait_and_return];

/// Word 0: address of system call register and words 0 to 5. Ends with the status.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn one_call() -> ! {
    naked_asm!(
        "mov rbx, rdi",
        "mov rax, [rbx]",
        "mov rdi, [rbx + 8]",
        "mov rsi, [rbx + 16]",
        "mov rdx, [rbx + 24]",
        "mov r8, [rbx + 32]",
        "mov r9, [rbx + 40]",
        "mov r10, [rbx + 48]",
        "syscall",
        "mov rdi, rax",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// Word 0: address of three times what [`one_call`] finds. Ends with the status of the last call.
///
/// # Safety
/// Only for a thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn three_calls() -> ! {
    naked_asm!(
        "mov rbx, rdi",
        "mov r12d, 3",
        "2:",
        "mov rax, [rbx]",
        "mov rdi, [rbx + 8]",
        "mov rsi, [rbx + 16]",
        "mov rdx, [rbx + 24]",
        "mov r8, [rbx + 32]",
        "mov r9, [rbx + 40]",
        "mov r10, [rbx + 48]",
        "syscall",
        "add rbx, 56",
        "dec r12d",
        "jnz 2b",
        "mov rdi, rax",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// Word 0: address of a status and of the address of a word, which it sets to 1 after it ended with that status.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn exit_and_write() -> ! {
    naked_asm!(
        "mov rbx, [rdi + 8]",
        "mov rdi, [rdi]",
        "mov eax, {exit}",
        "syscall",
        "mov qword ptr [rbx], 1",
        "ud2",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// Word 0: address of the address to read. Ends with what is there.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!(
        "mov rdi, [rdi]",
        "mov rdi, [rdi]",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// A pager that needs one: it reads at the address that its badge is.
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read_again() -> ! {
    naked_asm!("mov rdi, [rax]", "ud2")
}

/// Does P on the semaphore whose system call register the badge is, and returns.
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn wait_and_return() -> ! {
    naked_asm!(
        "mov edi, {p}",
        "mov rsi, {never}",
        "xor edx, edx",
        "xor r10d, r10d",
        "syscall",
        "xor eax, eax",
        "xor r10d, r10d",
        "syscall",
        "ud2",
        p = const op::P,
        never = const NEVER as i64,
    )
}

/// See [`crate::child::Child::plays`].
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn ping_pong() -> ! {
    naked_asm!(
        "mov rbx, rdi",
        "mov r12, [rbx + 24]",
        "mov r13, [rbx + 32]",
        "2:",
        "mov rax, [rbx]",
        "mov edi, {p}",
        "mov rsi, {never}",
        "xor edx, edx",
        "xor r10d, r10d",
        "syscall",
        "test rax, rax",
        "jnz 3f",
        "mov rdi, [rbx + 16]",
        "mov rsi, r12",
        "mov rdx, r13",
        "xor r8d, r8d",
        "mov r9d, {read}",
        "xor r10d, r10d",
        "mov eax, {map}",
        "syscall",
        "test rax, rax",
        "jnz 3f",
        "add r12, {step}",
        "add r13, {step}",
        "mov rax, [rbx + 8]",
        "mov edi, {v}",
        "xor esi, esi",
        "xor edx, edx",
        "xor r10d, r10d",
        "syscall",
        "test rax, rax",
        "jz 2b",
        "3:",
        "mov rdi, rax",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        p = const op::P,
        v = const op::V,
        never = const NEVER as i64,
        read = const MAP_READ,
        map = const op::MAP * ENTRY_BYTES,
        exit = const op::EXIT * ENTRY_BYTES,
        step = const 2 * PAGE_BYTES,
    )
}

/// A thread that waits for [`crate::arch::START`] and removes the entry that its argument is.
///
/// # Safety
/// Only for a thread of ours that owns nothing.
#[unsafe(naked)]
pub unsafe extern "C" fn remove_ourselves() -> ! {
    naked_asm!(
        "mov rbx, rdi",
        "2:",
        "mov eax, {yields}",
        "xor r10d, r10d",
        "syscall",
        "cmp qword ptr [rip + {start}], 1",
        "jne 2b",
        "inc qword ptr [rip + {start}]",
        "mov eax, {remove}",
        "xor edi, edi",
        "mov rsi, rbx",
        "xor r10d, r10d",
        "syscall",
        "inc qword ptr [rip + {start}]",
        "3:",
        "mov eax, {yields}",
        "xor r10d, r10d",
        "syscall",
        "jmp 3b",
        yields = const op::YIELD * ENTRY_BYTES,
        remove = const op::ENTRY_REMOVE * ENTRY_BYTES,
        start = sym START,
    )
}
