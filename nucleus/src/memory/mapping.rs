//! The mapping database: which domain maps which frame where, and from which domain.
//!
//! One [`Mapping`] per mapped page: a node of the derivation tree of its frame (`objects::Node`), and of its domain's list. The
//! original is made when the frame is drawn: when it goes, the frame returns to its account. Page tables have a shadow with the
//! mapping of each entry, so a lookup takes no search.

use super::frames::{self, Use};
use super::space::{self, Slot};
use super::{account, lend, slab};
use crate::arch::memory;
use crate::objects::{Account, Activation, Domain, Frame, Mapping, Memory, Node, PLAIN, STEPS, Stop};
use crate::pointer::{Held, Ref};
use abi::layout::{MESSAGE_END, MESSAGE_START, USER_END, USER_START, WINDOWS, WINDOWS_END};
use abi::rights::{MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Error, MAX_ORDER, MAX_TORN};
use flow::Label;
use structures::derivation::Derived;
use structures::quota::Paying;

/// Bytes of a page.
const PAGE: u64 = abi::PAGE_BYTES as u64;

/// Mask of the offset in a page.
const PLACE: u64 = PAGE - 1;

/// Checks that users may map this flexpage; gives its pages, 2^order.
#[inline]
pub fn check_flexpage(address: u64, order: u64) -> Result<u64, Error> {
    if order > MAX_ORDER {
        return Err(Error::BadArgument);
    }
    let bytes = 4096u64 << order;
    // Neither sum overflows: addresses below `USER_END`, sizes at most 2^47.
    let in_range = (USER_START..USER_END).contains(&address) && address + bytes <= USER_END;
    let in_messages = address < MESSAGE_END && address + bytes > MESSAGE_START;
    let in_windows = address < WINDOWS_END && address + bytes > WINDOWS;
    if address & (bytes - 1) == 0 && in_range && !in_messages && !in_windows {
        Ok(1 << order)
    } else {
        Err(refusal(address, bytes))
    }
}

/// The error of [`check_flexpage`].
#[cold]
#[inline(never)]
fn refusal(address: u64, bytes: u64) -> Error {
    if address & (bytes - 1) != 0 {
        Error::NotAligned
    } else if (USER_START..USER_END).contains(&address) && address + bytes <= USER_END {
        Error::Reserved
    } else {
        Error::BadAddress
    }
}

/// Checks the rights of a mapping.
pub fn check_rights(rights: u64) -> Result<u64, Error> {
    const ALL: u64 = MAP_READ | MAP_WRITE | MAP_EXECUTE | MAP_GRANT;
    const BOTH: u64 = MAP_WRITE | MAP_EXECUTE;
    match rights {
        0..=ALL if rights & BOTH != BOTH => Ok(rights & BOTH | MAP_READ),
        0..=ALL => Err(Error::WritableCode),
        _ => Err(Error::BadArgument),
    }
}

impl Ref<Mapping> {
    fn node_reference(self) -> Ref<Node> {
        // SAFETY: the node is the first field of this live object.
        unsafe { Ref::new(self.pointer().cast()) }
    }
    fn of_node(node: Ref<Node>) -> Self {
        // SAFETY: nodes of mappings are only linked with each other, and the node is the first field.
        unsafe { Ref::new(node.pointer().cast()) }
    }

    /// The address of the mapped page.
    pub fn page(self) -> u64 {
        self.place.get() & !PLACE
    }
    /// The activation number at which the search for lenders of the page continues.
    pub fn taken_back(self) -> u64 {
        self.place.get() & PLACE
    }
    pub fn set_taken_back(self, number: u64) {
        self.place.set(self.page() | number);
    }

    fn enlist(self, domain: Ref<Domain>, address: u64) {
        self.domain.set(domain);
        self.place.set(address);
        self.next.set(domain.mappings.get());
        self.previous.set(None);
        if let Some(next) = self.next.get() {
            next.previous.set(Some(self));
        }
        domain.mappings.set(Some(self));
        domain.pages.update(|value| value + 1);
    }

