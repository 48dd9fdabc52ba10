//! Operands of operations, and what an operation prepares before it begins.

use crate::arch::memory;
use crate::control::{dispatch, flows};
use crate::memory::portals::PLACES_LOOKED_AT;
use crate::memory::{frames, labels};
use crate::objects::{Account, Activation, Changes, Domain, Entry, PLAIN, Semaphore, Stop, Thread};
use crate::pointer::{Held, Ref};
use crate::report::forbidden::{Against, refuse};
use abi::Error;
use abi::layout::{MAX_TABLE_ENTRIES, SPECIAL};
use abi::rights::{self, Kind};
use flow::Label;

/// Clears frames ahead until `frames` are at hand or memory is scarce, one per preemptible step.
pub fn have_clear(operands: &Operands, frames: usize) {
    let held = operands.held();
    in_steps(operands, || frames::clear_ahead(held, frames));
}

/// Prepares single frames, in preemptible steps, so that the operation need not split a block.
pub fn have_frames(operands: &Operands) {
    let held = operands.held();
    in_steps(operands, || frames::prepare(held));
}

/// Runs `step`, with a preemption point after each, until it returns false. If the operation is preempted there, it is
/// restarted. So it must not have had effects before, except those that the steps record.
#[inline(always)]
pub fn in_steps(operands: &Operands, mut step: impl FnMut() -> bool) {
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
    /// Proof that the lock is held.
    pub fn held(&self) -> Held {
        self.0.held()
    }
    /// The caller's domain.
    pub fn own(&self) -> Ref<Domain> {
        self.0.domain
    }
    /// A word, 0 to 5.
    pub fn word(&self, index: usize) -> u64 {
        self.0.registers.word(index)
    }
    /// A word as a table index.
    pub fn index(&self, word: usize) -> usize {
        usize::try_from(self.word(word)).unwrap_or(usize::MAX)
    }
    /// An entry of the caller's table. Labels are not judged.
    pub fn entry(&self, word: usize, kind: Kind, rights: u8) -> Result<Ref<Entry>, Error> {
        self.own().entry(self.index(word), kind, rights)
    }
    /// The entry for state of the nucleus that is to be changed. Labels are judged.
    pub fn nucleus(&self, word: usize, kind: Kind, rights: u8) -> Result<Ref<Entry>, Error> {
        let entry = self.entry(word, kind, rights)?;
        self.may_change_nucleus().map(|()| entry)
    }
    /// Checks that the caller has the machine with the right CONTROL, and may change it by its labels.
    pub fn controls_machine(&self) -> Result<(), Error> {
        self.own().entry(SPECIAL, Kind::Machine, rights::CONTROL)?;
        self.may_change_nucleus()
    }
    /// Judges a change of state of the nucleus.
    pub fn may_change_nucleus(&self) -> Result<(), Error> {
        flows::may_change(self.own()).map_err(|_| refuse(self.own(), Against::Thing("the machine")))
    }
    /// Judges an operation on `domain`, to which the entry refers: it is a flow in both directions.
    pub fn judged(&self, entry: Ref<Entry>, domain: Ref<Domain>) -> Result<Ref<Domain>, Stop> {
        let own = self.own();
        if own.labelled().or(domain.labelled()).is_some() && !entry.allows(own, domain) {
            self.judge_domain(entry, domain)?;
        }
        Ok(domain)
    }
    #[cold]
    #[inline(never)]
    fn judge_domain(&self, entry: Ref<Entry>, domain: Ref<Domain>) -> Result<(), Stop> {
        let before = self.0.changes.get();
        flows::judge_domain(self.0, entry, domain)?;
        self.restart_if_cached(before, entry, domain)
    }
    /// A domain operand: 0 = the caller's own.
    #[inline(always)]
    pub fn domain(&self, word: usize, rights: u8) -> Result<Ref<Domain>, Stop> {
        self.domain_by(word, rights, Self::judged)
    }
    /// The same for an operation that leaves nothing in flight: see [`flows::judge_at_once`].
    pub fn domain_at_once(&self, word: usize, rights: u8) -> Result<Ref<Domain>, Stop> {
        self.domain_by(word, rights, |operands, _, domain| {
            if operands.own().labelled().or(domain.labelled()).is_some() {
                flows::judge_at_once(operands.0, domain)?;
            }
            Ok(domain)
        })
    }
    #[inline(always)]
    fn domain_by(
        &self,
        word: usize,
        rights: u8,
        judged: impl Fn(&Self, Ref<Entry>, Ref<Domain>) -> Result<Ref<Domain>, Stop>,
    ) -> Result<Ref<Domain>, Stop> {
        if self.word(word) == 0 {
            return Ok(self.own());
        }
        let entry = self.entry(word, Kind::Domain, rights)?;
        let domain = judged(self, entry, entry.object().ok_or(Error::WrongKind)?)?;
        if domain.is_dead() { Err(Error::PeerDied.into()) } else { Ok(domain) }
    }
    /// Judges the use of an object with this label.
    fn used(&self, entry: Ref<Entry>, label: Label) -> Result<(), Stop> {
        let own = self.own();
        if (own.is_barred.get() || label != PLAIN) && !entry.allows(own, own) {
            self.judge_object(entry, label)?;
        }
        Ok(())
    }
    #[cold]
    #[inline(never)]
    fn judge_object(&self, entry: Ref<Entry>, label: Label) -> Result<(), Stop> {
        let before = self.0.changes.get();
        flows::judge_object(self.0, entry, label)?;
        self.restart_if_cached(before, entry, self.own())
    }
    /// Called after a verdict. If the entry caches it now, restarts the operation, so that the verdict and the rest are separate
    /// steps: but only as often as an operation has judged operands. Else whoever changes labels again and again would put it off.
    fn restart_if_cached(&self, before: Changes, entry: Ref<Entry>, other: Ref<Domain>) -> Result<(), Stop> {
        let changes = &self.0.changes;
        match before {
            Changes::JudgedTwice => changes.set(before),
            _ if !entry.allows(self.own(), other) => {}
            Changes::Judged => {
                changes.set(Changes::JudgedTwice);
                return Err(Stop::Repeat);
            }
            _ => {
                changes.set(Changes::Judged);
                return Err(Stop::Repeat);
            }
        }
        Ok(())
    }
    /// An account operand; 0 = the caller's own. Labels are judged, unless the account is the caller's own; an entry that names it
    /// changes nothing.
    #[inline(never)]
    pub fn account(&self, word: usize, rights: u8) -> Result<Ref<Account>, Stop> {
        if self.word(word) == 0 {
            return Ok(self.own().account);
        }
        let entry = self.entry(word, Kind::Account, rights)?;
        let account: Ref<Account> = entry.object().ok_or(Error::WrongKind)?;
        if account != self.own().account {
            self.used(entry, account.label.get())?;
        }
        Ok(account)
    }
    /// The free entry of `domain` that an index-to-fill operand names; 0 = the next free one. The search for that runs in steps,
    /// which the operation's progress counts. The table grows if necessary.
    pub fn vacancy(&self, domain: Ref<Domain>, word: usize) -> Result<(Ref<Entry>, usize), Stop> {
        if self.word(word) != 0 {
            return match domain.vacancy(self.index(word)) {
                Err(Error::BadIndex) => self.reach(domain, self.index(word)).and(Err(Stop::Repeat)),
                found => Ok(found?),
            };
        }
        let progress = &self.0.progress;
        if (progress.get() as usize).saturating_mul(PLACES_LOOKED_AT) > domain.table_entries() {
            return self.grow_table(domain);
        }
        if let Some(found) = domain.find_vacancy() {
            return Ok(found);
        }
        progress.update(|value| value + 1);
        Err(Stop::Repeat)
    }
    /// Grows the table of `domain` until it has an entry at `index`, a page per step.
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
    /// Adds a page to the table of `domain`, and restarts the operation.
    fn grow_table<T>(&self, domain: Ref<Domain>) -> Result<T, Stop> {
        domain.grow_table_step()?;
        Err(Stop::Repeat)
    }
    /// A label operand.
    pub fn label(&self, word: usize, rights: u8) -> Result<Label, Error> {
        self.label_at(self.index(word), rights)
    }
    /// The label at an index of the caller's table.
    pub fn label_at(&self, index: usize, rights: u8) -> Result<Label, Error> {
        self.own().entry(index, Kind::Label, rights)?.label().ok_or(Error::WrongKind)
    }
    /// A word that is 0 or 1.
    pub fn truth(&self, word: usize) -> Result<bool, Error> {
        match self.word(word) {
            is @ 0..=1 => Ok(is == 1),
            _ => Err(Error::BadArgument),
        }
    }
    /// A semaphore operand.
    #[inline(never)]
    pub fn semaphore(&self, word: usize, rights: u8) -> Result<Ref<Semaphore>, Stop> {
        let entry = self.entry(word, Kind::Semaphore, rights)?;
        let semaphore: Ref<Semaphore> = entry.object().ok_or(Error::WrongKind)?;
        // The use of an unshared object is no flow to another domain.
        if semaphore.is_shared.get() {
            self.used(entry, labels::of_object(semaphore))?;
        }
        Ok(semaphore)
    }
    /// A thread operand that is not 0.
    #[inline(never)]
    pub fn thread(&self, word: usize, rights: u8) -> Result<Ref<Thread>, Stop> {
        let entry = self.entry(word, Kind::Thread, rights)?;
        let thread: Ref<Thread> = entry.object().ok_or(Error::WrongKind)?;
        self.judged(entry, thread.home).map(|_| thread)
    }
}
