//! A batch of frames in a window, which its client changes between any two reads.
#![allow(missing_docs)]

use std::cell::{Cell, RefCell};

use abi::PAGE_BYTES;
use idl::{Input, Memory, Window};
use protocols::nic::{LENGTH_BYTES, MAX_FRAME, MIN_FRAME, NicError, send_each};

/// A page that its client changes when so many reads were made.
struct Changing {
    page: RefCell<[u8; PAGE_BYTES]>,
    reads: Cell<usize>,
    /// How often each byte was read.
    times: RefCell<[u8; PAGE_BYTES]>,
    /// After this many reads, the word at this byte becomes this one.
    after: usize,
    at: usize,
    word: u64,
}

impl Changing {
    fn new(page: [u8; PAGE_BYTES], after: usize, at: usize, word: u64) -> Self {
        let times = RefCell::new([0; PAGE_BYTES]);
        Self { page: RefCell::new(page), reads: Cell::new(0), times, after, at, word }
    }
}

impl Memory for Changing {
    fn read(&self, _: u64, at: usize, into: &mut [u8]) {
        let mut page = self.page.borrow_mut();
        if self.reads.get() == self.after {
            page[self.at..self.at + 8].copy_from_slice(&self.word.to_le_bytes());
        }
        self.reads.set(self.reads.get() + 1);
        into.copy_from_slice(&page[at..at + into.len()]);
        self.times.borrow_mut()[at..at + into.len()].iter_mut().for_each(|times| *times += 1);
    }
    fn write(&self, _: u64, _: usize, _: &[u8]) {
        unreachable!("the window may only be read");
    }
}

/// Frames of these lengths, and a length of 0 after them if there is room.
fn batch(lengths: &[usize]) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    let mut at = 0;
    for (number, length) in lengths.iter().enumerate() {
        page[at..at + LENGTH_BYTES].copy_from_slice(&(*length as u16).to_le_bytes());
        page[at + LENGTH_BYTES..at + LENGTH_BYTES + length].fill(0x80 + number as u8);
        at += LENGTH_BYTES + length;
    }
    page
}

/// The frames that a driver with room for `room` of them sends, and the place where it stops.
fn send(memory: &Changing, room: usize) -> (Result<u64, NicError>, Vec<Vec<u8>>, usize) {
    let batch = Input::Window(Window::new(1, memory).unwrap());
    let (mut frames, mut at) = (Vec::new(), 0);
    let outcome = send_each(&batch, &mut at, |start, length| {
        let takes = frames.len() < room;
        if takes {
            let mut buffer = [0; MAX_FRAME];
            batch.copy_to(start, &mut buffer[..length]);
            frames.push(buffer[..length].to_vec());
        }
        takes
    });
    (outcome, frames, at)
}

#[test]
fn no_change_of_a_batch_misleads_the_driver() {
    let words = [0, 1, 13, 14, 1514, 1515, 4094, 0xffff].map(|length: u64| length * 0x0001_0001_0001_0001);
    let (mut refused, mut taken) = (0, 0);
    for lengths in [&[60, 1514, 14][..], &[14, 1002, 1514, 1514, 42], &[1514, 1514, 1060]] {
        let page = batch(lengths);
        // A length and a frame are a read each.
        for after in 0..=2 * lengths.len() {
            for (at, word) in (0..PAGE_BYTES).step_by(8).flat_map(|at| words.map(|word| (at, word))) {
                let memory = Changing::new(page, after, at, word);
                let (outcome, frames, end) = send(&memory, lengths.len());
                assert!(memory.times.borrow().iter().all(|times| *times <= 1), "compared bytes are read again");
                assert!(frames.iter().all(|frame| (MIN_FRAME..=MAX_FRAME).contains(&frame.len())));
                let bytes: usize = frames.iter().map(|frame| LENGTH_BYTES + frame.len()).sum();
                match outcome {
                    Ok(sent) => {
                        taken += 1;
                        assert_eq!(sent, frames.len() as u64);
                        assert!(end == PAGE_BYTES || end == bytes);
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(matches!(error, NicError::TooShort | NicError::TooLong | NicError::Incomplete));
                        assert_eq!(end, bytes);
                    }
                }
            }
        }
    }
    assert!(refused > 100 && taken > 100, "{refused} refused, {taken} taken");
}

#[test]
fn frames_of_a_batch() {
    let check = |page, room, outcome, lengths: &[usize], end| {
        let (found, frames, stopped) = send(&Changing::new(page, usize::MAX, 0, 0), room);
        assert_eq!((found, stopped), (outcome, end), "{lengths:?}");
        let expected: Vec<_> = lengths.iter().zip(0x80..).map(|(length, byte)| vec![byte; *length]).collect();
        assert!(frames == expected, "{lengths:?}");
    };
    check(batch(&[60, 1514, 14]), 3, Ok(3), &[60, 1514, 14], PAGE_BYTES);
    check(batch(&[60, 1514, 14]), 2, Ok(2), &[60, 1514], 60 + 1514 + 4);
    check(batch(&[1514, 1514, 1062]), 3, Ok(3), &[1514, 1514, 1062], PAGE_BYTES);
    check(batch(&[13]), 1, Err(NicError::TooShort), &[], 0);
    check(batch(&[60, 1515]), 2, Err(NicError::TooLong), &[60], 62);
    check(batch(&[1514, 1514, 1061]), 3, Err(NicError::Incomplete), &[1514, 1514, 1061], PAGE_BYTES - 1);
    let mut beyond = batch(&[1514, 1514]);
    beyond[3032..3034].copy_from_slice(&1063u16.to_le_bytes());
    check(beyond, 3, Err(NicError::Incomplete), &[1514, 1514], 3032);
}
