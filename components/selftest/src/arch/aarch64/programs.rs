//! Programs for children of the table; see [`crate::table::programs`].

use core::arch::naked_asm;

use abi::layout::{ENTRY_BYTES, RETURN};
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
        (keep as *const () as u64, 2048),
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
        "and x20, x5, #-4096",
        "mov x21, x4",
        "cbz w0, 3f",
        "cmp w0, #1",
        "b.ne 2f",
        "mov w8, {entry}",
        "mul w8, w1, w8",
        "mov x0, {p}",
        "mov x1, #-1",
        "mov x2, xzr",
        "mov x3, xzr",
        "svc #0",
        "b 3f",
        "2:",
        "mov x9, {place}",
        "4:",
        "yield",
        "ldr x10, [x9]",
        "cbz x10, 4b",
        "3:",
        "cbz x21, 5f",
        "mov x9, {theirs}",
        "str x9, [x20, #8]",
        "5:",
        "mov x0, {answer}",
        "mov x3, xzr",
        "mov x8, {leave}",
        "svc #0",
        "udf #0",
        entry = const ENTRY_BYTES,
        theirs = const THEIRS,
        p = const op::P,
        place = const PLACE,
        answer = const ANSWER,
        leave = const RETURN * ENTRY_BYTES,
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
        "and x8, x0, #0xffff",
        "mov x9, {entry}",
        "mul x8, x8, x9",
        "lsr x1, x0, #32",
        "ubfx x0, x0, #16, #16",
        "mov x2, xzr",
        "mov x3, xzr",
        "mov x4, xzr",
        "mov x5, xzr",
        "svc #0",
        "mov x0, x8",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
        entry = const ENTRY_BYTES,
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// A program that makes the system call at x19: the system call register and words 0 to 5. `before` comes before, and `after` after it.
macro_rules! step {
    ([$($before:literal),* $(,)?], [$($after:literal),* $(,)?], $($name:ident = const $value:expr,)*) => {
        naked_asm!(
            $($before,)*
            "ldr x8, [x19]",
            "ldp x0, x1, [x19, #8]",
            "ldr x2, [x19, #24]",
            "ldp x4, x5, [x19, #32]",
            "ldr x3, [x19, #48]",
            "svc #0",
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
        ["ldr x20, [x0]", "add x19, x0, #8", "2:"],
        ["add x19, x19, #56", "subs x20, x20, #1", "b.ne 2b", "mov x0, x8", "mov x8, {exit}", "svc #0", "udf #0"],
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
        ["mov x19, x0"],
        ["mov x2, x1", "mov x1, x0", "mov x0, x8", "mov x3, xzr", "mov x8, {leave}", "svc #0", "udf #0"],
        leave = const RETURN * ENTRY_BYTES,
    )
}

/// A thread that reads the word at its argument for ever, and writes what it read to the page after it, and how often.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!(
        "2:",
        "ldr x9, [x0]",
        "str x9, [x0, #4096]",
        "ldr x9, [x0, #4104]",
        "add x9, x9, #1",
        "str x9, [x0, #4104]",
        "b 2b",
    )
}

/// A thread that counts in the word at its argument for ever.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn write() -> ! {
    naked_asm!("2:", "add x9, x9, #1", "str x9, [x0]", "b 2b")
}

/// A program of a block, which stands at its argument or word 0: `begin`; then `round`, a count, and the block's system call,
/// with `before` in front of it, again and again until the block says stop. At 9, which `begin` and `round` may jump to, x20 says
/// what is wrong. The end is a return, of which there is a refusal if nobody called.
macro_rules! rounds {
    (
        [$($begin:literal),* $(,)?], [$($round:literal),* $(,)?], [$($before:literal),* $(,)?],
        $($name:ident = const $value:expr,)*
    ) => {
        naked_asm!(
            "mov x19, x0",
            $($begin,)*
            "2:",
            $($round,)*
            "ldr x9, [x19]",
            "add x9, x9, #1",
            "str x9, [x19]",
            "ldr x9, [x19, #8 * {stop}]",
            "cbnz x9, 3f",
            "ldr x8, [x19, #8 * {call}]",
            $($before,)*
            "ldr x0, [x19, #8 * {first}]",
            "ldr x1, [x19, #8 * {second}]",
            "ldr x3, [x19, #8 * {control}]",
            "ldr x5, [x19, #8 * {last}]",
            "mov x2, xzr",
            "mov x4, xzr",
            "svc #0",
            "str x8, [x19, #8 * {status}]",
            "b 2b",
            "9:",
            "str x20, [x19, #8 * {wrong}]",
            "3:",
            "mov x9, #1",
            "str x9, [x19, #8 * {ended}]",
            "mov x0, {answer}",
            "mov x3, xzr",
            "mov x8, {leave}",
            "svc #0",
            "mov x0, xzr",
            "mov x8, {exit}",
            "svc #0",
            "udf #0",
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
            leave = const RETURN * ENTRY_BYTES,
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
            ".arch_extension fp",
            "mov x20, {not_clear}",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
            "fmov x9, d\\number",
            "cbnz x9, 9f",
            ".endr",
            "mov x20, {rounding}",
            "mrs x9, fpcr",
            "cbnz x9, 9f",
            "mrs x9, fpsr",
            "cbnz x9, 9f",
            // From here on x21 has the seed, and x22 what FPCR is to be: how to round is part of the seed.
            "ldr x21, [x19, #8 * {seed}]",
            "mov x9, x21",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
            "fmov d\\number, x9",
            "add x9, x9, #1",
            ".endr",
            "and x22, x21, #3",
            "lsl x22, x22, #22",
            "msr fpcr, x22",
        ],
        [
            "mov x10, x21",
            "mov x20, #1",
            ".irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
            "fmov x9, d\\number",
            "cmp x9, x10",
            "b.ne 9f",
            "add x10, x10, #1",
            "add x20, x20, #1",
            ".endr",
            "mov x20, {rounding}",
            "mrs x9, fpcr",
            "cmp x9, x22",
            "b.ne 9f",
        ],
        ["cbz x8, 2b"],
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
    naked_asm!(
        "2:",
        "mov x9, {place}",
        "mov x10, {mark}",
        "str x10, [x9]",
        "mov x9, xzr",
        "b 2b",
        place = const PLACE,
        mark = const MARK,
    )
}

/// A thread that uses a floating-point register, and then writes to the word at its argument for ever.
///
/// # Safety
/// Only in a child.
#[unsafe(naked)]
pub unsafe extern "C" fn touch() -> ! {
    naked_asm!(".arch_extension fp", "fmov x9, d0", "2:", "str x9, [x0]", "b 2b")
}

/// The word that the thread pointer points to.
pub fn pointed_to() -> u64 {
    let word;
    // SAFETY: the caller has set the thread pointer to a word.
    unsafe { core::arch::asm!("mrs {0}, tpidr_el0", "ldr {0}, [{0}]", out(reg) word) };
    word
}
