//! Specifications of portals: one letter for each thing that a crossing does.
//!
//! The first letter says what becomes of the stack, the second one how much state is saved; then comes one letter for each
//! parameter, and after `>` one for each result. The letters `s n`, `m p` and `c i w` are those of Pebble ("The Pebble Component-Based
//! Operating System", "Portal Specification").
//!
//! | first two | what |
//! |---|---|
//! | `n` | the callee runs on a new stack, that of one of its activations |
//! | `s` | it runs on the caller's: not yet |
//! | `p` | registers that a function preserves are kept, cleared for the callee, and restored, but for those of words 5 to 8 |
//! | `m` | they are left alone: caller and callee trust each other |
//!
//! A callee gets the address of its message area, too, where a register is free for that: on x86-64 not with `m`.
//!
//! | letter | words | the caller gives | the other side gets |
//! |---|---|---|---|
//! | `i` | 1 | a word | the word |
//! | `c` | 1 | anything | the constant of the entry (calls only) |
//! | `t` | 1 | anything | the processor's time stamp |
//! | `x1` to `x8` | 1 to 8 | a structure of so many words | the structure |
//! | `b` | 1 | a length of up to 4,096 bytes | the length, and so many bytes of the message area, copied in units of 8 |
//! | `d` | 1 | the index of an entry, 0 = none | the index where its copy stands, 0 = none |
//! | `g` | 2 | the index of a service, and a badge | the index where a new call entry to it stands, and 0 |
//! | `k` | 0 | nothing | the constant of the entry, in the register of the status (calls only) |
//! | `o` | 0 | a control word ([`abi::Control`]), on both sides of `>` or on none | the control word, and so many bytes of the message area as it says; whatever else it asks for is done on the slow path |
//! | `w` | 1 | a window ([`abi::window`]), 0 = none (calls only) | where it sees the window, 0 = none |
//! | `a` | 1 | a page that is torn away: its address and 1 ([`abi::MAX_TORN`]), 0 = none | where it is now, and 1; 0 = none |
//!
//! With `o`, the control word says whether a window goes along ([`abi::Control::WINDOW`]); if not, the word of `w` is a word.
//!
//! Words are counted from 0. The first nine travel in registers ([`abi::registers`]); further ones stand at the start of the message
//! area, before the bytes of `b`. Words that are not passed arrive as zeros.
//!
//! All of it goes along only if the caller expects just that: see [`abi::expect`].

use abi::layout::MAX_TABLE_ENTRIES;
use abi::rights::ALL;
use abi::{Control, Error, MESSAGE_BYTES, expect};

/// Words that a call or its return passes at most.
pub const MAX_WORDS: usize = 16;
/// Of these, the first ones, which travel in registers.
pub use abi::REGISTER_WORDS;
/// Words that are in no register that a function preserves: those that there can be beside a control word.
const EXPECTED_WORDS: usize = 5;
/// Letters of parameters, and letters of results, at most.
pub const MAX_LETTERS: usize = 10;
/// Bytes that a specification has at most.
pub const MAX_BYTES: usize = 48;

/// Registers of the caller that the portal keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// `p`: those that a function preserves. They are kept, cleared for the callee, and restored.
    Preserved,
    /// `m`: only where to go on. The caller trusts the callee with the others, and to preserve them.
    Minimal,
}

// Groups of letters of which there is one at most: see [`Letter::groups`].
const COUNTS: u8 = 1;
const NAMES: u8 = 2;
const IS_CONSTANT: u8 = 4;
const IS_WINDOW: u8 = 8;

/// The treatment of one parameter or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letter {
    /// `i`.
    Word,
    /// `c`.
    Constant,
    /// `t`.
    Time,
    /// `x`, and of how many words.
    Structure(u8),
    /// `b`.
    Bytes,
    /// `d`.
    Delegated,
    /// `g`.
    Minted,
    /// `k`.
    Badge,
    /// `o`.
    Control,
    /// `w`.
    Window,
    /// `a`.
    Torn,
}

