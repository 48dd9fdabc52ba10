//! Files that are written, grown, cut, renamed, removed and compared.
//!
//! The expected content of a file follows from its number, its version and its length, so it needs no memory.
//! An operation whose server dies is repeated: it may be done twice, so a removal may find nothing left and a record may
//! stand twice. It must not be acknowledged and not done.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use runtime::connection::Connection;
use runtime::idl::Failure;
use runtime::protocols::file::{FileClient, FileError, TRUNCATE, WRITE};
use runtime::stream::{FILE_SYSTEM, Path};

use crate::again::{again, report};
use tool::random::Random;

const FOLDER: &str = "/tmp/chaos";
const RECORDS: &str = "/tmp/chaos/records";
/// Files at the same time, and bytes of the longest.
const FILES: usize = 8;
const LONGEST: u64 = 10_000;
/// Bytes of a record.
const RECORD: usize = 16;
/// Records after which the file of records is written again from the start.
const MOST_RECORDS: u64 = 600;

/// The expected content of one file.
#[derive(Clone, Copy)]
struct Expected {
    version: u64,
    length: u64,
    /// It stands under its second name.
    renamed: bool,
}

/// All files.
pub struct Files {
    random: Random,
    expected: [Option<Expected>; FILES],
    versions: u64,
    records: u64,
}

fn path(file: usize, renamed: bool) -> String {
    format!("{FOLDER}/{}{file}", if renamed { "renamed-" } else { "file-" })
}

/// The byte at an offset.
fn byte(version: u64, offset: u64) -> u8 {
    (version.wrapping_mul(31).wrapping_add(offset).wrapping_mul(0x9e37_79b9) >> 8) as u8
}

fn create(path: &str) -> Result<FileClient<Connection<Path<'_>>>, String> {
    let entry = again(|| FILE_SYSTEM.create(path, TRUNCATE)).map_err(report("create"))?;
    Ok(FileClient(Connection::opened(Path { path, flags: WRITE }, entry.into())))
}

fn open(path: &str) -> FileClient<Connection<Path<'_>>> {
    FileClient(Connection::new(Path { path, flags: WRITE }))
}

/// The whole file.
fn read(path: &str) -> Result<Vec<u8>, String> {
    let file = open(path);
    let mut all = Vec::new();
    let mut block = [0; 4000];
    loop {
        match again(|| file.read(all.len() as u64, &mut block)).map_err(report(path))? {
            0 => return Ok(all),
            count => all.extend_from_slice(&block[..count]),
        }
    }
}

impl Files {
    /// An empty folder.
    pub fn new(random: Random) -> Result<Self, String> {
        match again(|| FILE_SYSTEM.make_directory(FOLDER)) {
            Ok(()) | Err(Failure::Refused(FileError::Exists)) => {}
            Err(error) => return Err(format!("{FOLDER}: {error}")),
        }
        create(RECORDS)?;
        Ok(Self { random, expected: [None; FILES], versions: 0, records: 0 })
    }

    /// Does something to one file, and compares another.
    pub fn step(&mut self) -> Result<(), String> {
        let file = self.random.below(FILES as u64) as usize;
        match (self.expected[file], self.random.below(6)) {
            (None, _) | (_, 0) => self.rewrite(file)?,
            (Some(expected), 1) => self.remove(file, expected)?,
            (Some(expected), 2) => self.rename(file, expected)?,
            (Some(expected), 3) => self.cut(file, expected)?,
            (Some(expected), _) => self.grow(file, expected)?,
        }
        self.append()?;
        let other = self.random.below(FILES as u64) as usize;
        self.compare(other)
    }

    /// Writes bytes start..end of a version.
    fn write(
        &self,
        path: &str,
        file: &FileClient<Connection<Path<'_>>>,
        version: u64,
        start: u64,
        end: u64,
    ) -> Result<(), String> {
        let mut at = start;
        while at < end {
            let bytes: Vec<u8> = (at..end.min(at + 4000)).map(|offset| byte(version, offset)).collect();
            let count = again(|| file.write(at, &bytes)).map_err(report(path))?;
            if count == 0 || count > bytes.len() {
                return Err(format!("{path}: {count} bytes of {} were taken", bytes.len()));
            }
            at += count as u64;
        }
        Ok(())
    }

