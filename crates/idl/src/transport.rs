//! How a message gets to the server.

use abi::{Control, Error};

use crate::{AllWords, Delegated, Shown, Words};

/// Words and control word of a call, or of its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Words.
    pub words: Words,
    /// In an answer: the number of bytes that came, and the index where a delegated entry landed.
    pub control: Control,
}

/// The effect of retrying a call with the successor of a server that died: the trait of the interface says so with
/// `#[repeatable]` and `#[stateful]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// No harm.
    Harmless,
    /// It may be done twice.
    Harmful,
    /// It means something of an earlier call, which a server that was started again does not know: `#[stateful]`.
    Meaningless,
}

/// Carries calls to one server.
pub trait Transport {
    /// A call of words alone.
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error>;

    /// A call with bytes: the pieces of `send` one after the other; the answer goes to `receive`
    /// as far as it fits, and in place of the message, which stays if the call fails. The caller has seen to it that the pieces
    /// fit into a message.
    fn call_bytes(&self, message: &mut Answer, again: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error>;

    /// A call with a window, whose word goes in word 4, and with the pieces of `send`. Errors that [`is_of_window`](crate::is_of_window) names may
    /// be those of a call that was not carried because of its window.
    fn call_window(
        &self,
        message: &mut Answer,
        again: Again,
        send: &[&[u8]],
        shown: &mut Shown<'_>,
    ) -> Result<(), Error>;

    /// A call of an interface of words.
    fn call_all_words(&self, words: AllWords, again: Again) -> Result<AllWords, Error>;

    /// Makes sure that a delegated entry can come back.
    fn prepare_receive(&self) -> Result<(), Error>;

    /// Removes an entry that came uninvited.
    fn discard(&self, delegated: Delegated);
}

impl<T: Transport + ?Sized> Transport for &T {
    #[inline]
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error> {
        (**self).call(words, control, again)
    }
    #[inline]
    fn call_bytes(&self, message: &mut Answer, again: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        (**self).call_bytes(message, again, send, receive)
    }
    #[inline]
    fn call_window(
        &self,
        message: &mut Answer,
        again: Again,
        send: &[&[u8]],
        shown: &mut Shown<'_>,
    ) -> Result<(), Error> {
        (**self).call_window(message, again, send, shown)
    }
    #[inline]
    fn call_all_words(&self, words: AllWords, again: Again) -> Result<AllWords, Error> {
        (**self).call_all_words(words, again)
    }
    fn prepare_receive(&self) -> Result<(), Error> {
        (**self).prepare_receive()
    }
    fn discard(&self, delegated: Delegated) {
        (**self).discard(delegated);
    }
}