    fn delist(self) {
        let domain = self.domain.get();
        match self.previous.get() {
            Some(previous) => previous.next.set(self.next.get()),
            None => domain.mappings.set(self.next.get()),
        }
        if let Some(next) = self.next.get() {
            next.previous.set(self.previous.get());
        }
        domain.pages.update(|value| value - 1);
    }

    /// Removes one mapping derived from this one, or this one if there is none; or does a step of that.
    pub fn remove_step(self) {
        match self.node_reference().descendant() {
            Some(node) => {
                self.begin_to_go();
                Self::of_node(node).end_step();
            }
            None => {
                self.end_step();
            }
        }
    }

    /// Removes this mapping, which has no descendants; false if its windows need another step before.
    fn end_step(self) -> bool {
        let is_withdrawn = lend::withdraw(self);
        if is_withdrawn {
            self.end();
        }
        is_withdrawn
    }

    /// Stops derivation from this one, if original: else its removal could chase new mappings as long as others make them.
    fn begin_to_go(self) {
        let held = self.held();
        if let Some(slot) = space::find(self.domain.get(), self.page()).filter(|_| self.node_reference().is_original())
        {
            frames::set_going(held, slot.frame());
        }
    }

    /// Removes this mapping, which has no descendants, and which no window shows.
    fn end(self) {
        let held = self.held();
        let Some(slot) = space::find(self.domain.get(), self.page()) else { return };
        let frame = slot.frame();
        slot.clear(self.domain.get(), self.page());
        if self.node_reference().is_original() && frames::is_of(held, frame, Use::User) {
            account::release(held, frame);
        }
        self.forget_visitor();
        self.node_reference().unlink();
        self.delist();
        slab::free(self);
    }

    /// Resets a visitor's cursor here.
    fn forget_visitor(self) {
        if let Some(visitor) = self.visitor.get() {
            visitor.forget_cursor();
        }
    }

    /// Takes `rights` away from this mapping; false if its windows need another step. If it may have windows, that uses up all
    /// `steps`.
    fn reduce(self, rights: u64, steps: &mut u32) -> bool {
        let Some(slot) = space::find(self.domain.get(), self.page()) else { return true };
        let goes_on = self.taken_back() != 0;
        let is_weakened = rights & slot.rights() & MAP_WRITE != 0;
        slot.reduce(self.domain.get(), self.page(), rights);
        let may_show = self.domain.get().lends.get() && (slot.is_lent() || slot.is_kept());
        if !(may_show && (is_weakened || goes_on)) {
            return true;
        }
        *steps = 0;
        lend::weaken(self)
    }

    /// Takes `rights` away from all mappings derived from this one, at most `steps` of them; leaves the cursor of `visitor`
    /// where it stops. True when done.
    fn reduce_descendants(self, visitor: Ref<Activation>, rights: u64, steps: &mut u32) -> bool {
        let own = self.node_reference();
        let reached = visitor.cursor.get().filter(|_| visitor.cursor_root.get() == self.address());
        let mut node = reached.map_or(own, Ref::<Mapping>::node_reference);
        visitor.forget_cursor();
        while let Some(next) = node.after(own) {
            if *steps == 0 {
                Self::of_node(node).stay(visitor, self);
                return false;
            }
            *steps -= 1;
            if !Self::of_node(next).reduce(rights, steps) {
                Self::of_node(node).stay(visitor, self);
                return false;
            }
            node = next;
        }
        true
    }

    /// Moves the visitor's cursor here; resets another visitor's here.
    fn stay(self, visitor: Ref<Activation>, root: Self) {
        if let Some(other) = self.visitor.get() {
            other.forget_cursor();
        }
        self.visitor.set(Some(visitor));
        visitor.cursor.set(Some(self));
        visitor.cursor_root.set(root.address());
    }
}

/// Allocates a cleared frame and maps it as original. Charged: frame and node to `account`, page tables to the domain's.
pub fn draw(account: Ref<Account>, domain: Ref<Domain>, address: u64, rights: u64) -> Result<(), Error> {
    let held = account.held();
    let slot = space::find_or_make(domain, address)?;
    if slot.is_used() {
        return Err(Error::Occupied);
    }
    let outcome = account.allocate_clear(Use::User).and_then(|frame| {
        let entry = space::entry(frame, rights, Memory::Ram);
        original(account, domain, address, slot, entry).inspect_err(|_| account::release(held, frame))
    });
    if outcome.is_err() {
        space::prune(domain, address);
    }
    outcome
}

