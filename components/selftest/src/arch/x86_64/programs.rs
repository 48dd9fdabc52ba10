//! Programs for children of the table; see [`crate::table::programs`].

use core::arch::naked_asm;

use abi::layout::ENTRY_BYTES;
use abi::op;

use crate::shown::{ANSWER, MARK, NOT_CLEAR, PLACE, ROUNDING, THEIRS, word};

/// Code and bytes of all.
pub fn all() -> [(u64, u64); 10] {
    [
        (serve as *const () as u64, 128),
        (call as *const () as u64, 128),
        (read as *const () as u64, 64),
        (write as *const () as u64, 64),
        (ask as *const () as u64, 256),
        (keep as *const () as u64, 1024),
        (mark as *const () as u64, 64),
        (touch as *const () as u64, 64),
        (steps as *const () as u64, 64),
        (obey as *const () as u64, 128),
    ]
}

/// A service. Word 0: 0 = returns at once; 1 = P on the semaphore at index word 1, then returns;
/// 2 = runs until the first word of the page at [`PLACE`] is not 0. If word 3 is not 0, it then writes [`THEIRS`] to the second word of the window
/// that word 4 is. The answer is [`ANSWER`].
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn serve() -> ! {
    naked_asm!(
        "mov rbx, r9",
        "mov ebp, r8d",
        "test edi, edi",
        "jz 3f",
        "cmp edi, 1",
        "jne 2f",
        "mov eax, esi",
        "imul eax, eax, {entry}",
        "xor edi, edi",
        "mov rsi, -1",
        "xor edx, edx",
        "xor r10d, r10d",
        "syscall",
        "jmp 3f",
        "2:",
        "cmp qword ptr [{place}], 0",
        "je 2b",
        "3:",
        "test ebp, ebp",
        "jz 4f",
        "and rbx, -4096",
        "mov qword ptr [rbx + 8], {theirs}",
        "4:",
        "mov edi, {answer}",
        "xor r10d, r10d",
        "xor eax, eax",
        "syscall",
        "ud2",
        entry = const ENTRY_BYTES,
        place = const PLACE,
        theirs = const THEIRS,
        answer = const ANSWER,
    )
}

/// A thread that calls the portal at index argument mod 65,536 with the 16 bits above as word 0 and the 32 bits
/// above those as word 1, and ends its domain with the status of the call.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn call() -> ! {
    naked_asm!(
        "movzx eax, di",
        "imul eax, eax, {entry}",
        "mov rsi, rdi",
        "shr rsi, 32",
        "shr edi, 16",
        "xor edx, edx",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "syscall",
        "mov rdi, rax",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        entry = const ENTRY_BYTES,
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// A program that makes the system call at rbx: the system call register and words 0 to 5. `before` comes before, and `after` after it.
macro_rules! step {
    ([$($before:literal),* $(,)?], [$($after:literal),* $(,)?], $($name:ident = const $value:expr,)*) => {
        naked_asm!(
            $($before,)*
            "mov rax, [rbx]",
            "mov rdi, [rbx + 8]",
            "mov rsi, [rbx + 16]",
            "mov rdx, [rbx + 24]",
            "mov r8, [rbx + 32]",
            "mov r9, [rbx + 40]",
            "mov r10, [rbx + 48]",
            "syscall",
            $($after,)*
            $($name = const $value,)*
        )
    };
}

/// Argument: the address of a count, and of that many system calls: the system call register and words 0 to 5 of each. Ends the domain with the
/// status of the last.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn steps() -> ! {
    step!(
        ["mov rbx, rdi", "mov r12, [rbx]", "add rbx, 8", "2:"],
        ["add rbx, 56", "dec r12", "jnz 2b", "mov rdi, rax", "mov eax, {exit}", "syscall", "ud2"],
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// Code and bytes of [`obey`], which runs wherever it stands.
pub fn obedient() -> (*const u8, usize) {
    (obey as *const u8, 128)
}

/// A service. Word 0: the address of a system call, as [`steps`] has them. The answer: its status, and words 0 and 1 of its answer.
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn obey() -> ! {
    step!(
        ["mov rbx, rdi"],
        ["mov rdx, rsi", "mov rsi, rdi", "mov rdi, rax", "xor r10d, r10d", "xor eax, eax", "syscall", "ud2"],
    )
}

/// A thread that reads the word at its argument for ever, and writes what it read to the page after it, and how often.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!("2:", "mov rax, [rdi]", "mov [rdi + 4096], rax", "inc qword ptr [rdi + 4104]", "jmp 2b")
}

/// A thread that counts in the word at its argument for ever.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn write() -> ! {
    naked_asm!("2:", "inc rcx", "mov [rdi], rcx", "jmp 2b")
}

