//! Every register that a user has: a program that fills them, lets something happen, and looks what it finds then. See
//! [`crate::registers`], whose words of a block are used here.

use abi::layout::{ENTRY_BYTES, RETURN};
use abi::op;

use crate::block::{State, WORDS, area, event, word};

/// X0 to X30, SP.
pub const GENERAL: usize = 32;
/// The register that has the address of the block, when the program looks.
pub const BASE: usize = 28;
/// Where a fault happens.
pub const PLACE: usize = 27;
/// The value of the word that ends the waiting.
pub const GO: usize = 1;
/// Index, status, badge.
pub const INDEX: usize = 8;
/// The control word.
pub const CONTROL: usize = 3;
/// Words 0 to 4.
pub const WORDS_AT: [usize; 5] = [0, 1, 2, 4, 5];
/// Words 5 to 8.
pub const MORE_AT: [usize; 4] = [21, 22, 23, 24];
/// The message area, at an entry.
pub const AREA: usize = 6;
/// The stack pointer.
pub const STACK: usize = 31;
/// NZCV.
pub const FLAGS: usize = 32;
/// The thread pointer, TPIDR_EL0.
pub const POINTER: usize = 33;
/// The registers that a system call keeps.
pub const PRESERVED: &[usize] = &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, STACK, POINTER];
/// The registers that it may set to something of the caller's own: its message area.
pub const OWN: &[usize] = &[AREA];
/// Flags that a user can set, all of them.
const ALL_FLAGS: u64 = 0xf << 28;
const ROUNDING: usize = 34;
const EXCEPTIONS: usize = 35;
/// TPIDRRO_EL0, which users can only read.
const READ_ONLY: usize = 36;
const VECTORS: usize = 48;
/// Everything that is compared, without and with the unit.
const COMPARED: usize = 34;
const COMPARED_WITH_UNIT: usize = VECTORS + 64;

const NAMES: [&str; 37] = [
    "x0",
    "x1",
    "x2",
    "x3",
    "x4",
    "x5",
    "x6",
    "x7",
    "x8",
    "x9",
    "x10",
    "x11",
    "x12",
    "x13",
    "x14",
    "x15",
    "x16",
    "x17",
    "x18",
    "x19",
    "x20",
    "x21",
    "x22",
    "x23",
    "x24",
    "x25",
    "x26",
    "x27",
    "x28",
    "x29",
    "x30",
    "sp",
    "NZCV",
    "TPIDR_EL0",
    "FPCR",
    "FPSR",
    "TPIDRRO_EL0",
];

/// The name of a word of a state.
pub fn name(index: usize) -> &'static str {
    NAMES.get(index).copied().unwrap_or("a vector register")
}

/// Registers derived from this seed, for a block that is seen at `block`.
pub fn given(seed: u64, block: u64) -> State {
    let mut state: State = core::array::from_fn(|index| seed.wrapping_mul(0x1_0001_0101) ^ (index as u64 + 1) << 24);
    state[BASE] = block;
    // Aligned, as it has to be where it is used.
    state[STACK] &= !15;
    state[FLAGS] = seed << 28 & ALL_FLAGS;
    // How to round, flush to zero, quiet NaN; exceptions that came, saturation.
    state[ROUNDING] = (seed & 0x1f) << 22;
    state[EXCEPTIONS] = seed & 0x1f | (seed & 1) << 27 | 1 << 7;
    state[READ_ONLY] = clear(READ_ONLY);
    state
}

/// A thread pointer of this child's own.
pub fn pointer(number: usize) -> u64 {
    u64::MAX - number as u64
}

/// The words that are compared.
pub fn compared(unit: bool) -> impl Iterator<Item = usize> {
    let all = 0..if unit { COMPARED_WITH_UNIT } else { COMPARED };
    all.filter(|index| !(EXCEPTIONS + 1..VECTORS).contains(index)).chain([READ_ONLY])
}

/// A word of a state, without the bits that do not count.
pub fn counts(state: &State, index: usize) -> u64 {
    state[index]
}

/// The value of a word in a domain that begins, but for its arguments.
pub fn clear(index: usize) -> u64 {
    if index != READ_ONLY {
        return 0;
    }
    let same_for_all;
    // SAFETY: a register that users can read.
    unsafe { core::arch::asm!("mrs {}, tpidrro_el0", out(reg) same_for_all, options(nomem, nostack)) }
    same_for_all
}

/// Whether flags say nothing of others: `given` are those before.
pub fn flags_are_own(flags: u64, given: u64) -> bool {
    flags == 0 || flags == given
}