impl Letter {
    /// As it is written; a structure as its number of words.
    const fn code(self) -> u8 {
        match self {
            Self::Word => b'i',
            Self::Constant => b'c',
            Self::Time => b't',
            Self::Structure(words) => words,
            Self::Bytes => b'b',
            Self::Delegated => b'd',
            Self::Minted => b'g',
            Self::Badge => b'k',
            Self::Control => b'o',
            Self::Window => b'w',
            Self::Torn => b'a',
        }
    }
    const fn of(code: u8) -> Self {
        match code {
            b'i' => Self::Word,
            b'c' => Self::Constant,
            b't' => Self::Time,
            b'b' => Self::Bytes,
            b'd' => Self::Delegated,
            b'g' => Self::Minted,
            b'k' => Self::Badge,
            b'o' => Self::Control,
            b'w' => Self::Window,
            b'a' => Self::Torn,
            words => Self::Structure(words),
        }
    }
    /// Its place among the kinds of which there is one at most.
    #[inline(always)]
    const fn kind(self) -> Option<usize> {
        Some(match self {
            Self::Word | Self::Structure(_) | Self::Time => return None,
            Self::Constant => 0,
            Self::Bytes => 1,
            Self::Delegated => 2,
            Self::Minted => 3,
            Self::Badge => 4,
            Self::Control => 5,
            Self::Window => 6,
            Self::Torn => 7,
        })
    }
    /// Of each of these groups there is one letter at most: those that count bytes, that name an entry, that are the constant.
    const fn groups(self) -> u8 {
        match self {
            Self::Bytes => COUNTS,
            Self::Delegated | Self::Minted | Self::Torn => NAMES,
            Self::Control => COUNTS | NAMES,
            Self::Constant | Self::Badge => IS_CONSTANT,
            Self::Window => IS_WINDOW,
            _ => 0,
        }
    }
    /// Words that it takes.
    pub const fn words(self) -> usize {
        match self {
            Self::Badge | Self::Control => 0,
            Self::Minted => 2,
            Self::Structure(words) => words as usize,
            _ => 1,
        }
    }
}

/// Why a specification cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The first letter is neither `n` nor `s`.
    NoStack,
    /// The second letter is neither `p` nor `m`.
    NoState,
    /// No such letter.
    Unknown,
    /// The portals are not made yet: `s`.
    NotYet,
    /// `x` without a digit from 1 to 8.
    NoSize,
    /// It is there already, and there can be one of them only: of `b` and `o` together, of `d`, `g`, `a` and `o` together, of `c` and `k`
    /// together, of `w`.
    Twice,
    /// It is for calls: `c`, `k` and `w` after `>`.
    NotInReturn,
    /// It would be a word in the message area: only `i` and `x` are there.
    NotInArea,
    /// `o` where preserved registers are not kept, with more than five words, or with a time stamp.
    NotWithControl,
    /// `w` where preserved registers are not kept, or with more than five words.
    NotWithWindow,
    /// `o` on one side of `>` only.
    OneControl,
    /// More words than [`MAX_WORDS`].
    TooManyWords,
    /// More letters than [`MAX_LETTERS`], or more bytes than [`MAX_BYTES`].
    TooLong,
}

impl Why {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoStack => "the first letter is n (a new stack) or s (a shared one)",
            Self::NoState => "the second letter is p (preserved registers are kept) or m (minimal state)",
            Self::Unknown => "there is no such letter",
            Self::NotYet => "shared stacks are not made",
            Self::NoSize => "x is followed by its number of words, 1 to 8",
            Self::Twice => "a call or return has one of these at most: b or o; d, g, a or o; c or k; w",
            Self::NotInReturn => "a return passes no constant of an entry, and no window",
            Self::NotInArea => "after the ninth word, only i and x are allowed",
            Self::NotWithControl => "with o, registers are kept (p), and five words at most are passed, none of them t",
            Self::NotWithWindow => {
                "with w, registers are kept (p), five words at most are passed, and no page is torn away in the same way"
            }
            Self::OneControl => "o stands on both sides of >, or on none",
            Self::TooManyWords => "16 words are passed at most",
            Self::TooLong => "10 letters are followed at most, 48 bytes in all",
        }
    }
}

