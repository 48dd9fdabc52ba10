//! Values with keys.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use crate::log::{Log, Record, up_to};
use crate::{Error, Pages};

/// Bytes of a key, at most.
pub const MAX_KEY: usize = 255;

/// A key, and its new value; `None` removes it.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// Bytes of a record before its key and value: the kind, and the length of the key.
const HEAD: usize = 2;
/// Kinds.
const SETS: u8 = 1;
const REMOVES: u8 = 2;

/// Values in a log: the last record of a key counts. An index of the keys is on the heap; values are read from the pages.
pub struct Values<P> {
    log: Log<P>,
    index: BTreeMap<Vec<u8>, Record>,
}

impl<P: Pages> Values<P> {
    /// Opens what is in these pages, or makes it; errors of [`Log::open`].
    pub fn open(pages: P, version: u32) -> Result<Self, Error> {
        let log = Log::open(pages, version)?;
        let mut index = BTreeMap::new();
        for record in log.records() {
            let record = record?;
            let mut head = [0; HEAD];
            let mut key = [0; MAX_KEY];
            let found = log.read(record, 0, &mut head);
            let [kind, length] = head;
            let key = &mut key[..length.into()];
            if found != HEAD || log.read(record, HEAD, key) != key.len() {
                return Err(Error::Corrupt);
            }
            match kind {
                SETS => drop(index.insert(key.to_vec(), record)),
                REMOVES => drop(index.remove(key)),
                _ => return Err(Error::Corrupt),
            }
        }
        Ok(Self { log, index })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Reads the value of a key; gives its length, of which no more was read than fits.
    pub fn read(&self, key: &[u8], into: &mut [u8]) -> Option<usize> {
        let record = *self.index.get(key)?;
        let before = HEAD + key.len();
        self.log.read(record, before, into);
        Some(record.bytes() - before)
    }

    /// The value of a key. `None` as well if there is no memory for it; [`Self::read`] needs none.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = self.log.get(*self.index.get(key)?).ok()?;
        value.drain(..HEAD + key.len());
        Some(value)
    }

    /// The first key after another one, in the order of bytes; of all, after `None`.
    pub fn after(&self, key: Option<&[u8]>) -> Option<&[u8]> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.index.range::<[u8], _>((from, Bound::Unbounded)).next().map(|(key, _)| key.as_slice())
    }

    /// Gives a key a value. [`Error::NoSpace`]: nothing has changed.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.change(&[(key, Some(value))])
    }

    /// Takes a key and its value away; gives whether it was there. A full vault has room for that.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let was_there = self.index.contains_key(key);
        if was_there {
            self.change(&[(key, None)])?;
        }
        Ok(was_there)
    }

    /// Makes changes together: all of them, or none.
    pub fn change(&mut self, changes: &[Change<'_>]) -> Result<(), Error> {
        if changes.iter().any(|(key, _)| key.len() > MAX_KEY) {
            return Err(Error::KeyTooLong);
        }
        let mut places = Vec::new();
        places.try_reserve_exact(changes.len()).map_err(|_| Error::NoSpace)?;
        let state = self.log.state();
        match write(&mut self.log, state, changes, &mut places) {
            Ok(state) => self.log.commit(state),
            // Old values may be in the way.
            Err(_) => self.tidy(changes, &mut places)?,
        }
        for ((key, value), place) in changes.iter().zip(places) {
            match (value, self.index.get_mut(*key)) {
                (None, _) => drop(self.index.remove(*key)),
                (Some(_), Some(known)) => *known = place,
                (Some(_), None) => drop(self.index.insert(key.to_vec(), place)),
            }
        }
        Ok(())
    }

    /// Makes changes, and throws old values away, also those of the keys that change.
    fn tidy(&mut self, changes: &[Change<'_>], places: &mut Vec<Record>) -> Result<(), Error> {
        let stays = |key: &[u8]| changes.iter().all(|(changed, _)| *changed != key);
        let mut records = Vec::new();
        records.try_reserve_exact(self.index.len()).map_err(|_| Error::NoSpace)?;
        records.extend(self.index.iter().filter(|(key, _)| stays(key)).map(|(_, place)| *place));
        places.clear();
        let kept = self.log.keep_and(&records, |log, state| write(log, state, changes, places))?;
        let staying = self.index.iter_mut().filter(|(key, _)| stays(key));
        staying.zip(kept).for_each(|((_, place), new)| *place = new);
        Ok(())
    }
}

/// Writes changes after a state; gives the one with which they count.
fn write<P: Pages>(
    log: &mut Log<P>,
    mut state: u64,
    changes: &[Change<'_>],
    places: &mut Vec<Record>,
) -> Result<u64, Error> {
    for (key, value) in changes {
        let kind = if value.is_some() { SETS } else { REMOVES };
        let place = log.put(state, &[&[kind, key.len() as u8], key, value.unwrap_or_default()])?;
        state = up_to(state, place);
        places.push(place);
    }
    Ok(state)
}
