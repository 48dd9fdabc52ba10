//! Client and server halves against each other over a loopback, and the server against garbage.
#![allow(missing_docs)]

use std::cell::{Cell, RefCell};

use abi::{Control, Error, MESSAGE_BYTES};
use idl::{
    Again, AllWords, Answer, Code, Delegate, Delegated, Failure, Protocol, Reply, Request, Shown, Transport, Words,
    codes, interface, returns_struct, scalar_enum,
};
use proptest::prelude::*;

codes! {
    /// Why not.
    pub enum SampleError {
        1 Odd "odd"
        2 Full "full"
    }
}

scalar_enum! {
    /// A colour.
    pub enum Colour { 0 Red "red" 7 Blue "blue" }
}

returns_struct! {
    /// Three facts.
    pub struct Facts {
        /// a
        pub size: u64,
        /// b
        pub colour: Colour,
        /// c
        pub whole: bool,
    }
}

/// Something of everything.
#[interface]
pub trait Sample {
    /// Adds.
    #[repeatable]
    fn add(&self, a: u64, b: u8) -> Result<u64, SampleError>;
    /// Nothing either way.
    fn nothing(&self) -> Result<(), SampleError>;
    /// Many scalars.
    fn many(&self, a: u8, b: u16, c: u32, d: u64, e: bool, f: usize, g: Colour) -> Result<(u64, u64), SampleError>;
    /// Text and bytes in.
    fn put(&self, name: &str, at: u64, bytes: &[u8]) -> Result<usize, SampleError>;
    /// Bytes out, counted.
    #[repeatable]
    fn get(&self, name: &str, into: &mut [u8]) -> Result<usize, SampleError>;
    /// Bytes out, whole.
    fn fill(&self, byte: u8, into: &mut [u8]) -> Result<Facts, SampleError>;
    /// Everything in, something out.
    fn both(
        &self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        one: &str,
        two: &[u8],
        into: &mut [u8],
    ) -> Result<(usize, u64), SampleError>;
    /// An entry in.
    fn give(&self, a: u64, entry: Delegate, b: u64, c: u64, d: u64) -> Result<u64, SampleError>;
    /// An entry back.
    fn open(&self, path: &str) -> Result<Delegated, SampleError>;
    /// An entry back with words.
    fn mint(&self, badge: u64) -> Result<(Delegated, (u64, bool)), SampleError>;
    /// Names that the generated code uses as well.
    fn names(&self, words: u64, end: &[u8], rest: &[u8], capacity: &mut [u8]) -> Result<(), SampleError>;
}

#[derive(Default)]
struct Server {
    calls: Cell<u32>,
    /// `get` claims to have written more than there is room for.
    lies: Cell<bool>,
    lent: Cell<u64>,
}

impl SampleServer for Server {
    fn add(&self, badge: u64, a: u64, b: u8) -> Result<u64, SampleError> {
        self.calls.set(self.calls.get() + 1);
        if a % 2 == 1 { Err(SampleError::Odd) } else { Ok(badge.wrapping_add(a).wrapping_add(b.into())) }
    }
    fn nothing(&self, _: u64) -> Result<(), SampleError> {
        Ok(())
    }
    fn many(
        &self,
        _: u64,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        e: bool,
        f: usize,
        g: Colour,
    ) -> Result<(u64, u64), SampleError> {
        let sum = (u64::from(a) + u64::from(b) + u64::from(c)).wrapping_add(d);
        Ok((sum, u64::from(e) << 32 | (f as u64) << 1 | u64::from(g == Colour::Blue)))
    }
    fn put(&self, _: u64, name: &str, at: u64, bytes: &[u8]) -> Result<usize, SampleError> {
        let sum: usize = name.bytes().chain(bytes.iter().copied()).map(usize::from).sum();
        Ok(sum.wrapping_add(at as usize))
    }
    fn get(&self, _: u64, name: &str, into: &mut [u8]) -> Result<usize, SampleError> {
        let count = name.len().min(into.len());
        into[..count].copy_from_slice(&name.as_bytes()[..count]);
        Ok(if self.lies.get() { into.len() + 1 } else { count })
    }
    fn fill(&self, _: u64, byte: u8, into: &mut [u8]) -> Result<Facts, SampleError> {
        let half = into.len() / 2;
        into[..half].fill(byte);
        Ok(Facts { size: into.len() as u64, colour: Colour::Blue, whole: true })
    }
    fn both(
        &self,
        _: u64,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        one: &str,
        two: &[u8],
        into: &mut [u8],
    ) -> Result<(usize, u64), SampleError> {
        let count = two.len().min(into.len());
        into[..count].copy_from_slice(&two[..count]);
        Ok((count, [a, b, c, d, e, one.len() as u64].into_iter().fold(0, u64::wrapping_add)))
    }
    fn give(&self, _: u64, a: u64, entry: Delegated, b: u64, c: u64, d: u64) -> Result<u64, SampleError> {
        Ok(a.wrapping_add(b).wrapping_add(c).wrapping_add(d).wrapping_add(entry.0 as u64))
    }
    fn open(&self, _: u64, path: &str) -> Result<Delegate, SampleError> {
        if path.is_empty() { Err(SampleError::Full) } else { Ok(Delegate::entry(path.len(), 3)) }
    }
    fn mint(&self, _: u64, badge: u64) -> Result<(Delegate, (u64, bool)), SampleError> {
        Ok((Delegate::mint(50, badge), (badge / 2, true)))
    }
    fn names(&self, _: u64, words: u64, end: &[u8], rest: &[u8], capacity: &mut [u8]) -> Result<(), SampleError> {
        capacity[0] = words as u8 + end[0] + rest[0];
        Ok(())
    }
}

