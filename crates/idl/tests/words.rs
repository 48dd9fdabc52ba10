//! An interface of words: client and server halves against each other, and the server against garbage.
#![allow(missing_docs)]

use std::cell::Cell;

use abi::{Control, Error};
use idl::{
    Again, AllWords, Answer, Code, Delegated, Failure, Protocol, Shown, Transport, Words, codes, interface,
    returns_struct,
};
use proptest::prelude::*;

codes! {
    /// Why not.
    pub enum SampleError {
        1 Odd "odd"
    }
}

returns_struct! {
    /// Two facts.
    pub struct Facts {
        /// a
        pub size: u64,
        /// b
        pub whole: bool,
    }
}

/// Something of everything.
#[interface(words)]
pub trait Sample {
    /// Eight words each way.
    #[repeatable]
    fn turn(&self, block: [u64; 8]) -> Result<[u64; 8], SampleError>;
    /// Scalars around a block.
    fn mix(&self, first: u8, block: [u64; 5], last: bool) -> Result<(u64, u64), SampleError>;
    /// A struct.
    fn facts(&self, words: u64) -> Result<Facts, SampleError>;
    /// Nothing either way.
    #[stateful]
    fn nothing(&self) -> Result<(), SampleError>;
}

struct Server;

impl SampleServer for Server {
    fn turn(&self, badge: u64, block: [u64; 8]) -> Result<[u64; 8], SampleError> {
        if block[0] % 2 == 1 { Err(SampleError::Odd) } else { Ok(block.map(|word| word.wrapping_add(badge))) }
    }
    fn mix(&self, _: u64, first: u8, block: [u64; 5], last: bool) -> Result<(u64, u64), SampleError> {
        Ok((block.into_iter().fold(first.into(), u64::wrapping_add), last.into()))
    }
    fn facts(&self, _: u64, words: u64) -> Result<Facts, SampleError> {
        Ok(Facts { size: words, whole: true })
    }
    fn nothing(&self, _: u64) -> Result<(), SampleError> {
        Ok(())
    }
}

/// Plays the nucleus.
#[derive(Default)]
struct Loopback {
    sent: Cell<AllWords>,
    again: Cell<Option<Again>>,
    /// An answer that replaces the server's.
    forged: Cell<Option<AllWords>>,
}

impl Transport for &Loopback {
    fn call(&self, _: Words, _: Control, _: Again) -> Result<Answer, Error> {
        unreachable!("an interface of words")
    }
    fn call_bytes(&self, _: &mut Answer, _: Again, _: &[&[u8]], _: &mut [u8]) -> Result<(), Error> {
        unreachable!("an interface of words")
    }
    fn call_window(&self, _: &mut Answer, _: Again, _: &[&[u8]], _: &mut Shown<'_>) -> Result<(), Error> {
        unreachable!("no method takes a window")
    }
    fn call_all_words(&self, words: AllWords, again: Again) -> Result<AllWords, Error> {
        self.sent.set(words);
        self.again.set(Some(again));
        Ok(self.forged.get().unwrap_or_else(|| Server.dispatch(1000, &words)))
    }
    fn prepare_receive(&self) -> Result<(), Error> {
        unreachable!("no entry travels")
    }
    fn discard(&self, _: Delegated) {
        unreachable!("no entry travels")
    }
}

#[test]
fn there_and_back() {
    let loopback = Loopback::default();
    let client = SampleClient(&loopback);
    assert_eq!(client.turn([2, 1, 2, 3, 4, 5, 6, 7]), Ok([1002, 1001, 1002, 1003, 1004, 1005, 1006, 1007]));
    assert_eq!(loopback.sent.get(), [SampleClient::TURN, 2, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(loopback.again.take(), Some(Again::Harmless));
    assert_eq!(client.turn([1; 8]), Err(Failure::Refused(SampleError::Odd)));
    assert_eq!(client.mix(9, [1, 2, 3, 4, 5], true), Ok((24, 1)));
    assert_eq!(loopback.sent.get(), [SampleClient::MIX, 9, 1, 2, 3, 4, 5, 1, 0]);
    assert_eq!(loopback.again.take(), Some(Again::Harmful));
    assert_eq!(client.facts(7), Ok(Facts { size: 7, whole: true }));
    assert_eq!(client.nothing(), Ok(()));
    assert_eq!(loopback.again.take(), Some(Again::Meaningless));
}

#[test]
fn a_server_that_answers_nonsense_is_found_out() {
    let loopback = Loopback::default();
    let client = SampleClient(&loopback);
    for (word, expected) in
        [(77, Protocol::BadReply), (Protocol::BadValue.code(), Protocol::BadValue), (u64::MAX, Protocol::BadReply)]
    {
        loopback.forged.set(Some([word, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(client.nothing(), Err(Failure::Protocol(expected)));
    }
    loopback.forged.set(Some([0, 7, 2, 0, 0, 0, 0, 0, 0]));
    assert_eq!(client.facts(1), Err(Failure::Protocol(Protocol::BadReply)), "2 is no bool");
}

#[test]
fn each_mistake_has_its_answer() {
    let answer = |words: AllWords| Server.dispatch(0, &words)[0];
    for method in [SampleClient::TURN - 1, SampleClient::NOTHING + 1, 1 << 16 | SampleClient::TURN] {
        assert_eq!(answer([method, 0, 0, 0, 0, 0, 0, 0, 0]), Protocol::UnknownMethod.code());
    }
    for method in [0, 1, SampleClient::TURN + 64, u64::MAX] {
        assert_eq!(answer([method, 0, 0, 0, 0, 0, 0, 0, 0]), Protocol::WrongInterface.code());
    }
    assert_eq!(answer([SampleClient::MIX, 256, 0, 0, 0, 0, 0, 0, 0]), Protocol::BadValue.code());
    assert_eq!(answer([SampleClient::MIX, 255, 0, 0, 0, 0, 0, 2, 0]), Protocol::BadValue.code());
    assert_eq!(answer([SampleClient::MIX, 255, 0, 0, 0, 0, 0, 1, 0]), 0);
}

#[test]
fn an_answer_has_no_word_of_the_call() {
    let refused = Server.dispatch(0, &[SampleClient::TURN, 1, 9, 9, 9, 9, 9, 9, 9]);
    assert_eq!(refused, [SampleError::Odd.code(), 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Server.dispatch(0, &[SampleClient::FACTS, 9, 9, 9, 9, 9, 9, 9, 9]), [0, 9, 1, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn the_layout_shows_portal_and_words() {
    for part in [
        "interface Sample\ntag 0x",
        "\nportal npkix8>ix8\n",
        "words 2-6: block",
        "word 7: last",
        "from word 1 on: Facts",
    ] {
        assert!(SAMPLE_LAYOUT.contains(part), "{part} in {SAMPLE_LAYOUT}");
    }
}

proptest! {
    #[test]
    fn garbage_is_answered(words: [u64; 9], method in 0u64..6) {
        for words in [words, [SampleClient::TURN - 1 + method, words[1], words[2], words[3], words[4], words[5], words[6], words[7], words[8]]] {
            let answer = Server.dispatch(words[3], &words);
            prop_assert!(answer[0] == 0 || answer[1..] == [0; 8]);
        }
    }
}
