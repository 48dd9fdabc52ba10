//! The startup page: the data that a program gets at its start, and that a shell passes to it.
//!
//! One page, little endian:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `cairnst1` |
//! | 8 | 4 | bytes used, this header included |
//! | 12 | 4 | 0 |
//! | 16 | 8 | priority and slice, as `THREAD_NEW` takes them |
//! | 24 | 2 | arguments |
//! | 26 | 2 | environment strings |
//! | 28 | 2 | static portals |
//! | 30 | 2 | compartments |
//! | 32 | | strings: name, stdin, stdout, stderr, arguments, environment, portals, then compartments |
//!
//! A string is its length in two bytes and UTF-8 without zero bytes; a portal is its index in two
//! bytes and a string; a compartment is 8 · handle + level of the program's send label in eight bytes, and a string. The reader accepts nothing else; it does not look at what follows the bytes used.

use core::fmt;

use abi::PAGE_BYTES;

const MAGIC: &[u8; 8] = b"cairnst1";
const HEADER_BYTES: usize = 32;
/// A stream that is a call entry of the interface `Stream`, which stands at index `FIRST_FREE` plus the stream's number
/// before the program runs.
pub const ENTRY: &str = "entry";

/// Strings before the arguments.
const FIXED: usize = 4;

/// Why bytes are not a startup page, or cannot become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartupError {
    /// Does not begin as one.
    NotStartup,
    /// Shorter than it says, or longer than a page.
    BadLength,
    /// A string reaches beyond the end, or bytes are left over.
    BadString,
    /// Text that is not UTF-8, or has a zero byte.
    BadText,
    /// A field that should be zero is not.
    Reserved,
    /// More than fits in a page, or more strings than can be counted.
    TooLong,
}

impl StartupError {
    /// Every error, for tests.
    pub const ALL: &'static [Self] =
        &[Self::NotStartup, Self::BadLength, Self::BadString, Self::BadText, Self::Reserved, Self::TooLong];
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStartup => "not a startup page",
            Self::BadLength => "a startup page of another length than it says",
            Self::BadString => "a string that reaches beyond the startup page",
            Self::BadText => "text that is not UTF-8 or has a zero byte",
            Self::Reserved => "a reserved field that is not zero",
            Self::TooLong => "arguments and environment do not fit in a page",
        })
    }
}

impl core::error::Error for StartupError {}

/// The content of a startup page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents<'a> {
    /// Priority and slice of the first thread, as `THREAD_NEW` takes them.
    pub schedule: u64,
    /// The program's name.
    pub name: &'a str,
    /// The kinds of its standard streams: input, output, errors.
    pub streams: [&'a str; 3],
    /// Its compartments by name: 8 · handle + its level there.
    pub compartments: &'a [(&'a str, u64)],
}

/// Compartments that a program can have named.
pub const MAX_COMPARTMENTS: usize = 8;

/// Writes a startup page; gives the bytes used.
pub fn write<'s>(
    page: &mut [u8],
    contents: &Contents<'_>,
    arguments: impl IntoIterator<Item = &'s str>,
    environment: impl IntoIterator<Item = &'s str>,
    portals: impl IntoIterator<Item = (&'s str, u16)>,
) -> Result<usize, StartupError> {
    let limit = page.len().min(PAGE_BYTES);
    let mut writer = Writer { page: page.get_mut(..limit).ok_or(StartupError::TooLong)?, used: HEADER_BYTES };
    writer.string(contents.name)?;
    for stream in contents.streams {
        writer.string(stream)?;
    }
    let mut counts = [0u16; 4];
    let count = |counter: &mut u16| {
        *counter = counter.checked_add(1).ok_or(StartupError::TooLong)?;
        Ok(())
    };
    for argument in arguments {
        count(&mut counts[0])?;
        writer.string(argument)?;
    }
    for variable in environment {
        count(&mut counts[1])?;
        writer.string(variable)?;
    }
    for (name, index) in portals {
        count(&mut counts[2])?;
        writer.bytes(&index.to_le_bytes())?;
        writer.string(name)?;
    }
    for (name, level) in contents.compartments {
        count(&mut counts[3])?;
        writer.bytes(&level.to_le_bytes())?;
        writer.string(name)?;
    }
    let used = writer.used;
    let mut header = Writer { page: writer.page, used: 0 };
    header.bytes(MAGIC)?;
    header.bytes(&(used as u32).to_le_bytes())?;
    header.bytes(&[0; 4])?;
    header.bytes(&contents.schedule.to_le_bytes())?;
    for count in counts {
        header.bytes(&count.to_le_bytes())?;
    }
    Ok(used)
}

