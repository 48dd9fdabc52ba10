//! Where the nucleus enters a domain: the first instructions of a program, a thread and a service.
//!
//! All of them write the [`crate::message::StackTop`] record at the very top of the stack they start
//! on: the address of the activation's message area, which the nucleus gives in `x6`, and a zero for
//! the bytes of it that are lent out. The record's third word (the receive index) outlives calls and
//! is left alone by a service; the fourth is spare and keeps the stack aligned to 16 bytes.

use core::arch::naked_asm;

use abi::layout::{ENTRY_BYTES, RETURN};

use crate::server::{
    Serve, ServeAllWords, ServeShort, ServeWord, Whole, serve, serve_all_words, serve_short, serve_word,
};

/// A program starts here: word 0 is the address of its startup page, 0 if there is none.
///
/// # Safety
/// Only the nucleus enters here.
#[unsafe(naked)]
#[cfg_attr(target_os = "none", unsafe(export_name = "_start"), unsafe(link_section = ".text._start"))]
pub unsafe extern "C" fn program_entry() -> ! {
    naked_asm!(
        "stp xzr, x6, [sp, #-16]",
        "str xzr, [sp, #-24]",
        "sub sp, sp, #32",
        "bl {start}",
        "udf #0",
        start = sym crate::program::start,
    )
}

/// A further thread starts here: word 0 is what was given to `THREAD_NEW` as argument.
///
/// # Safety
/// Only the nucleus enters here, on a stack that [`crate::thread`] prepared.
#[unsafe(naked)]
pub unsafe extern "C" fn thread_entry() -> ! {
    naked_asm!(
        "stp xzr, x6, [sp, #-16]",
        "str xzr, [sp, #-24]",
        "sub sp, sp, #32",
        "bl {start}",
        "udf #0",
        start = sym crate::thread::start,
    )
}

/// A call to a service arrives here: words 0 to 2, 3 and 4 are in the registers of the C convention for the first three,
/// fifth and sixth argument; fourth is the badge, seventh the control word, eighth the record at the stack's top.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation.
#[unsafe(naked)]
pub unsafe extern "C" fn service_entry<S: Serve>() -> ! {
    naked_asm!(
        "stp xzr, x6, [sp, #-16]",
        "sub sp, sp, #32",
        "mov x7, sp",
        "mov x6, x3",
        "mov x3, x8",
        "bl {serve}",
        "udf #0",
        serve = sym serve::<S>,
    )
}

/// A call to a service of words arrives here. The method gets words and badge in registers and gives
/// one word, so this leaves by itself. A call that brings an entry along takes the slow path, which
/// removes it.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation.
#[unsafe(naked)]
pub unsafe extern "C" fn word_entry<S: ServeWord>() -> ! {
    naked_asm!(
        "cbnz x3, {whole}",
        "stp xzr, x6, [sp, #-16]",
        "sub sp, sp, #32",
        "mov x3, x8",
        "bl {serve}",
        "mov x1, xzr",
        "mov x2, xzr",
        "mov x3, xzr",
        "mov x4, xzr",
        "mov x5, xzr",
        "mov x8, {leave}",
        "svc #0",
        // Only a return without caller comes back; nobody can receive the error.
        "udf #0",
        whole = sym service_entry::<Whole<S>>,
        serve = sym serve_word::<S>,
        leave = const RETURN * ENTRY_BYTES,
    )
}

/// A call of an interface of words arrives here. The words stand on the stack, in order, where those of the answer come, too.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation that [`crate::server`] made.
#[unsafe(naked)]
pub unsafe extern "C" fn all_words_entry<S: ServeAllWords>() -> ! {
    naked_asm!(
        "sub sp, sp, #112",
        "stp x0, x1, [sp]",
        "stp x2, x4, [sp, #16]",
        "stp x5, x21, [sp, #32]",
        "stp x22, x23, [sp, #48]",
        "str x24, [sp, #64]",
        "mov x0, sp",
        "mov x1, x8",
        "add x2, sp, #80",
        "bl {serve}",
        "ldp x0, x1, [sp]",
        "ldp x2, x4, [sp, #16]",
        "ldp x5, x21, [sp, #32]",
        "ldp x22, x23, [sp, #48]",
        "ldr x24, [sp, #64]",
        "mov x3, xzr",
        "mov x8, {leave}",
        "svc #0",
        "udf #0",
        serve = sym serve_all_words::<S>,
        leave = const RETURN * ENTRY_BYTES,
    )
}

/// A call through a portal of the specification `npciii>i` arrives here.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation that [`crate::server`] made.
#[unsafe(naked)]
pub unsafe extern "C" fn short_entry<S: ServeShort>() -> ! {
    naked_asm!(
        "sub sp, sp, #32",
        "bl {serve}",
        "mov x8, xzr",
        "svc #0",
        "udf #0",
        serve = sym serve_short::<S>,
    )
}
