//! What may go to a terminal from a program whose secrets others on that terminal must not learn.
//!
//! Terminals keep modes, a palette, titles, a saved position and more, and report them to whoever asks by typing the answer. A program that
//! sets these leaves a message there. So only text passes, and sequences whose effect the screen shows: ECMA-48 (5th edition), 5.4, of the
//! private ones none.

/// Bytes of the numbers of a sequence, at most.
const MOST: usize = 16;
/// Final bytes of sequences that move the cursor, erase, insert, delete, or choose how characters look.
const SHOWN: &[u8] = b"ABCDEFGHJKLMPSTXdfm@";
/// In the place of a byte that does not pass.
const REFUSED: &[u8] = b"?";

const ESCAPE: u8 = 0x1b;
/// The first byte, in UTF-8, of the control characters that stand for sequences (U+0080 to U+009F), among others.
const C1: u8 = 0xc2;

/// Where in a sequence the output is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Text,
    AfterC1,
    AfterEscape,
    /// After this many bytes of numbers.
    Numbers(usize),
    /// In one that does not pass: to its final byte.
    Refused,
}

/// Keeps its place from one piece of output to the next: a sequence can be divided among several.
#[derive(Debug)]
pub struct Filter {
    place: Place,
    numbers: [u8; MOST],
    /// A sequence that passed may have left another look than the usual one.
    is_coloured: bool,
}

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

impl Filter {
    /// In text.
    pub const fn new() -> Self {
        Self { place: Place::Text, numbers: [0; MOST], is_coloured: false }
    }

    /// Puts what passes. `may_ask`: also the question where the cursor is, of whoever gets the answer.
    pub fn pass(&mut self, bytes: &[u8], may_ask: bool, mut put: impl FnMut(&[u8])) {
        for byte in bytes {
            self.take(*byte, may_ask, &mut put);
        }
    }

    /// The sequence that takes back how characters look, if one that passed may have changed it.
    pub fn restore(&mut self) -> &'static [u8] {
        self.place = Place::Text;
        if core::mem::take(&mut self.is_coloured) { b"\x1b[0m" } else { b"" }
    }

    fn take(&mut self, byte: u8, may_ask: bool, put: &mut impl FnMut(&[u8])) {
        self.place = match (self.place, byte) {
            (Place::AfterC1, 0x80..=0x9f) => {
                put(REFUSED);
                Place::Text
            }
            (Place::AfterC1, _) => {
                put(&[C1]);
                text(byte, put)
            }
            (Place::AfterEscape, b'[') => Place::Numbers(0),
            // Saves the cursor's position, and goes back there.
            (Place::AfterEscape, b'7' | b'8') => Place::Text,
            (Place::AfterEscape, _) => {
                put(REFUSED);
                text(byte, put)
            }
            (Place::Numbers(count), b'0'..=b'9' | b';') if count < MOST => {
                self.numbers[count] = byte;
                Place::Numbers(count + 1)
            }
            (Place::Numbers(count), 0x40..=0x7e) => {
                let numbers = &self.numbers[..count];
                if SHOWN.contains(&byte) || may_ask && (numbers, byte) == (b"6", b'n') {
                    put(b"\x1b[");
                    put(numbers);
                    put(&[byte]);
                    self.is_coloured |= byte == b'm';
                }
                Place::Text
            }
            (Place::Numbers(_) | Place::Refused, 0x20..=0x3f) => Place::Refused,
            (Place::Refused, 0x40..=0x7e) => Place::Text,
            (Place::Text | Place::Numbers(_) | Place::Refused, _) => text(byte, put),
        };
    }
}

/// A byte of text, or the first of a sequence.
fn text(byte: u8, put: &mut impl FnMut(&[u8])) -> Place {
    match byte {
        ESCAPE => return Place::AfterEscape,
        C1 => return Place::AfterC1,
        b'\n' | b'\r' | b'\t' | 7 | 8 | b' '..=b'~' | 0x80.. => put(&[byte]),
        _ => put(REFUSED),
    }
    Place::Text
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    fn passed(pieces: &[&[u8]], may_ask: bool) -> String {
        let (mut filter, mut out) = (Filter::new(), Vec::new());
        pieces.iter().for_each(|piece| filter.pass(piece, may_ask, |bytes| out.extend_from_slice(bytes)));
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn text_and_what_the_screen_shows_pass() {
        for text in ["a\r\n\tb\x08\x07", "wörld ★ \u{a0}", "\x1b[H\x1b[2J\x1b[10;60Hx\x1b[K\x1b[7mbar\x1b[0m"] {
            assert_eq!(passed(&[text.as_bytes()], false), text);
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(passed(&bytes, false), text);
        }
    }

    #[test]
    fn what_a_terminal_keeps_does_not_pass() {
        for (text, due) in [
            ("\x1b]4;1;rgb:41/42/43\x07", "?]4;1;rgb:41/42/43\x07"),
            ("\x1bP$qm\x1b\\x", "?P$qm?\\x"),
            ("a\x1b[?2004hb", "ab"),
            ("a\x1b[?25lb\x1b[>1u\x1b[!pc", "abc"),
            ("a\x1b[1;2rb\x1b[5nc\x1b[0cd", "abcd"),
            ("a\x1b7b\x1b8c\x1bcd", "abc?cd"),
            ("a\u{9b}6nb\u{9d}c", "a?6nb?c"),
            ("a\x00\x0e\x7fb", "a???b"),
            ("\x1b[11111111111111111mx", "x"),
            ("\x1b[1\x1b[?6hx", "x"),
        ] {
            assert_eq!(passed(&[text.as_bytes()], true), due, "{text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(passed(&bytes, true), due, "{text:?}");
        }
    }

    #[test]
    fn only_the_reader_asks_for_the_cursor() {
        assert_eq!(passed(&[b"\x1b[6n"], true), "\x1b[6n");
        assert_eq!(passed(&[b"\x1b[6n"], false), "");
    }

    #[test]
    fn colours_are_taken_back_once() {
        let mut filter = Filter::new();
        assert_eq!(filter.restore(), b"");
        filter.pass(b"\x1b[31mred\x1b", false, |_| ());
        assert_eq!((filter.restore(), filter.restore()), (&b"\x1b[0m"[..], &b""[..]));
        // The rest of a sequence that began before the terminal changed hands is text.
        let mut out = Vec::new();
        filter.pass(b"[31m", false, |bytes| out.extend_from_slice(bytes));
        assert_eq!(out, b"[31m");
    }
}
