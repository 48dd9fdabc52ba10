//! Pages that are torn away: they change their owner within a call, and back.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::rights::{self, MAP_EXECUTE, MAP_READ, UNMAP_SELF};
use abi::{Control, Error, MAX_TORN, PAGE_BYTES, expect, info, layout, op as operations};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::window::Page;
use runtime::{Entry, message, op, table};

use crate::arch::children;
use crate::check::{Check, frames, hold};
use crate::{devices, raw};

pub const CHECKS: &[Check] = &[
    ("torn pages change their owner within a call, and the owner pays for them", there_and_back),
    ("pages that cannot be torn away stay, and nothing is lost", refused),
    ("no page is torn away within a domain by an answer", within),
    ("an account with too little room gets none of the torn pages", too_small),
    ("the keeper of torn pages pays for them, up to the limit of its account", kept),
    ("of many torn pages as many move as an account has room for, to the frame", as_many_as_fit),
];

/// Where the other domain takes pages, and where we do.
pub const THERE: u64 = 0x3800_0000;
pub const HERE: u64 = 0x3900_0000;
const PAGE: u64 = PAGE_BYTES as u64;

fn text(error: Error) -> &'static str {
    error.text()
}

/// A domain with an account of so many frames, whose service keeps pages.
pub struct Keeper {
    pub portal: Owned,
    _service: Owned,
    pub domain: Owned,
    _account: Owned,
}

impl Keeper {
    pub fn new(frames: u64) -> Result<Self, Error> {
        let account = Owned::new(op::account_new(Entry::OWN, frames)?);
        let domain = Owned::new(op::domain_new(account.entry(), 0, "keeper")?);
        let code = children::keep_pages as *const () as u64;
        let start = keeper_code();
        // SAFETY: code of ours, which may be read and executed, and is made for this.
        unsafe {
            op::map(domain.entry(), start, start, 0, MAP_READ | MAP_EXECUTE)?;
            op::activation_new(domain.entry(), 0, Entry(0))?;
        }
        let shape = Owned::new(op::shape_new(Entry::SPECIAL, b"npai>a")?);
        // SAFETY: the code there is made for what these portals leave in registers.
        let theirs = unsafe { op::service_new_at(domain.entry(), code, 0, shape.entry(), Entry::OWN)? };
        let place = table::allocate()?;
        let service = op::entry_copy(domain.entry(), theirs, Entry::OWN, place, rights::ALL)?;
        let portal = Owned::new(table::allocate()?);
        op::portal_new(Entry::OWN, service, 0, portal.entry(), 0)?;
        Ok(Self { portal, _service: Owned::new(service), domain, _account: account })
    }
    /// Tears pages away, which come back if `kept` is 0; or, if there are none, says where they shall go.
    pub fn call(&self, torn: u64, kept: u64) -> Result<u64, Error> {
        call(self.portal.entry(), torn, kept)
    }
    /// A page at [`HERE`], which came by this one. Its first byte is [`FIRST_BYTE`].
    pub fn bring_page(&self) -> Result<(), Error> {
        coming_here(|| self.call(first(&pages(1)) | 1, 0)).map(drop)
    }
    /// Frames charged to its account: it is the newest domain of its name.
    fn used(&self) -> Result<u64, Error> {
        charged(b"keeper\0")
    }
}

/// Frames charged to the account of the newest domain of a name.
fn charged(name: &[u8]) -> Result<u64, Error> {
    let is_meant = |domain: &info::Domain| domain.name.starts_with(name);
    let found = op::records(Entry::SPECIAL).filter_map(Result::ok).find(is_meant);
    found.map(|domain| domain.charged).ok_or(Error::Empty)
}

/// See [`Keeper::call`].
pub fn call(portal: Entry, torn: u64, kept: u64) -> Result<u64, Error> {
    let control = Control::expecting(expect::words(0b11) | expect::PAGES);
    // SAFETY: pages that nobody relies on.
    unsafe { message::call_showing(portal, [torn, kept, 0, 0, 0], control) }.map(|(words, _)| words[0])
}