/// Plays the nucleus: copies bytes each way, hands over the delegated index.
struct Loopback {
    server: Server,
    area: RefCell<[u8; MESSAGE_BYTES]>,
    sent: Cell<Words>,
    again: Cell<Option<Again>>,
    discarded: Cell<usize>,
    reply: Cell<Option<Reply>>,
}

impl Loopback {
    fn new() -> Self {
        Self {
            server: Server::default(),
            area: RefCell::new([0xee; MESSAGE_BYTES]),
            sent: Cell::default(),
            again: Cell::default(),
            discarded: Cell::default(),
            reply: Cell::default(),
        }
    }
}

impl Transport for &Loopback {
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error> {
        let mut message = Answer { words, control };
        self.call_bytes(&mut message, again, &[], &mut []).map(|()| message)
    }
    fn call_bytes(&self, message: &mut Answer, again: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        let Answer { words, control } = *message;
        self.sent.set(words);
        self.again.set(Some(again));
        let mut area = self.area.borrow_mut();
        let bytes = send.concat();
        area[..bytes.len()].copy_from_slice(&bytes);
        let delegated = (control.delegated() != 0).then(|| Delegated(control.delegated()));
        let mut request = Request {
            badge: 1000,
            words,
            length: bytes.len(),
            delegated,
            window: None,
            area: &mut area,
            lent: &self.server.lent,
        };
        let mut reply = self.server.dispatch(&mut request);
        assert_eq!(self.server.lent.get(), 0);
        if let Some(forged) = self.reply.get() {
            reply = forged;
        }
        let count = reply.control.length().min(receive.len());
        receive[..count].copy_from_slice(&area[..count]);
        *message = Answer { words: reply.words, control: reply.control };
        Ok(())
    }
    fn call_window(&self, _: &mut Answer, _: Again, _: &[&[u8]], _: &mut Shown<'_>) -> Result<(), Error> {
        unreachable!("no method takes a window")
    }
    fn call_all_words(&self, _: AllWords, _: Again) -> Result<AllWords, Error> {
        unreachable!("an interface of messages")
    }
    fn prepare_receive(&self) -> Result<(), Error> {
        Ok(())
    }
    fn discard(&self, delegated: Delegated) {
        self.discarded.set(delegated.0);
    }
}

#[test]
fn the_transport_hears_what_may_be_repeated() {
    let loopback = Loopback::new();
    let client = SampleClient(&loopback);
    let again = |done: bool| (done, loopback.again.take());
    assert_eq!(again(client.add(2, 2).is_ok()), (true, Some(Again::Harmless)));
    assert_eq!(again(client.nothing().is_ok()), (true, Some(Again::Harmful)));
    let _ = client.get("name", &mut [0; 4]);
    assert_eq!(loopback.again.take(), Some(Again::Harmless));
    let _ = client.put("name", 0, b"bytes");
    assert_eq!(loopback.again.take(), Some(Again::Harmful));
    assert_eq!(SAMPLE_LAYOUT.matches(", repeatable").count(), 2);
}

#[test]
fn words_only() {
    let loopback = Loopback::new();
    let client = SampleClient(&loopback);
    assert_eq!(client.add(4, 5), Ok(1009));
    assert_eq!(loopback.sent.get(), [SampleClient::ADD, 4, 5, 0, 0]);
    assert_eq!(client.add(5, 5), Err(Failure::Refused(SampleError::Odd)));
    assert_eq!(client.nothing(), Ok(()));
    assert_eq!(client.many(1, 2, 3, 4, true, 9, Colour::Blue), Ok((10, 1 << 32 | 18 | 1)));
}

