//! Calls to servers, and the entries that come with messages.

use abi::{Control, Error, MESSAGE_BYTES, expect, layout, op};

pub use crate::area::{StackTop, activation, with_area};
pub use crate::status::check;
pub use idl::{AllWords, Words};

use idl::Answer;

use crate::area::{top, transfer_beside, transfer_in, transfer_over};
use crate::{Entry, arch, table};

/// Makes sure that the running activation can receive a delegated entry.
pub fn prepare_receive() -> Result<(), Error> {
    let top = top();
    if top.receive.get() != 0 {
        return Ok(());
    }
    let entry = table::allocate()?;
    match crate::op::activation_set(op::ACTIVATION_RECEIVE, entry.word()) {
        Ok(()) => {
            top.receive.set(entry.word());
            Ok(())
        }
        Err(error) => {
            table::free(entry);
            Err(error)
        }
    }
}

/// The running activation's call ends without an answer: the resources of the next one are there.
pub(crate) fn abandon() {
    top().lent.set(0);
    let _ = prepare_receive();
}

/// Notes which entry came with a message: the receive index is used up and the entry is ours.
#[inline(always)]
pub(crate) fn received(control: Control) {
    #[cold]
    fn note(index: usize) {
        top().note_received(index);
    }
    if control.delegated() != 0 {
        note(control.delegated());
    }
}

impl StackTop {
    /// An entry came where we take them: the receive index is used up, and it is ours.
    pub(crate) fn take_received(&self) -> Option<Entry> {
        Some(Entry(self.receive.replace(0) as usize)).filter(|entry| entry.0 != 0)
    }
    /// The entry at `index` came: if the receive index says so, it is used up.
    pub(crate) fn note_received(&self, index: usize) {
        if self.receive.get() == index as u64 {
            self.receive.set(0);
        }
    }
}

/// The index of an entry that may be called: kernel operations have stubs of their own, some of which are unsafe.
#[inline(always)]
fn portal(entry: Entry) -> Result<usize, Error> {
    if entry.0 < layout::PAGE_FAULT[0] { Err(Error::WrongKind) } else { Ok(entry.0) }
}

/// Whether a call with this control word takes or shows no memory of ours but the message area, and changes no more registers than
/// [`arch::call`] says: a message without a window, or a portal of five words at most.
#[inline]
const fn is_plain(control: Control) -> bool {
    if control.0 >> 63 == 0 {
        control.0 & Control::WINDOW == 0
    } else {
        !control.0 & (expect::WINDOW | expect::PAGES | expect::MORE_WORDS) == 0
    }
}

/// Calls the server behind `entry` with words alone. `BadControl`: the control word says that there is a window, which only
/// [`crate::window`] shows, or expects a portal that takes pages.
#[inline]
pub fn call(entry: Entry, words: Words, control: Control) -> Result<(Words, Control), Error> {
    if !is_plain(control) {
        return Err(Error::BadControl);
    }
    // SAFETY: there are no windows and no pages.
    unsafe { call_showing(entry, words, control) }
}

/// Calls the server behind `entry` with words, one of which may be a window, or pages that are torn away.
///
/// # Safety
/// Any use of the pages by the callee must be sound, and the portal must not pass words 5 to 8.
#[inline]
pub unsafe fn call_showing(entry: Entry, words: Words, control: Control) -> Result<(Words, Control), Error> {
    let index = portal(entry)?;
    // SAFETY: not a kernel operation, and of pages our caller says that it is right. No bytes are sent; a server that sends some all the
    // same writes into an area that is ours, at worst over what a method of ours borrowed and will check no more.
    let (status, words, control) = unsafe { arch::call(index, words, control) };
    check(status).map(|()| (words, control))
}

/// Calls a [`crate::server::ServeShort`] behind `entry` with words 1 to 3.
#[inline]
pub fn call_short(entry: Entry, words: [u64; 3]) -> Result<u64, Error> {
    let index = portal(entry)?;
    // SAFETY: not a kernel operation. No portal that passes bytes or entries takes this call.
    let (status, word) = unsafe { arch::call_short(index, words, SHORT) };
    check(status).map(|()| word)
}

