//! An interface with windows: client and server halves against each other, with windows on real memory.
#![allow(missing_docs)]

use std::cell::{Cell, RefCell};

use abi::window::{MAX_PAGES, WRITABLE};
use abi::{Control, Error, MESSAGE_BYTES, PAGE_BYTES};
use idl::{
    Again, AllWords, Answer, Code, Delegated, Failure, Input, Memory, Output, Part, Protocol, Reply, Request, Shown,
    Transport, Window, Words, codes, interface,
};
use proptest::prelude::*;

codes! {
    /// Why not.
    pub enum StoreError {
        1 Full "full"
    }
}

/// Bytes by their place.
#[interface]
pub trait Store {
    /// Copies bytes from a place on; gives how many.
    #[repeatable]
    fn get(&self, at: u64, #[window] into: &mut [u8]) -> Result<usize, StoreError>;
    /// Copies bytes to a place; gives how many were taken.
    fn put(
        &self,
        name: &str,
        at: u64,
        a: u64,
        b: u64,
        c: u64,
        #[window] bytes: &[u8],
    ) -> Result<(usize, u64), StoreError>;
    /// As many as there are.
    fn size(&self, a: u64, b: u64, c: u64, d: u64) -> Result<u64, StoreError>;
}

const BYTES: usize = 40 * PAGE_BYTES;

struct Server {
    bytes: RefCell<Vec<u8>>,
    lent: Cell<u64>,
    /// `get` claims to have given so many more.
    lies: Cell<usize>,
}

impl StoreServer for Server {
    fn get(&self, _: u64, at: u64, mut into: Output<'_>) -> Result<usize, StoreError> {
        let bytes = self.bytes.borrow();
        let at = (at as usize).min(bytes.len());
        let count = into.len().min(bytes.len() - at);
        // In two parts.
        for range in [0..count / 2, count / 2..count] {
            into.copy_from(range.start, &bytes[at + range.start..at + range.end]);
        }
        Ok(count + self.lies.get())
    }
    fn put(
        &self,
        _: u64,
        name: &str,
        at: u64,
        a: u64,
        b: u64,
        c: u64,
        bytes: Input<'_>,
    ) -> Result<(usize, u64), StoreError> {
        let mut kept = self.bytes.borrow_mut();
        let at = (at as usize).min(kept.len());
        let count = bytes.len().min(kept.len() - at);
        if count == 0 && !bytes.is_empty() {
            return Err(StoreError::Full);
        }
        bytes.copy_to(0, &mut kept[at..at + count]);
        Ok((count, a ^ b ^ c ^ name.len() as u64))
    }
    fn size(&self, _: u64, a: u64, b: u64, c: u64, d: u64) -> Result<u64, StoreError> {
        Ok([a, b, c, d].iter().fold(self.bytes.borrow().len() as u64, |sum, word| sum.wrapping_add(*word)))
    }
}

/// Copies of real memory.
struct Real;

impl Memory for Real {
    fn read(&self, word: u64, at: usize, into: &mut [u8]) {
        let start = word as usize & !(PAGE_BYTES - 1);
        // SAFETY: the client shows these bytes for the length of the call.
        unsafe { std::ptr::copy_nonoverlapping((start + at) as *const u8, into.as_mut_ptr(), into.len()) };
    }
    fn write(&self, word: u64, at: usize, bytes: &[u8]) {
        let start = word as usize & !(PAGE_BYTES - 1);
        // SAFETY: the client shows these bytes, to be written, for the length of the call.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (start + at) as *mut u8, bytes.len()) };
    }
}

/// Plays the nucleus. Each window that it carries must lie within these addresses.
struct Loopback {
    server: Server,
    allowed: Cell<(usize, usize)>,
    windows: Cell<u32>,
    messages: Cell<u32>,
    /// Its answer to windows.
    refuses: Cell<Option<Error>>,
    /// Nobody can write to the windows that it carries.
    reads_only: bool,
    reply: Cell<Option<Reply>>,
    sent: Cell<Words>,
}

impl Loopback {
    fn new() -> Self {
        let bytes = (0..BYTES).map(|at| (at % 251) as u8).collect();
        Self {
            server: Server { bytes: RefCell::new(bytes), lent: Cell::new(0), lies: Cell::new(0) },
            allowed: Cell::new((0, 0)),
            windows: Cell::new(0),
            messages: Cell::new(0),
            refuses: Cell::new(None),
            reads_only: false,
            reply: Cell::new(None),
            sent: Cell::default(),
        }
    }
    fn carry(&self, message: &mut Answer, send: &[&[u8]], receive: &mut [u8], window: u64) -> Result<(), Error> {
        let mut area = [0xee; MESSAGE_BYTES];
        let bytes = send.concat();
        area[..bytes.len()].copy_from_slice(&bytes);
        let mut words = message.words;
        if window != 0 {
            words[4] = window;
        }
        self.sent.set(words);
        let mut request = Request {
            badge: 0,
            words,
            length: bytes.len(),
            delegated: None,
            window: Window::new(window, &Real),
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
}

impl Transport for &Loopback {
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error> {
        let mut message = Answer { words, control };
        self.call_bytes(&mut message, again, &[], &mut []).map(|()| message)
    }
    fn call_bytes(&self, message: &mut Answer, _: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        self.messages.set(self.messages.get() + 1);
        self.carry(message, send, receive, 0)
    }
    fn call_window(&self, message: &mut Answer, _: Again, send: &[&[u8]], shown: &mut Shown<'_>) -> Result<(), Error> {
        self.windows.set(self.windows.get() + 1);
        if let Some(error) = self.refuses.get() {
            return Err(error);
        }
        let word = shown.word();
        let (start, pages) = (word as usize & !(PAGE_BYTES - 1), (word & 0x1f) as usize);
        assert_eq!(word & WRITABLE != 0, matches!(shown, Shown::Written(_)));
        assert!((1..=MAX_PAGES).contains(&pages));
        let (first, end) = self.allowed.get();
        assert!(first <= start && start + pages * PAGE_BYTES <= end, "memory beside the buffer was shown");
        let word = if self.reads_only { word & !WRITABLE } else { word };
        self.carry(message, send, &mut [], word)
    }
    fn call_all_words(&self, _: AllWords, _: Again) -> Result<AllWords, Error> {
        unreachable!("an interface of messages")
    }
    fn prepare_receive(&self) -> Result<(), Error> {
        Ok(())
    }
    fn discard(&self, _: Delegated) {}
}

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; PAGE_BYTES]);

/// Aligned memory.
fn pages(count: usize) -> Vec<Page> {
    vec![Page([0x77; PAGE_BYTES]); count]
}

fn bytes(pages: &mut [Page]) -> &mut [u8] {
    // SAFETY: a page is its bytes.
    unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), pages.len() * PAGE_BYTES) }
}