struct Writer<'a> {
    page: &'a mut [u8],
    used: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), StartupError> {
        let place = self.page.get_mut(self.used..self.used + bytes.len()).ok_or(StartupError::TooLong)?;
        place.copy_from_slice(bytes);
        self.used += bytes.len();
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), StartupError> {
        if text.bytes().any(|byte| byte == 0) {
            return Err(StartupError::BadText);
        }
        let length = u16::try_from(text.len()).map_err(|_| StartupError::TooLong)?;
        self.bytes(&length.to_le_bytes())?;
        self.bytes(text.as_bytes())
    }
}

/// A startup page that was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Startup<'a> {
    /// Priority and slice of the first thread, as `THREAD_NEW` takes them; 0 = not said.
    pub schedule: u64,
    /// The program's name.
    pub name: &'a str,
    /// The kinds of its standard streams: input, output, errors.
    pub streams: [&'a str; 3],
    arguments: Strings<'a>,
    environment: Strings<'a>,
    portals: Strings<'a>,
    compartments: Strings<'a>,
}

impl<'a> Startup<'a> {
    /// Checks and reads a startup page, or the bytes used of one.
    pub fn read(page: &'a [u8]) -> Result<Self, StartupError> {
        let header = page.get(..HEADER_BYTES).ok_or(StartupError::BadLength)?;
        if !header.starts_with(MAGIC) {
            return Err(StartupError::NotStartup);
        }
        let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let word = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let used = word(8) as usize;
        if used > PAGE_BYTES || page.len() > PAGE_BYTES {
            return Err(StartupError::BadLength);
        }
        let strings = page.get(HEADER_BYTES..used).ok_or(StartupError::BadLength)?;
        if word(12) != 0 {
            return Err(StartupError::Reserved);
        }
        let (fixed, strings) = Strings::check(strings, FIXED, 0)?;
        let (arguments, strings) = Strings::check(strings, short(24).into(), 0)?;
        let (environment, strings) = Strings::check(strings, short(26).into(), 0)?;
        let (portals, strings) = Strings::check(strings, short(28).into(), 2)?;
        let (compartments, strings) = Strings::check(strings, short(30).into(), 8)?;
        if !strings.is_empty() {
            return Err(StartupError::BadString);
        }
        let mut fixed = fixed.map(|(text, _)| text);
        let mut next = || fixed.next().unwrap_or_default();
        Ok(Self {
            schedule: u64::from(word(16)) | u64::from(word(20)) << 32,
            name: next(),
            streams: [next(), next(), next()],
            arguments,
            environment,
            portals,
            compartments,
        })
    }

    /// The arguments; the first is the program as it was called.
    pub fn arguments(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.arguments.map(|(text, _)| text)
    }

    /// The environment, strings of the form `NAME=value`.
    pub fn environment(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.environment.map(|(text, _)| text)
    }

    /// The value of an environment variable.
    pub fn variable(&self, name: &str) -> Option<&'a str> {
        self.environment().find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='))
    }

    /// Portals that the system description gave: name and index.
    pub fn portals(&self) -> impl Iterator<Item = (&'a str, u16)> + Clone + use<'a> {
        self.portals.map(|(text, index)| (text, index as u16))
    }

    /// Compartments by name: 8 · handle + the level of the send label.
    pub fn compartments(&self) -> impl Iterator<Item = (&'a str, u64)> + Clone + use<'a> {
        self.compartments
    }
}

/// Strings one after the other that were checked; `lead` bytes stand before each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Strings<'a> {
    bytes: &'a [u8],
    left: usize,
    lead: usize,
}

impl<'a> Strings<'a> {
    /// Checks `count` strings at the start of `bytes`; gives them and what follows.
    fn check(bytes: &'a [u8], count: usize, lead: usize) -> Result<(Self, &'a [u8]), StartupError> {
        let mut strings = Self { bytes, left: count, lead };
        let whole = strings;
        for _ in 0..count {
            let (text, _) = strings.cut().ok_or(StartupError::BadString)?;
            if text.contains(&0) || core::str::from_utf8(text).is_err() {
                return Err(StartupError::BadText);
            }
        }
        Ok((whole, strings.bytes))
    }

    fn cut(&mut self) -> Option<(&'a [u8], u64)> {
        self.left = self.left.checked_sub(1)?;
        let (lead, rest) = self.bytes.split_at_checked(self.lead)?;
        let ([low, high], rest) = rest.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u16::from_le_bytes([*low, *high]).into())?;
        self.bytes = rest;
        Some((text, lead.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = (&'a str, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let (text, number) = self.cut()?;
        Some((core::str::from_utf8(text).unwrap_or_default(), number))
    }
}
