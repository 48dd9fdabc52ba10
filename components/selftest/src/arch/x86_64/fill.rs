//! Every register that a user has: a program that fills them, lets something happen, and looks what it finds then. See
//! [`crate::registers`], whose words of a block are used here. Segment registers are left out: docs/caveats.md.

use abi::layout::{ENTRY_BYTES, RETURN};
use abi::op;

use crate::block::{BLOCK, NUMBERS, State, WORDS, area, event, word};

/// In the order of [`NAMES`].
pub const GENERAL: usize = 16;
/// The register that has the address of the block, when the program looks.
pub const BASE: usize = 1;
/// Where a fault happens.
pub const PLACE: usize = 12;
/// The value of the word that ends the waiting.
pub const GO: usize = 2;
/// Index, status, badge.
pub const INDEX: usize = 0;
/// The control word.
pub const CONTROL: usize = 10;
/// Words 0 to 4.
pub const WORDS_AT: [usize; 5] = [5, 4, 3, 8, 9];
/// Words 5 to 8.
pub const MORE_AT: [usize; 4] = [12, 13, 14, 15];
/// The message area, at an entry.
pub const AREA: usize = 1;
/// The stack pointer.
pub const STACK: usize = 7;
/// RFLAGS.
pub const FLAGS: usize = 16;
/// The thread pointer, which only the nucleus writes: FS base.
pub const POINTER: usize = 17;
/// The registers that a system call keeps.
pub const PRESERVED: &[usize] = &[1, 6, 12, 13, 14, 15, STACK];
/// The registers that it sets to something of the caller's own: the instruction pointer and flags. An activation finds its thread pointer again.
pub const OWN: &[usize] = &[2, 11, POINTER];
/// Carry, parity, adjust, zero, sign, direction, overflow, alignment check, identification.
const SETTABLE: [u64; 9] = [1, 1 << 2, 1 << 4, 1 << 6, 1 << 7, 1 << 10, 1 << 11, 1 << 18, 1 << 21];
/// Interrupts on, and a bit that is always set.
const FLAGS_ALWAYS: u64 = 1 << 9 | 1 << 1;
/// An FXSAVE area; of it, words: control, status and tags; MXCSR and its mask; x87 and XMM registers.
const UNIT: usize = 32;
const MXCSR: usize = UNIT + 3;
const REGISTERS: usize = UNIT + 4;
const END: usize = REGISTERS + 2 * (8 + 16);

const NAMES: [&str; 18] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    "flags", "FS base",
];

/// The name of a word of a state.
pub fn name(index: usize) -> &'static str {
    NAMES.get(index).copied().unwrap_or("an x87 or SSE register")
}

/// Registers derived from this seed, for a block that is seen at `block`.
pub fn given(seed: u64, block: u64) -> State {
    let mut state: State = core::array::from_fn(|index| seed.wrapping_mul(0x1_0001_0101) ^ (index as u64 + 1) << 24);
    state[BASE] = block;
    let flags = SETTABLE.iter().enumerate().filter(|(index, _)| seed >> (index % 5) & 1 != 0);
    state[POINTER] = 0;
    state[FLAGS] = flags.fold(FLAGS_ALWAYS, |all, (_, flag)| all | flag);
    // How to round on both units, exceptions that came, all x87 registers in use.
    state[UNIT] = 0x37f | (seed & 3) << 10 | 0xff << 32;
    (state[UNIT + 1], state[UNIT + 2]) = (0, 0);
    state[MXCSR] = 0x1f80 | (seed & 3) << 13 | seed & 0x3f;
    for number in 0..8 {
        // An x87 register has ten bytes.
        state[REGISTERS + 2 * number + 1] &= 0xffff;
    }
    state
}

/// A thread pointer of this child's own, which is never 0.
pub fn pointer(number: usize) -> u64 {
    8 * (number as u64 + 1)
}

/// The words that are compared.
pub fn compared(unit: bool) -> impl Iterator<Item = usize> {
    (0..=POINTER).chain((UNIT..END).filter(move |_| unit))
}

/// A word of a state, without the bits that do not count: the mask of MXCSR.
pub fn counts(state: &State, index: usize) -> u64 {
    if index == MXCSR { state[index] & 0xffff_ffff } else { state[index] }
}

/// The value of a word in a domain that begins, but for its arguments.
pub fn clear(index: usize) -> u64 {
    match index {
        FLAGS => FLAGS_ALWAYS,
        UNIT => 0x37f,
        MXCSR => 0x1f80,
        _ => 0,
    }
}

/// Whether flags say nothing of others: `given` are those before.
pub fn flags_are_own(flags: u64, given: u64) -> bool {
    flags == FLAGS_ALWAYS || flags == given
}

