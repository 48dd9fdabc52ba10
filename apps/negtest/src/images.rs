//! Files that are no programs: `/bin/true` with damage, which is then run. The last one stays, to be run by hand.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use idl::Failure;
use loader::startup::{self, Contents};
use protocols::file::{EXECUTABLE, FileClient, FileError, TRUNCATE, WRITE};
use protocols::process::ProcessError;
use runtime::abi::{PAGE_BYTES, layout};
use runtime::child::Child;
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::stream::FILE_SYSTEM;
use tool::inspect::PROC;

use crate::case::Case;

const PATH: &str = "/tmp/damaged";
/// Machines, as ELF headers name them: a program of one becomes one of the other.
const X86_64: u8 = 62;
const AARCH64: u8 = 183;

/// All of them: each has its own cause in the log.
pub const ALL: &[Case] = &[
    Case::tried("image-empty", "a program of no bytes", || damaged(Vec::clear)),
    Case::tried("image-text", "a program that is text", || damaged(|image| *image = [b'x'; 4096].to_vec())),
    Case::tried("image-short", "a program that ends in its header", || damaged(|image| image.truncate(63))),
    Case::tried("image-cut", "a program that ends in a segment", || damaged(|image| image.truncate(4100))),
    Case::tried("image-32-bit", "a program of 32 bits", || damaged(|image| image[4] = 1)),
    Case::tried("image-machine", "a program for another machine", || damaged(|image| image[18] ^= X86_64 ^ AARCH64)),
    Case::tried("image-headers", "a program whose headers are elsewhere", || {
        damaged(|image| put(image, 32, u64::MAX - 8))
    }),
    Case::tried("image-entry", "a program that starts at a nucleus address", || {
        damaged(|image| put(image, 24, 0xffff_8000_0000_0000))
    }),
    Case::tried("image-kernel", "a program with a segment at a nucleus address", || segment(16, 0xffff_8000_0000_0000)),
    Case::tried("image-heap", "a program with a segment over the heap", || segment(16, layout::PROGRAM_END)),
    Case::tried("image-huge", "a program with a segment of nearly 2^64 bytes", || segment(40, u64::MAX - 1)),
    Case::tried("image-file-bytes", "a program with more bytes in the file than in memory", || segment(32, u64::MAX)),
    Case::tried("image-offset", "a program with a segment beyond the file's end", || segment(8, 1 << 40)),
    Case::tried("image-write-execute", "a program with a segment that is written and executed", || {
        damaged(|image| {
            let header = first_header(image);
            image[header + 4] = 7;
        })
    }),
];

fn put(image: &mut [u8], at: usize, value: u64) {
    image[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Where the header of the first segment to be loaded is.
fn first_header(image: &[u8]) -> usize {
    let headers = image[64..].as_chunks::<56>().0;
    64 + 56 * headers.iter().take(16).position(|header| header[..4] == [1, 0, 0, 0]).unwrap_or(0)
}

/// With another word at this place of the first segment's header.
fn segment(at: usize, value: u64) -> Result<String, String> {
    let mut image = whole().map_err(|error| error.to_string())?;
    let header = first_header(&image);
    put(&mut image, header + at, value);
    run(&image)
}

fn damaged(damage: impl FnOnce(&mut Vec<u8>)) -> Result<String, String> {
    let mut image = whole().map_err(|error| error.to_string())?;
    damage(&mut image);
    run(&image)
}

/// The program that is damaged.
fn whole() -> Result<Vec<u8>, Failure<FileError>> {
    let file = Owned::new(FILE_SYSTEM.open("/bin/true", 0)?.into());
    let file = FileClient(Direct(file.entry()));
    let mut image = Vec::new();
    let mut bytes = [0; PAGE_BYTES / 2];
    loop {
        match file.read(image.len() as u64, &mut bytes)? {
            0 => return Ok(image),
            count => image.extend_from_slice(&bytes[..count]),
        }
    }
}

fn write(image: &[u8]) -> Result<(), Failure<FileError>> {
    let file = Owned::new(FILE_SYSTEM.create(PATH, WRITE | TRUNCATE | EXECUTABLE)?.into());
    let file = FileClient(Direct(file.entry()));
    let mut done = 0;
    while done < image.len() {
        let piece = &image[done..image.len().min(done + PAGE_BYTES / 2)];
        done += file.write(done as u64, piece)?;
    }
    Ok(())
}

/// Runs it; that must be refused. The file stays: it can be looked at, and run again.
fn run(image: &[u8]) -> Result<String, String> {
    write(image).map_err(|error| error.to_string())?;
    let contents =
        Contents { schedule: 0, name: "damaged", streams: ["null", "console", "console"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, ["damaged"], [], []).map_err(|error| error.to_string())?;
    let outcome = PROC.spawn(PATH, &page[..used], 0, 0);
    match outcome {
        Err(Failure::Refused(error @ ProcessError::NotAProgram)) => Ok(format!("refused: {error}")),
        Err(error) => Err(error.to_string()),
        Ok(process) => Err(format!("it ended with {:?}", Child::from(process).wait())),
    }
}