/// Clobbers the thread pointer of the running thread.
pub fn clobber_pointer() {
    // SAFETY: nobody uses it.
    unsafe { core::arch::asm!("msr tpidr_el0, xzr") }
}

// A block begins with three states; x28 has its address once the registers that the program began with are stored.
core::arch::global_asm!(
    r#"
.pushsection .text.fill, "ax", %progbits
.arch_extension fp
.arch_extension simd
.macro FILL_STORE base, at
    str x28, [\base, #\at + 8 * 28]
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30
    str x\number, [\base, #\at + 8 * \number]
    .endr
    .ifnc \base, x28
    mov x28, \base
    .endif
    mov x9, sp
    str x9, [x28, #\at + 8 * 31]
    mrs x9, nzcv
    str x9, [x28, #\at + 8 * 32]
    mrs x9, tpidr_el0
    str x9, [x28, #\at + 8 * 33]
    mrs x9, tpidrro_el0
    str x9, [x28, #\at + 8 * 36]
.endm
.macro FILL_STORE_UNIT at
    ldr x9, [x28, #{unit}]
    cbz x9, .Lwithout_\@
    mrs x9, fpcr
    str x9, [x28, #\at + 8 * 34]
    mrs x9, fpsr
    str x9, [x28, #\at + 8 * 35]
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    str q\number, [x28, #\at + 8 * 48 + 16 * \number]
    .endr
.Lwithout_\@:
.endm
.macro FILL_LOAD
    ldr x9, [x28, #{given} + 8 * 31]
    mov sp, x9
    ldr x9, [x28, #{given} + 8 * 32]
    msr nzcv, x9
    ldr x9, [x28, #{given} + 8 * 33]
    msr tpidr_el0, x9
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30
    ldr x\number, [x28, #{given} + 8 * \number]
    .endr
.endm
.macro FILL_PAGE broken
.balign 4096
    .if \broken
fill_broken:
fill_thread:
    .else
fill_mended:
    .endif
    FILL_STORE x0, {first}
    b .Lbegin_\@
    .if \broken
fill_service:
    .endif
    FILL_STORE x8, {first}
.Lbegin_\@:
    FILL_STORE_UNIT {first}
    ldr x9, [x28, #{unit}]
    cbz x9, .Lfilled_\@
    ldr x9, [x28, #{given} + 8 * 34]
    msr fpcr, x9
    ldr x9, [x28, #{given} + 8 * 35]
    msr fpsr, x9
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    ldr q\number, [x28, #{given} + 8 * 48 + 16 * \number]
    .endr
.Lfilled_\@:
    mov x9, #1
    str x9, [x28, #{begun}]
    ldr x9, [x28, #{event}]
    cmp x9, #{fault}
    b.eq .Lfault_\@
    cmp x9, #{trap}
    b.eq .Ltrap_\@
    cmp x9, #{spin}
    b.eq .Lspin_\@
    // A system call; of a service a return, which does not come back.
    FILL_LOAD
    svc #0
    b .Lseen_\@
.Lfault_\@:
    FILL_LOAD
    str x26, [x27]
    b .Lseen_\@
.Ltrap_\@:
    FILL_LOAD
    .if \broken
    udf #0
    .else
    nop
    .endif
    b .Lseen_\@
.Lspin_\@:
    FILL_LOAD
.Lwaits_\@:
    ldr x1, [x28, #{go}]
    cbz x1, .Lwaits_\@
.Lseen_\@:
    FILL_STORE x28, {seen}
    FILL_STORE_UNIT {seen}
    mov x9, #1
    str x9, [x28, #{done}]
    mov x0, xzr
    mov x3, xzr
    mov x8, #{leave}
    svc #0
    mov x0, xzr
    mov x8, #{exit}
    svc #0
    udf #0
.endm
FILL_PAGE 1
FILL_PAGE 0
.balign 4096
.popsection
"#,
    first = const area::FIRST,
    given = const area::GIVEN,
    seen = const area::SEEN,
    unit = const WORDS + 8 * word::UNIT,
    event = const WORDS + 8 * word::EVENT,
    go = const WORDS + 8 * word::GO,
    begun = const WORDS + 8 * word::BEGUN,
    done = const WORDS + 8 * word::DONE,
    fault = const event::FAULT,
    trap = const event::TRAP,
    spin = const event::SPIN,
    leave = const RETURN * ENTRY_BYTES,
    exit = const op::EXIT * ENTRY_BYTES,
);