/// Clobbers the thread pointer of the running thread: a selector that means nothing clears the base (Intel SDM, MOV).
pub fn clobber_pointer() {
    // SAFETY: nobody uses it.
    unsafe { core::arch::asm!("mov fs, {:e}", in(reg) 0u32) }
}

// A block begins with three states; rbx has its address once the registers that the program began with are stored.
core::arch::global_asm!(
    r#"
.pushsection .text.fill, "ax", @progbits
.macro FILL_STORE base, at
    mov [\base + \at + 8 * 1], rbx
    mov [\base + \at + 8 * 0], rax
    .ifnc \base, rbx
    mov rbx, \base
    .endif
    mov [rbx + \at + 8 * 2], rcx
    mov [rbx + \at + 8 * 3], rdx
    mov [rbx + \at + 8 * 4], rsi
    mov [rbx + \at + 8 * 5], rdi
    mov [rbx + \at + 8 * 6], rbp
    mov [rbx + \at + 8 * 7], rsp
    .irp number, 8, 9, 10, 11, 12, 13, 14, 15
    mov [rbx + \at + 8 * \number], r\number
    .endr
    lea rsp, [rbx + 4096]
    pushfq
    pop qword ptr [rbx + \at + 8 * 16]
    push {always}
    popfq
    # Of words that are numbered from 0 on, the one at this distance.
    mov rcx, fs:[{numbers}]
    shl rcx, 3
    mov [rbx + \at + 8 * 17], rcx
.endm
.macro FILL_STORE_UNIT at
    cmp qword ptr [rbx + {unit}], 0
    je .Lwithout_\@
    fxsave64 [rbx + \at + 8 * 32]
.Lwithout_\@:
.endm
.macro FILL_LOAD
    mov rsi, [rbx + {given} + 8 * 17]
    test rsi, rsi
    jz .Lpoints_\@
    mov edi, {pointer}
    xor edx, edx
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    mov eax, {set}
    syscall
.Lpoints_\@:
    lea rsp, [rbx + 4096]
    push qword ptr [rbx + {given} + 8 * 16]
    popfq
    mov rax, [rbx + {given} + 8 * 0]
    mov rcx, [rbx + {given} + 8 * 2]
    mov rdx, [rbx + {given} + 8 * 3]
    mov rsi, [rbx + {given} + 8 * 4]
    mov rdi, [rbx + {given} + 8 * 5]
    mov rbp, [rbx + {given} + 8 * 6]
    mov rsp, [rbx + {given} + 8 * 7]
    .irp number, 8, 9, 10, 11, 12, 13, 14, 15
    mov r\number, [rbx + {given} + 8 * \number]
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
    FILL_STORE rdi, {first}
    jmp .Lbegin_\@
    .if \broken
fill_service:
    .endif
    FILL_STORE rax, {first}
.Lbegin_\@:
    FILL_STORE_UNIT {first}
    cmp qword ptr [rbx + {unit}], 0
    je .Lfilled_\@
    fxrstor64 [rbx + {given} + 8 * 32]
.Lfilled_\@:
    mov qword ptr [rbx + {begun}], 1
    cmp qword ptr [rbx + {event}], {fault}
    je .Lfault_\@
    cmp qword ptr [rbx + {event}], {trap}
    je .Ltrap_\@
    cmp qword ptr [rbx + {event}], {spin}
    je .Lspin_\@
    # A system call; of a service a return, which does not come back.
    FILL_LOAD
    syscall
    jmp .Lseen_\@
.Lfault_\@:
    FILL_LOAD
    mov [r12], r13
    jmp .Lseen_\@
.Ltrap_\@:
    FILL_LOAD
    .if \broken
    ud2
    .else
    .byte 0x66, 0x90
    .endif
    jmp .Lseen_\@
.Lspin_\@:
    FILL_LOAD
.Lwaits_\@:
    mov rcx, [rbx + {go}]
    jrcxz .Lwaits_\@
.Lseen_\@:
    FILL_STORE rbx, {seen}
    FILL_STORE_UNIT {seen}
    mov qword ptr [rbx + {done}], 1
    xor edi, edi
    xor r10d, r10d
    mov eax, {leave}
    syscall
    xor edi, edi
    mov eax, {exit}
    syscall
    ud2
.endm
FILL_PAGE 1
FILL_PAGE 0
.balign 4096
.popsection
"#,
    always = const FLAGS_ALWAYS,
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
    numbers = const BLOCK + NUMBERS as u64,
    pointer = const op::ACTIVATION_THREAD_POINTER,
    set = const op::ACTIVATION_SET * ENTRY_BYTES,
    leave = const RETURN * ENTRY_BYTES,
    exit = const op::EXIT * ENTRY_BYTES,
);
