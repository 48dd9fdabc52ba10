//! A call as a server sees it, and its answer.

use core::cell::Cell;

use abi::{Control, MESSAGE_BYTES, MESSAGE_WORDS, REGISTER_WORDS};

use crate::{Delegated, Window};

/// The words of a message.
pub type Words = [u64; MESSAGE_WORDS];

/// All words that travel in registers: those of a call of an interface of words.
pub type AllWords = [u64; REGISTER_WORDS];

/// The specification of the portals of an interface of words.
pub const WORDS_PORTAL: &str = "npkix8>ix8";

/// The specification of the portals of messages that may bring a window, in word 4.
pub const WINDOW_PORTAL: &str = "npkox4w>ox5";

/// The specification of portals that tear a page away there, and one back: word 1, and word 0 of the answer.
pub const TORN_PORTAL: &str = "npcai>a";

/// A call that arrived.
pub struct Request<'a> {
    /// Badge of the call entry that was used: the nucleus vouches for it.
    pub badge: u64,
    /// Words.
    pub words: Words,
    /// Bytes of the area that came along.
    pub length: usize,
    /// The entry that came along. An entry left here after the call is removed.
    pub delegated: Option<Delegated>,
    /// The window that came along.
    pub window: Option<Window<'a>>,
    /// The activation's message area.
    pub area: &'a mut [u8; MESSAGE_BYTES],
    /// Bytes at the start of the area that a method has borrowed: calls to others made meanwhile must
    /// save and restore them. The runtime looks here, see its `message` module.
    pub lent: &'a Cell<u64>,
}

impl<'a> Window<'a> {
    /// That of a call, if one came.
    #[inline]
    pub fn of(request: &Request<'a>) -> Option<Self> {
        request.window
    }
}

impl Request<'_> {
    /// The number of the method that is called, as the client's constants have it.
    #[inline]
    pub const fn method(&self) -> u64 {
        self.words[0] & 0xffff
    }
}

/// The answer: words and a control word; its bytes are the first ones of the area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Words.
    pub words: Words,
    /// Bytes and delegation.
    pub control: Control,
}

impl Reply {
    /// A reply of one word.
    pub const fn word(word: u64) -> Self {
        Self { words: [word, 0, 0, 0, 0], control: Control(0) }
    }
}