fn allow(loopback: &Loopback, buffer: &[u8]) {
    let start = buffer.as_ptr() as usize;
    loopback.allowed.set((start, start + buffer.len()));
}

#[test]
fn whole_pages_go_in_a_window() {
    let loopback = Loopback::new();
    let client = StoreClient(&loopback);
    let mut room = pages(20);
    let into = bytes(&mut room);
    allow(&loopback, into);
    assert_eq!(client.get(5, into), Ok(MAX_PAGES * PAGE_BYTES), "at most sixteen pages");
    assert_eq!(loopback.sent.get()[0], StoreClient::GET, "the length is that of the window");
    assert_eq!(into[..MAX_PAGES * PAGE_BYTES], loopback.server.bytes.borrow()[5..][..MAX_PAGES * PAGE_BYTES]);
    assert!(into[MAX_PAGES * PAGE_BYTES..].iter().all(|byte| *byte == 0x77));
    assert_eq!((loopback.windows.get(), loopback.messages.get()), (1, 0));
    assert_eq!(client.put("name", 0, 1, 2, 4, &into[..PAGE_BYTES]), Ok((PAGE_BYTES, 7 ^ 4)));
    assert_eq!(loopback.server.bytes.borrow()[..PAGE_BYTES], into[..PAGE_BYTES]);
    assert_eq!((loopback.windows.get(), loopback.messages.get()), (2, 0));
    assert_eq!(client.put("", BYTES as u64, 0, 0, 0, into), Err(Failure::Refused(StoreError::Full)));
    assert_eq!(client.get(BYTES as u64 - 3, into), Ok(3));
    assert_eq!(client.size(1, 2, 3, 4), Ok(BYTES as u64 + 10));
}

