//! Portal tables: how entries are found, filled and emptied.

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

/// What to put into an entry.
pub struct Content {
    kind: Kind,
    rights: u8,
    object: usize,
    word0: u64,
    word1: u64,
    flags: u32,
}

/// Places of a table that one step of the search for a free one looks at.
pub const PLACES_LOOKED_AT: usize = 16;

impl Content {
    /// An original of an object, with all rights.
    #[inline(always)]
    pub fn original<T: OfKind>(object: Ref<T>) -> Self {
        Self { object: object.address(), ..Self::plain(T::KIND, 0) }
    }
    /// An entry point of a domain: its address, and flags.
    #[inline(always)]
    pub fn service(domain: Ref<Domain>, address: u64, flags: u32) -> Self {
        Self { object: domain.address(), flags, ..Self::plain(Kind::Service, address) }
    }
    /// An original of a kind that stands for no object.
    #[inline(always)]
    pub fn plain(kind: Kind, word0: u64) -> Self {
        Self { kind, rights: rights::ALL, object: 0, word0, word1: 0, flags: 0 }
    }
    /// A label, which stays where it is.
    pub fn label(label: Label) -> Self {
        Self { rights: rights::ALL & !rights::COPY, ..Self::plain(Kind::Label, label.word()) }
    }
    /// What stands in `source`, with the rights that `mask` leaves.
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
    /// Calls to a service of `callee`, with at least the priority `ceiling`.
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
    /// Fills an entry that nobody traverses, below `parent`: it waits to be [moved](Self::move_from).
    pub fn fill_aside(self, source: Self) -> Result<(), Error> {
        self.node_reference().derive_from(source.node_reference())?;
        self.set(&Content::copy(source, rights::ALL));
        Ok(())
    }
    /// Fills a vacant entry with what stands in another one, which is empty afterwards.
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
        // Release: another CPU that finds the code finds the rest.
        fence(Ordering::Release);
        self.code.set(if content.kind == Kind::Call { shapes::call(self) } else { self.other_code(content.kind) });
    }
    /// Where the system call jumps by an entry that is no call.
    #[inline(never)]
    fn other_code(self, kind: Kind) -> usize {
        match kind {
            Kind::Semaphore if self.is_usable() => assembly::entry_semaphore as *const () as usize,
            Kind::Semaphore => assembly::entry_semaphore_judged as *const () as usize,
            Kind::Port => assembly::entry_port as *const () as usize,
            _ => assembly::entry_wrong_kind as *const () as usize,
        }
    }
    /// Of a semaphore: whether that has the label {1}, and the domain may use what has it. Before a domain has an activation it may be given
    /// other labels: what is put into its table by then is judged when it is used first.
    fn is_usable(self) -> bool {
        let (domain, semaphore) = (self.domain(), self.object::<Semaphore>());
        let is_plain = semaphore.is_some_and(|semaphore| labels::of_object(semaphore) == PLAIN);
        let is_settled = domain.activation_count.get() != 0;
        is_plain
            && is_settled
            && !domain.is_barred.get()
            && domain.labelled().is_none_or(|labelled| labelled.next.get().is_none())
    }
    /// Others may have these rights from now on.
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
    /// Empties an entry without descendants; `kind` is `Empty` or `Revoked`. Nobody is on a fast path through it
    /// afterwards.
    pub fn vacate(self, kind: Kind) {
        self.node_reference().unlink();
        self.shut(kind);
        self.object.set(0);
        self.node.kind.set(kind as u8);
        self.node.rights.set(0);
    }
    /// Nobody gets through the entry any more, or is on a fast path through it: it refuses as one of `kind` does, which is
    /// `Empty` or `Revoked`. What stands there stays.
    pub fn shut(self, kind: Kind) {
        let held = self.held();
        let code = if kind == Kind::Revoked { assembly::entry_revoked } else { assembly::entry_empty };
        self.code.set(code as *const () as usize);
        cpu::stop_where(held, |other| other.domain_there() == Some(self.domain()));
    }
    /// Whether it has these rights.
    #[inline(always)]
    pub fn check_rights(self, rights: u8) -> Result<(), Error> {
        if self.node.rights.get() & rights == rights { Ok(()) } else { Err(Error::NoRight) }
    }
    /// In whose table it is.
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
    /// The entry to fill at `index`, to which the table has grown.
    #[inline(never)]
    pub fn vacancy(self, index: usize) -> Result<(Ref<Entry>, usize), Error> {
        if index >= self.table_entries() {
            return Err(Error::BadIndex);
        }
        let entry = self.place(index)?;
        if index < PAGE_FAULT[0] || !entry.is_vacant() {
            return Err(Error::Occupied);
        }
        Ok((entry, index))
    }
    /// A free entry among the next places behind the one where the last search ended. Steps end at multiples of
    /// [`PLACES_LOOKED_AT`], so the first of a search may be short: all places were seen after one step more than the table has of them.
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
        Kind::Call | Kind::Operation => Err(Error::NoRight),
        _ if source.node.rights.get() & rights::COPY == 0 => Err(Error::NoRight),
        _ if is_going(source) => Err(Error::Revoked),
        _ => Ok(()),
    }
}

/// Copies an object entry, which may be copied, with reduced rights into a vacant place.
#[inline(never)]
pub fn copy_entry(source: Ref<Entry>, mask: u8, place: Ref<Entry>) -> Result<(), Error> {
    place.fill(Content::copy(source, mask), Some(source))?;
    source.shared(mask);
    Ok(())
}

/// Makes a call entry for `domain` from a service; calls through it have at least the priority `ceiling`.
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
    // What cannot be said at once is judged at the first call.
    let is_open = service.label_number() == 0;
    if is_open && (domain.labelled().or(callee.labelled()).is_none() || is_plain(domain, callee)) {
        place.allow(domain, callee);
    }
    Ok(())
}

/// Whether labels that have no entries allow a call.
#[cold]
#[inline(never)]
fn is_plain(domain: Ref<Domain>, callee: Ref<Domain>) -> bool {
    admit_plain(&domain.labels(), &callee.labels()) == Some(true)
}

/// Whether the object of an entry is going. Nothing more is derived from it: else who removes it would run after copies for
/// as long as others make them.
fn is_going(entry: Ref<Entry>) -> bool {
    if let Some(domain) = entry.server().or(entry.object()) {
        return domain.is_dead();
    }
    if let Some(thread) = entry.object::<Thread>() {
        return thread.is_going.get() || thread.home.is_dead();
    }
    if let Some(semaphore) = entry.object::<Semaphore>() {
        return semaphore.is_going.get();
    }
    if let Some(port) = entry.object::<Port>() {
        return port.semaphore.is_going.get();
    }
    entry.object::<Account>().is_some_and(|account| account.is_going.get())
}