/// Maps one page of the boot archive as original, charged to the domain's account. No domain can ever write it, so it may be
/// executed.
pub fn map_archive_page(domain: Ref<Domain>, address: u64, frame: Frame, rights: u64) -> Result<(), Error> {
    let held = domain.held();
    if frames::record(held, frame).used.get() != Use::Archive {
        return Err(Error::Reserved);
    }
    if rights & MAP_WRITE != 0 {
        return Err(Error::ArchivePage);
    }
    let slot = space::find_or_make(domain, address)?;
    if slot.is_used() {
        return Err(Error::Occupied);
    }
    let entry = space::entry(frame, rights, Memory::Ram);
    original(domain.account, domain, address, slot, entry).inspect_err(|_| space::prune(domain, address))
}

/// Maps a page of the device tree; gives its offset in its first page, and its bytes.
pub fn map_fdt_page(domain: Ref<Domain>, address: u64, page: u64) -> Result<u64, Error> {
    let tree = memory::device_tree();
    if tree.bytes == 0 {
        return Err(Error::NotThere);
    }
    let (first, last) = (tree.start / 4096, (tree.start + tree.bytes - 1) / 4096);
    let frame = first.checked_add(page).filter(|frame| *frame <= last).ok_or(Error::AtEnd)?;
    map_archive_page(domain, address, frame as Frame, MAP_READ)?;
    Ok((tree.start % 4096) | (tree.bytes << 12))
}

/// Maps a page of device registers as uncached original, charged to the domain's account.
pub fn map_device_page(domain: Ref<Domain>, address: u64, physical: u64) -> Result<(), Error> {
    let held = domain.held();
    const PHYSICAL_END: u64 = 1 << 40;
    let frame = (physical / 4096) as Frame;
    if !physical.is_multiple_of(4096) {
        return Err(Error::NotAligned);
    }
    if physical >= PHYSICAL_END {
        return Err(Error::BadArgument);
    }
    if frames::may_be_ram(held, frame) || memory::is_of_interrupts(physical) {
        return Err(Error::Withheld);
    }
    let slot = space::find_or_make(domain, address)?;
    if slot.is_used() {
        return Err(Error::Occupied);
    }
    let entry = space::entry(frame, MAP_READ | MAP_WRITE, Memory::Registers);
    original(domain.account, domain, address, slot, entry).inspect_err(|_| space::prune(domain, address))
}

fn original(account: Ref<Account>, domain: Ref<Domain>, address: u64, slot: Slot, entry: u64) -> Result<(), Error> {
    let held = account.held();
    let mapping = slab::allocate::<Mapping>(account)?.share();
    mapping.node_reference().root();
    mapping.enlist(domain, address);
    slot.set(held, entry, Some(mapping));
    Ok(())
}

/// Maps the page at `source` of `from` to `destination` of `to`, if `judge` allows it, with at most the rights that `from` has.
/// With `grant` the page moves, perhaps in several steps, and may get further rights ([`may_become_code`]).
#[inline(always)]
pub fn map_page(
    [from, to]: [Ref<Domain>; 2],
    [source, destination]: [u64; 2],
    rights: u64,
    grant: bool,
    judge: impl Fn(Shown) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let held = from.held();
    let origin = space::find(from, source).filter(Slot::is_used).ok_or(Error::NotMapped)?;
    let Some(parent) = origin.mapping(held) else {
        // The nucleus's own: of these only the boot archive may be shared.
        let mapped =
            if grant { Err(Error::ArchivePage) } else { map_archive_page(to, destination, origin.frame(), rights) };
        return mapped.map_err(Stop::from);
    };
    if rights & !origin.rights() != 0 {
        if !grant {
            return Err(Error::PageRights.into());
        }
        may_become_code(&origin, parent)?;
    }
    if frames::is_going(held, origin.frame()) {
        return Err(Error::NotMapped.into());
    }
    if let Some(shown) = shown_at(held, &origin, parent) {
        judge(shown)?;
    }
    if grant && space::prune_others(from, source) {
        return Err(Stop::Repeat);
    }
    let slot = space::find_or_make(to, destination)?;
    if slot.is_used() {
        return Err(Error::Occupied.into());
    }
    if grant && !lend::withdraw(parent) {
        space::prune(to, destination);
        return Err(Stop::Repeat);
    }
    let entry = space::entry(origin.frame(), rights, origin.memory());
    if grant {
        // The source's tables stay: loaders grant page after page from the same place.
        origin.leave(from, source);
        parent.delist();
        parent.enlist(to, destination);
        slot.set(held, entry, Some(parent));
        return Ok(());
    }
    match derived(from.account, parent) {
        Ok(mapping) => {
            mapping.enlist(to, destination);
            slot.set(held, entry, Some(mapping));
            Ok(())
        }
        Err(error) => {
            space::prune(to, destination);
            Err(error.into())
        }
    }
}

