//! Calls to servers, returns from them, and semaphores.

use crate::message::{AllWords, Words};
use abi::{Control, Error};

/// Traverses the portal at `index` with five words and a control word, and gives what came back:
/// status, words, control word.
///
/// # Safety
/// `index` must not be a kernel operation that breaks what the compiler relies on; the message area
/// is read and written by the nucleus as `control` says.
pub unsafe fn call(index: usize, words: Words, control: Control) -> (u64, Words, Control) {
    unimplemented!()
}

/// Traverses the portal at `index`, of the specification `npciii>i`, and gives what came back: status, word 0.
///
/// # Safety
/// As for [`call`].
pub unsafe fn call_short(index: usize, words: [u64; 3], expected: Control) -> (u64, u64) {
    unimplemented!()
}

/// Traverses the portal at `index` with all words and this control word, and gives what came back: status, words.
///
/// # Safety
/// As for [`call`].
pub unsafe fn call_all_words(index: usize, words: AllWords, control: Control) -> (u64, AllWords) {
    unimplemented!()
}

/// Returns to the caller of the running activation. Comes back only if the nucleus refuses to
/// return (no caller, or the delegated entry cannot be given): then with the reason.
///
/// # Safety
/// The activation's stack is used again by its next call: nothing on it may be referred to by others.
pub unsafe fn leave(words: Words, control: Control) -> u64 {
    unimplemented!()
}

/// P or V on the semaphore at `index`: the first word says which, the others are P's deadline and who
/// holds what is waited for.
/// Safe: a semaphore touches no memory, and an entry of another kind that is mistaken for one gets two
/// words and neither bytes nor a delegation. A kernel operation would be another matter, so small
/// indices are refused.
pub fn semaphore(index: usize, what: u64, deadline: u64, holder: u64) -> Result<(), Error> {
    unimplemented!()
}

/// RECEIVE or SEND on the port at `index`: the low byte of the first word says which.
/// Safe as [`semaphore`].
pub fn port(index: usize, what: u64, word1: u64, word2: u64) -> Result<u64, Error> {
    unimplemented!()
}

/// V on a semaphore, then the end of the running thread, without touching the stack in between: the thread that
/// wakes may reuse it.
///
/// # Safety
/// Nothing on the stack may be needed any more.
pub unsafe fn thread_exit_after_v(semaphore: usize) -> ! {
    unimplemented!()
}
