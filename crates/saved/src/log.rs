//! Records, one after the other.

use alloc::vec::Vec;

use crate::{Error, PAGE_BYTES, Pages};

/// The upper half of word 0 of page 0; the lower half is the version.
const MARK: u64 = 0x4361_6972 << 32;
/// Words of page 0.
const MARK_WORD: usize = 0;
const STATE_WORD: usize = 1;
/// The bit of the state that says which half counts.
const HALF: u64 = 1 << 63;
/// Bytes of a word, and so of the length before a record.
const WORD: u64 = 8;

/// Where a record is. It counts until [`Log::keep`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Of its length, in its half.
    at: u64,
    bytes: u64,
}

impl Record {
    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The next record's place: after the length and the bytes, at a word.
    fn end(&self) -> u64 {
        self.at + WORD + self.bytes.next_multiple_of(WORD)
    }
}

/// Pages that are needed for any record: the head, and one in each half.
const FEWEST: u32 = 3;

/// The state with all up to a record.
pub(crate) fn up_to(state: u64, record: Record) -> u64 {
    state & HALF | record.end()
}

/// A log: records are appended, read, and thrown away together.
pub struct Log<P> {
    pages: P,
    state: u64,
}

impl<P: Pages> Log<P> {
    /// Opens the log in these pages, or makes an empty one of this version if there is none. [`Error::Corrupt`] and
    /// [`Error::OtherVersion`]: something else is there. [`Error::NoSpace`]: there is no first page, or there can be no record.
    pub fn open(mut pages: P, version: u32) -> Result<Self, Error> {
        if pages.limit() < FEWEST || !pages.populate(0) {
            return Err(Error::NoSpace);
        }
        let mark = MARK | u64::from(version);
        match pages.load(0, MARK_WORD) {
            // Page 0 was clear, and so is its state.
            0 => pages.store(0, MARK_WORD, mark),
            found if found == mark => {}
            found if found & !u64::from(u32::MAX) == MARK => return Err(Error::OtherVersion(found as u32)),
            _ => return Err(Error::Corrupt),
        }
        let state = pages.load(0, STATE_WORD);
        let mut log = Self { pages, state };
        if log.end() > log.capacity() || !log.end().is_multiple_of(WORD) || log.records().any(|record| record.is_err())
        {
            return Err(Error::Corrupt);
        }
        // Of a `keep` that was not finished, or not cleaned up.
        log.release(state ^ HALF);
        Ok(log)
    }

    /// Bytes that records and their lengths may take.
    pub fn capacity(&self) -> u64 {
        u64::from(self.pages.limit().saturating_sub(1) / 2) * PAGE_BYTES as u64
    }

    /// Bytes that they take.
    pub fn end(&self) -> u64 {
        self.state & !HALF
    }