/// A specification that cannot be: at which byte, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// From 0.
    pub at: usize,
    /// Why.
    pub why: Why,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(to, "letter {}: {}", self.at + 1, self.why.text())
    }
}

/// The letters of a call, or of a return.
#[derive(Clone, Copy, Debug)]
pub struct Letters {
    /// All else follows from these.
    codes: [u8; MAX_LETTERS],
    count: u8,
    words: u8,
    /// The groups of which there is one letter at most: see [`Letter::groups`].
    groups: u8,
    /// The words that are time stamps, a bit for each.
    times: u16,
    /// Those that the passing side gives, and the portal does not.
    given: u32,
    /// The first word of the letter of each kind, and 1.
    first: [u8; KINDS],
}

impl PartialEq for Letters {
    #[inline(never)]
    fn eq(&self, other: &Self) -> bool {
        self.codes == other.codes
    }
}

impl Eq for Letters {}

/// Kinds of letters that [`Letters::find`] finds.
const KINDS: usize = 8;

impl Letters {
    const NONE: Self =
        Self { codes: [0; MAX_LETTERS], count: 0, words: 0, groups: 0, times: 0, given: 0, first: [0; KINDS] };

    /// Each letter, with the number of its first word.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Letter)> {
        let codes = self.codes.iter().take(self.count as usize);
        codes.scan(0, |word, code| {
            let (first, letter) = (*word, Letter::of(*code));
            *word += letter.words();
            Some((first, letter))
        })
    }
    /// Words that are passed.
    pub const fn words(&self) -> usize {
        self.words as usize
    }
    /// Words that are passed in registers.
    pub fn in_registers(&self) -> usize {
        self.words().min(REGISTER_WORDS)
    }
    /// Words that are passed in the message area.
    pub fn in_area(&self) -> usize {
        self.words() - self.in_registers()
    }
    /// The first word of the letter of this kind.
    #[inline(always)]
    const fn find(&self, letter: Letter) -> Option<usize> {
        match letter.kind() {
            Some(kind) => (self.first[kind] as usize).checked_sub(1),
            None => None,
        }
    }
    /// The words that are time stamps, a bit for each.
    pub const fn times(&self) -> u16 {
        self.times
    }
    /// The word that is the constant of the entry.
    pub const fn constant(&self) -> Option<usize> {
        self.find(Letter::Constant)
    }
    /// The word with the number of bytes.
    pub fn bytes(&self) -> Option<usize> {
        self.find(Letter::Bytes)
    }
    /// The word with the index of an entry that goes along.
    pub fn entry(&self) -> Option<usize> {
        self.find(Letter::Delegated).or(self.find(Letter::Minted))
    }
    /// The word with the badge of what is minted, which does not arrive.
    pub fn minted_badge(&self) -> Option<usize> {
        self.find(Letter::Minted).map(|word| word + 1)
    }
    /// The word that names pages to be torn away.
    pub fn torn(&self) -> Option<usize> {
        self.find(Letter::Torn)
    }
    /// The word with which only the nucleus can do something, unless it is 0.
    pub fn for_nucleus(&self) -> Option<usize> {
        self.entry().or(self.torn())
    }
    /// The word that is a window.
    pub fn window(&self) -> Option<usize> {
        self.find(Letter::Window)
    }
    /// Whether a control word goes along.
    pub fn has_control(&self) -> bool {
        self.find(Letter::Control).is_some()
    }
    /// Whether the constant of the entry arrives as badge.
    pub fn has_badge(&self) -> bool {
        self.find(Letter::Badge).is_some()
    }

    /// The parts of [`abi::expect`] that they pass, but for words 0 to 4.
    #[inline(always)]
    fn expects(&self) -> u64 {
        let has = |what, is_there| if is_there { what } else { 0 };
        has(expect::MORE_WORDS, self.words() > EXPECTED_WORDS)
            | has(expect::AREA, self.words() > REGISTER_WORDS || self.groups & COUNTS != 0)
            | has(expect::ENTRIES, self.groups & NAMES != 0 && self.torn().is_none())
            | has(expect::PAGES, self.torn().is_some())
            | has(expect::WINDOW, self.groups & IS_WINDOW != 0)
    }

    /// The bytes and the entry that these words name, as a control word, and the badge of an entry that is minted.
    #[inline(never)]
    pub fn along(&self, words: &[u64; REGISTER_WORDS]) -> Result<(Control, u64), Error> {
        let word = |place: Option<usize>| place.and_then(|place| words.get(place)).copied().unwrap_or_default();
        let (entry, badge) = (word(self.entry()), self.minted_badge());
        if entry >= MAX_TABLE_ENTRIES as u64 {
            return Err(Error::BadIndex);
        }
        let bytes = (8 * self.in_area() as u64).saturating_add(word(self.bytes()));
        if bytes > MESSAGE_BYTES as u64 {
            return Err(Error::BadArgument);
        }
        let along = match (entry, badge) {
            (0, _) => return Ok((Control(bytes), 0)),
            (entry, None) => Control(bytes).delegate(entry as usize, ALL),
            (entry, Some(_)) => Control(bytes).delegate(entry as usize, ALL).with(Control::MINT),
        };
        Ok((along, word(badge)))
    }
    /// Makes of these words what arrives, with the constant of the entry, the index where an entry that came along stands now, or the
    /// pages, the time stamp, and the window.
    #[inline(never)]
    pub fn deliver(&self, words: &mut [u64; REGISTER_WORDS], constant: u64, entry: u64, time: u64, window: u64) {
        words[self.in_registers()..].fill(0);
        for (place, arrives) in [
            (self.constant(), constant),
            (self.window(), window),
            (self.for_nucleus(), entry),
            (self.minted_badge(), 0),
        ] {
            if let Some(place) = place {
                words[place] = arrives;
            }
        }
        let mut times = self.times;
        while times != 0 {
            words[times.trailing_zeros() as usize % REGISTER_WORDS] = time;
            times &= times - 1;
        }
    }

    #[inline]
    fn add(&mut self, letter: Letter) -> Result<(), Why> {
        if self.groups & letter.groups() != 0 {
            return Err(Why::Twice);
        }
        let (first, words) = (self.words(), self.words() + letter.words());
        if words > MAX_WORDS {
            return Err(Why::TooManyWords);
        }
        let times = self.times | if letter == Letter::Time { 1 << first } else { 0 };
        let is_given = !matches!(letter, Letter::Time | Letter::Constant);
        let given = self.given | if is_given { ((1 << letter.words()) - 1) << first } else { 0 };
        let has_control = letter == Letter::Control || self.has_control();
        if has_control && (words > EXPECTED_WORDS || times != 0) {
            return Err(Why::NotWithControl);
        }
        if (letter == Letter::Window || self.window().is_some()) && words > EXPECTED_WORDS {
            return Err(Why::NotWithWindow);
        }
        // One page could be both: then the window would show a page of which the receiver is the owner, and which it may give back.
        if letter == Letter::Window && self.torn().is_some() || letter == Letter::Torn && self.window().is_some() {
            return Err(Why::NotWithWindow);
        }
        if words > REGISTER_WORDS && !matches!(letter, Letter::Word | Letter::Structure(_) | Letter::Badge) {
            return Err(Why::NotInArea);
        }
        *self.codes.get_mut(self.count as usize).ok_or(Why::TooLong)? = letter.code();
        if let Some(kind) = letter.kind() {
            self.first[kind] = first as u8 + 1;
        }
        self.count += 1;
        self.words = words as u8;
        self.times = times;
        self.given = given;
        self.groups |= letter.groups();
        Ok(())
    }
}

