//! The code that children run; see [`crate::child`].

use core::arch::naked_asm;

use runtime::abi::layout::ENTRY_BYTES;
use runtime::abi::rights::MAP_READ;
use runtime::abi::{NEVER, PAGE_BYTES, op};

use crate::arch::START;

/// All code of children.
pub const CODE: &[unsafe extern "C" fn() -> !] = &[
    exit_and_write,
    one_call,
    ping_pong,
    read,
    read_again,
    three_calls,
    wait_and_return,
    super::refusals::timing_flag,
    super::refusals::bypass_flag,
    super::refusals::tag_flag,
    super::refusals::tags,
    super::refusals::pointer_keys,
    super::refusals::hints,
    super::refusals::wide,
    super::refusals::wait_for_events,
    super::refusals::make_events,
];

/// Word 0: address of system call register and words 0 to 5. Ends with the status.
///
/// # Safety
/// Only for the first thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn one_call() -> ! {
    naked_asm!(
        "mov x19, x0",
        "ldr x8, [x19]",
        "ldp x0, x1, [x19, #8]",
        "ldr x2, [x19, #24]",
        "ldp x4, x5, [x19, #32]",
        "ldr x3, [x19, #48]",
        "svc #0",
        "mov x0, x8",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
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
        "mov x19, x0",
        "mov x20, #3",
        "2:",
        "ldr x8, [x19]",
        "ldp x0, x1, [x19, #8]",
        "ldr x2, [x19, #24]",
        "ldp x4, x5, [x19, #32]",
        "ldr x3, [x19, #48]",
        "svc #0",
        "add x19, x19, #56",
        "subs x20, x20, #1",
        "b.ne 2b",
        "mov x0, x8",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
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
        "ldp x0, x19, [x0]",
        "mov x8, {exit}",
        "svc #0",
        "mov x9, #1",
        "str x9, [x19]",
        "udf #0",
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
        "ldr x0, [x0]",
        "ldr x0, [x0]",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
        exit = const op::EXIT * ENTRY_BYTES,
    )
}

/// A pager that needs one: it reads at the address that its badge is.
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read_again() -> ! {
    naked_asm!("ldr x0, [x8]", "udf #0")
}

/// Does P on the semaphore whose system call register the badge is, and returns.
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn wait_and_return() -> ! {
    naked_asm!(
        "mov x0, {p}",
        "mov x1, {never}",
        "mov x2, xzr",
        "mov x3, xzr",
        "svc #0",
        "mov x8, xzr",
        "mov x3, xzr",
        "svc #0",
        "udf #0",
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
        "mov x19, x0",
        "ldp x20, x21, [x19, #24]",
        "2:",
        "ldr x8, [x19]",
        "mov x0, {p}",
        "mov x1, {never}",
        "mov x2, xzr",
        "mov x3, xzr",
        "svc #0",
        "cbnz x8, 3f",
        "ldr x0, [x19, #16]",
        "mov x1, x20",
        "mov x2, x21",
        "mov x4, xzr",
        "mov x5, {read}",
        "mov x3, xzr",
        "mov x8, {map}",
        "svc #0",
        "cbnz x8, 3f",
        "add x20, x20, {step}",
        "add x21, x21, {step}",
        "ldr x8, [x19, #8]",
        "mov x0, {v}",
        "mov x1, xzr",
        "mov x2, xzr",
        "mov x3, xzr",
        "svc #0",
        "cbz x8, 2b",
        "3:",
        "mov x0, x8",
        "mov x8, {exit}",
        "svc #0",
        "udf #0",
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
        "mov x19, x0",
        "adrp x20, {start}",
        "add x20, x20, :lo12:{start}",
        "2:",
        "mov x8, {yields}",
        "mov x3, xzr",
        "svc #0",
        "ldr x9, [x20]",
        "cmp x9, #1",
        "b.ne 2b",
        "add x9, x9, #1",
        "str x9, [x20]",
        "mov x8, {remove}",
        "mov x0, xzr",
        "mov x1, x19",
        "mov x3, xzr",
        "svc #0",
        "ldr x9, [x20]",
        "add x9, x9, #1",
        "str x9, [x20]",
        "3:",
        "mov x8, {yields}",
        "mov x3, xzr",
        "svc #0",
        "b 3b",
        yields = const op::YIELD * ENTRY_BYTES,
        remove = const op::ENTRY_REMOVE * ENTRY_BYTES,
        start = sym START,
    )
}