    /// All records, oldest first. [`Error::Corrupt`] is the last one; [`Log::open`] lets none through.
    pub fn records(&self) -> impl Iterator<Item = Result<Record, Error>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            (at < self.end()).then(|| {
                let record = self.record(at);
                at = record.as_ref().map_or(u64::MAX, Record::end);
                record
            })
        })
    }

    fn record(&self, at: u64) -> Result<Record, Error> {
        let (page, offset) = place(self.state, at);
        if !self.pages.is_present(page) {
            return Err(Error::Corrupt);
        }
        let record = Record { at, bytes: self.pages.load(page, offset / 8) };
        // All are whole words, and so is what is left.
        let fits = record.bytes <= self.end() - at - WORD;
        if fits && pages(self.state, record).all(|page| self.pages.is_present(page)) {
            Ok(record)
        } else {
            Err(Error::Corrupt)
        }
    }

    /// Reads bytes of a record from an offset on; gives how many. 0 for a record that counts no more.
    pub fn read(&self, record: Record, offset: usize, into: &mut [u8]) -> usize {
        // One of before `keep` may be anywhere.
        if record.end() > self.end() {
            return 0;
        }
        let count = into.len().min(record.bytes().saturating_sub(offset));
        let mut at = record.at + WORD + offset as u64;
        let mut left = &mut into[..count];
        while !left.is_empty() {
            let (page, offset) = place(self.state, at);
            let (part, rest) = left.split_at_mut(left.len().min(PAGE_BYTES - offset));
            self.pages.read(page, offset, part);
            at += part.len() as u64;
            left = rest;
        }
        count
    }

    /// All of a record. [`Error::NoSpace`]: there is no memory for a copy of it.
    pub fn get(&self, record: Record) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(record.bytes()).map_err(|_| Error::NoSpace)?;
        bytes.resize(record.bytes(), 0);
        self.read(record, 0, &mut bytes);
        Ok(bytes)
    }

    /// Appends a record.
    pub fn append(&mut self, record: &[u8]) -> Result<Record, Error> {
        let record = self.put(self.state, &[record])?;
        self.commit(up_to(self.state, record));
        Ok(record)
    }

    /// Keeps these records, in this order, and forgets all others. Gives where they are from now on.
    pub fn keep(&mut self, records: &[Record]) -> Result<Vec<Record>, Error> {
        self.keep_and(records, |_, state| Ok(state))
    }

    /// The same, and writes what counts from then on as well: after the state that `more` gets, up to the one that it gives.
    pub(crate) fn keep_and(
        &mut self,
        records: &[Record],
        more: impl FnOnce(&mut Self, u64) -> Result<u64, Error>,
    ) -> Result<Vec<Record>, Error> {
        let mut kept = Vec::new();
        kept.try_reserve_exact(records.len()).map_err(|_| Error::NoSpace)?;
        let mut state = self.state & HALF ^ HALF;
        let mut copies = records.iter();
        let copied = copies.try_for_each(|record| {
            let copy = self.copy(state, *record)?;
            state = up_to(state, copy);
            kept.push(copy);
            Ok(())
        });
        let after = match copied.and_then(|()| more(self, state)) {
            Ok(after) => after,
            Err(error) => {
                self.release(state);
                return Err(error);
            }
        };
        let before = self.state;
        self.commit(after);
        self.release(before);
        Ok(kept)
    }

    /// Writes a record after all that counts in a state; it does not count yet.
    pub(crate) fn put(&mut self, state: u64, parts: &[&[u8]]) -> Result<Record, Error> {
        let record = self.begin(state, parts.iter().map(|part| part.len() as u64).sum())?;
        let mut at = record.at + WORD;
        for part in parts {
            self.write(state, at, part);
            at += part.len() as u64;
        }
        Ok(record)
    }

    /// Writes the length of a record, for which there is room then.
    fn begin(&mut self, state: u64, bytes: u64) -> Result<Record, Error> {
        let record = Record { at: state & !HALF, bytes };
        if record.end() > self.capacity() {
            return Err(Error::NoSpace);
        }
        if !pages(state, record).all(|page| self.pages.populate(page)) {
            return Err(Error::NoSpace);
        }
        let (page, offset) = place(state, record.at);
        self.pages.store(page, offset / 8, bytes);
        Ok(record)
    }

    fn write(&mut self, state: u64, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (page, offset) = place(state, at);
            let (part, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - offset));
            self.pages.write(page, offset, part);
            at += part.len() as u64;
            bytes = rest;
        }
    }

    /// Copies a record that counts after all that counts in another state.
    fn copy(&mut self, state: u64, record: Record) -> Result<Record, Error> {
        let copy = self.begin(state, record.bytes)?;
        let mut block = [0; 256];
        let mut done = 0;
        while let count @ 1.. = self.read(record, done, &mut block) {
            self.write(state, copy.at + WORD + done as u64, &block[..count]);
            done += count;
        }
        Ok(copy)
    }

    /// The store that makes what was written count.
    pub(crate) fn commit(&mut self, state: u64) {
        self.pages.store(0, STATE_WORD, state);
        self.state = state;
    }

    /// The state.
    pub(crate) fn state(&self) -> u64 {
        self.state
    }

    /// Gives the pages of a half back.
    fn release(&mut self, state: u64) {
        let first = place(state & HALF, 0).0;
        for page in (first..self.pages.limit()).step_by(2) {
            self.pages.release(page);
        }
    }
}

/// The pages of a record in a half.
fn pages(state: u64, record: Record) -> impl Iterator<Item = u32> {
    let (first, last) = (place(state, record.at).0, place(state, record.end() - WORD).0);
    (first..=last).step_by(2)
}

/// Page and offset of a byte of the half that a state says.
fn place(state: u64, at: u64) -> (u32, usize) {
    let page = at / PAGE_BYTES as u64;
    ((1 + 2 * page + u64::from(state & HALF != 0)) as u32, (at % PAGE_BYTES as u64) as usize)
}
