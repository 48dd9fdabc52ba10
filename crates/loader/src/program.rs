//! A strict parser of static ELF64 executables.
//!
//! Two steps: the header and the program headers are cut out of the file's first bytes as views with
//! bounds checked, then turned into a short list of page-granular [`Segment`]s. Anything that is not understood
//! is refused, each cause with its own error. Section headers, symbols and notes are not looked at.
//!
//! Layout of the structures: System V ABI, generic part, chapters 4 (header) and 5 (program header).

use core::fmt;
use core::ops::Range;

use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use abi::{PAGE_BYTES, layout};

/// Segments with contents that a program may have.
pub const MAX_SEGMENTS: usize = 8;
/// Program headers that are looked at; more are refused.
pub const MAX_HEADERS: usize = 16;
/// Pages that a program's segments may have together: 64 MiB.
pub const MAX_PAGES: u64 = 1 << 14;
/// Bytes from the file's start that hold all headers.
pub const HEAD_BYTES: usize = HEADER_BYTES + MAX_HEADERS * PROGRAM_HEADER_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;

/// The machine that a program is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Machine {
    /// AMD64.
    X86_64 = 62,
    /// 64-bit ARM.
    AArch64 = 183,
}

macro_rules! errors {
    ($($name:ident $text:literal)*) => {
        /// Why a file is not a program that can be run. No two causes share an error.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ProgramError { $(#[doc = $text] $name,)* }

        impl ProgramError {
            /// Every error, for tests.
            pub const ALL: &'static [ProgramError] = &[$(ProgramError::$name),*];
        }

        impl fmt::Display for ProgramError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }
    };
}

errors! {
    TooShort "shorter than an ELF header"
    NotElf "not an ELF file"
    Not64Bit "not a 64-bit file"
    NotLittleEndian "not little-endian"
    BadVersion "an ELF version that does not exist"
    WrongMachine "for another machine"
    NotStatic "not an executable at a fixed address"
    BadHeaderSize "headers of an unknown size"
    NoSegments "nothing to load"
    TooManySegments "too many segments"
    HeadersOutside "the program headers do not follow within the file's first bytes"
    Interpreted "wants an interpreter"
    Dynamic "wants a dynamic linker"
    ThreadLocal "wants thread-local storage"
    ExecutableStack "wants an executable stack"
    NoRights "a segment that nobody could read"
    WritableExecutable "a segment both writable and executable"
    FileLargerThanMemory "a segment with more bytes in the file than in memory"
    Misaligned "a segment whose address and place in the file do not agree within the page"
    Truncated "a segment reaches beyond the file's end"
    OutOfRange "a segment outside of the addresses for programs"
    Unsorted "segments not in the order of their addresses"
    Overlap "two segments share a page"
    TooLarge "too many pages"
    EntryOutside "the entry is not in an executable segment"
}

impl core::error::Error for ProgramError {}

/// Pages with the same rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// First address, page-aligned.
    pub address: u64,
    /// Pages.
    pub pages: u64,
    /// `abi::rights::MAP_*`.
    pub rights: u64,
    /// Where its bytes are in the file.
    file: (u64, u64),
    /// Zeros before the first byte from the file.
    lead: u64,
    /// It ends where its bytes in the file end.
    ends_in_file: bool,
}

/// The content of one page of a segment; the rest is zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Bytes of the file.
    pub file: Range<u64>,
    /// Where in the page they begin.
    pub at: usize,
}

impl Segment {
    /// The bytes of the file that belong to it.
    pub fn file(&self) -> Range<u64> {
        self.file.0..self.file.1
    }

    /// Where in the file page number `page` begins, if that page of the file can be shared instead of copied:
    /// nobody writes it, and nothing of the segment in it has to be zero. Other content of the page shows too.
    pub fn shared(&self, page: u64) -> Option<u64> {
        let shared = self.rights & MAP_WRITE == 0 && self.ends_in_file && page < self.pages;
        // Address and place in the file agree within the page.
        shared.then(|| self.file.0 - self.lead + page * PAGE)
    }

