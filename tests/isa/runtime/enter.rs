//! Where the nucleus enters a domain: the first instructions of a program, a thread and a service.
//!
//! All of them write the [`crate::message::StackTop`] record at the very top of the stack they start on: the address of the
//! activation's message area, which the nucleus gives in a register, and a zero for the bytes of it that are lent out. The
//! record's third word (the receive index) outlives calls and is left alone by a service; the fourth is spare and keeps the
//! stack aligned to 16 bytes.

use crate::server::{Serve, ServeAllWords, ServeShort, ServeWord};

/// A program starts here: word 0 is the address of its startup page, 0 if there is none.
///
/// # Safety
/// Only the nucleus enters here.
pub unsafe extern "C" fn program_entry() -> ! {
    unimplemented!()
}

/// A further thread starts here: word 0 is what was given to `THREAD_NEW` as argument.
///
/// # Safety
/// Only the nucleus enters here, on a stack that [`crate::thread`] prepared.
pub unsafe extern "C" fn thread_entry() -> ! {
    unimplemented!()
}

/// A call to a service arrives here. It goes on in [`crate::server`]: words 0 to 2, badge, words 3 and 4, control word, and
/// the record at the stack's top are its arguments.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation.
pub unsafe extern "C" fn service_entry<S: Serve>() -> ! {
    unimplemented!()
}

/// A call to a service of words arrives here. The method gets words and badge in registers and gives
/// one word, so this leaves by itself. A call that brings an entry along takes the slow path, which
/// removes it.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation.
pub unsafe extern "C" fn word_entry<S: ServeWord>() -> ! {
    unimplemented!()
}

/// A call of an interface of words arrives here. The words stand on the stack, in order, where those of the answer come, too.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation that [`crate::server`] made.
pub unsafe extern "C" fn all_words_entry<S: ServeAllWords>() -> ! {
    unimplemented!()
}

/// A call through a portal of the specification `npciii>i` arrives here.
///
/// # Safety
/// Only the nucleus enters here, on the stack of a pool activation that [`crate::server`] made.
pub unsafe extern "C" fn short_entry<S: ServeShort>() -> ! {
    unimplemented!()
}