/// Whether a granted page may get rights that its domain lacks: so a loader publishes code. It must be writable RAM that no other
/// domain maps, as the page leaves this one.
#[inline(always)]
fn may_become_code(origin: &Slot, parent: Ref<Mapping>) -> Result<(), Error> {
    if origin.memory() != Memory::Ram {
        return Err(Error::Registers);
    }
    if origin.rights() & MAP_WRITE == 0 {
        return Err(Error::PageRights);
    }
    let node = parent.node_reference();
    if !node.is_original() || node.descendant().is_some() {
        return Err(Error::Shared);
    }
    Ok(())
}

/// A new mapping, derived from another, that this account pays for.
#[inline(always)]
fn derived(account: Ref<Account>, parent: Ref<Mapping>) -> Result<Ref<Mapping>, Error> {
    let mapping = slab::allocate::<Mapping>(account)?.share();
    let derived = mapping.node_reference().derive_from(parent.node_reference());
    derived.inspect_err(|_| slab::free(mapping)).map(|()| mapping)
}

/// Moves a page, an unshared original of RAM, to the unmapped address `at` of `to`, which pays for it from then on. A refusal
/// moves nothing. Gives the word that the receiver gets; `Repeat` if windows or tables take a step before.
#[inline(never)]
pub fn tear(from: Ref<Domain>, torn: u64, to: Ref<Domain>, at: u64) -> Result<u64, Stop> {
    let held = from.held();
    let source = torn & !(PAGE - 1);
    if torn & (PAGE - 1) != MAX_TORN as u64 {
        return Err(Error::BadArgument.into());
    }
    if at == 0 {
        return Err(Error::NoTearing.into());
    }
    if from == to {
        return Err(Error::SameDomain.into());
    }
    check_flexpage(at, 0)?;
    check_flexpage(source, 0)?;
    let origin = space::find_apart(from, source).filter(Slot::is_used).ok_or(Error::NotMapped)?;
    check_torn(held, &origin)?;
    if space::prune_others(from, source) {
        return Err(Stop::Repeat);
    }
    let Some(place) = space::find_apart(to, at) else {
        // Making tables is a step of its own.
        if !space::prune_emptied(to) {
            space::find_or_make(to, at)?;
            space::may_be_empty(to, at);
        }
        return Err(Stop::Repeat);
    };
    let prepared = prepare_torn(&origin, to.account, &place).inspect_err(|stop| {
        if matches!(stop, Stop::Refused(_)) {
            space::prune(to, at);
        }
    });
    let mapping = prepared?;
    let (frame, rights, old) = (origin.frame(), origin.rights() & !MAP_EXECUTE, origin.mapping(held));
    origin.leave(from, source);
    if let Some(old) = old {
        old.forget_visitor();
        old.node_reference().unlink();
        old.delist();
        slab::free(old);
    }
    account::pass_on(held, frame, to.account);
    mapping.node_reference().root();
    mapping.enlist(to, at);
    place.set(held, space::entry(frame, rights, Memory::Ram), Some(mapping));
    Ok(at | MAX_TORN as u64)
}