#[test]
fn less_than_a_page_goes_in_the_message() {
    let loopback = Loopback::new();
    let client = StoreClient(&loopback);
    let mut room = pages(3);
    let into = bytes(&mut room);
    assert_eq!(client.get(1, &mut into[..PAGE_BYTES - 1]), Ok(PAGE_BYTES - 1));
    assert_eq!(client.get(1, &mut into[1..PAGE_BYTES + 1]), Ok(PAGE_BYTES));
    assert_eq!(client.get(1, &mut into[1..2 * PAGE_BYTES - 1]), Ok(PAGE_BYTES), "no whole page is in it");
    assert_eq!(client.get(1, &mut into[1..2 * PAGE_BYTES]), Ok(PAGE_BYTES - 1), "its head");
    assert_eq!(client.put("n", 1, 0, 0, 0, &into[..100]), Ok((100, 1)));
    assert_eq!(
        client.put(&"n".repeat(4000), 1, 0, 0, 0, &into[1..1000]),
        Ok((88, 4000)),
        "as many as there is room for"
    );
    assert_eq!((loopback.windows.get(), loopback.messages.get()), (0, 6));
    let name = "n".repeat(MESSAGE_BYTES);
    assert_eq!(client.put(&name, 1, 0, 0, 0, &into[1..1000]), Err(Failure::Protocol(Protocol::TooLong)));
}

#[test]
fn calls_without_a_window_use_messages() {
    use Error::{
        AccountExhausted, BadAddress, BadArgument, BadControl, NoFrames, NotMapped, OtherExhausted, PageRights,
        PeerDied, Registers, Reserved, TooOften, WindowGone,
    };
    let loopback = Loopback::new();
    let client = StoreClient(&loopback);
    let mut room = pages(2);
    let into = bytes(&mut room);
    allow(&loopback, into);
    for error in [
        NotMapped,
        PageRights,
        BadAddress,
        Reserved,
        Registers,
        BadArgument,
        BadControl,
        WindowGone,
        TooOften,
        AccountExhausted,
        OtherExhausted,
        NoFrames,
    ] {
        loopback.refuses.set(Some(error));
        into.fill(0);
        assert_eq!(client.get(9, into), Ok(MESSAGE_BYTES), "{error:?}");
        assert_eq!(into[..MESSAGE_BYTES], loopback.server.bytes.borrow()[9..][..MESSAGE_BYTES]);
        assert!(into[MESSAGE_BYTES..].iter().all(|byte| *byte == 0));
        assert_eq!(client.put("", 9, 0, 0, 0, into), Ok((MESSAGE_BYTES - 8, 0)), "{error:?}");
    }
    loopback.refuses.set(None);
    let forbids = Loopback { reads_only: true, ..Loopback::new() };
    allow(&forbids, into);
    assert_eq!(
        StoreClient(&forbids).get(9, into),
        Ok(MESSAGE_BYTES),
        "the server answers that it does not take the window"
    );
    assert_eq!((forbids.windows.get(), forbids.messages.get()), (1, 1));
    loopback.refuses.set(Some(PeerDied));
    assert_eq!(client.get(9, into), Err(Failure::Transport(PeerDied)));
}