#[test]
fn bytes_each_way() {
    let loopback = Loopback::new();
    let client = SampleClient(&loopback);
    assert_eq!(client.put("a", 1, &[1, 2]), Ok(97 + 3 + 1));
    assert_eq!(loopback.sent.get()[0], SampleClient::PUT | 1 << 16 | 2 << 32);
    let mut into = [0; 8];
    assert_eq!(client.get("hello", &mut into), Ok(5));
    assert_eq!(&into, b"hello\0\0\0");
    assert_eq!(client.get("hello, world", &mut into), Ok(8));
    assert_eq!(&into, b"hello, w");
    let facts = Facts { size: 8, colour: Colour::Blue, whole: true };
    assert_eq!(client.fill(9, &mut into), Ok(facts));
    assert_eq!(into, [9, 9, 9, 9, 0, 0, 0, 0], "bytes that the method left alone are zero, not an earlier message");
    assert_eq!(client.both(1, 2, 3, 4, 5, "abc", b"xyz", &mut into), Ok((3, 18)));
    assert_eq!(&into[..4], b"xyz\x09", "only what is counted comes back");
    assert_eq!(client.names(1, &[2], &[3], &mut into), Ok(()));
    assert_eq!(into, [6, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn entries() {
    let loopback = Loopback::new();
    let client = SampleClient(&loopback);
    assert_eq!(client.give(1, Delegate::entry(60, 1), 2, 3, 4), Ok(70));
    assert_eq!(client.open("abc"), Ok(Delegated(3)));
    assert_eq!(client.open(""), Err(Failure::Refused(SampleError::Full)));
    assert_eq!(client.mint(8), Ok((Delegated(50), (4, true))));
}

#[test]
fn sizes_at_the_limit() {
    let loopback = Loopback::new();
    let client = SampleClient(&loopback);
    let big = vec![0; MESSAGE_BYTES];
    assert_eq!(client.put("", 0, &big), Ok(0));
    assert_eq!(client.put("x", 0, &big), Err(Failure::Protocol(Protocol::TooLong)));
    let mut into = vec![0xff; 2 * MESSAGE_BYTES];
    assert_eq!(client.fill(1, &mut into).map(|facts| facts.size), Ok(MESSAGE_BYTES as u64));
    assert_eq!(client.get("abc", &mut into), Ok(3));
    let text = "x".repeat(MESSAGE_BYTES);
    assert_eq!(client.get(&text, &mut into), Ok(0));
}

#[test]
fn lying_servers() {
    let loopback = Loopback::new();
    let client = SampleClient(&loopback);
    loopback.server.lies.set(true);
    assert_eq!(client.get("abc", &mut [0; 8]), Err(Failure::Protocol(Protocol::BadReply)));
    let bad = Failure::Protocol(Protocol::BadReply);
    // A count that is not what came along.
    loopback.reply.set(Some(Reply { words: [0, 4, 0, 0, 0], control: Control::bytes(3) }));
    assert_eq!(client.get("abc", &mut [0; 8]), Err(bad));
    // More than there is room for.
    loopback.reply.set(Some(Reply { words: [0, 9, 0, 0, 0], control: Control::bytes(9) }));
    assert_eq!(client.get("abc", &mut [0; 8]), Err(bad));
    // A colour that does not exist.
    loopback.reply.set(Some(Reply { words: [0, 8, 3, 0, 0], control: Control::bytes(8) }));
    assert_eq!(client.fill(1, &mut [0; 8]), Err(bad.map(|error: SampleError| error)));
    // An error that does not exist.
    loopback.reply.set(Some(Reply::word(77)));
    assert_eq!(client.nothing(), Err(Failure::Protocol(Protocol::BadReply)));
    loopback.reply.set(Some(Reply::word(0xffff_0002)));
    assert_eq!(client.nothing(), Err(Failure::Protocol(Protocol::BadText)));
    // No entry where one should be, and one where none should be.
    loopback.reply.set(Some(Reply::word(0)));
    assert_eq!(client.open("a"), Err(Failure::Protocol(Protocol::BadReply)));
    loopback.reply.set(Some(Reply { words: [0; 5], control: Control(0).delegate(55, 0) }));
    assert_eq!(client.nothing(), Ok(()));
    assert_eq!(loopback.discarded.get(), 55);
}

/// The tag in the number of each method of `Sample`.
const TAG: u64 = SampleClient::ADD - 1;

fn dispatch(words: Words, length: usize, delegated: Option<Delegated>, fill: u8) -> (Reply, Server, bool) {
    let mut area = [fill; MESSAGE_BYTES];
    let server = Server::default();
    let lent = Cell::new(0);
    let mut request = Request { badge: 0, words, length, delegated, window: None, area: &mut area, lent: &lent };
    let reply = server.dispatch(&mut request);
    let left = request.delegated.is_some();
    (reply, server, left)
}

#[test]
fn each_protocol_error() {
    let code = |words, length| dispatch(words, length, None, 0xff).0.words[0];
    for method in [0, 12, 63] {
        assert_eq!(code([TAG | method, 0, 0, 0, 0], 0), Protocol::UnknownMethod.code());
    }
    for method in [0, 1, 63, SampleClient::ADD + 64, SampleClient::ADD - 64] {
        assert_eq!(code([method, 0, 0, 0, 0], 0), Protocol::WrongInterface.code());
    }
    assert_eq!(code([SampleClient::ADD, 0, 256, 0, 0], 0), Protocol::BadValue.code());
    assert_eq!(code([SampleClient::PUT | 3 << 16, 0, 0, 0, 0], 2), Protocol::BadLength.code());
    assert_eq!(code([SampleClient::PUT | 3 << 16, 0, 0, 0, 0], 4), Protocol::BadLength.code());
    assert_eq!(code([SampleClient::PUT | 1 << 16, 0, 0, 0, 0], 1), Protocol::BadText.code());
    assert_eq!(code([SampleClient::GET | 4097 << 32, 0, 0, 0, 0], 0), Protocol::BadLength.code());
    assert_eq!(code([SampleClient::GET | 1 << 16 | 4096 << 32, 0, 0, 0, 0], 1), Protocol::BadLength.code());
    assert_eq!(code([SampleClient::GIVE, 0, 0, 0, 0], 8), Protocol::NoDelegation.code());
    assert_eq!(
        code([SampleClient::MANY, 0, 0, 0, 0], 24),
        Protocol::BadValue.code(),
        "the fifth scalar is a bool of all ones"
    );
}

#[test]
fn an_entry_nobody_asked_for_is_left_for_the_runtime() {
    let (reply, server, left) = dispatch([SampleClient::ADD, 2, 0, 0, 0], 0, Some(Delegated(60)), 0);
    assert_eq!(reply.words[0], 0);
    assert_eq!(server.calls.get(), 1);
    assert!(left);
    assert!(
        dispatch([SampleClient::GIVE, 0, 0, 0, 0], 7, Some(Delegated(60)), 0).2,
        "a refused call does not take it either"
    );
    assert!(!dispatch([SampleClient::GIVE, 0, 0, 0, 0], 8, Some(Delegated(60)), 0).2);
}

#[test]
fn layout_names_every_method() {
    for (number, name) in [(SampleClient::ADD, "add"), (SampleClient::BOTH, "both"), (SampleClient::MINT, "mint")] {
        assert!(SAMPLE_LAYOUT.contains(&format!("\n{number:#06x} {name}(")), "{SAMPLE_LAYOUT}");
        assert_eq!(SAMPLE_METHODS[(number & 63) as usize - 1], (number, format!("Sample.{name}").as_str()));
    }
}

proptest! {
    #[test]
    fn garbage_is_answered(words: [u64; 5], method in 0u64..11, length in 0usize..=MESSAGE_BYTES, fill: u8, with: bool) {
        for words in [words, [words[0] & 0x1fff_1fff_1fff_0000 | TAG | method, words[1], words[2], words[3], words[4]]] {
            let (reply, ..) = dispatch(words, length, with.then_some(Delegated(50)), fill);
            prop_assert!(reply.control.length() <= MESSAGE_BYTES);
            prop_assert_eq!(reply.control.0 & !Control::VALID, 0);
        }
    }

    #[test]
    fn plausible_lengths(one in 0u64..3000, two in 0u64..3000, out in 0u64..3000, slack in -1i64..2) {
        let word = SampleClient::BOTH | one << 16 | two << 32 | out << 48;
        let length = (one + two + 8) as i64 + slack;
        let fits = slack == 0 && one + two + 8 + out <= MESSAGE_BYTES as u64;
        let (reply, ..) = dispatch([word, 1, 2, 3, 4], (length as usize).min(MESSAGE_BYTES), None, b'a');
        prop_assert_eq!(reply.words[0] == 0, fits, "{:?}", reply);
        if fits {
            prop_assert_eq!(reply.control.length() as u64, two.min(out));
        }
    }

    #[test]
    fn round_trips(name in ".{0,40}", at: u64, bytes in proptest::collection::vec(any::<u8>(), 0..2000), room in 0usize..2500) {
        let loopback = Loopback::new();
        let client = SampleClient(&loopback);
        let expected = loopback.server.put(0, &name, at, &bytes).unwrap();
        prop_assert_eq!(client.put(&name, at, &bytes), Ok(expected));
        let mut into = vec![0; room];
        let (count, sum) = client.both(at, 1, 2, 3, 4, &name, &bytes, &mut into).unwrap();
        prop_assert!(count <= room);
        prop_assert_eq!(&into[..count], &bytes[..count]);
        prop_assert_eq!(sum, at.wrapping_add(10).wrapping_add(name.len() as u64));
    }
}