    /// The content of page number `page` of the segment; `None` = zeros only.
    pub fn contents(&self, page: u64) -> Option<Contents> {
        // The segment as a line of bytes: zeros, the file's bytes, zeros.
        let (first, last) = (self.lead, self.lead + (self.file.1 - self.file.0));
        let (start, end) = (page.checked_mul(PAGE)?.max(first), (page + 1).checked_mul(PAGE)?.min(last));
        if page >= self.pages || start >= end {
            return None;
        }
        Some(Contents {
            file: self.file.0 + (start - first)..self.file.0 + (end - first),
            at: (start - page * PAGE) as usize,
        })
    }
}

/// A program that can be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// Where its first thread starts.
    pub entry: u64,
    segments: [Segment; MAX_SEGMENTS],
    count: usize,
}

impl Program {
    /// Parses the first bytes of a file ([`HEAD_BYTES`] suffice, or all of a shorter file) of `file_bytes`.
    pub fn parse(head: &[u8], file_bytes: u64, machine: Machine) -> Result<Self, ProgramError> {
        let header = Header::check(head, machine)?;
        let mut program = Self { entry: header.entry, segments: [Segment::default(); MAX_SEGMENTS], count: 0 };
        let mut pages = 0;
        for bytes in header.program_headers {
            let Some(segment) = ProgramHeader::read(bytes).segment(file_bytes)? else { continue };
            if let Some(before) = program.segments().last() {
                if segment.address < before.address {
                    return Err(ProgramError::Unsorted);
                }
                if segment.address < before.address + before.pages * PAGE {
                    return Err(ProgramError::Overlap);
                }
            }
            pages += segment.pages;
            if pages > MAX_PAGES {
                return Err(ProgramError::TooLarge);
            }
            *program.segments.get_mut(program.count).ok_or(ProgramError::TooManySegments)? = segment;
            program.count += 1;
        }
        if program.count == 0 {
            return Err(ProgramError::NoSegments);
        }
        let holds_entry = |segment: &Segment| {
            segment.rights & MAP_EXECUTE != 0
                && (segment.address..segment.address + segment.pages * PAGE).contains(&header.entry)
        };
        if !program.segments().iter().any(holds_entry) {
            return Err(ProgramError::EntryOutside);
        }
        Ok(program)
    }

    /// Its segments, by address.
    pub fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }

    /// Address of the first page after all segments.
    pub fn end(&self) -> u64 {
        self.segments().last().map_or(layout::PROGRAM_START, |segment| segment.address + segment.pages * PAGE)
    }

    /// Pages of all segments.
    pub fn pages(&self) -> u64 {
        self.segments().iter().map(|segment| segment.pages).sum()
    }
}

/// A little-endian number at an offset that was checked before.
fn number<const BYTES: usize>(bytes: &[u8], offset: usize) -> u64 {
    let mut value = [0; 8];
    if let Some(field) = bytes.get(offset..offset + BYTES) {
        value[..BYTES].copy_from_slice(field);
    }
    u64::from_le_bytes(value)
}

/// The checked view of the ELF header.
struct Header<'a> {
    entry: u64,
    program_headers: &'a [[u8; PROGRAM_HEADER_BYTES]],
}

impl<'a> Header<'a> {
    fn check(head: &'a [u8], machine: Machine) -> Result<Self, ProgramError> {
        if !head.starts_with(b"\x7fELF") {
            return Err(if head.len() < HEADER_BYTES { ProgramError::TooShort } else { ProgramError::NotElf });
        }
        let header = head.get(..HEADER_BYTES).ok_or(ProgramError::TooShort)?;
        let refuse = |wrong: bool, error| if wrong { Err(error) } else { Ok(()) };
        refuse(header[4] != 2, ProgramError::Not64Bit)?;
        refuse(header[5] != 1, ProgramError::NotLittleEndian)?;
        refuse(header[6] != 1 || number::<4>(header, 20) != 1, ProgramError::BadVersion)?;
        refuse(number::<2>(header, 18) != machine as u64, ProgramError::WrongMachine)?;
        refuse(number::<2>(header, 16) != 2, ProgramError::NotStatic)?;
        let sizes = (number::<2>(header, 52), number::<2>(header, 54));
        refuse(sizes != (HEADER_BYTES as u64, PROGRAM_HEADER_BYTES as u64), ProgramError::BadHeaderSize)?;
        let count = number::<2>(header, 56) as usize;
        refuse(count == 0, ProgramError::NoSegments)?;
        refuse(count > MAX_HEADERS, ProgramError::TooManySegments)?;
        let start = usize::try_from(number::<8>(header, 32)).map_err(|_| ProgramError::HeadersOutside)?;
        let program_headers = start
            .checked_add(count * PROGRAM_HEADER_BYTES)
            .filter(|_| start >= HEADER_BYTES)
            .and_then(|end| head.get(start..end))
            .ok_or(ProgramError::HeadersOutside)?;
        Ok(Self { entry: number::<8>(header, 24), program_headers: program_headers.as_chunks().0 })
    }
}

