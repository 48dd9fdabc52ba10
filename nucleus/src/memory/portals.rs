//! Entries of portal tables: finding, filling and emptying them.

use super::{frames, labels, shapes};
use crate::cpus::assembly;
use crate::cpus::cpu;
use crate::objects::{Account, CEILING_MARK, CEILING_SHIFT, Domain, Entry, OfKind, PLAIN, Port, Semaphore, Thread};
use crate::pointer::{Link, Ref};
use abi::Error;
use abi::layout::{FIRST_FREE, PAGE_FAULT};
use abi::rights::{self, Kind};
use core::sync::atomic::{Ordering, fence};
use flow::Label;
use flow::rules::admit_plain;
use structures::derivation::Derived;

/// Contents for an entry.
pub struct Content {
    kind: Kind,
    rights: u8,
    object: usize,
    word0: u64,
    word1: u64,
    flags: u32,
}

/// Entries that one step of the search for a free one checks.
pub const PLACES_LOOKED_AT: usize = 16;

impl Content {
    /// An original of an object, with all rights.
    #[inline(always)]
    pub fn original<T: OfKind>(object: Ref<T>) -> Self {
        Self { object: object.address(), ..Self::plain(T::KIND, 0) }
    }
    /// A service: an entry point of a domain, at this address, with flags.
    #[inline(always)]
    pub fn service(domain: Ref<Domain>, address: u64, flags: u32) -> Self {
        Self { object: domain.address(), flags, ..Self::plain(Kind::Service, address) }
    }
    /// An original of a kind without an object.
    #[inline(always)]
    pub fn plain(kind: Kind, word0: u64) -> Self {
        Self { kind, rights: rights::ALL, object: 0, word0, word1: 0, flags: 0 }
    }
    /// A label: its entry cannot be copied.
    pub fn label(label: Label) -> Self {
        Self { rights: rights::ALL & !rights::COPY, ..Self::plain(Kind::Label, label.word()) }
    }
    /// The contents of `source`, with its rights reduced to `mask`.
    #[inline(always)]
    pub fn copy(source: Ref<Entry>, mask: u8) -> Self {
        Self {
            kind: source.kind(),
            rights: source.node.rights.get() & mask,
            object: source.object.get(),
            word0: source.word0.get(),
            word1: source.word1.get(),
            flags: source.node.flags.get(),
        }
    }
    /// A call entry to a service of `callee`; calls have at least the priority `ceiling`.
    #[inline(always)]
    pub fn call(service: Ref<Entry>, callee: Ref<Domain>, badge: u64, ceiling: u8) -> Self {
        Self {
            kind: Kind::Call,
            rights: rights::USE,
            object: callee.address(),
            word0: service.word0.get(),
            word1: badge,
            flags: service.node.flags.get() | (ceiling as u32) << CEILING_SHIFT,
        }
    }
}

