//! Windows: pages of a caller that the callee sees for the length of a call ([`abi::window`]).
//!
//! What counts is the *record*: the activation that was called keeps the window's word, and its caller is below it in the chain. The
//! entries of page tables only follow from that. Portal code writes that of a window of one page; all others are written here, and
//! what is missing when the callee looks comes by a page fault ([`fault`]). So an entry may be taken away at any time, and is:
//! when the page is unmapped or loses a right ([`forget`]), when the chain goes to another CPU ([`leave_cpu`]), when the call ends ([`close`]).
//!
//! Each activation of a domain that takes windows has a slot of 16 pages in its space. The entries for slots are those of one CPU: each CPU
//! has a root of its own for such a domain, so another CPU never has a translation that the return would have to drop there.
//!
//! Invariant: an entry for the slot of an activation is there only on the CPU of its thread, and only while it has a record.
//!
//! A window whose page is gone before the call ends, or whose caller is, shows a page of scrap memory: a fault would let any caller
//! have the callee die.

use super::frames::{self, Use, table};
use super::{account, space};
use crate::arch::paging;
use crate::cpus::translations::OwedSlot;
use crate::cpus::{cpu, root};
use crate::objects::{Activation, Cpu, Domain, FRAME, Frame, Memory, PageEntry, State, index};
use crate::pointer::{Held, Link, Ref};
use abi::Error;
use abi::layout::{USER_END, WINDOWS, WINDOWS_END};
use abi::rights::{MAP_READ, MAP_WRITE};
use abi::window::{FLAGS, MAX_PAGES, PAGES, SLOT_BYTES, SLOTS, WRITABLE};

const PAGE: u64 = FRAME as u64;

/// Pages of a window.
fn pages(window: u64) -> usize {
    (window & PAGES) as usize
}

/// The address of its first page, in the space of who lends it.
fn start(window: u64) -> u64 {
    window & !(PAGE - 1)
}

/// Whether the callee may write.
fn is_writable(window: u64) -> bool {
    window & WRITABLE != 0
}

/// The page of a window in which `address` lies, if that begins at `start`.
fn page_in(window: u64, start: u64, address: u64) -> Option<usize> {
    let page = (address.wrapping_sub(start) / PAGE) as usize;
    (page < pages(window)).then_some(page)
}

/// Where the first page of the windows of an activation with this number stands in its domain's space; 0 = it takes none.
pub fn slot(number: u8) -> u64 {
    match number as usize {
        number @ 1..=SLOTS => WINDOWS + ((number - 1) * SLOT_BYTES) as u64,
        _ => 0,
    }
}

/// Bytes from the first entry for slots to that of this slot.
pub const fn place(number: u8) -> usize {
    (number as usize).saturating_sub(1) * MAX_PAGES * size_of::<PageEntry>()
}

/// The entry for a page of the slot of an activation on a CPU; none if there are no tables.
fn entry(activation: Ref<Activation>, cpu: Ref<Cpu>, page: usize) -> Option<&'static PageEntry> {
    let held = activation.held();
    let windows = activation.domain.share_on(cpu.number as usize).windows.get();
    (windows != 0)
        .then(|| &table(held, frames::frame_of(windows))[activation.slot_offset / size_of::<PageEntry>() + page])
}

/// Whether an activation may lend what a window's word says.
pub fn check(of: Ref<Activation>, window: u64) -> Result<(), Error> {
    if window & (PAGE - 1) & !FLAGS != 0 || !(1..=MAX_PAGES).contains(&pages(window)) {
        return Err(Error::BadArgument);
    }
    let (start, bytes) = (start(window), pages(window) as u64 * PAGE);
    if start >= USER_END || bytes > USER_END - start {
        return Err(Error::BadAddress);
    }
    if (WINDOWS..WINDOWS_END).contains(&start) {
        // A window that is handed on: its pages are looked for when they are used.
        let own = of.window.get();
        let last = start + bytes - PAGE;
        return match page_in(own, of.slot, start).and(page_in(own, of.slot, last)) {
            None => Err(Error::WindowGone),
            Some(_) if is_writable(window) && !is_writable(own) => Err(Error::NoRight),
            Some(_) => Ok(()),
        };
    }
    (0..pages(window) as u64).try_for_each(|page| lent_page(of.domain, start + page * PAGE, window).map(drop))
}

