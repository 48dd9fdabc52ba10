//! JSON (RFC 8259) into a buffer of a fixed capacity.
//!
//! Text that does not fit is left out, and [`Writer::fits`] reports it. [`Writer::element`] writes something whole or not
//! at all and keeps [`RESERVE`] bytes for the brackets that are still to be closed.

use alloc::vec::Vec;
use core::fmt::{self, Write as _};

/// Bytes that elements leave for what stands behind them.
pub const RESERVE: usize = 128;

/// Writes a text.
#[derive(Debug)]
pub struct Writer<'a> {
    into: &'a mut Vec<u8>,
    limit: usize,
    fits: bool,
    /// Something stands before, and what comes next is parted from it.
    parts: bool,
}

impl<'a> Writer<'a> {
    /// Empties the buffer, whose capacity is what may be written.
    pub fn new(into: &'a mut Vec<u8>) -> Self {
        into.clear();
        let limit = into.capacity();
        Self { into, limit, fits: true, parts: false }
    }

    /// Whether nothing was left out by accident: elements that were not written do not count.
    pub fn fits(&self) -> bool {
        self.fits
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.fits &= self.limit.checked_sub(self.into.len()).is_some_and(|left| bytes.len() <= left);
        if self.fits {
            // Within the capacity: it does not grow.
            self.into.extend_from_slice(bytes);
        }
    }

    fn part(&mut self) {
        if core::mem::replace(&mut self.parts, true) {
            self.raw(b",");
        }
    }

    fn enclosed(&mut self, open: &[u8], close: &[u8], body: impl FnOnce(&mut Self)) {
        self.part();
        self.raw(open);
        self.parts = false;
        body(self);
        self.raw(close);
        self.parts = true;
    }

    /// `{…}`; the body writes with [`Self::key`] before each value.
    pub fn object(&mut self, body: impl FnOnce(&mut Self)) {
        self.enclosed(b"{", b"}", body);
    }

    /// `[…]`.
    pub fn array(&mut self, body: impl FnOnce(&mut Self)) {
        self.enclosed(b"[", b"]", body);
    }

    /// The name of the value that comes next.
    pub fn key(&mut self, name: &str) {
        self.text(name.as_bytes());
        self.raw(b":");
        self.parts = false;
    }

    /// Writes an element whole or not at all; says whether it is there.
    pub fn element(&mut self, body: impl FnOnce(&mut Self)) -> bool {
        let (used, limit, parts) = (self.into.len(), self.limit, self.parts);
        self.limit = limit.min(self.into.capacity().saturating_sub(RESERVE));
        let fitted = core::mem::replace(&mut self.fits, true);
        body(self);
        let is_whole = self.fits;
        self.limit = limit;
        self.fits = fitted;
        if !is_whole {
            self.into.truncate(used);
            self.parts = parts;
        }
        is_whole
    }

    /// A number.
    pub fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.part();
        self.raw(&digits[at..]);
    }

    /// `true` or `false`.
    pub fn truth(&mut self, truth: bool) {
        self.part();
        self.raw(if truth { b"true" } else { b"false" });
    }

    /// `null`.
    pub fn nothing(&mut self) {
        self.part();
        self.raw(b"null");
    }

    /// A text; bytes that are not UTF-8 become U+FFFD. Characters that mean something in HTML are escaped too.
    pub fn text(&mut self, bytes: &[u8]) {
        self.part();
        self.raw(b"\"");
        for chunk in bytes.utf8_chunks() {
            chunk.valid().chars().for_each(|c| self.character(c));
            if !chunk.invalid().is_empty() {
                self.character(char::REPLACEMENT_CHARACTER);
            }
        }
        self.raw(b"\"");
    }

    /// A text: what this is written as.
    pub fn shown(&mut self, what: impl fmt::Display) {
        struct Characters<'a, 'b>(&'a mut Writer<'b>);
        impl fmt::Write for Characters<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                text.chars().for_each(|c| self.0.character(c));
                Ok(())
            }
        }
        self.part();
        self.raw(b"\"");
        // A text that does not fit is noted: see `fits`.
        let _ = write!(Characters(self), "{what}");
        self.raw(b"\"");
    }

    fn character(&mut self, c: char) {
        match c {
            '"' => self.raw(b"\\\""),
            '\\' => self.raw(b"\\\\"),
            '\u{20}'..='\u{7e}' if !matches!(c, '<' | '>' | '&') => self.raw(&[c as u8]),
            '\u{80}'..='\u{d7ff}' if !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}') => {
                self.raw(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let digit = |shift: u32| b"0123456789abcdef"[usize::from(*unit >> shift & 15)];
                    self.raw(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
                }
            }
        }
    }
}
