//! The interface with windows that the book shows: it stands there as it is here, and does what is said of it.
#![allow(missing_docs)]

mod example;

use std::cell::{Cell, RefCell};

use abi::{Control, Error, MESSAGE_BYTES, PAGE_BYTES};
use example::{PictureClient, PictureError, PictureServer, Screen, show_all};
use idl::{
    Again, AllWords, Answer, Delegated, Failure, Memory, Request, Shown, Transport, WINDOW_PORTAL, Window, Words,
};

#[test]
fn the_book_has_the_example() {
    let source = include_str!("example/mod.rs");
    let start = source.find('\n').unwrap() + 1;
    let example = &source[start..source.find("// end").unwrap()];
    let chapter = include_str!("../../../docs/book/passing-data.md");
    assert!(chapter.contains(example), "put this into docs/book/passing-data.md:\n{example}");
    assert!(example::PICTURE_LAYOUT.contains(WINDOW_PORTAL));
}

/// A window of the test is a number of a buffer, so that no address is needed.
struct Kept<'a>(RefCell<&'a mut [u8]>);

impl Memory for Kept<'_> {
    fn read(&self, _: u64, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.borrow()[at..at + into.len()]);
    }
    fn write(&self, _: u64, at: usize, bytes: &[u8]) {
        self.0.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Plays the nucleus.
struct Local {
    screen: Screen,
    windows: Cell<usize>,
    messages: Cell<usize>,
}

impl Local {
    fn serve(&self, message: &mut Answer, send: &[&[u8]], receive: &mut [u8], window: Option<Window<'_>>) {
        let mut area = [0; MESSAGE_BYTES];
        let bytes = send.concat();
        area[..bytes.len()].copy_from_slice(&bytes);
        let lent = Cell::new(0);
        let words = message.words;
        let length = bytes.len();
        let mut request = Request { badge: 0, words, length, delegated: None, window, area: &mut area, lent: &lent };
        let reply = self.screen.dispatch(&mut request);
        let count = reply.control.length().min(receive.len());
        receive[..count].copy_from_slice(&area[..count]);
        *message = Answer { words: reply.words, control: reply.control };
    }
}

impl Transport for &Local {
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error> {
        let mut message = Answer { words, control };
        self.call_bytes(&mut message, again, &[], &mut []).map(|()| message)
    }
    fn call_bytes(&self, message: &mut Answer, _: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        self.messages.set(self.messages.get() + 1);
        self.serve(message, send, receive, None);
        Ok(())
    }
    fn call_window(&self, message: &mut Answer, _: Again, send: &[&[u8]], shown: &mut Shown<'_>) -> Result<(), Error> {
        self.windows.set(self.windows.get() + 1);
        let word = shown.word();
        let mut copy;
        let bytes = match shown {
            Shown::Read(bytes) => {
                copy = bytes.to_vec();
                &mut copy[..]
            }
            Shown::Written(bytes) => bytes,
        };
        let kept = Kept(RefCell::new(bytes));
        self.serve(message, send, &mut [], Window::new(word, &kept));
        Ok(())
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
struct Pages([u8; 4 * PAGE_BYTES]);

#[test]
fn the_example_does_what_the_book_says() {
    let pixels: Vec<u8> = (0..10 * PAGE_BYTES).map(|at| (at % 253) as u8).collect();
    let local = Local { screen: Screen(RefCell::new(pixels.clone())), windows: Cell::new(0), messages: Cell::new(0) };
    let client = PictureClient(&local);
    let mut room = Box::new(Pages([0; 4 * PAGE_BYTES]));
    let into = &mut room.0[100..3 * PAGE_BYTES + 50];
    assert_eq!(show_all(&client, into), Ok(into.len()));
    assert_eq!(*into, pixels[..into.len()]);
    assert_eq!((local.messages.get(), local.windows.get()), (2, 1), "head, two pages at once, tail");
    into.fill(7);
    assert_eq!(client.draw(0, &into[PAGE_BYTES - 100..]), Ok(2 * PAGE_BYTES));
    assert_eq!((local.messages.get(), local.windows.get()), (2, 2));
    assert!(local.screen.0.borrow()[..2 * PAGE_BYTES].iter().all(|pixel| *pixel == 7));
    assert_eq!(client.draw(1 << 40, into), Err(Failure::Refused(PictureError::Outside)));
}
