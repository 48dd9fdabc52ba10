//! From bytes to keys: UTF-8, control characters, and the escape sequences that terminals send.
//!
//! A sequence that cannot be understood is swallowed as a whole, so that a broken sequence never leaves
//! stray characters in the line.

/// Something a person pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Key {
    Character(char),
    Return,
    Tab,
    Backspace,
    Delete,
    /// Ctrl-D: deletes, or ends the input at an empty line.
    EndOrDelete,
    /// Ctrl-C.
    Interrupt,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    /// Ctrl-K.
    CutToEnd,
    /// Ctrl-U.
    CutToStart,
    /// Ctrl-W.
    CutWord,
    /// Ctrl-Y.
    Paste,
    /// Ctrl-R.
    Search,
    /// Ctrl-G.
    Abandon,
    /// Ctrl-L.
    ClearScreen,
    /// A control character or sequence without a meaning here.
    Unknown,
}

/// Parameter bytes of an escape sequence that are kept; longer ones are swallowed.
const MAX_PARAMETERS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Ground,
    /// In a character of several bytes: the bytes so far and how many are missing.
    Utf8 { value: u32, missing: u8, least: u32 },
    /// After ESC.
    Escape,
    /// After ESC O.
    Function,
    /// After ESC [.
    Sequence { length: usize },
}

/// Turns bytes into keys.
#[derive(Default)]
pub struct Decoder {
    state: State,
    parameters: [u8; MAX_PARAMETERS],
}

impl Decoder {
    /// Takes a byte; gives a key when one is complete.
    pub fn feed(&mut self, byte: u8) -> Option<Key> {
        let state = core::mem::take(&mut self.state);
        match state {
            State::Ground => self.ground(byte),
            State::Utf8 { value, missing, least } => {
                if byte & 0xc0 != 0x80 {
                    // The character was cut short: this byte starts something new.
                    return self.ground(byte);
                }
                let value = value << 6 | u32::from(byte & 0x3f);
                if missing > 1 {
                    self.state = State::Utf8 { value, missing: missing - 1, least };
                    return None;
                }
                let character = char::from_u32(value).filter(|c| value >= least && !c.is_control());
                Some(character.map_or(Key::Unknown, Key::Character))
            }
            State::Escape => match byte {
                b'[' => {
                    self.state = State::Sequence { length: 0 };
                    None
                }
                b'O' => {
                    self.state = State::Function;
                    None
                }
                b'b' | b'B' => Some(Key::WordLeft),
                b'f' | b'F' => Some(Key::WordRight),
                0x7f | 8 => Some(Key::CutWord),
                // ESC pressed alone, then something else: the second key counts.
                0x1b => {
                    self.state = State::Escape;
                    None
                }
                0x00..=0x1f => self.ground(byte),
                _ => Some(Key::Unknown),
            },
            State::Function => Some(final_byte(byte, &[])),
            State::Sequence { length } => match byte {
                0x20..=0x3f => {
                    if let Some(place) = self.parameters.get_mut(length) {
                        *place = byte;
                    }
                    self.state = State::Sequence { length: (length + 1).min(MAX_PARAMETERS + 1) };
                    None
                }
                0x40..=0x7e if length <= MAX_PARAMETERS => Some(final_byte(byte, &self.parameters[..length])),
                // A control character ends a broken sequence and counts itself.
                0x00..=0x1f => self.ground(byte),
                _ => Some(Key::Unknown),
            },
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        Some(match byte {
            0x20..=0x7e => Key::Character(byte as char),
            b'\r' | b'\n' => Key::Return,
            b'\t' => Key::Tab,
            0x7f | 0x08 => Key::Backspace,
            0x01 => Key::Home,
            0x02 => Key::Left,
            0x03 => Key::Interrupt,
            0x04 => Key::EndOrDelete,
            0x05 => Key::End,
            0x06 => Key::Right,
            0x07 => Key::Abandon,
            0x0b => Key::CutToEnd,
            0x0c => Key::ClearScreen,
            0x0e => Key::Down,
            0x10 => Key::Up,
            0x12 => Key::Search,
            0x15 => Key::CutToStart,
            0x17 => Key::CutWord,
            0x19 => Key::Paste,
            0x1b => {
                self.state = State::Escape;
                return None;
            }
            0xc2..=0xdf => return self.begin(byte & 0x1f, 1, 0x80),
            0xe0..=0xef => return self.begin(byte & 0x0f, 2, 0x800),
            0xf0..=0xf4 => return self.begin(byte & 0x07, 3, 0x1_0000),
            _ => Key::Unknown,
        })
    }

    fn begin(&mut self, bits: u8, missing: u8, least: u32) -> Option<Key> {
        self.state = State::Utf8 { value: u32::from(bits), missing, least };
        None
    }
}

/// The key of a sequence `ESC [ parameters byte` or `ESC O byte` (ECMA-48 with what xterm and the
/// VT220 send).
fn final_byte(byte: u8, parameters: &[u8]) -> Key {
    let with_control = parameters.ends_with(b";5") || parameters.ends_with(b";3");
    match (byte, parameters) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) if with_control => Key::WordRight,
        (b'D', _) if with_control => Key::WordLeft,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"3") => Key::Delete,
        _ => Key::Unknown,
    }
}
