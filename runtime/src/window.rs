//! Windows: whole pages that a client shows to a server for the length of a call ([`abi::window`]).
//!
//! A client lends [`Page`]s. Who is called sees them through a [`Window`], which copies: what is there may change at any time, so nothing refers
//! to it. If the client takes a page away meanwhile, the server reads and writes scrap memory in its place.

use core::marker::PhantomData;
use core::sync::atomic::{Ordering, compiler_fence};

use abi::window::{FLAGS, PAGES, WRITABLE};
use abi::{Control, Error, PAGE_BYTES};
use interface::Request;

use crate::Entry;
use crate::message::{Words, call};

/// A page that can be lent.
#[derive(Clone, Debug)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE_BYTES]);

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
    call(entry, [a, b, c, d, on(pages)], Control(Control::WINDOW)).map(|(words, _)| words)
}

/// The same with pages that it may read and write.
pub fn call_writing(entry: Entry, [a, b, c, d]: [u64; 4], pages: &mut [Page]) -> Result<Words, Error> {
    call(entry, [a, b, c, d, on_mut(pages)], Control(Control::WINDOW)).map(|(words, _)| words)
}

/// A window that came with a call.
#[derive(Debug)]
pub struct Window<'a> {
    word: u64,
    call: PhantomData<&'a ()>,
}

impl<'a> Window<'a> {
    /// That of a call, if one came.
    pub fn of(request: &'a Request<'_>) -> Option<Self> {
        (request.window != 0).then_some(Self { word: request.window, call: PhantomData })
    }
    /// Bytes.
    pub fn len(&self) -> usize {
        (self.word & PAGES) as usize * PAGE_BYTES
    }
    /// Whether there are none: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether we may write.
    pub fn is_writable(&self) -> bool {
        self.word & WRITABLE != 0
    }
    /// Its word, to hand it on in a call of ours.
    pub fn word(&self) -> u64 {
        self.word
    }
    fn bytes(&self, at: usize, count: usize) -> *mut u8 {
        let is_inside = at.checked_add(count).is_some_and(|end| end <= self.len());
        assert!(is_inside, "outside of the window");
        ((self.word & !(PAGE_BYTES as u64 - 1) & !FLAGS) as usize + at) as *mut u8
    }
    /// Copies what stands at a byte.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        let source = self.bytes(at, into.len());
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the window is open for the length of the call, and nothing of Rust's refers to what it shows.
        unsafe { core::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len()) };
        compiler_fence(Ordering::SeqCst);
    }
    /// Writes at a byte; false if that is not allowed.
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        let target = self.bytes(at, bytes.len());
        if !self.is_writable() {
            return false;
        }
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the window is open for the length of the call, may be written, and nothing of Rust's refers to what it shows.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        compiler_fence(Ordering::SeqCst);
        true
    }
}
