//! How words and registers meet, per ISA.
//!
//! # x86-64
//!
//! | register | into the nucleus | out of it |
//! |---|---|---|
//! | rax | portal index × [`crate::layout::ENTRY_BYTES`] | status: 0 or an [`crate::Error`]; at a service's entry: the badge |
//! | rdi rsi rdx r8 r9 | words 0 to 4 | words 0 to 4 |
//! | r10 | control word ([`crate::Control`]), for kernel operations word 5 | control word |
//! | rbx | preserved | preserved; at a service's entry and at a thread's start: address of the activation's message area |
//! | rbp r12 r13 r14 r15 rsp | preserved | preserved; at an entry: 0, rsp = top of the stack |
//! | r12 r13 r14 r15 | words 5 to 8 of a portal that passes so many, see [`crate::expect`] | the same |
//! | rcx r11 flags | destroyed | destroyed |
//!
//! A kernel operation answers with status in rax and one value in word 0; what is not named is 0.
//! A thread starts with its argument in word 0.

//!
//! # AArch64
//!
//! | register | into the nucleus | out of it |
//! |---|---|---|
//! | x8 | portal index × [`crate::layout::ENTRY_BYTES`] | status: 0 or an [`crate::Error`]; at a service's entry: the badge |
//! | x0 x1 x2 x4 x5 | words 0 to 4 | words 0 to 4 |
//! | x3 | control word ([`crate::Control`]), for kernel operations word 5 | control word |
//! | x6 | destroyed | at a service's entry and at a thread's start: address of the activation's message area |
//! | x19 to x30, sp, TPIDR_EL0 | preserved | preserved; at an entry: 0, sp = top of the stack |
//! | x21 x22 x23 x24 | words 5 to 8 of a portal that passes so many, see [`crate::expect`] | the same |
//! | x6 x7, x9 to x18, flags | destroyed | destroyed |
//!
//! TPIDRRO_EL0, which users cannot write, says what the processor has: [`AARCH64_RANDOM`].
//!
//! The instruction is `svc`, with any number. Words and control are the arguments of a C function in the order 0 1 2 control 3 4
//! on both.

/// x86-64: the order in which words 0 to 4 travel.
pub const X86_64_WORDS: [&str; 5] = ["rdi", "rsi", "rdx", "r8", "r9"];
/// x86-64: the order in which words 5 to 8 travel, where a portal passes them.
pub const X86_64_MORE_WORDS: [&str; 4] = ["r12", "r13", "r14", "r15"];
/// x86-64: the register of the control word.
pub const X86_64_CONTROL: &str = "r10";
/// x86-64: the register of the index, the status and the badge.
pub const X86_64_INDEX: &str = "rax";
/// AArch64: the order in which words 0 to 4 travel.
pub const AARCH64_WORDS: [&str; 5] = ["x0", "x1", "x2", "x4", "x5"];
/// AArch64: the order in which words 5 to 8 travel, where a portal passes them.
pub const AARCH64_MORE_WORDS: [&str; 4] = ["x21", "x22", "x23", "x24"];
/// AArch64: the register of the control word.
pub const AARCH64_CONTROL: &str = "x3";
/// AArch64: the register of the index, the status and the badge.
pub const AARCH64_INDEX: &str = "x8";
/// AArch64, in TPIDRRO_EL0: the processor has the instruction RNDR (FEAT_RNG).
pub const AARCH64_RANDOM: u64 = 1;