/// Prepares to tear a page: allocates its mapping, checks the quota and withdraws the page from windows.
fn prepare_torn(origin: &Slot, account: Ref<Account>, place: &Slot) -> Result<Ref<Mapping>, Stop> {
    if place.is_used() {
        return Err(Error::Occupied.into());
    }
    let mapping = slab::allocate::<Mapping>(account)?.share();
    let withdrawn = account.check(1).map(|()| origin.mapping(account.held()).is_none_or(lend::withdraw));
    let stop = match withdrawn {
        Ok(true) => return Ok(mapping),
        Ok(false) => Stop::Repeat,
        Err(error) => error.into(),
    };
    slab::free(mapping);
    Err(stop)
}

/// Whether this page can be torn away.
#[inline(never)]
fn check_torn(held: Held, page: &Slot) -> Result<(), Error> {
    if page.memory() != Memory::Ram {
        return Err(Error::Registers);
    }
    let node = page.mapping(held).filter(|_| frames::is_of(held, page.frame(), Use::User));
    let node = node.ok_or(Error::ArchivePage)?.node_reference();
    if !node.is_original() || node.descendant().is_some() {
        Err(Error::Shared)
    } else if frames::is_going(held, page.frame()) {
        Err(Error::NotMapped)
    } else {
        Ok(())
    }
}

/// A page that other domains see, or will see.
#[derive(Clone, Copy)]
pub struct Shown {
    /// Label of the account that pays.
    pub label: Label,
    /// No other domain has it.
    pub is_alone: bool,
    /// Writable for its domain.
    pub is_writable: bool,
}

/// For a page of RAM or device registers. A device counts as another sharer.
pub fn shown(domain: Ref<Domain>, address: u64) -> Option<Shown> {
    let slot = space::find(domain, address).filter(Slot::is_used)?;
    let mapping = slot.mapping(domain.held())?;
    shown_at(domain.held(), &slot, mapping)
}

/// The same, for a slot with a mapping. None if no domain can write it.
#[inline(always)]
fn shown_at(held: Held, slot: &Slot, mapping: Ref<Mapping>) -> Option<Shown> {
    let node = mapping.node_reference();
    let is_writable = slot.rights() & MAP_WRITE != 0;
    match slot.memory() {
        Memory::Registers => Some(Shown { label: PLAIN, is_alone: false, is_writable }),
        Memory::Ram => frames::is_of(held, slot.frame(), Use::User).then(|| Shown {
            label: label_of(held, slot.frame()),
            is_alone: node.is_original() && node.descendant().is_none(),
            is_writable,
        }),
    }
}

/// The label of a frame.
fn label_of(held: Held, frame: Frame) -> Label {
    frames::record(held, frame).account().label.get()
}

/// Write-protects a page of the domain; false if that takes another step.
pub fn protect(domain: Ref<Domain>, address: u64) -> bool {
    let mapping = space::find(domain, address).and_then(|slot| slot.mapping(domain.held()));
    mapping.is_none_or(|mapping| mapping.reduce(MAP_WRITE, &mut STEPS.clone()))
}

/// Steps to remove a mapping: it may free a table, its shadow's page, its own page and the frame.
const STEPS_OF_AN_END: u32 = 4;

/// Unmaps or reduces one page for `visitor`; `steps` counts down. True when done, false to continue later.
pub fn unmap_page(visitor: Ref<Activation>, domain: Ref<Domain>, address: u64, rights: u64, steps: &mut u32) -> bool {
    let held = visitor.held();
    let Some(mapping) = space::find(domain, address).and_then(|slot| slot.mapping(held)) else { return true };
    if rights & MAP_READ == 0 {
        if !mapping.reduce_descendants(visitor, rights, steps) {
            return false;
        }
        // With the page's lookup, as long as two steps.
        *steps = steps.saturating_sub(1);
        return rights & UNMAP_SELF == 0 || mapping.reduce(rights, steps);
    }
    loop {
        let Some(left) = steps.checked_sub(STEPS_OF_AN_END) else { return false };
        *steps = left;
        match mapping.node_reference().descendant() {
            Some(node) => {
                if rights & UNMAP_SELF != 0 {
                    mapping.begin_to_go();
                }
                if !Ref::<Mapping>::of_node(node).end_step() {
                    return false;
                }
            }
            None => return rights & UNMAP_SELF == 0 || mapping.end_step(),
        }
    }
}