/// A specification: stack, state, parameters and results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Specification {
    /// Registers that are kept.
    pub state: State,
    /// There.
    pub call: Letters,
    /// And back.
    pub result: Letters,
}

impl Specification {
    /// Nothing is passed.
    pub const NONE: Self = Self { state: State::Preserved, call: Letters::NONE, result: Letters::NONE };

    /// Reads a specification.
    pub fn parse(text: &[u8]) -> Result<Self, Refusal> {
        let mut reading = Reading::NONE;
        while !reading.go_on(text, text.len())? {}
        Ok(reading.specification)
    }

    /// As it is written, padded with zeros.
    #[inline(never)]
    pub fn text(&self) -> [u8; MAX_BYTES] {
        let (mut text, mut at) = ([0; MAX_BYTES], 0);
        let mut put = |byte| {
            if let Some(place) = text.get_mut(at) {
                *place = byte;
                at += 1;
            }
        };
        put(b'n');
        put(if self.state == State::Preserved { b'p' } else { b'm' });
        for (letters, end) in [(&self.call, b'>'), (&self.result, 0)] {
            for (_, letter) in letters.iter() {
                match letter {
                    Letter::Structure(words) => {
                        put(b'x');
                        put(b'0' + words);
                    }
                    letter => put(letter.code()),
                }
            }
            put(end);
        }
        text
    }