/// A program of a block, which stands at its argument or word 0: `begin`; then `round`, a count, and the block's system call,
/// with `before` in front of it, again and again until the block says stop. At 9, which `begin` and `round` may jump to, ebp says
/// what is wrong. The end is a return, of which there is a refusal if nobody called.
macro_rules! rounds {
    (
        [$($begin:literal),* $(,)?], [$($round:literal),* $(,)?], [$($before:literal),* $(,)?],
        $($name:ident = const $value:expr,)*
    ) => {
        naked_asm!(
            "mov r12, rdi",
            $($begin,)*
            "2:",
            $($round,)*
            "inc qword ptr [r12]",
            "cmp qword ptr [r12 + 8 * {stop}], 0",
            "jne 3f",
            "mov rax, [r12 + 8 * {call}]",
            $($before,)*
            "mov rdi, [r12 + 8 * {first}]",
            "mov rsi, [r12 + 8 * {second}]",
            "mov r10, [r12 + 8 * {control}]",
            "mov r9, [r12 + 8 * {last}]",
            "xor edx, edx",
            "xor r8d, r8d",
            "syscall",
            "mov [r12 + 8 * {status}], rax",
            "jmp 2b",
            "9:",
            "mov [r12 + 8 * {wrong}], rbp",
            "3:",
            "mov qword ptr [r12 + 8 * {ended}], 1",
            "mov edi, {answer}",
            "xor r10d, r10d",
            "xor eax, eax",
            "syscall",
            "xor edi, edi",
            "mov eax, {exit}",
            "syscall",
            "ud2",
            $($name = const $value,)*
            wrong = const word::WRONG,
            stop = const word::STOP,
            call = const word::CALL,
            first = const word::FIRST,
            second = const word::SECOND,
            control = const word::CONTROL,
            last = const word::LAST,
            status = const word::STATUS,
            ended = const word::ENDED,
            answer = const ANSWER,
            exit = const op::EXIT * ENTRY_BYTES,
        )
    };
}

/// Makes the system call of the block at its argument (or word 0) again and again, and counts, until the block says stop.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn ask() -> ! {
    rounds!([], [], [],)
}

/// Looks whether its floating-point registers are clear, then sets them to what its block says, and looks again and again whether
/// they are that; makes the block's system call meanwhile, if there is one (not 0).
///
/// # Safety
/// Only in a child with floating-point registers.
#[unsafe(naked)]
pub unsafe extern "C" fn keep() -> ! {
    rounds!(
        [
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movq rax, xmm\\number",
            "mov ebp, {not_clear}",
            "test rax, rax",
            "jnz 9f",
            ".endr",
            "mov ebp, {rounding}",
            "stmxcsr [r12 + 120]",
            "cmp dword ptr [r12 + 120], 0x1f80",
            "jne 9f",
            // From here on r13 has the seed, and r14 what MXCSR is to be: how to round is part of the seed.
            "mov r13, [r12 + 8 * {seed}]",
            "mov rax, r13",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movq xmm\\number, rax",
            "inc rax",
            ".endr",
            "mov r14d, r13d",
            "and r14d, 3",
            "shl r14d, 13",
            "or r14d, 0x1f80",
            "mov [r12 + 120], r14d",
            "ldmxcsr [r12 + 120]",
        ],
        [
            "mov rcx, r13",
            "mov ebp, 1",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movq rax, xmm\\number",
            "cmp rax, rcx",
            "jne 9f",
            "inc rcx",
            "inc ebp",
            ".endr",
            "mov ebp, {rounding}",
            "stmxcsr [r12 + 120]",
            "cmp [r12 + 120], r14d",
            "jne 9f",
        ],
        ["test rax, rax", "jz 2b"],
        not_clear = const NOT_CLEAR,
        rounding = const ROUNDING,
        seed = const word::SEED,
    )
}

/// A thread that writes [`MARK`] to the first page for ever. Entered elsewhere than at its start, it faults.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn mark() -> ! {
    naked_asm!("2:", "mov qword ptr [{place}], {mark}", "jmp 2b", place = const PLACE, mark = const MARK)
}

/// A thread that uses a floating-point register, and then writes to the word at its argument for ever.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn touch() -> ! {
    naked_asm!("movq rax, xmm0", "2:", "mov [rdi], rax", "jmp 2b")
}

/// The word that the thread pointer points to.
pub fn pointed_to() -> u64 {
    let word;
    // SAFETY: the caller has set the thread pointer to a word.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) word) };
    word
}