/// A program header's fields.
struct ProgramHeader {
    kind: u64,
    flags: u64,
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

impl ProgramHeader {
    const LOAD: u64 = 1;
    const DYNAMIC: u64 = 2;
    const INTERPRETER: u64 = 3;
    const THREAD_LOCAL: u64 = 7;
    const GNU_STACK: u64 = 0x6474_e551;
    const EXECUTE: u64 = 1;
    const WRITE: u64 = 2;
    const READ: u64 = 4;

    fn read(bytes: &[u8; PROGRAM_HEADER_BYTES]) -> Self {
        Self {
            kind: number::<4>(bytes, 0),
            flags: number::<4>(bytes, 4),
            offset: number::<8>(bytes, 8),
            address: number::<8>(bytes, 16),
            file_bytes: number::<8>(bytes, 32),
            memory_bytes: number::<8>(bytes, 40),
        }
    }

    /// The pages that it asks for; `None` if it asks for none.
    fn segment(&self, file_bytes: u64) -> Result<Option<Segment>, ProgramError> {
        match self.kind {
            Self::LOAD => {}
            Self::DYNAMIC => return Err(ProgramError::Dynamic),
            Self::INTERPRETER => return Err(ProgramError::Interpreted),
            Self::THREAD_LOCAL => return Err(ProgramError::ThreadLocal),
            Self::GNU_STACK if self.flags & Self::EXECUTE != 0 => return Err(ProgramError::ExecutableStack),
            _ => return Ok(None),
        }
        if self.file_bytes > self.memory_bytes {
            return Err(ProgramError::FileLargerThanMemory);
        }
        if self.memory_bytes == 0 {
            return Ok(None);
        }
        let mut rights = 0;
        for (flag, right) in [(Self::READ, MAP_READ), (Self::WRITE, MAP_WRITE), (Self::EXECUTE, MAP_EXECUTE)] {
            if self.flags & flag != 0 {
                rights |= right;
            }
        }
        if rights & MAP_READ == 0 {
            return Err(ProgramError::NoRights);
        }
        if rights & MAP_WRITE != 0 && rights & MAP_EXECUTE != 0 {
            return Err(ProgramError::WritableExecutable);
        }
        let range = layout::PROGRAM_START..layout::PROGRAM_END;
        let end = self.address.checked_add(self.memory_bytes).filter(|end| *end <= range.end);
        let end = end.filter(|_| self.address >= range.start).ok_or(ProgramError::OutOfRange)?;
        if self.file_bytes > 0 && self.offset % PAGE != self.address % PAGE {
            return Err(ProgramError::Misaligned);
        }
        let file_end = self.offset.checked_add(self.file_bytes).filter(|end| *end <= file_bytes);
        let file = match file_end {
            Some(end) => (self.offset, end),
            None if self.file_bytes == 0 => (0, 0),
            None => return Err(ProgramError::Truncated),
        };
        let lead = self.address % PAGE;
        let address = self.address - lead;
        let ends_in_file = self.file_bytes == self.memory_bytes;
        Ok(Some(Segment { address, pages: (end - address).div_ceil(PAGE), rights, file, lead, ends_in_file }))
    }
}