/// Pages that are torn away for the running activation during `calls` arrive at [`HERE`].
pub fn coming_here<T>(calls: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    op::activation_set(operations::ACTIVATION_TEAR, HERE)?;
    let outcome = calls();
    op::activation_set(operations::ACTIVATION_TEAR, 0)?;
    outcome
}

/// The first byte of a page that has been there once: each time it is one more.
pub const FIRST_BYTE: u8 = 8;

/// The page of code that a keeper executes.
fn keeper_code() -> u64 {
    children::keep_pages as *const () as u64 & !(PAGE - 1)
}

fn pages(count: usize) -> Vec<Page> {
    vec![Page([7; PAGE_BYTES]); count]
}

fn first(pages: &[Page]) -> u64 {
    pages.as_ptr() as u64
}

/// Gives back what came.
pub fn unmap(count: u64) {
    for page in 0..count {
        // SAFETY: nothing refers to these pages.
        let _ = unsafe { op::unmap(Entry::OWN, HERE + page * PAGE, 0, MAP_READ | UNMAP_SELF) };
    }
}

fn word_at(address: u64) -> u64 {
    // SAFETY: a page that came.
    unsafe { (address as *const u64).read_volatile() }
}

fn there_and_back() -> Result<(), &'static str> {
    op::activation_set(operations::ACTIVATION_TEAR, HERE).map_err(text)?;
    let keeper = Keeper::new(64).map_err(text)?;
    hold(keeper.call(0, THERE) == Ok(0), "a call without pages")?;
    for count in [MAX_TORN; 4] {
        let torn = pages(count);
        let came = keeper.call(first(&torn) | count as u64, 0).map_err(text)?;
        hold(came == HERE | count as u64, "they do not come back")?;
        hold(word_at(HERE) == 0x0707_0707_0707_0708, "others come back")?;
        hold(torn[0].0[0] != 7, "they are here, too")?;
        unmap(count as u64);
    }
    let before = keeper.used().map_err(text)?;
    let mut free = None;
    // Records of pages that stay behind would fill a frame.
    for _ in 0..100 {
        let torn = pages(1);
        keeper.call(first(&torn) | 1, 0).map_err(text)?;
        hold(keeper.used().map_err(text)? == before, "the other side still pays")?;
        unmap(1);
        let now = frames()?;
        hold(*free.get_or_insert(now) == now, "it is not given back")?;
    }
    op::activation_set(operations::ACTIVATION_TEAR, 0).map_err(text)
}

