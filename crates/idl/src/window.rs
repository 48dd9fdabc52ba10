//! Bytes that come with a call: in the message, or as whole pages that the caller shows ([`abi::window`]).

use core::fmt;

use abi::window::{MAX_PAGES, PAGES, WRITABLE};
use abi::{MESSAGE_BYTES, PAGE_BYTES};

/// Copies out of windows and into them. The runtime does that; on the host, a test of a server.
pub trait Memory {
    /// Copies what stands at this byte of the window `word`. The bytes are inside of it.
    fn read(&self, word: u64, at: usize, into: &mut [u8]);
    /// Copies to this byte of the window `word`, which is writable. The bytes are inside of it.
    fn write(&self, word: u64, at: usize, bytes: &[u8]);
}

/// A window that came with a call. Its content may change at any time, so it is only copied.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    word: u64,
    memory: &'a dyn Memory,
}

impl<'a> Window<'a> {
    /// The window with this word, of which `memory` copies. A word that says no number of pages is none.
    #[inline]
    pub fn new(word: u64, memory: &'a dyn Memory) -> Option<Self> {
        (word & PAGES != 0).then_some(Self { word, memory })
    }
    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (self.word & PAGES) as usize * PAGE_BYTES
    }
    /// Whether there are none: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether we may write.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.word & WRITABLE != 0
    }
    /// Its word, to hand it on in a call of ours.
    #[inline]
    pub fn word(&self) -> u64 {
        self.word
    }
    #[inline]
    fn check(&self, at: usize, count: usize) {
        let is_inside = at.checked_add(count).is_some_and(|end| end <= self.len());
        assert!(is_inside, "outside of the window");
    }
    /// Copies what stands at a byte.
    #[inline]
    pub fn read(&self, at: usize, into: &mut [u8]) {
        self.check(at, into.len());
        self.memory.read(self.word, at, into);
    }
    /// Writes at a byte; false if that is not allowed.
    #[inline]
    pub fn write(&self, at: usize, bytes: &[u8]) -> bool {
        self.check(at, bytes.len());
        if self.is_writable() {
            self.memory.write(self.word, at, bytes);
        }
        self.is_writable()
    }
}

impl fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({:#x})", self.word)
    }
}

/// Server: the argument that a client passes as `#[window] bytes: &[u8]`.
#[derive(Debug)]
pub enum Input<'a> {
    /// In the message: they stay as they are.
    Message(&'a [u8]),
    /// In a window: they may change between two copies.
    Window(Window<'a>),
}

impl Input<'_> {
    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Message(bytes) => bytes.len(),
            Self::Window(window) => window.len(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies those from a position on. It panics if there are not so many.
    #[inline]
    pub fn copy_to(&self, at: usize, into: &mut [u8]) {
        match self {
            Self::Message(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
            Self::Window(window) => window.read(at, into),
        }
    }
}

/// Server: where the bytes go that a client asks for as `#[window] into: &mut [u8]`.
#[derive(Debug)]
pub enum Output<'a> {
    /// Into the message.
    Message(&'a mut [u8]),
    /// Into a window, which is writable.
    Window(Window<'a>),
}

impl Output<'_> {
    /// Bytes there is room for.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Message(bytes) => bytes.len(),
            Self::Window(window) => window.len(),
        }
    }
    /// Whether there is room for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies these to a position. It panics if there is no room for them.
    #[inline]
    pub fn copy_from(&mut self, at: usize, bytes: &[u8]) {
        match self {
            Self::Message(into) => into[at..at + bytes.len()].copy_from_slice(bytes),
            Self::Window(window) => {
                window.write(at, bytes);
            }
        }
    }
}

/// Client: how the first part of a buffer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// So many bytes in the message, or as many of them as there is room for.
    Message(usize),
    /// So many bytes, which are whole pages, in a window.
    Window(usize),
}

impl Part {
    /// Of a buffer at this address: whole pages go in a window, and what is before them, or follows, in the message. No window shows what
    /// lies beside the buffer.
    #[inline]
    pub const fn of(address: usize, length: usize) -> Self {
        let head = address.wrapping_neg() % PAGE_BYTES;
        if length < PAGE_BYTES {
            return Self::Message(length);
        }
        let pages = length.saturating_sub(head) / PAGE_BYTES;
        match (head, pages) {
            (_, 0) => Self::Message(if length < MESSAGE_BYTES { length } else { MESSAGE_BYTES }),
            (0, _) => Self::Window(if pages < MAX_PAGES { pages } else { MAX_PAGES } * PAGE_BYTES),
            (head, _) => Self::Message(head),
        }
    }

    /// Bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Message(bytes) | Self::Window(bytes) => bytes,
        }
    }
}

/// Client: the bytes that a call shows, which are whole pages.
#[derive(Debug)]
pub enum Shown<'a> {
    /// To be read.
    Read(&'a [u8]),
    /// To be read and written.
    Written(&'a mut [u8]),
}

impl Shown<'_> {
    /// The word of the window.
    #[inline]
    pub fn word(&mut self) -> u64 {
        let (start, length, flag) = match self {
            Self::Read(bytes) => (bytes.as_ptr() as u64, bytes.len(), 0),
            Self::Written(bytes) => (bytes.as_mut_ptr() as u64, bytes.len(), WRITABLE),
        };
        start | (length / PAGE_BYTES) as u64 | flag
    }
}