/// The entry for a page of `domain` that a window shows.
fn lent_page(domain: Ref<Domain>, address: u64, window: u64) -> Result<u64, Error> {
    let page = space::find(domain, address).filter(space::Slot::is_used).ok_or(Error::NotMapped)?;
    if page.is_kept() || page.memory() == Memory::Registers {
        return Err(Error::BadAddress);
    }
    if is_writable(window) && page.rights() & MAP_WRITE == 0 {
        return Err(Error::NoRight);
    }
    Ok(page.in_window(is_writable(window)))
}

/// The entry for a page of the window of an activation, which its caller lends, or hands on.
fn shown_page(mut activation: Ref<Activation>, page: usize) -> Result<u64, Error> {
    let window = activation.window.get();
    let mut address = start(window) + page as u64 * PAGE;
    // At most as often as the chain is deep.
    loop {
        let below = activation.caller.get().filter(|caller| !caller.domain.is_dead()).ok_or(Error::WindowGone)?;
        if !(WINDOWS..WINDOWS_END).contains(&address) {
            return lent_page(below.domain, address, window);
        }
        let page = page_in(below.window.get(), below.slot, address).ok_or(Error::WindowGone)?;
        address = start(below.window.get()) + page as u64 * PAGE;
        activation = below;
    }
}

/// Opens a window for an activation that is being called here: `window` was checked, and the tables are there. Gives the word that it gets.
pub fn open(callee: Ref<Activation>, window: u64) -> u64 {
    let held = callee.held();
    callee.window.set(window);
    for page in 0..pages(window) {
        if let (Some(entry), Ok(shown)) = (entry(callee, cpu::this(held), page), shown_page(callee, page)) {
            entry.set(shown);
        }
    }
    paging::settle();
    callee.slot | window & FLAGS
}

/// The call of this activation ends: so does its window.
pub fn close(activation: Ref<Activation>) {
    if activation.window.get() != 0 {
        clear(activation);
        activation.window.set(0);
    }
}

/// The entries of a window go, wherever they are.
fn clear(activation: Ref<Activation>) {
    if let Some(thread) = activation.thread.get() {
        clear_pages(activation, thread.cpu.get(), 0, pages(activation.window.get()));
    }
}

fn clear_pages(activation: Ref<Activation>, cpu: Ref<Cpu>, first: usize, count: usize) {
    let mut was_used = false;
    for page in first..first + count {
        let Some(entry) = entry(activation, cpu, page) else { return };
        was_used |= entry.get() != 0;
        entry.set(0);
    }
    if was_used {
        OwedSlot::new(activation.domain, cpu, activation.slot + first as u64 * PAGE, count).invalidate();
    }
}

/// The chain with this top, which does not run, goes to another CPU, or has no thread from now on.
pub fn leave_cpu(top: Link<Activation>) {
    let mut next = top;
    while let Some(activation) = next {
        if activation.window.get() != 0 {
            clear(activation);
        }
        next = activation.caller.get();
    }
}

/// A page of `domain` was unmapped there, or lost rights: it goes from the windows that show it.
pub fn forget(domain: Ref<Domain>, address: u64) {
    let held = domain.held();
    if !domain.lends.get() {
        return;
    }
    // Whoever is on its way out of the domain with a window found the page, or finds it no more.
    cpu::hold_up_where(held, |other| other.domain_there() == Some(domain));
    let mut next = domain.activations.get();
    while let Some(activation) = next {
        next = activation.domain_next.get();
        forget_above(activation, address);
    }
}