impl Ref<Entry> {
    /// Fills a vacant entry, below `parent` or as an original.
    pub fn fill(self, content: Content, parent: Link<Entry>) -> Result<(), Error> {
        let node = self.node_reference();
        match parent {
            Some(parent) => node.derive_from(parent.node_reference())?,
            None => node.root(),
        }
        self.fill_linked(content);
        Ok(())
    }
    /// Fills an entry outside of any table with a copy of `source`, derived from it, until it is [moved](Self::move_from).
    pub fn fill_aside(self, source: Self) -> Result<(), Error> {
        self.node_reference().derive_from(source.node_reference())?;
        self.set(&Content::copy(source, rights::ALL));
        Ok(())
    }
    /// Moves the contents of another entry into this vacant one.
    #[inline(never)]
    pub fn move_from(self, other: Self) {
        self.node_reference().take_place_of(other.node_reference());
        self.fill_linked(Content::copy(other, rights::ALL));
        other.node.kind.set(Kind::Empty as u8);
    }
    #[inline(always)]
    fn set(self, content: &Content) {
        self.object.set(content.object);
        let mark = if (content.flags >> CEILING_SHIFT) as u8 != 0 { CEILING_MARK } else { 0 };
        self.word0.set(content.word0);
        self.word1.set(content.word1);
        self.versions.set(mark);
        self.node.kind.set(content.kind as u8);
        self.node.rights.set(content.rights);
        self.node.flags.set(content.flags);
    }
    #[inline(always)]
    fn fill_linked(self, content: Content) {
        self.set(&content);
        // Release: another CPU that sees the code sees the rest of the entry.
        fence(Ordering::Release);
        self.code.set(if content.kind == Kind::Call { shapes::call(self) } else { self.other_code(content.kind) });
    }
    /// Where the system call jumps for an entry that is not a call.
    #[inline(never)]
    fn other_code(self, kind: Kind) -> usize {
        match kind {
            Kind::Semaphore if self.is_usable() => assembly::entry_semaphore as *const () as usize,
            Kind::Semaphore => assembly::entry_semaphore_judged as *const () as usize,
            Kind::Port => assembly::entry_port as *const () as usize,
            _ => assembly::entry_wrong_kind as *const () as usize,
        }
    }
    /// Whether the fast path of a semaphore entry may skip the label check. The semaphore must have the label {1}, the domain
    /// must be allowed to use objects with it, and its labels must not be changing. A domain without activations can still be
    /// given other labels. So entries that it gets before its first activation are judged at their first use.
    fn is_usable(self) -> bool {
        let (domain, semaphore) = (self.domain(), self.object::<Semaphore>());
        let is_plain = semaphore.is_some_and(|semaphore| labels::of_object(semaphore) == PLAIN);
        let are_labels_fixed = domain.message_slots.get() != 0;
        is_plain
            && are_labels_fixed
            && !domain.is_barred.get()
            && domain.labelled().is_none_or(|labelled| labelled.next.get().is_none())
    }
    /// Marks the object as shared if others get these rights to it: any right to a semaphore, or the right to receive
    /// from a port. If labels must judge the use of the semaphore, this entry leaves the fast path.
    pub fn shared(self, mask: u8) {
        let given = mask & self.node.rights.get();
        if let Some(port) = self.object::<Port>().filter(|_| given & rights::USE != 0) {
            port.semaphore.is_shared.set(true);
        }
        if let Some(semaphore) = self.object::<Semaphore>()
            && !semaphore.is_shared.replace(true)
            && !self.is_usable()
        {
            self.code.set(assembly::entry_semaphore_judged as *const () as usize);
            cpu::others(self.held()).for_each(cpu::stop);
        }
    }
    /// Empties an entry without descendants; `kind` is `Empty` or `Revoked`. Afterwards no CPU is on a fast path through it.
    pub fn vacate(self, kind: Kind) {
        self.node_reference().unlink();
        self.shut(kind);
        self.object.set(0);
        self.node.kind.set(kind as u8);
        self.node.rights.set(0);
    }
    /// Closes the entry: whoever traverses it gets the error of `kind`, which is `Empty` or `Revoked`. Afterwards no CPU is on a fast
    /// path through it. Its contents stay.
    pub fn shut(self, kind: Kind) {
        let held = self.held();
        let code = if kind == Kind::Revoked { assembly::entry_revoked } else { assembly::entry_empty };
        self.code.set(code as *const () as usize);
        cpu::stop_where(held, |other| other.domain_there() == Some(self.domain()));
    }
    /// Checks that the entry has these rights.
    #[inline(always)]
    pub fn check_rights(self, rights: u8) -> Result<(), Error> {
        if self.node.rights.get() & rights == rights { Ok(()) } else { Err(Error::NoRight) }
    }
    /// The domain in whose table the entry is.
    pub fn domain(self) -> Ref<Domain> {
        frames::record(self.held(), frames::frame_of(self.address())).domain()
    }
    /// Revokes one entry derived from this one; false if there was none.
    pub fn revoke_one(self) -> bool {
        match self.node_reference().descendant() {
            Some(node) => {
                Self::of_node(node).vacate(Kind::Revoked);
                true
            }
            None => false,
        }
    }
}

