//! Executables, good and bad: one test for each error.
#![allow(missing_docs)]

use abi::rights::{MAP_EXECUTE, MAP_READ, MAP_WRITE};
use loader::program::{Contents, HEAD_BYTES, MAX_HEADERS};
use loader::{Machine, Program, ProgramError};
use proptest::prelude::*;

const FILE_BYTES: u64 = 0x4000;

#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file: u64,
    memory: u64,
}

const TEXT: Header = Header { kind: 1, flags: 5, offset: 0x1000, address: 0x10_0000, file: 0x1234, memory: 0x1234 };
const DATA: Header = Header { kind: 1, flags: 6, offset: 0x3010, address: 0x10_3010, file: 0x20, memory: 0x3000 };

fn elf(headers: &[Header]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(62u16.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(0x10_0010u64.to_le_bytes());
    bytes.extend(64u64.to_le_bytes());
    bytes.extend([0; 12]);
    for half in [64u16, 56, headers.len() as u16, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    assert_eq!(bytes.len(), 64);
    for header in headers {
        bytes.extend(header.kind.to_le_bytes());
        bytes.extend(header.flags.to_le_bytes());
        for word in [header.offset, header.address, 0, header.file, header.memory, 0x1000] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes
}

fn parse(bytes: &[u8]) -> Result<Program, ProgramError> {
    Program::parse(bytes, FILE_BYTES, Machine::X86_64)
}

fn with(headers: &[Header]) -> Result<Program, ProgramError> {
    parse(&elf(headers))
}

/// A good file with bytes changed.
fn patched(offset: usize, bytes: &[u8]) -> Result<Program, ProgramError> {
    let mut file = elf(&[TEXT, DATA]);
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
    parse(&file)
}

#[test]
fn a_good_program() {
    let program = with(&[TEXT, DATA]).unwrap();
    assert_eq!(program.entry, 0x10_0010);
    let [text, data] = program.segments() else { panic!("two segments") };
    assert_eq!((text.address, text.pages, text.rights), (0x10_0000, 2, MAP_READ | MAP_EXECUTE));
    assert_eq!((data.address, data.pages, data.rights), (0x10_3000, 4, MAP_READ | MAP_WRITE));
    assert_eq!(program.pages(), 6);
    assert_eq!(text.contents(0), Some(Contents { file: 0x1000..0x2000, at: 0 }));
    assert_eq!(text.contents(1), Some(Contents { file: 0x2000..0x2234, at: 0 }));
    assert_eq!(text.contents(2), None);
    assert_eq!(data.contents(0), Some(Contents { file: 0x3010..0x3030, at: 0x10 }));
    assert_eq!(data.contents(1), None);
    assert_eq!(data.contents(u64::MAX), None);
}

#[test]
fn only_pages_that_are_the_files_own_are_shared() {
    let zeros_behind = Header { memory: TEXT.file + 1, ..TEXT };
    let with_lead = Header { address: 0x10_0010, offset: 0x1010, file: 0x20, memory: 0x20, ..TEXT };
    for (header, shared) in [
        (TEXT, [Some(0x1000), Some(0x2000), None]),
        (with_lead, [Some(0x1000), None, None]),
        (zeros_behind, [None; 3]),
        (DATA, [None; 3]),
    ] {
        let program = with(&[Header { flags: 5, ..TEXT }, Header { address: header.address + 0x10_0000, ..header }]);
        let segments = program.unwrap();
        assert_eq!([0, 1, 2].map(|page| segments.segments()[1].shared(page)), shared);
    }
    assert_eq!(with(&[TEXT, DATA]).unwrap().end(), 0x10_7000);
}

#[test]
fn segments_without_contents_are_skipped() {
    let note = Header { kind: 4, flags: 4, ..TEXT };
    let stack = Header { kind: 0x6474_e551, flags: 6, ..DATA };
    let empty = Header { file: 0, memory: 0, ..TEXT };
    assert_eq!(with(&[note, TEXT, stack, DATA, empty]), with(&[TEXT, DATA]));
}

#[test]
fn zero_fill_needs_no_place_in_the_file() {
    let zeros = Header { offset: u64::MAX, file: 0, ..DATA };
    assert_eq!(with(&[TEXT, zeros]).unwrap().segments()[1].contents(0), None);
}

#[test]
fn too_short() {
    assert_eq!(parse(b""), Err(ProgramError::TooShort));
    assert_eq!(parse(&elf(&[TEXT])[..63]), Err(ProgramError::TooShort));
}

#[test]
fn headers() {
    assert_eq!(patched(0, b"#!/b"), Err(ProgramError::NotElf));
    assert_eq!(patched(4, &[1]), Err(ProgramError::Not64Bit));
    assert_eq!(patched(5, &[2]), Err(ProgramError::NotLittleEndian));
    assert_eq!(patched(6, &[2]), Err(ProgramError::BadVersion));
    assert_eq!(patched(20, &[2]), Err(ProgramError::BadVersion));
    assert_eq!(patched(18, &[183]), Err(ProgramError::WrongMachine));
    assert_eq!(patched(16, &[3]), Err(ProgramError::NotStatic));
    assert_eq!(patched(52, &[65]), Err(ProgramError::BadHeaderSize));
    assert_eq!(patched(54, &[57]), Err(ProgramError::BadHeaderSize));
    assert_eq!(patched(32, &[0]), Err(ProgramError::HeadersOutside));
    assert_eq!(patched(32, &[0xff; 8]), Err(ProgramError::HeadersOutside));
    assert_eq!(patched(32, &[65]), Err(ProgramError::HeadersOutside));
    assert_eq!(patched(24, &[0, 0x30]), Err(ProgramError::EntryOutside));
    assert_eq!(with(&[]), Err(ProgramError::NoSegments));
    assert_eq!(with(&[Header { kind: 4, ..TEXT }]), Err(ProgramError::NoSegments));
    assert_eq!(with(&[TEXT; MAX_HEADERS + 1]), Err(ProgramError::TooManySegments));
    let many: Vec<_> =
        (0..9).map(|page| Header { address: 0x10_0000 + page * 0x1000, file: 1, memory: 1, ..TEXT }).collect();
    assert_eq!(with(&many), Err(ProgramError::TooManySegments));
    assert!(elf(&[TEXT; MAX_HEADERS]).len() <= HEAD_BYTES);
}

#[test]
fn segments() {
    for (header, error) in [
        (Header { kind: 2, ..DATA }, ProgramError::Dynamic),
        (Header { kind: 3, ..DATA }, ProgramError::Interpreted),
        (Header { kind: 7, ..DATA }, ProgramError::ThreadLocal),
        (Header { kind: 0x6474_e551, flags: 7, ..DATA }, ProgramError::ExecutableStack),
        (Header { flags: 0, ..DATA }, ProgramError::NoRights),
        (Header { flags: 2, ..DATA }, ProgramError::NoRights),
        (Header { flags: 7, ..DATA }, ProgramError::WritableExecutable),
        (Header { memory: 0x1f, ..DATA }, ProgramError::FileLargerThanMemory),
        (Header { address: 0x10_3000, ..DATA }, ProgramError::Misaligned),
        (Header { file: 0xff1, ..DATA }, ProgramError::Truncated),
        (Header { offset: u64::MAX - 0xfef, ..DATA }, ProgramError::Truncated),
        (Header { address: 0xf_f010, ..DATA }, ProgramError::OutOfRange),
        (Header { address: 0xfff_f010, ..DATA }, ProgramError::OutOfRange),
        (Header { address: 0xffff_8000_0000_0010, ..DATA }, ProgramError::OutOfRange),
        (Header { memory: u64::MAX, ..DATA }, ProgramError::OutOfRange),
        (Header { memory: 0x500_0000, ..DATA }, ProgramError::TooLarge),
        (Header { address: 0x10_1010, ..DATA }, ProgramError::Overlap),
    ] {
        assert_eq!(with(&[TEXT, header]), Err(error));
    }
    assert_eq!(with(&[DATA, TEXT]), Err(ProgramError::Unsorted));
}

proptest! {
    #[test]
    fn mutations_never_panic(offset in 0usize..176, byte: u8, cut in 0usize..=176) {
        let mut file = elf(&[TEXT, DATA]);
        file[offset] = byte;
        if let Ok(program) = parse(&file[..cut]) {
            for segment in program.segments() {
                prop_assert!(segment.file().end <= FILE_BYTES);
                prop_assert!(segment.rights & (MAP_WRITE | MAP_EXECUTE) != MAP_WRITE | MAP_EXECUTE);
                let bytes: u64 = (0..segment.pages).filter_map(|page| segment.contents(page)).map(|part| {
                    assert!(part.at as u64 + (part.file.end - part.file.start) <= 4096);
                    part.file.end - part.file.start
                }).sum();
                prop_assert_eq!(bytes, segment.file().end - segment.file().start);
            }
        }
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), length: u64) {
        let _ = Program::parse(&bytes, length, Machine::AArch64);
        let mut bytes = bytes;
        let good = elf(&[]);
        for (place, byte) in bytes.iter_mut().zip(good) {
            *place = byte;
        }
        if bytes.len() > 56 {
            bytes[56] = 2;
        }
        let _ = Program::parse(&bytes, length, Machine::X86_64);
    }
}