#[test]
fn lying_servers() {
    let bad = Failure::Protocol(Protocol::BadReply);
    let loopback = Loopback::new();
    let client = StoreClient(&loopback);
    let mut room = pages(1);
    let into = bytes(&mut room);
    allow(&loopback, into);
    loopback.server.lies.set(1);
    assert_eq!(client.get(0, into), Err(bad));
    assert_eq!(client.get(0, &mut into[..8]), Err(bad));
    let page = PAGE_BYTES as u64;
    loopback.reply.set(Some(Reply { words: [0, page + 1, 0, 0, 0], control: Control(0) }));
    assert_eq!(client.get(0, into), Err(bad), "more than the window has");
    assert_eq!(client.put("", 0, 0, 0, 0, into), Err(bad), "more than was given");
    loopback.reply.set(Some(Reply { words: [0, page, 0, 0, 0], control: Control::bytes(9) }));
    assert_eq!(client.get(0, into), Err(bad), "bytes in the message as well");
    loopback.reply.set(Some(Reply { words: [0, page, 0, 0, 0], control: Control(0) }));
    assert_eq!(client.get(0, into), Ok(PAGE_BYTES));
}

/// The first word of what a request is answered with.
fn code(words: Words, length: usize, window: u64) -> u64 {
    let loopback = Loopback::new();
    let mut message = Answer { words, control: Control(0) };
    loopback.carry(&mut message, &[&vec![b'a'; length]], &mut [], window).unwrap();
    message.words[0]
}

#[test]
fn each_protocol_error() {
    let mut room = pages(1);
    let window = bytes(&mut room).as_mut_ptr() as u64 | 1;
    assert_eq!(code([StoreClient::GET, 0, 0, 0, 0], 0, window | WRITABLE), 0);
    assert_eq!(code([StoreClient::GET, 0, 0, 0, 0], 0, window), Protocol::BadWindow.code(), "it must be writable");
    assert_eq!(
        code([StoreClient::GET | 1 << 16, 0, 0, 0, 0], 0, window | WRITABLE),
        Protocol::BadLength.code(),
        "two lengths"
    );
    assert_eq!(
        code([StoreClient::GET, 0, 0, 0, 0], 1, window | WRITABLE),
        Protocol::BadLength.code(),
        "bytes that nobody takes"
    );
    assert_eq!(code([StoreClient::PUT, 0, 0, 0, 0], 8, window), 0);
    let writable = code([StoreClient::PUT, 0, 0, 0, 0], 8, window | WRITABLE);
    assert_eq!(writable, Protocol::BadWindow.code(), "it must not be writable");
    assert_eq!(code([StoreClient::PUT | 8 << 32, 0, 0, 0, 0], 16, window), Protocol::BadLength.code(), "two lengths");
    assert_eq!(code([StoreClient::SIZE, 0, 0, 0, 0], 0, window), Protocol::BadWindow.code(), "the method takes none");
    assert_eq!(code([StoreClient::SIZE + 1, 0, 0, 0, 0], 0, window), Protocol::UnknownMethod.code());
}

/// Memory that its client changes all the time: each byte has another value whenever it is read.
struct Changing {
    /// How often each byte was read.
    reads: RefCell<Vec<u8>>,
}

impl Changing {
    fn first_value(at: usize) -> u8 {
        (at % 251) as u8 ^ 0x55
    }
}

impl Memory for Changing {
    fn read(&self, _: u64, at: usize, into: &mut [u8]) {
        let mut reads = self.reads.borrow_mut();
        for (place, byte) in into.iter_mut().enumerate() {
            let reads = &mut reads[at + place];
            *byte = Self::first_value(at + place).wrapping_add(*reads);
            *reads += 1;
        }
    }
    fn write(&self, _: u64, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.reads.borrow().len());
    }
}