fn refused() -> Result<(), &'static str> {
    let keeper = Keeper::new(64).map_err(text)?;
    let torn = pages(MAX_TORN);
    let at = first(&torn);
    hold(keeper.call(at | 1, 0) == Err(Error::NoTearing), "a place that was not named")?;
    hold(keeper.call(0, THERE) == Ok(0), "a call without pages")?;
    for (pages, error) in [
        (at, Error::BadArgument),
        (at | (MAX_TORN as u64 + 1), Error::BadArgument),
        (at | 0xfff, Error::BadArgument),
        (0x3900_0000 | 1, Error::NotMapped),
        (layout::PROGRAM_START | 1, Error::ArchivePage),
        (layout::MESSAGE_START | 1, Error::Reserved),
        (layout::WINDOWS | 1, Error::Reserved),
        (layout::USER_END | 1, Error::BadAddress),
        (1 << 63 | 1, Error::BadAddress),
    ] {
        hold(keeper.call(pages, 0) == Err(error), "pages that cannot go")?;
    }
    devices::show()?;
    hold(keeper.call(devices::SHOWN | 1, 0) == Err(Error::Registers), "registers of a device go")?;
    devices::take_back(devices::SHOWN)?;
    // SAFETY: it may be read there.
    unsafe { op::map(keeper.domain.entry(), at, THERE + 0x10_0000, 0, MAP_READ) }.map_err(text)?;
    hold(keeper.call(at | 1, 0) == Err(Error::Shared), "a page that is shared")?;
    // SAFETY: it is ours alone again.
    unsafe { op::unmap(Entry::OWN, at, 0, MAP_READ) }.map_err(text)?;
    hold(torn.iter().all(|page| page.0 == [7; PAGE_BYTES]), "a page changed")?;
    let other = Keeper::new(64).map_err(text)?;
    hold(other.call(0, THERE) == Ok(0), "a call without pages")?;
    // SAFETY: a page of ours that may be read there.
    unsafe { op::map(other.domain.entry(), keeper_code(), THERE, 0, MAP_READ) }.map_err(text)?;
    hold(other.call(at | 1, 0) == Err(Error::Occupied), "a place where something is")?;
    hold(torn.iter().all(|page| page.0 == [7; PAGE_BYTES]), "a page changed")?;
    hold(keeper.call(at | 1, 0) == Err(Error::PeerDied), "a page goes back to no place")?;
    for (place, error) in [
        (THERE + 1, Error::NotAligned),
        (layout::MESSAGE_START, Error::Reserved),
        (layout::WINDOWS, Error::Reserved),
        (layout::USER_END, Error::BadAddress),
    ] {
        hold(op::activation_set(operations::ACTIVATION_TEAR, place) == Err(error), "a place for pages that is none")?;
    }
    Ok(())
}

/// The number of the error that refused the page in [`Returns`]' answer, or 0.
static RETURNED: AtomicU64 = AtomicU64::new(0);

/// Tries to answer with a page, which word 1 names. Refused, it answers without.
struct Returns;

impl Serve for Returns {
    fn serve(request: &mut Request<'_>) -> Reply {
        let refused = raw::call(operations::RETURN, [request.words[1] | 1, 0, 0, 0, 0, 0]);
        RETURNED.store(refused.err().map_or(0, |error| error as u64), Ordering::SeqCst);
        Reply::word(0)
    }
}

fn within() -> Result<(), &'static str> {
    server::activations(1).map_err(text)?;
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, b"npai>a").map_err(text)?);
    let service = Owned::new(raw::service_here::<Returns>(shape.entry()).map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    let torn = pages(1);
    let answer = coming_here(|| call(portal.entry(), 0, first(&torn)));
    let returned = RETURNED.load(Ordering::SeqCst);
    hold(answer == Ok(0) && returned == Error::SameDomain as u64, "an answer does")?;
    // A service of ours has no place for pages until it says one.
    hold(call(portal.entry(), first(&torn) | 1, 0) == Err(Error::NoTearing), "a call without a place")?;
    hold(torn[0].0 == [7; PAGE_BYTES], "a page changed")
}

fn too_small() -> Result<(), &'static str> {
    let torn = pages(MAX_TORN);
    let (mut refused, mut reached) = (0, 0);
    for frames in 0..40 {
        let Ok(keeper) = Keeper::new(frames) else { continue };
        hold(keeper.call(0, THERE) == Ok(0), "a call without pages")?;
        let before = keeper.used().map_err(text)?;
        op::activation_set(operations::ACTIVATION_TEAR, 0).map_err(text)?;
        match keeper.call(first(&torn) | MAX_TORN as u64, 0) {
            Err(Error::OtherExhausted) => {
                refused += 1;
                hold(keeper.used().map_err(text)? == before, "something is charged")?;
                hold(torn.iter().all(|page| page.0 == [7; PAGE_BYTES]), "a page changed")?;
            }
            _ => {
                reached += 1;
                break;
            }
        }
    }
    hold(refused >= MAX_TORN && reached == 1, "there was no account of each size")
}

