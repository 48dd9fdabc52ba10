//! Windows: whole pages that a client shows to a server for the length of a call ([`abi::window`]).
//!
//! A client lends [`Page`]s. The callee sees them through a [`Window`], which copies: their content may change at any time, so nothing
//! refers to it. If the client takes a page away meanwhile, the server reads and writes scrap memory in its place.
//!
//! Interfaces do this by themselves: a client's stub shows the whole pages of a large buffer (`#[window]`, see `idl`). So a buffer pays if it is
//! one of [`Page`]s.

use core::hint::black_box;
use core::sync::atomic::{Ordering, compiler_fence};

use abi::window::{FLAGS, WRITABLE};
use abi::{Control, Error, PAGE_BYTES, layout};
use idl::{Answer, Memory, Shown};

pub use idl::Window;

use crate::Entry;
use crate::message::{self, Words};

/// A page that can be lent.
#[derive(Clone, Debug)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// Of zeros.
    pub const ZERO: Self = Self([0; PAGE_BYTES]);

    /// The bytes of pages, one after the other.
    pub fn bytes(pages: &[Self]) -> &[u8] {
        // SAFETY: a page is its bytes, all of which are there, and the next page follows at once.
        unsafe { core::slice::from_raw_parts(pages.as_ptr().cast(), size_of_val(pages)) }
    }

    /// The same, to be written.
    pub fn bytes_mut(pages: &mut [Self]) -> &mut [u8] {
        // SAFETY: a page is its bytes, which may be any, and the next page follows at once.
        unsafe { core::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), size_of_val(pages)) }
    }
}

/// The word of a window on these pages, to be read.
pub fn on(pages: &[Page]) -> u64 {
    pages.as_ptr() as u64 | pages.len() as u64
}

/// The word of a window on these pages, to be read and written.
pub fn on_mut(pages: &mut [Page]) -> u64 {
    pages.as_mut_ptr() as u64 | pages.len() as u64 | WRITABLE
}

/// Calls a [`crate::server::window_service`] with words 0 to 3 and these pages, which it may read.
pub fn call_reading(entry: Entry, [a, b, c, d]: [u64; 4], pages: &[Page]) -> Result<Words, Error> {
    // SAFETY: the callee may read the pages.
    unsafe { message::call_showing(entry, [a, b, c, d, on(pages)], Control(Control::WINDOW)) }.map(|(words, _)| words)
}

/// The same with pages that it may read and write.
pub fn call_writing(entry: Entry, [a, b, c, d]: [u64; 4], pages: &mut [Page]) -> Result<Words, Error> {
    // SAFETY: the callee may read and write the pages, which are ours alone.
    unsafe { message::call_showing(entry, [a, b, c, d, on_mut(pages)], Control(Control::WINDOW)) }
        .map(|(words, _)| words)
}

/// Calls the server behind `entry` with words and whole pages of ours. The message stays as it is if the call fails.
pub fn call_window(entry: Entry, message: &mut Answer, send: &[&[u8]], shown: &mut Shown<'_>) -> Result<(), Error> {
    touch(shown);
    let mut words = message.words;
    words[4] = shown.word();
    let control = Control(message.control.0 | Control::WINDOW);
    if send.is_empty() {
        // SAFETY: the callee may do with the bytes, which are whole pages, what `shown` says.
        let (words, control) = unsafe { message::call_showing(entry, words, control) }?;
        message::received(control);
        *message = Answer { words, control };
        return Ok(());
    }
    let mut with = Answer { words, control };
    // SAFETY: the callee may do with the pages of `shown` what it says.
    unsafe { message::call_bytes_showing(entry, &mut with, send, &mut []) }?;
    *message = with;
    Ok(())
}

/// Calls the server behind `entry` with words and bytes, and hands a window on that a call of ours was shown. `BadArgument`: it is no such.
pub fn hand_on(
    entry: Entry,
    message: &mut Answer,
    window: Window<'_>,
    send: &[&[u8]],
    receive: &mut [u8],
) -> Result<(), Error> {
    if !(layout::WINDOWS..layout::WINDOWS_END).contains(&window.word()) {
        return Err(Error::BadArgument);
    }
    message.words[4] = window.word();
    message.control.0 |= Control::WINDOW;
    // SAFETY: it shows slots of windows alone, and nothing of ours refers to what is there.
    unsafe { message::call_bytes_showing(entry, message, send, receive) }
}

/// Calls a [`crate::server::ServeWindow`] behind `entry` with a page, which it may read and write, and words 2 and 3.
#[inline]
pub fn call_short(entry: Entry, page: &mut Page, [b, c]: [u64; 2]) -> Result<u64, Error> {
    message::call_short_window(entry, [on_mut(core::slice::from_mut(page)), b, c])
}

/// Pages that come when they are used are there afterwards: only those can be shown.
#[inline]
fn touch(shown: &Shown<'_>) {
    let bytes: &[u8] = match shown {
        Shown::Read(bytes) => bytes,
        Shown::Written(bytes) => bytes,
    };
    for page in bytes.iter().step_by(PAGE_BYTES) {
        black_box(*page);
    }
}

/// Windows that a call of ours is shown.
pub(crate) struct OfCall;

impl OfCall {
    #[inline]
    fn at(word: u64, at: usize) -> *mut u8 {
        ((word & !(PAGE_BYTES as u64 - 1) & !FLAGS) as usize + at) as *mut u8
    }
}

impl Memory for OfCall {
    #[inline]
    fn read(&self, word: u64, at: usize, into: &mut [u8]) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: only `server::serve` makes a window of this, with the word that the nucleus gave. The window is open for the length of
        // the call, the bytes are inside of it, and nothing of Rust's refers to what it shows.
        unsafe { core::ptr::copy_nonoverlapping(Self::at(word, at), into.as_mut_ptr(), into.len()) };
        compiler_fence(Ordering::SeqCst);
    }
    #[inline]
    fn write(&self, word: u64, at: usize, bytes: &[u8]) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: only `server::serve` makes a window of this, with the word that the nucleus gave. The window is open for the length of
        // the call and may be written, the bytes are inside of it, and nothing of Rust's refers to what it shows.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), Self::at(word, at), bytes.len()) };
        compiler_fence(Ordering::SeqCst);
    }
}
