//! x86-64: what only this processor has, and what has to be said in its instructions.

use core::arch::{asm, naked_asm};

use runtime::abi::info::status;
use runtime::abi::layout::{self, ENTRY_BYTES};
use runtime::abi::rights::MAP_READ;
use runtime::abi::{Error, NEVER, PAGE_BYTES, op};

use crate::Crime;
use crate::deaths::read as look;

/// Bytes of instructions that return.
pub const RETURN: u32 = 0xc3c3_c3c3;
/// An address that no translation can have.
const NON_CANONICAL: u64 = 0x0000_8000_0000_0000;
/// With what a domain dies that runs [`halt`].
pub const HALTED: u64 = status::EXCEPTION + 13;

/// Crimes for which a domain dies.
pub const DEATHS: &[Crime] = &[
    Crime::death("halt", "privileged instruction: hlt", halt),
    Crime::death("cli", "privileged instruction: cli", || {
        // SAFETY: none; that is what this program is for. The same holds for every block in this file.
        unsafe { asm!("cli") }
    }),
    Crime::death("cr3", "privileged instruction: write of the page-table root", || {
        // SAFETY: see the first.
        unsafe { asm!("mov cr3, {}", in(reg) 0u64) }
    }),
    Crime::death("wrmsr", "privileged instruction: write of a model-specific register", || {
        // SAFETY: see the first.
        unsafe { asm!("wrmsr", in("ecx") 0xc000_0082u32, in("eax") 0, in("edx") 0) }
    }),
    Crime::death("lgdt", "privileged instruction: load of a descriptor table", || {
        let table = [0u8; 10];
        // SAFETY: see the first.
        unsafe { asm!("lgdt [{}]", in(reg) table.as_ptr()) }
    }),
    Crime::death("swapgs", "privileged instruction: swapgs", || {
        // SAFETY: see the first.
        unsafe { asm!("swapgs") }
    }),
    Crime::death("port", "port input and output without the right", || {
        // SAFETY: see the first.
        unsafe { asm!("out dx, al", in("dx") 0x3f8u16, in("al") b'!') }
    }),
    Crime::death("interrupt", "software interrupt of a device's vector", || {
        // SAFETY: see the first.
        unsafe { asm!("int 0x40") }
    }),
    Crime::death("non-canonical", "read of a non-canonical address", || look(NON_CANONICAL)),
    Crime::death("non-canonical-jump", "jump to a non-canonical address", || jump(NON_CANONICAL)),
    Crime::death("non-canonical-stack", "push with a non-canonical stack pointer", || {
        // SAFETY: see the first.
        unsafe { asm!("mov rsp, {}", "push rax", in(reg) NON_CANONICAL, options(noreturn)) }
    }),
    Crime::death("divide", "division by zero", || {
        // SAFETY: see the first.
        unsafe { asm!("xor ecx, ecx", "div ecx", inout("eax") 1 => _, inout("edx") 0 => _, out("ecx") _) }
    }),
    Crime::death("ud2", "undefined instruction", || {
        // SAFETY: see the first.
        unsafe { asm!("ud2") }
    }),
    Crime::death("breakpoint", "breakpoint", || {
        // SAFETY: see the first.
        unsafe { asm!("int3") }
    }),
    Crime::death("fpu", "floating-point instruction in a domain without floating point", || {
        // SAFETY: see the first.
        unsafe { asm!("movaps xmm0, xmm0") }
    }),
];

/// What hurts nobody.
pub const HARMLESS: &[Crime] = &[
    Crime::harmless("odd-index", "index register that is no multiple of an entry", odd_index),
    Crime::harmless("trap-flag", "single-step flag set across a system call", || with_flag(1 << 8)),
    Crime::harmless("direction-flag", "direction flag set across a system call", || with_flag(1 << 10)),
    Crime::harmless("alignment-flag", "alignment-check flag set across a system call", || with_flag(1 << 18)),
    Crime::harmless("nested-flag", "nested-task flag set across a system call", || with_flag(1 << 14)),
];

/// Waits for an interrupt.
pub fn halt() {
    // SAFETY: see the first.
    unsafe { asm!("hlt") }
}

/// Calls what is at an address.
pub fn jump(address: u64) {
    // SAFETY: see the first.
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}

fn odd_index() -> Result<(), Error> {
    let status: u64;
    // SAFETY: the nucleus refuses what is no index.
    unsafe {
        asm!(
            "syscall",
            inout("rax") op::CLOCK * layout::ENTRY_BYTES + 1 => status,
            out("rcx") _, out("r11") _, out("rdi") _, out("rsi") _, out("rdx") _,
            out("r8") _, out("r9") _, inout("r10") 0u64 => _,
        );
    }
    Error::from_status(status)
}

/// A system call with a flag set: the clock must still go forward, and the flag must not hurt.
fn with_flag(flag: u64) -> Result<(), Error> {
    let before = runtime::op::clock();
    let after: u64;
    // SAFETY: the clock operation touches no memory; the flags are cleared again.
    unsafe {
        asm!(
            "pushfq", "or [rsp], {flag}", "popfq",
            "syscall",
            "pushfq", "and qword ptr [rsp], {clear}", "popfq", "cld",
            flag = in(reg) flag,
            clear = const !(1i32 << 10 | 1 << 14 | 1 << 18),
            inout("rax") op::CLOCK * layout::ENTRY_BYTES => _,
            out("rdi") after,
            out("rcx") _, out("r11") _, out("rsi") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _,
        );
    }
    if after >= before { Ok(()) } else { Err(Error::BadArgument) }
}

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

/// See [`Child::plays`].
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

/// A thread that waits for [`crate::bounds::START`] and removes the entry that its argument is.
///
/// # Safety
/// Only for a thread that a child starts.
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
        yields = const op::YIELD * layout::ENTRY_BYTES,
        remove = const op::ENTRY_REMOVE * layout::ENTRY_BYTES,
        start = sym crate::bounds::START,
    )
}