    /// The expectation that the caller must have, see [`abi::expect`]; none: it says in the control word what it does.
    #[inline(always)]
    pub fn expects(&self) -> Option<u64> {
        let words = expect::words(self.call.given.into());
        (!self.call.has_control()).then_some(words | self.call.expects() | self.result.expects())
    }

    /// Whether caller and callee must trust each other.
    pub fn needs_trust(&self) -> bool {
        self.state == State::Minimal
    }
}

/// A specification of which some is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The specification that is read.
    pub specification: Specification,
    at: usize,
    returns: bool,
}

impl Reading {
    /// Nothing is read.
    pub const NONE: Self = Self { specification: Specification::NONE, at: 0, returns: false };

    /// Reads so many letters more, of the same text; true if that was all.
    #[inline]
    pub fn go_on(&mut self, text: &[u8], letters: usize) -> Result<bool, Refusal> {
        if self.at == 0 {
            self.specification.state = Self::begin(text)?;
            self.at = 2;
        }
        for _ in 0..letters {
            let Some(byte) = text.get(self.at) else { break };
            if *byte == b'>' && !self.returns {
                self.returns = true;
                self.at += 1;
                continue;
            }
            let bytes = self.letter(*byte, text.get(self.at + 1)).map_err(|why| Refusal { at: self.at, why })?;
            self.at += bytes;
        }
        if self.at < text.len() {
            return Ok(false);
        }
        match self.specification.call.has_control() == self.specification.result.has_control() {
            true => Ok(true),
            false => Err(Refusal { at: text.len(), why: Why::OneControl }),
        }
    }

    /// Reads what becomes of stack and registers.
    fn begin(text: &[u8]) -> Result<State, Refusal> {
        let refuse = |at, why| Err(Refusal { at, why });
        if text.len() > MAX_BYTES {
            return refuse(MAX_BYTES, Why::TooLong);
        }
        match text.first() {
            Some(b'n') => {}
            Some(b's') => return refuse(0, Why::NotYet),
            _ => return refuse(0, Why::NoStack),
        }
        match text.get(1) {
            Some(b'p') => Ok(State::Preserved),
            Some(b'm') => Ok(State::Minimal),
            _ => refuse(1, Why::NoState),
        }
    }

    /// Reads a letter, and what follows it; gives how many bytes that were.
    #[inline]
    fn letter(&mut self, byte: u8, next: Option<&u8>) -> Result<usize, Why> {
        let letter = match byte {
            b'i' => Letter::Word,
            b't' => Letter::Time,
            b'b' => Letter::Bytes,
            b'd' => Letter::Delegated,
            b'g' => Letter::Minted,
            b'c' | b'k' | b'w' if self.returns => return Err(Why::NotInReturn),
            b'w' if self.specification.state == State::Minimal => return Err(Why::NotWithWindow),
            b'w' => Letter::Window,
            b'c' => Letter::Constant,
            b'k' => Letter::Badge,
            b'o' if self.specification.state == State::Minimal => return Err(Why::NotWithControl),
            b'o' => Letter::Control,
            b'x' => match next {
                Some(digit @ b'1'..=b'8') => Letter::Structure(digit - b'0'),
                _ => return Err(Why::NoSize),
            },
            b'a' => Letter::Torn,
            _ => return Err(Why::Unknown),
        };
        let list = if self.returns { &mut self.specification.result } else { &mut self.specification.call };
        list.add(letter)?;
        Ok(if byte == b'x' { 2 } else { 1 })
    }
}