/// Calls a [`crate::server::ServeWindow`] behind `entry`: word 1 is a window.
#[inline]
pub(crate) fn call_short_window(entry: Entry, words: [u64; 3]) -> Result<u64, Error> {
    let index = portal(entry)?;
    // SAFETY: not a kernel operation. The portal shows the callee the window, which the caller of this made of pages that it may
    // lend so, and passes nothing else.
    let (status, word) = unsafe { arch::call_short(index, words, Control(SHORT.0 & !expect::WINDOW)) };
    check(status).map(|()| word)
}

/// Calls a [`crate::server::torn_service`] behind `entry`. The page that `torn` names goes there. The answer names the page that came back,
/// where the running activation takes one.
///
/// # Safety
/// Nothing may refer to the page that goes.
#[inline]
pub unsafe fn call_torn(entry: Entry, torn: u64, word2: u64) -> Result<u64, Error> {
    let index = portal(entry)?;
    // SAFETY: not a kernel operation, and our caller says that nothing refers to the page.
    let (status, word) = unsafe { arch::call_short(index, [torn, word2, 0], TORN) };
    check(status).map(|()| word)
}

/// Words 1 and 2, and pages.
const TORN: Control = Control::expecting(expect::words(0b00110) | expect::PAGES);

/// Words 1 to 3, and nothing else.
const SHORT: Control = Control::expecting(expect::words(0b01110));

/// All words, either way, and nothing else.
const ALL_WORDS: Control = Control::expecting(expect::ALL_FIVE | expect::MORE_WORDS);

/// Calls a [`crate::server::ServeAllWords`] behind `entry`.
#[inline]
pub fn call_all_words(entry: Entry, words: AllWords) -> Result<AllWords, Error> {
    let index = portal(entry)?;
    // SAFETY: not a kernel operation. No portal that passes bytes or entries takes this call.
    let (status, words) = unsafe { arch::call_all_words(index, words, ALL_WORDS) };
    check(status).map(|()| words)
}

/// Calls the server behind `entry` with words and bytes: the pieces of `send` one after the other in
/// the message area; the answer is copied to `receive`. The control word of the answer says how many bytes that are, which may be more
/// than `receive` took. `BadControl`: as for [`call`].
pub fn call_bytes(entry: Entry, message: &mut Answer, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
    if !is_plain(message.control) {
        return Err(Error::BadControl);
    }
    // SAFETY: there are no windows and no pages.
    unsafe { call_bytes_showing(entry, message, send, receive) }
}

/// [`call_bytes`] with words, of which word 4 may be a window.
///
/// # Safety
/// As for [`call_showing`].
pub(crate) unsafe fn call_bytes_showing(
    entry: Entry,
    message: &mut Answer,
    send: &[&[u8]],
    receive: &mut [u8],
) -> Result<(), Error> {
    let index = portal(entry)?;
    let top = top();
    let work = |length| {
        let control = Control(message.control.0 | length as u64);
        // SAFETY: not a kernel operation; the area is free for the length of the call; of a window our caller says that it is right.
        let (status, words, control) = unsafe { arch::call(index, message.words, control) };
        check(status)?;
        *message = Answer { words, control };
        received(control);
        Ok(((), control.length()))
    };
    let in_area = (receive.as_ptr() as u64).wrapping_sub(top.area.get()) < MESSAGE_BYTES as u64;
    let look = |(), bytes: &[u8]| {
        let count = bytes.len().min(receive.len());
        receive[..count].copy_from_slice(&bytes[..count]);
    };
    match (top.lent.get() as usize).min(MESSAGE_BYTES) {
        0 => transfer_in(top, send, work, look),
        lent if in_area => transfer_beside(top, lent, send, work, look),
        lent => transfer_over(top, lent, send, work, look),
    }
}