impl Ref<Domain> {
    /// The entry at `index`, which must be of `kind` and have `rights`.
    pub fn entry(self, index: usize, kind: Kind, rights: u8) -> Result<Ref<Entry>, Error> {
        let entry = self.place(index)?;
        if entry.is_of(kind) {
            entry.check_rights(rights).map(|()| entry)
        } else {
            Err(match entry.kind() {
                Kind::Empty => Error::Empty,
                Kind::Revoked => Error::Revoked,
                _ => Error::WrongKind,
            })
        }
    }
    /// The vacant entry at `index`, within the present table, and the index.
    #[inline(never)]
    pub fn vacancy(self, index: usize) -> Result<(Ref<Entry>, usize), Error> {
        if index >= self.table_entries() {
            return Err(Error::BadIndex);
        }
        if index < PAGE_FAULT[0] {
            return Err(Error::ReservedIndex);
        }
        let entry = self.place(index)?;
        if !entry.is_vacant() {
            return Err(Error::Occupied);
        }
        Ok((entry, index))
    }
    /// A step of the search for a free entry, from where the last step ended; None if it found none. A step ends at a
    /// multiple of [`PLACES_LOOKED_AT`], so the first may be short. A whole search takes one step more than the table has
    /// groups of so many.
    pub fn find_vacancy(self) -> Option<(Ref<Entry>, usize)> {
        let hint = self.free_hint.get() as usize;
        let first = if (FIRST_FREE..self.table_entries()).contains(&hint) { hint } else { FIRST_FREE };
        let places = PLACES_LOOKED_AT - first % PLACES_LOOKED_AT;
        let mut rest = self.rest_of_page(first).iter().take(places);
        let found = rest.position(|entry| entry.node.kind.get() == Kind::Empty as u8);
        self.free_hint.set((first + found.map_or(places, |found| found + 1)) as u32);
        let index = first + found?;
        Some((self.place(index).ok()?, index))
    }
}

const _: () = assert!(FIRST_FREE.is_multiple_of(PLACES_LOOKED_AT) && PAGE_FAULT[0].is_multiple_of(PLACES_LOOKED_AT));

/// Whether an entry may be copied.
#[inline(never)]
pub fn check_copy(source: Ref<Entry>) -> Result<(), Error> {
    match source.kind() {
        Kind::Empty => Err(Error::Empty),
        Kind::Revoked => Err(Error::Revoked),
        Kind::Call | Kind::Operation => Err(Error::WrongKind),
        _ if source.node.rights.get() & rights::COPY == 0 => Err(Error::NoRight),
        _ if is_going(source) => Err(Error::Revoked),
        _ => Ok(()),
    }
}

/// Copies an entry that [`check_copy`] allows, with reduced rights, into a vacant one.
#[inline(never)]
pub fn copy_entry(source: Ref<Entry>, mask: u8, place: Ref<Entry>) -> Result<(), Error> {
    place.fill(Content::copy(source, mask), Some(source))?;
    source.shared(mask);
    Ok(())
}

/// Makes a call entry to a service, in `place` of `domain`'s table; calls have at least the priority `ceiling`.
pub fn make_call_entry(
    service: Ref<Entry>,
    badge: u64,
    ceiling: u8,
    domain: Ref<Domain>,
    place: Ref<Entry>,
) -> Result<(), Error> {
    let callee = service.server().ok_or(Error::WrongKind)?;
    if shapes::passes_windows(service) {
        domain.lends.set(true);
    }
    place.fill(Content::call(service, callee, badge, ceiling), Some(service))?;
    // Judges the call now if that takes few instructions, else when it is first made.
    let is_open = service.label_number() == 0;
    if is_open && (domain.labelled().or(callee.labelled()).is_none() || is_plain(domain, callee)) {
        place.allow(domain, callee);
    }
    Ok(())
}

/// Whether the labels of both domains have no entries and allow a call.
#[cold]
#[inline(never)]
fn is_plain(domain: Ref<Domain>, callee: Ref<Domain>) -> bool {
    admit_plain(&domain.labels(), &callee.labels()) == Some(true)
}

/// Whether the object of an entry is being removed. Then nothing more may be derived from the entry: else the removal could
/// chase new copies for as long as others make them. That a domain died is not asked: labels may forbid that the caller learns it.
fn is_going(entry: Ref<Entry>) -> bool {
    if let Some(domain) = entry.server().or(entry.object()) {
        return domain.is_being_removed();
    }
    if let Some(thread) = entry.object::<Thread>() {
        return thread.is_going.get() || thread.home.is_being_removed();
    }
    if let Some(semaphore) = entry.object::<Semaphore>() {
        return semaphore.is_going.get();
    }
    if let Some(port) = entry.object::<Port>() {
        return port.semaphore.is_going.get();
    }
    entry.object::<Account>().is_some_and(|account| account.is_going.get())
}
