//! Where the nucleus enters a domain: the first instructions of a program, a thread and a service.
//!
//! All of them write the [`crate::message::StackTop`] record at the very top of the stack they start
//! on: the address of the activation's message area, which the nucleus gives in `rbx`, and a zero for
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
        "mov [rsp - 8], rbx",
        "mov qword ptr [rsp - 16], 0",
        "mov qword ptr [rsp - 24], 0",
        "sub rsp, 32",
        "call {start}",
        "ud2",
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
        "mov [rsp - 8], rbx",
        "mov qword ptr [rsp - 16], 0",
        "mov qword ptr [rsp - 24], 0",
        "sub rsp, 32",
        "call {start}",
        "ud2",
        start = sym crate::thread::start,
    )
}

/// A call to a service arrives here: words in the registers of the C convention but for `rcx`, which
/// takes the badge; control word and the record at the stack's top are seventh and eighth argument.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation.
#[unsafe(naked)]
pub unsafe extern "C" fn service_entry<S: Serve>() -> ! {
    naked_asm!(
        "mov [rsp - 8], rbx",
        "mov qword ptr [rsp - 16], 0",
        "mov rcx, rax",
        "sub rsp, 32",
        "mov rax, rsp",
        "push rax",
        "push r10",
        "call {serve}",
        "ud2",
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
        "test r10, r10",
        "jnz {whole}",
        "mov [rsp - 8], rbx",
        "mov qword ptr [rsp - 16], 0",
        "sub rsp, 32",
        "mov rcx, rax",
        "call {serve}",
        "mov rdi, rax",
        "xor esi, esi",
        "xor edx, edx",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "mov eax, {leave}",
        "syscall",
        // Only a return without caller comes back; nobody can receive the error.
        "ud2",
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
        "sub rsp, 32",
        "mov rcx, rsp",
        "push rax",
        "push r15",
        "push r14",
        "push r13",
        "push r12",
        "push r9",
        "push r8",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rdi, rsp",
        "mov rsi, rax",
        "mov rdx, rcx",
        "call {serve}",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop r8",
        "pop r9",
        "pop r12",
        "pop r13",
        "pop r14",
        "pop r15",
        "xor r10d, r10d",
        "mov eax, {leave}",
        "syscall",
        "ud2",
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
        "sub rsp, 32",
        "call {serve}",
        "mov rdi, rax",
        "xor eax, eax",
        "syscall",
        "ud2",
        serve = sym serve_short::<S>,
    )
}