fn kept() -> Result<(), &'static str> {
    const LIMIT: u64 = 32;
    let keeper = Keeper::new(LIMIT).map_err(text)?;
    op::activation_set(operations::ACTIVATION_TEAR, 0).map_err(text)?;
    let before = frames()?;
    for count in 0..=LIMIT {
        let used = keeper.used().map_err(text)?;
        let torn = pages(1);
        hold(keeper.call(0, THERE + count * PAGE) == Ok(0), "a call without pages")?;
        match keeper.call(first(&torn) | 1, 1) {
            Ok(0) => hold((used + 1..=LIMIT).contains(&keeper.used().map_err(text)?), "it does not pay")?,
            refused => {
                hold(refused == Err(Error::OtherExhausted) && used == LIMIT, "it is refused")?;
                hold(torn[0].0 == [7; PAGE_BYTES], "a page changed")?;
                drop((keeper, torn));
                return hold(count > 4 && frames()? > before, "nothing is given back");
            }
        }
    }
    Err("more pages than the limit says")
}

/// Pages that are torn away one by one: a call takes one.
const MANY: usize = 16;

/// Frames that are free, charged to us, or charged to the keeper. The limit of its account is charged to us all the time.
fn balance(keeper: &Keeper) -> Result<u64, &'static str> {
    Ok(frames()? + charged(b"selftest\0").map_err(text)? + keeper.used().map_err(text)?)
}

/// Tears pages away until one is refused for lack of room; `moved` is called after each that went. Gives how many those were.
fn tear_each(keeper: &Keeper, torn: &[Page], mut moved: impl FnMut(u64)) -> Result<usize, &'static str> {
    for (number, page) in torn.iter().enumerate() {
        hold(keeper.call(0, THERE + number as u64 * PAGE) == Ok(0), "a call without pages")?;
        let sum = balance(keeper)?;
        let used = keeper.used().map_err(text)?;
        let outcome = keeper.call(first(core::slice::from_ref(page)) | 1, 1);
        hold(balance(keeper)? == sum, "a frame is lost, or charged twice")?;
        let now = keeper.used().map_err(text)?;
        match outcome {
            Ok(0) => moved(now),
            refused => {
                hold(refused == Err(Error::OtherExhausted), "another error")?;
                hold(now == used, "something is charged")?;
                return Ok(number);
            }
        }
    }
    Ok(torn.len())
}

fn as_many_as_fit() -> Result<(), &'static str> {
    op::activation_set(operations::ACTIVATION_TEAR, 0).map_err(text)?;
    // The keeper's charge after each page, with tables and records.
    let mut needed = Vec::with_capacity(MANY + 1);
    let keeper = Keeper::new(128).map_err(text)?;
    hold(keeper.call(0, THERE) == Ok(0), "a call without pages")?;
    needed.push(keeper.used().map_err(text)?);
    hold(tear_each(&keeper, &pages(MANY), |used| needed.push(used))? == MANY, "there is room for all")?;
    drop(keeper);
    for count in [0, 1, MANY - 1, MANY] {
        let most = needed.get(count + 1).map_or(needed[count] + 1, |next| next - 1);
        for limit in [needed[count], most] {
            let torn = pages(MANY);
            let free = frames()?;
            let keeper = Keeper::new(limit).map_err(text)?;
            hold(tear_each(&keeper, &torn, |_| ())? == count, "more or fewer than there is room for")?;
            hold(keeper.used().map_err(text)? == needed[count], "others are charged")?;
            for gone in &torn[..count] {
                hold(
                    keeper.call(first(core::slice::from_ref(gone)) | 1, 1) == Err(Error::NotMapped),
                    "it is still here",
                )?;
            }
            hold(torn[count..].iter().all(|page| page.0 == [7; PAGE_BYTES]), "a page changed")?;
            drop(keeper);
            hold(frames()? == free + count as u64, "not all is given back")?;
        }
    }
    Ok(())
}
