//! The words of an operation, read as operands, and what an operation has ready before it begins.

use crate::arch::memory;
use crate::control::dispatch;
use crate::memory::frames;
use crate::memory::portals::PLACES_LOOKED_AT;
use crate::objects::{Account, Activation, Domain, Entry, OfKind, Semaphore, Stop};
use crate::pointer::{Held, Ref};
use abi::Error;
use abi::layout::MAX_TABLE_ENTRIES;
use abi::rights::Kind;

/// Sees to it that an operation finds so many clear frames at hand; each is cleared in a stretch of its own.
pub fn have_clear(operands: &Operands, frames: usize) {
    let held = operands.held();
    in_stretches(operands, || frames::clear_ahead(held, frames));
}

/// Sees to it that no block need be split for a few frames.
pub fn have_frames(operands: &Operands) {
    let held = operands.held();
    in_stretches(operands, || frames::prepare(held));
}

/// Makes steps, each in a stretch of its own, until one says that there is nothing left to do. An interrupt in between makes the
/// operation start again, so nothing may have been done before but what the steps remember.
#[inline(always)]
pub fn in_stretches(operands: &Operands, mut step: impl FnMut() -> bool) {
    while step() {
        let activation = operands.0;
        activation.repeat_system_call();
        dispatch::preemption_point(operands.held());
        activation.registers.pc.update(|pc| pc + memory::SYSTEM_CALL_BYTES);
    }
}

/// The words of a full operation, read as operands.
pub struct Operands(pub Ref<Activation>);

impl Operands {
    /// Who has operands has the lock.
    pub fn held(&self) -> Held {
        self.0.held()
    }
    /// The caller's domain.
    pub fn own(&self) -> Ref<Domain> {
        self.0.domain
    }
    /// Word 0 to 5.
    pub fn word(&self, index: usize) -> u64 {
        self.0.registers.word(index)
    }
    /// A word as index of a table.
    pub fn index(&self, word: usize) -> usize {
        usize::try_from(self.word(word)).unwrap_or(usize::MAX)
    }
    /// An entry of the caller's table.
    pub fn entry(&self, word: usize, kind: Kind, rights: u8) -> Result<Ref<Entry>, Error> {
        self.own().entry(self.index(word), kind, rights)
    }
    /// The object of an entry of the caller's table.
    #[inline(always)]
    pub fn object<T: OfKind>(&self, word: usize, rights: u8) -> Result<Ref<T>, Error> {
        self.own().object(self.index(word), rights)
    }
    /// A domain operand: 0 = the caller's own.
    #[inline(always)]
    pub fn domain(&self, word: usize, rights: u8) -> Result<Ref<Domain>, Error> {
        if self.word(word) == 0 {
            return Ok(self.own());
        }
        let domain: Ref<Domain> = self.object(word, rights)?;
        if domain.is_dead() { Err(Error::PeerDied) } else { Ok(domain) }
    }
    /// An account operand: 0 = the caller's own.
    pub fn account(&self, word: usize, rights: u8) -> Result<Ref<Account>, Error> {
        if self.word(word) == 0 {
            return Ok(self.own().account);
        }
        self.object(word, rights)
    }
    /// The place that an index to fill names: a free one of `domain`, or with 0 the next that is free. That is looked for in
    /// steps, which the progress of the operation counts. The table grows if need be.
    pub fn vacancy(&self, domain: Ref<Domain>, word: usize) -> Result<(Ref<Entry>, usize), Stop> {
        if self.word(word) != 0 {
            return match domain.vacancy(self.index(word)) {
                Err(Error::BadIndex) => self.reach(domain, self.index(word)).and(Err(Stop::Repeat)),
                found => Ok(found?),
            };
        }
        let progress = &self.0.progress;
        if progress.get() as usize * PLACES_LOOKED_AT > domain.table_entries() {
            return self.grow_table(domain);
        }
        if let Some(found) = domain.find_vacancy() {
            return Ok(found);
        }
        progress.update(|value| value + 1);
        Err(Stop::Repeat)
    }
    /// Has the table of `domain` grow until it has an entry at `index`.
    #[inline(never)]
    pub fn reach(&self, domain: Ref<Domain>, index: usize) -> Result<(), Stop> {
        match index {
            _ if index < domain.table_entries() => Ok(()),
            MAX_TABLE_ENTRIES.. => Err(Error::BadIndex.into()),
            _ => {
                domain.check_growth(index)?;
                self.grow_table(domain)
            }
        }
    }
    /// Adds a page to the table of `domain`; the operation is made again.
    fn grow_table<T>(&self, domain: Ref<Domain>) -> Result<T, Stop> {
        domain.grow_table_step()?;
        Err(Stop::Repeat)
    }
    /// A semaphore operand.
    pub fn semaphore(&self, word: usize, rights: u8) -> Result<Ref<Semaphore>, Error> {
        self.object(word, rights)
    }
}
