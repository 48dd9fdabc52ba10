//! The names.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::rights::Kind;
use protocols::listing::{Record, Writer};
use protocols::names::{NamesError, is_name};
use runtime::entry::{Entry, Owned};

struct Name {
    text: String,
    /// Nothing until one is registered.
    service: Option<Owned>,
}

/// Services that were replaced and are kept a little longer: a concurrent `open` may still be on its
/// way out with the index of one, which must not stand for another service meanwhile.
const RETIRED: usize = 8;

/// All names, in the order of their registration.
pub struct Table {
    names: Vec<Name>,
    retired: VecDeque<Owned>,
}

impl Table {
    /// No names.
    pub const fn new() -> Self {
        Self { names: Vec::new(), retired: VecDeque::new() }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.text == name)
    }

    /// Registers a service, or replaces it.
    pub fn register(&mut self, name: &str, service: Owned) -> Result<(), NamesError> {
        if !alive(&service) {
            return Err(NamesError::Gone);
        }
        let index = self.find_or_add(name)?;
        let old = self.names[index].service.replace(service);
        self.retire(old);
        Ok(())
    }

    /// A name under which a service will be registered.
    pub fn expect(&mut self, name: &str) -> Result<(), NamesError> {
        self.find_or_add(name).map(drop)
    }

    fn find_or_add(&mut self, name: &str) -> Result<usize, NamesError> {
        if !is_name(name) {
            return Err(NamesError::BadName);
        }
        if let Some(index) = self.find(name) {
            return Ok(index);
        }
        self.names.try_reserve(1).map_err(|_| NamesError::NoMemory)?;
        self.names.push(Name { text: name.to_string(), service: None });
        Ok(self.names.len() - 1)
    }

    /// The service of a name.
    pub fn open(&self, name: &str) -> Result<Entry, NamesError> {
        let index = self.find(name).ok_or(NamesError::NotFound)?;
        // Of one that died the name stays: its owner is probably being restarted and registers again.
        let service = self.names[index].service.as_ref().filter(|service| alive(service));
        service.map(Owned::entry).ok_or(NamesError::Gone)
    }

    /// Takes a name back.
    pub fn unregister(&mut self, name: &str) -> Result<(), NamesError> {
        let index = self.find(name).ok_or(NamesError::NotFound)?;
        let name = self.names.remove(index);
        self.retire(name.service);
        Ok(())
    }

    fn retire(&mut self, service: Option<Owned>) {
        let Some(service) = service else { return };
        if self.retired.len() >= RETIRED {
            self.retired.pop_front();
        }
        self.retired.push_back(service);
    }

    /// Writes names from a position on: tag 1 = alive; gives bytes and the next position.
    pub fn list(&self, position: u64, into: &mut [u8]) -> (usize, u64) {
        let mut writer = Writer::new(into);
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(self.names.len());
        for (index, known) in self.names.iter().enumerate().skip(start) {
            let tag = u8::from(known.service.as_ref().is_some_and(alive));
            if !writer.push(Record { tag, value: 0, name: known.text.as_bytes() }) {
                return (writer.used(), index as u64);
            }
        }
        (writer.used(), 0)
    }
}

/// Is the entry still a service?
fn alive(service: &Owned) -> bool {
    service.entry().is(Kind::Service, 0)
}