/// Only words and the message are compared, and these cannot change.
#[test]
fn a_stub_reads_each_byte_of_a_window_at_most_once() {
    for pages in [1, 2, MAX_PAGES] {
        let length = pages * PAGE_BYTES;
        for (word, flags, code, reads) in [
            (StoreClient::PUT, 0, 0, 1),
            (StoreClient::PUT | 1 << 32, 0, Protocol::BadLength.code(), 0),
            (StoreClient::GET, WRITABLE, 0, 0),
            (StoreClient::GET, 0, Protocol::BadWindow.code(), 0),
            (StoreClient::SIZE, 0, Protocol::BadWindow.code(), 0),
        ] {
            let memory = Changing { reads: RefCell::new(vec![0; length]) };
            let server = Loopback::new().server;
            let overflow = if word & 0xffff == StoreClient::PUT { 8 } else { 0 };
            let mut area = [0; MESSAGE_BYTES];
            let mut request = Request {
                badge: 0,
                words: [word, 0, 0, 0, 0],
                length: overflow,
                delegated: None,
                window: Window::new(pages as u64 | flags, &memory),
                area: &mut area,
                lent: &server.lent,
            };
            assert_eq!(server.dispatch(&mut request).words[0], code, "{word:#x}");
            assert!(memory.reads.borrow().iter().all(|times| *times == reads), "{word:#x}");
            if reads > 0 {
                let kept = server.bytes.borrow();
                assert!(kept[..length].iter().enumerate().all(|(at, byte)| *byte == Changing::first_value(at)));
            }
        }
    }
}

#[test]
fn layout_says_where_the_window_is() {
    assert!(STORE_LAYOUT.contains("portal npkox4w>ox5\n"), "{STORE_LAYOUT}");
    assert!(
        STORE_LAYOUT.contains("or a window, to be written: word 4: into; its length in word 0 is 0"),
        "{STORE_LAYOUT}"
    );
    assert!(
        STORE_LAYOUT.contains("or a window, to be read: word 4: bytes; its length in word 0 is 0"),
        "{STORE_LAYOUT}"
    );
    assert!(STORE_LAYOUT.contains("bytes: into (word 1), or in the window"), "{STORE_LAYOUT}");
}

proptest! {
    /// However a buffer lies, its parts one after the other are all of it, and no window goes beyond.
    #[test]
    fn parts_are_the_buffer(head in 0usize..PAGE_BYTES, length in 0usize..19 * PAGE_BYTES, at in 0u64..9000) {
        let loopback = Loopback::new();
        let client = StoreClient(&loopback);
        let mut room = pages(20);
        let into = &mut bytes(&mut room)[head..head + length];
        allow(&loopback, into);
        let mut done = 0;
        while done < length {
            let part = Part::of(into[done..].as_ptr() as usize, length - done);
            let count = client.get(at + done as u64, &mut into[done..]).unwrap();
            prop_assert_eq!(count, part.bytes());
            prop_assert!(count > 0);
            done += count;
        }
        prop_assert_eq!(&into[..], &loopback.server.bytes.borrow()[at as usize..at as usize + length]);
        let calls = loopback.windows.get() + loopback.messages.get();
        prop_assert!(calls <= 2 + 2, "{} calls", calls);
        into.iter_mut().for_each(|byte| *byte = !*byte);
        let mut done = 0;
        while done < length {
            done += client.put("", at + done as u64, 0, 0, 0, &into[done..]).unwrap().0;
        }
        prop_assert_eq!(&into[..], &loopback.server.bytes.borrow()[at as usize..at as usize + length]);
        prop_assert!(room[0].0[..head].iter().all(|byte| *byte == 0x77), "what is before it");
    }

    #[test]
    fn garbage_is_answered(words: [u64; 5], method in 0u64..4, length in 0usize..=MESSAGE_BYTES, with in 0u64..64) {
        let mut room = pages(16);
        let start = bytes(&mut room).as_mut_ptr() as u64;
        for words in [words, [words[0] & 0x1fff_1fff_1fff_0000 | method, words[1], words[2], words[3], words[4]]] {
            let pages = (with % 17) | if with < 32 { WRITABLE } else { 0 };
            let loopback = Loopback::new();
            let mut message = Answer { words, control: Control(0) };
            let window = if pages & 0x1f == 0 { 0 } else { start | pages };
            loopback.carry(&mut message, &[&vec![b'a'; length]], &mut [], window).unwrap();
            prop_assert!(message.control.length() <= MESSAGE_BYTES);
        }
    }
}
