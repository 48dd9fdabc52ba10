//! Functions that the generated code calls; not for people.

use abi::{Control, Error, MESSAGE_BYTES};

use crate::{AllWords, Answer, Code, Delegated, Failure, Protocol, Reply, Returns, Transport};

/// Client: bytes left for output after `overflow` values and inputs of these lengths.
#[inline]
pub fn room<E>(overflow: usize, lengths: &[usize]) -> Result<usize, Failure<E>> {
    let used = lengths.iter().fold(overflow * 8, |sum, length| sum.saturating_add(*length));
    MESSAGE_BYTES.checked_sub(used).ok_or(Failure::Protocol(Protocol::TooLong))
}

/// The first word of an answer of [`Protocol::BadWindow`].
pub const BAD_WINDOW: u64 = Protocol::BadWindow as u64;

/// Whether the nucleus may have refused a call because of its window: there is nothing to show, or it cannot be shown, the server takes none, or
/// cannot pay for its tables. The same call without a window shows whether it was that.
#[cold]
pub fn is_of_window(error: Error) -> bool {
    use Error::{
        AccountExhausted, BadAddress, BadArgument, BadControl, NoFrames, NotMapped, OtherExhausted, PageRights,
        Registers, Reserved, TooOften, WindowGone,
    };
    matches!(
        error,
        NotMapped
            | PageRights
            | BadAddress
            | Reserved
            | Registers
            | BadArgument
            | BadControl
            | WindowGone
            | TooOften
            | AccountExhausted
            | OtherExhausted
            | NoFrames
    )
}

/// Server: why there is no method for word 0 of a call, with the tag of the server's interface.
#[cold]
pub const fn no_method(word0: u64, tag: u64) -> Protocol {
    if (word0 & 0xffff) >> 6 == tag { Protocol::UnknownMethod } else { Protocol::WrongInterface }
}

/// Client: the reply to a method that gives no entry.
#[inline]
pub fn answered<E: Code, T: Transport>(transport: &T, answer: &Answer) -> Result<(), Failure<E>> {
    if answer.control.delegated() != 0 {
        transport.discard(Delegated(answer.control.delegated()));
    }
    if answer.words[0] == 0 { Ok(()) } else { Err(Failure::from_word(answer.words[0])) }
}

/// Client: the entry that a method gives.
#[inline]
pub fn delegated<E: Code, T: Transport>(transport: &T, answer: &Answer) -> Result<Delegated, Failure<E>> {
    match (answer.words[0], answer.control.delegated()) {
        (0, 0) => Err(Failure::Protocol(Protocol::BadReply)),
        (0, index) => Ok(Delegated(index)),
        (word, index) => {
            if index != 0 {
                transport.discard(Delegated(index));
            }
            Err(Failure::from_word(word))
        }
    }
}

/// Client: the answer of an interface of words.
#[inline]
pub fn answered_words<E: Code, R: Returns>(words: &AllWords) -> Result<R, Failure<E>> {
    if words[0] != 0 {
        return Err(Failure::from_word(words[0]));
    }
    R::get(&words[1..]).ok_or(Failure::Protocol(Protocol::BadReply))
}

/// Server: the answer of a method of words.
#[inline]
pub fn answer_words<E: Code, R: Returns>(result: Result<R, E>) -> AllWords {
    let mut words = [0; _];
    match result {
        Ok(value) => value.put(&mut words[1..]),
        Err(error) => words[0] = error.code(),
    }
    words
}

/// Server: whether the lengths add up to what came along and leave room for the output; gives where
/// the inputs end.
#[inline]
pub fn check(came: usize, overflow: usize, lengths: &[usize], capacity: usize) -> Option<usize> {
    // Lengths have 16 bits each, so the sums cannot wrap.
    let end = lengths.iter().sum::<usize>() + overflow * 8;
    (end == came && end + capacity <= MESSAGE_BYTES).then_some(end)
}

/// Server: the how-manieth of the values at the start of the area; `check` was there before.
#[inline]
pub fn overflow(area: &[u8; MESSAGE_BYTES], position: usize) -> u64 {
    area.as_chunks().0.get(position).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Server: the reply of a method that refused.
#[inline]
pub fn refused<E: Code>(error: E) -> Reply {
    Reply { words: [error.code(), 0, 0, 0, 0], control: Control(0) }
}
