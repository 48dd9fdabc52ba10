//! The line discipline of a terminal: the processing between the bytes of a serial line and the bytes
//! that programs read and write.
//!
//! * *Cooked*: input is collected into lines that can be corrected (Backspace, Ctrl-U, Ctrl-W) and are
//!   echoed; Return ends a line, Ctrl-D ends the input (or hands over what there is), Ctrl-C throws
//!   the line away and interrupts.
//! * *Keys*: every byte but Ctrl-C is handed over as it comes and not echoed; Ctrl-C interrupts.
//! * *Raw*: the same with Ctrl-C.
//!
//! Output is the same in all: `\n` becomes `\r\n`.
//!
//! Input that was typed ahead survives a change of the mode: characters collected for a line become raw
//! bytes, raw bytes that nobody read are cooked.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod filter;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use filter::Filter;

/// Bytes of a line being collected; more are refused with a bell.
pub const MAX_LINE: usize = 1024;
/// Bytes waiting to be read; more are refused with a bell.
pub const MAX_WAITING: usize = 8192;

/// Bytes of echo that wait for the device; more are lost.
pub const MAX_ECHO: usize = 4096;

/// Ctrl-C.
const INTERRUPT: u8 = 3;

/// How input is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// By lines, with echo.
    Cooked,
    /// As it comes, except that Ctrl-C interrupts.
    Keys,
    /// As it comes.
    Raw,
}

/// The effect of a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Nothing that anybody waits for.
    Nothing,
    /// There is something to read.
    Ready,
    /// Ctrl-C.
    Interrupt,
}

/// The input side of a terminal.
pub struct Input {
    mode: Mode,
    /// The line being collected.
    line: Vec<u8>,
    /// Input that can be read.
    waiting: VecDeque<u8>,
    /// Where in `waiting` reads stop: positions (bytes ever added) of ends of lines and of input.
    stops: VecDeque<u64>,
    added: u64,
    taken: u64,
    after_return: bool,
}

impl Default for Input {
    fn default() -> Self {
        Self::new()
    }
}

impl Input {
    /// In cooked mode.
    pub const fn new() -> Self {
        Self {
            mode: Mode::Cooked,
            line: Vec::new(),
            waiting: VecDeque::new(),
            stops: VecDeque::new(),
            added: 0,
            taken: 0,
            after_return: false,
        }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Changes the mode; `echo` gets what is to be written. True if an interrupt was typed ahead.
    pub fn set_mode(&mut self, mode: Mode, echo: &mut Vec<u8>) -> bool {
        if mode == self.mode {
            return false;
        }
        let before = core::mem::replace(&mut self.mode, mode);
        let mut interrupted = false;
        match mode {
            Mode::Raw | Mode::Keys if before != Mode::Cooked => {}
            Mode::Raw | Mode::Keys => {
                let line = core::mem::take(&mut self.line);
                self.add(&line);
                self.stops.clear();
            }
            Mode::Cooked => {
                let typed = core::mem::take(&mut self.waiting);
                self.taken = self.added;
                self.stops.clear();
                for byte in typed {
                    interrupted |= self.receive(byte, echo) == Event::Interrupt;
                }
            }
        }
        interrupted
    }

    /// Takes a byte from the line; `echo` gets what is to be written.
    pub fn receive(&mut self, byte: u8, echo: &mut Vec<u8>) -> Event {
        if self.mode == Mode::Raw || self.mode == Mode::Keys && byte != INTERRUPT {
            if self.waiting.len() >= MAX_WAITING {
                show(echo, &[7]);
                return Event::Nothing;
            }
            self.add(&[byte]);
            return Event::Ready;
        }
        let second_half = self.after_return && byte == b'\n';
        self.after_return = byte == b'\r';
        match byte {
            b'\n' if second_half => Event::Nothing,
            b'\r' | b'\n' => {
                if self.waiting.len() + self.line.len() >= MAX_WAITING {
                    show(echo, &[7]);
                    return Event::Nothing;
                }
                self.line.push(b'\n');
                show(echo, b"\r\n");
                self.hand_over()
            }
            INTERRUPT => {
                self.line.clear();
                self.waiting.clear();
                self.stops.clear();
                self.taken = self.added;
                show(echo, b"^C\r\n");
                Event::Interrupt
            }
            4 => self.hand_over(),
            8 | 0x7f => {
                self.erase(echo);
                Event::Nothing
            }
            0x15 => {
                while self.erase(echo) {}
                Event::Nothing
            }
            0x17 => {
                while self.line.last().is_some_and(|byte| *byte == b' ') {
                    self.erase(echo);
                }
                while self.line.last().is_some_and(|byte| *byte != b' ') {
                    self.erase(echo);
                }
                Event::Nothing
            }
            b'\t' | 0x20..=0xff if self.line.len() < MAX_LINE => {
                self.line.push(byte);
                show(echo, &[byte]);
                Event::Nothing
            }
            _ => {
                show(echo, &[7]);
                Event::Nothing
            }
        }
    }

    /// Is there something to read?
    pub fn ready(&self) -> bool {
        match self.mode {
            Mode::Cooked => !self.stops.is_empty(),
            Mode::Raw | Mode::Keys => !self.waiting.is_empty(),
        }
    }

    /// Reads up to `bytes.len()` bytes, at most to the end of a line. `None`: there is nothing yet. 0 of
    /// them mean the end of the input.
    pub fn read(&mut self, bytes: &mut [u8]) -> Option<usize> {
        if !self.ready() {
            return None;
        }
        let most = match self.stops.front() {
            Some(stop) => (*stop - self.taken) as usize,
            None => self.waiting.len(),
        };
        let count = most.min(bytes.len());
        for byte in &mut bytes[..count] {
            *byte = self.waiting.pop_front().unwrap_or(0);
        }
        self.taken += count as u64;
        if count == most {
            self.stops.pop_front();
        }
        Some(count)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
        self.added += bytes.len() as u64;
    }

    fn hand_over(&mut self) -> Event {
        if self.stops.len() >= MAX_LINE {
            return Event::Nothing;
        }
        let line = core::mem::take(&mut self.line);
        self.add(&line);
        self.stops.push_back(self.added);
        Event::Ready
    }

    /// Erases the last character; false if there is none.
    fn erase(&mut self, echo: &mut Vec<u8>) -> bool {
        while let Some(byte) = self.line.pop() {
            // Continuation bytes of UTF-8 belong to the byte before.
            if byte & 0xc0 != 0x80 || self.line.is_empty() {
                show(echo, b"\x08 \x08");
                return true;
            }
        }
        false
    }
}

/// Appends echo, if there is room.
fn show(echo: &mut Vec<u8>, bytes: &[u8]) {
    if echo.len() + bytes.len() <= MAX_ECHO {
        echo.extend_from_slice(bytes);
    }
}

/// Appends `bytes` as they are to be sent: `\n` as `\r\n`. Stops when `room` bytes were appended; gives
/// how many bytes of the input that were.
pub fn send(bytes: &[u8], room: usize, mut put: impl FnMut(u8)) -> usize {
    let mut used = 0;
    for (index, byte) in bytes.iter().enumerate() {
        let needed = 1 + usize::from(*byte == b'\n');
        if used + needed > room {
            return index;
        }
        if *byte == b'\n' {
            put(b'\r');
        }
        put(*byte);
        used += needed;
    }
    bytes.len()
}