/// As [`forget`], of what this activation lends.
fn forget_above(mut activation: Ref<Activation>, mut address: u64) {
    while activation.state_there() == State::Calling {
        let Some(thread) = activation.thread.get() else { return };
        cpu::hold_up_thread(thread);
        let Some(callee) = activation.callee.get().filter(|_| activation.state.get() == State::Calling) else { return };
        let Some(page) = page_in(callee.window.get(), start(callee.window.get()), address) else { return };
        clear_pages(callee, thread.cpu.get(), page, 1);
        // It may have handed it on.
        address = callee.slot + page as u64 * PAGE;
        activation = callee;
    }
}

/// A page fault at an address of windows: true if the page is there now.
pub fn fault(activation: Ref<Activation>, address: u64) -> Result<(), Error> {
    let held = activation.held();
    let window = activation.window.get();
    let page = page_in(window, activation.slot, address).ok_or(Error::WindowGone)?;
    let entry = entry(activation, cpu::this(held), page).ok_or(Error::WindowGone)?;
    if entry.get() != 0 {
        // It is there, and does not allow that.
        return Err(Error::NoRight);
    }
    let shown = shown_page(activation, page).unwrap_or_else(|_| {
        let rights = if is_writable(window) { MAP_READ | MAP_WRITE } else { MAP_READ };
        space::entry(activation.domain.scrap.get() as Frame, rights, Memory::Ram)
    });
    entry.set(shown);
    paging::settle();
    Ok(())
}

/// Has tables on this CPU for the windows of a domain, which pays for them: one step towards that, or true if they are there.
pub fn prepare(domain: Ref<Domain>) -> Result<bool, Error> {
    let held = domain.held();
    let share = domain.share();
    if share.windows.get() != 0 {
        return Ok(true);
    }
    if frames::prepare(held) || frames::clear_ahead(held, 1) {
        return Ok(false);
    }
    if domain.scrap.get() == 0 {
        domain.scrap.set(domain.account.allocate_clear_apart(Use::Kernel)? as u32);
        return Ok(false);
    }
    if share.root.get() == domain.root && cpu::this(held).number != 0 {
        let frame = domain.account.allocate_clear_apart(Use::Kernel)?;
        space::copy_root(domain, frame);
        share.root.set(paging::root_beside(domain.root, frame));
        if cpu::this(held).domain.get() == Some(domain) {
            root::load(held, share.root.get());
        }
        return Ok(false);
    }
    let mut at = paging::root_frame(share.root.get());
    for level in (1..4).rev() {
        let entry = &table(held, at)[index(WINDOWS, level)];
        if entry.get() == 0 {
            let frame = domain.account.allocate_clear_apart(Use::Kernel)?;
            entry.set(paging::user_table(frame));
            paging::settle();
            if level == 1 {
                share.windows.set(frames::address_of(frame));
            }
            return Ok(false);
        }
        at = paging::frame_of(entry.get());
    }
    Ok(true)
}

/// Frees the tables for windows of a domain that no CPU has loaded.
pub fn free_tables(domain: Ref<Domain>) {
    let held = domain.held();
    if domain.scrap.get() == 0 {
        return;
    }
    account::release(held, domain.scrap.get() as Frame);
    for share in domain.shares() {
        let root = paging::root_frame(share.root.get());
        free_below(held, &table(held, root)[index(WINDOWS, 3)], 3);
        if share.root.get() != domain.root {
            account::release(held, root);
        }
    }
}

/// Frees the one table that an entry leads to, with those below it.
fn free_below(held: Held, entry: &PageEntry, level: u32) {
    if entry.get() == 0 {
        return;
    }
    let frame = paging::frame_of(entry.get());
    entry.set(0);
    if level > 1 {
        free_below(held, &table(held, frame)[index(WINDOWS, level - 1)], level - 1);
    }
    account::release(held, frame);
}

const _: () = assert!(place(SLOTS as u8 + 1) == FRAME, "one table has the entries for all slots");
