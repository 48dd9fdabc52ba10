//! Input at a terminal, as keys.

use alloc::vec::Vec;

/// A key that a person pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    /// A character, or a control character.
    Character(char),
    /// An arrow or another key for moving.
    Move(Move),
    /// The terminal's answer to the question for the place of its cursor: line and column, from 1.
    Place(u16, u16),
    /// Removes what stands after the cursor.
    Delete,
    /// One that has no meaning here.
    Unknown,
}

/// Ways to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Move {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    First,
    Last,
}

/// Bytes of an escape sequence that are kept.
const MAX_SEQUENCE: usize = 16;

/// Turns bytes of a terminal into keys (ECMA-48, with what xterm sends).
#[derive(Default)]
pub struct Keys {
    sequence: Vec<u8>,
    character: Vec<u8>,
}

impl Keys {
    /// Takes a byte; gives a key when one is complete.
    pub fn feed(&mut self, byte: u8) -> Option<Key> {
        if !self.sequence.is_empty() {
            return self.sequence(byte);
        }
        if byte == 0x1b {
            self.sequence.push(byte);
            return None;
        }
        self.character.push(byte);
        match core::str::from_utf8(&self.character) {
            Ok(text) => {
                let character = text.chars().next();
                self.character.clear();
                character.map(Key::Character)
            }
            Err(error) => {
                if error.error_len().is_some() {
                    self.character.clear();
                }
                None
            }
        }
    }

    fn sequence(&mut self, byte: u8) -> Option<Key> {
        match (&self.sequence[..], byte) {
            ([_], b'[' | b'O') | ([_, _, ..], 0x20..=0x3f) if self.sequence.len() < MAX_SEQUENCE => {
                self.sequence.push(byte);
                return None;
            }
            // Escape alone, then the next key.
            ([_], 0x1b) => return None,
            _ => {}
        }
        let sequence = core::mem::take(&mut self.sequence);
        Some(Self::meaning(byte, sequence.get(2..).unwrap_or_default()).unwrap_or(Key::Unknown))
    }

    /// The meaning of a sequence that ends with this byte.
    fn meaning(byte: u8, parameters: &[u8]) -> Option<Key> {
        let parameters = core::str::from_utf8(parameters).ok()?;
        let way = match (byte, parameters) {
            (b'A', _) => Move::Up,
            (b'B', _) => Move::Down,
            (b'C', _) => Move::Right,
            (b'D', _) => Move::Left,
            (b'H', _) | (b'~', "1" | "7") => Move::First,
            (b'F', _) | (b'~', "4" | "8") => Move::Last,
            (b'~', "3") => return Some(Key::Delete),
            (b'~', "5") => Move::PageUp,
            (b'~', "6") => Move::PageDown,
            (b'R', place) => {
                let (line, column) = place.split_once(';')?;
                return Some(Key::Place(line.parse().ok()?, column.parse().ok()?));
            }
            _ => return None,
        };
        Some(Key::Move(way))
    }
}

/// Asks the terminal how large it is: the cursor goes as far as it can, and its place is asked for.
pub const ASK_SIZE: &[u8] = b"\x1b7\x1b[999;999H\x1b[6n\x1b8";

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut keys = Keys::default();
        bytes.iter().filter_map(|byte| keys.feed(*byte)).collect()
    }

    #[test]
    fn keys_of_terminals() {
        let expected = [
            Key::Character('a'),
            Key::Move(Move::Up),
            Key::Move(Move::PageDown),
            Key::Place(24, 80),
            Key::Unknown,
            Key::Character('ü'),
            Key::Delete,
        ];
        assert_eq!(keys("a\x1b[A\x1b[6~\x1b[24;80R\x1b[99xü\x1b[3~".as_bytes()), expected);
        assert_eq!(
            keys(b"\x1bOB\xff\xc3x\x1b\x1b[Hq"),
            [Key::Move(Move::Down), Key::Move(Move::First), Key::Character('q')]
        );
        assert_eq!(keys(&[b"\x1b[", &[b'1'; 100][..], b"q"].concat()).last(), Some(&Key::Character('q')));
    }
}