    fn rewrite(&mut self, number: usize) -> Result<(), String> {
        self.versions += 1;
        let (version, length) = (self.versions, self.random.below(LONGEST));
        let renamed = self.expected[number].is_some_and(|expected| expected.renamed);
        let path = path(number, renamed);
        self.write(&path, &create(&path)?, version, 0, length)?;
        self.expected[number] = Some(Expected { version, length, renamed });
        self.compare(number)
    }

    fn grow(&mut self, number: usize, expected: Expected) -> Result<(), String> {
        let length = (expected.length + self.random.below(3000)).min(LONGEST);
        let path = path(number, expected.renamed);
        self.write(&path, &open(&path), expected.version, expected.length, length)?;
        self.expected[number] = Some(Expected { length, ..expected });
        self.compare(number)
    }

    fn cut(&mut self, number: usize, expected: Expected) -> Result<(), String> {
        let length = self.random.below(expected.length + 1);
        let path = path(number, expected.renamed);
        again(|| open(&path).truncate(length)).map_err(report(&path))?;
        self.expected[number] = Some(Expected { length, ..expected });
        self.compare(number)
    }

    fn rename(&mut self, number: usize, expected: Expected) -> Result<(), String> {
        let (from, to) = (path(number, expected.renamed), path(number, !expected.renamed));
        match again(|| FILE_SYSTEM.rename(&from, &to)) {
            // Repeated after it was done: there is nothing to rename any more.
            Ok(()) | Err(Failure::Refused(FileError::NotFound)) => {}
            Err(error) => return Err(format!("{from} to {to}: {error}")),
        }
        self.expected[number] = Some(Expected { renamed: !expected.renamed, ..expected });
        self.is_gone(&from)?;
        self.compare(number)
    }

    fn remove(&mut self, number: usize, expected: Expected) -> Result<(), String> {
        let path = path(number, expected.renamed);
        match again(|| FILE_SYSTEM.remove(&path)) {
            Ok(()) | Err(Failure::Refused(FileError::NotFound)) => {}
            Err(error) => return Err(format!("{path}: {error}")),
        }
        self.expected[number] = None;
        self.is_gone(&path)
    }

    fn is_gone(&self, path: &str) -> Result<(), String> {
        match again(|| FILE_SYSTEM.stat(path)) {
            Err(Failure::Refused(FileError::NotFound)) => Ok(()),
            other => Err(format!("{path} should be gone: {other:?}")),
        }
    }

    /// Checks that all expected content is there, and nothing else.
    fn compare(&self, number: usize) -> Result<(), String> {
        let Some(Expected { version, length, renamed }) = self.expected[number] else { return Ok(()) };
        let path = path(number, renamed);
        let bytes = read(&path)?;
        if bytes.len() as u64 != length {
            return Err(format!("{path}: {} bytes instead of {length}", bytes.len()));
        }
        match bytes.iter().zip(0..).find(|(found, offset)| **found != byte(version, *offset)) {
            Some((_, offset)) => Err(format!("{path}: another byte at {offset} of {length}")),
            None => Ok(()),
        }
    }

    fn append(&mut self) -> Result<(), String> {
        if self.records >= MOST_RECORDS {
            self.compare_records()?;
            create(RECORDS)?;
            self.records = 0;
        }
        self.records += 1;
        let record = format!("record {:8}\n", self.records);
        again(|| open(RECORDS).append(record.as_bytes())).map(drop).map_err(report(RECORDS))
    }

    /// Each record that was acknowledged stands there once or, after a repetition, twice in a row.
    fn compare_records(&self) -> Result<(), String> {
        let bytes = read(RECORDS)?;
        let mut last = 0;
        for record in bytes.chunks(RECORD) {
            let number =
                core::str::from_utf8(record).ok().and_then(|text| text.strip_prefix("record ")?.trim().parse().ok());
            match number {
                Some(number) if number == last || number == last + 1 => last = number,
                other => return Err(format!("{RECORDS}: after record {last} stands {other:?}")),
            }
        }
        if last == self.records {
            Ok(())
        } else {
            Err(format!("{RECORDS}: ends with record {last} of {}", self.records))
        }
    }

    /// Compares everything, and removes it.
    pub fn finish(mut self) -> Result<(), String> {
        self.compare_records()?;
        for number in 0..FILES {
            self.compare(number)?;
            if let Some(expected) = self.expected[number] {
                self.remove(number, expected)?;
            }
        }
        again(|| FILE_SYSTEM.remove(RECORDS)).map_err(report(RECORDS))?;
        again(|| FILE_SYSTEM.remove(FOLDER)).map_err(report(FOLDER))
    }
}
