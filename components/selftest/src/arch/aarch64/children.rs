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
    naked_asm!("str x0, [x0]", "mov x0, xzr", "mov x8, {exit}", "svc #0", "udf #0", exit = const op::EXIT * ENTRY_BYTES)
}

/// Reads the given address, and ends with the value as status.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn read() -> ! {
    naked_asm!("ldr x0, [x0]", "mov x8, {exit}", "svc #0", "udf #0", exit = const op::EXIT * ENTRY_BYTES)
}

/// A service behind `npai>a`. With a page, it adds 1 to the first word of it and gives it back, or keeps it if word 1 is not 0.
/// Without, it has pages go to the address in word 1 from then on.
///
/// # Safety
/// Only for an activation of a child.
#[unsafe(naked)]
pub unsafe extern "C" fn keep_pages() -> ! {
    naked_asm!(
        "cbnz x0, 2f",
        "mov x0, {tear}",
        "mov x8, {set}",
        "svc #0",
        "mov x0, xzr",
        "b 3f",
        "2: and x9, x0, #~4095",
        "ldr x10, [x9]",
        "add x10, x10, #1",
        "str x10, [x9]",
        "cbz x1, 3f",
        "mov x0, xzr",
        "3: mov x3, xzr",
        "mov x8, xzr",
        "svc #0",
        "udf #0",
        tear = const op::ACTIVATION_TEAR,
        set = const op::ACTIVATION_SET * ENTRY_BYTES,
    )
}

/// Takes an exclusive hold of a word.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn hold_word() -> ! {
    naked_asm!("ldxr x0, [x0]", "clrex", "mov x8, {exit}", "svc #0", "udf #0", exit = const op::EXIT * ENTRY_BYTES)
}

/// Clears a line of the cache, where there is none of it.
///
/// # Safety
/// Only for the thread of a child.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn clear() -> ! {
    naked_asm!("dc zva, x0", "mov x0, xzr", "mov x8, {exit}", "svc #0", "udf #0", exit = const op::EXIT * ENTRY_BYTES)
}

/// The accesses tried on registers of a device, and where in the page: see [`crate::devices`].
pub const ODD: &[(unsafe extern "C" fn() -> !, u64)] =
    &[(read, 1), (read, 6), (read, 0xffc), (hold_word, 0), (hold_word, 4), (clear, 0x800)];
