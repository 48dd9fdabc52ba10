//! Whom memory is drawn for: a ticket is an account, and from the moment that it is handed over the domain that lives on
//! it.
//!
//! A ticket belongs to who made it, which is named by the ticket of its own. When that one is given back, because its
//! domain is dead, so are those that the domain made and never gave back itself. A ticket's number is never used again:
//! what somebody asked for before it died means nobody later.
//!
//! There are three sorts of tickets, of which none takes room from the others: those of `roottask` for components, those
//! of components for programs (and for clients), and those that programs make. Of the last each program has a few, those of
//! the domains that it makes included.
//!
//! `roottask` says how many tickets there can be ([`make_room`]): as many as suit the memory of the machine. They lie in pages of
//! ours, which our account pays for.
//!
//! One call is served at a time, so nothing here changes under another one's hands.

use abi::rights::{MAP_READ, MAP_WRITE};
use abi::{Error, PAGE_BYTES};
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize};
use protocols::sigma0::{FEWEST_TICKETS, MOST_TICKETS};
use runtime::{Entry, op, program, table};

/// Places of tickets that `roottask` makes: for components, itself, and the vault. Behind them lie those that components make
/// (`proc`'s for programs, `netd`'s for its clients), then those that programs make.
const COMPONENTS: Range<usize> = 0..68;
/// Places of those that programs make, of the fewest tickets that there can be. Of the others they get an eighth.
const FEWEST_OF_PROGRAMS: usize = 28;

/// Tickets that a component must leave to the other ones.
const LEFT_BY_COMPONENT: usize = 30;
/// Most tickets of a program, of the domains that it made, and so on.
const MOST_OF_PROGRAM: usize = 8;

/// Each ticket holds one entry of our table. Others have a fixed place, and two are there while a domain is handed over.
const _: () = assert!(MOST_TICKETS + 2 * abi::layout::FIRST_FREE < table::WITHOUT_HEAP);

/// In a number: bits of the place. Above stands a count.
const PLACE_BITS: u32 = 12;
const _: () = assert!(MOST_TICKETS <= 1 << PLACE_BITS);

#[derive(Debug)]
struct Ticket {
    /// Its number; 0 while nobody has it.
    number: AtomicU64,
    /// Number of the ticket of who made it; 0 = `roottask` before it had one.
    owner: AtomicU64,
    /// Of what a program made: number of the program's ticket.
    program: AtomicU64,
    /// Index of the account, or of the domain, which stands for its account too.
    held: AtomicU16,
    /// Whether it is the domain.
    is_domain: AtomicU16,
    /// How many others were made under its number; if it is a program's, also under theirs.
    made: AtomicU16,
}

/// Places that there are.
static PLACES: AtomicUsize = AtomicUsize::new(0);
/// Tickets made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Where they begin: behind the program, in its last page, where others have their heap.
fn start() -> usize {
    program::image_end() as usize
}

/// All places.
fn all() -> &'static [Ticket] {
    // SAFETY: the rest of the program's last page is clear and used for nothing else, and `make_room` drew the pages behind it. They
    // stay, and every field is atomic.
    unsafe { core::slice::from_raw_parts(start() as *const Ticket, PLACES.load(Relaxed)) }
}

/// Places of tickets that components make.
fn of_components(places: usize) -> Range<usize> {
    let of_programs = FEWEST_OF_PROGRAMS + (places - FEWEST_TICKETS) / 8;
    COMPONENTS.end..places - of_programs
}

/// Makes room for so many tickets. What is there already stays, and its place too: nothing that a component or a program made may be
/// there when there is to be room for more.
pub fn make_room(places: usize) -> Result<(), Error> {
    let end = |places: usize| (start() + places * size_of::<Ticket>()).next_multiple_of(PAGE_BYTES);
    for page in (end(PLACES.load(Relaxed))..end(places)).step_by(PAGE_BYTES) {
        op::draw(Entry::SPECIAL, Entry::OWN, Entry::OWN, page as u64, 0, MAP_READ | MAP_WRITE)?;
    }
    PLACES.fetch_max(places, Relaxed);
    Ok(())
}

/// The ticket of this number and its place.
fn get(number: u64) -> Option<(usize, &'static Ticket)> {
    let place = number as usize % (1 << PLACE_BITS);
    all().get(place).filter(|ticket| number != 0 && ticket.number.load(Relaxed) == number).map(|ticket| (place, ticket))
}

/// The ticket, if `owner` made it.
fn owned(owner: u64, number: u64) -> Option<&'static Ticket> {
    get(number).map(|(_, ticket)| ticket).filter(|ticket| ticket.owner.load(Relaxed) == owner)
}

/// Whether it is `roottask` that calls with this badge.
pub fn is_roottask(badge: u64) -> bool {
    badge == 0 || get(badge).is_some_and(|(_, own)| own.owner.load(Relaxed) == 0)
}

/// Makes a ticket for an account that `owner` presented; `None` = it has as many as it may have, or is dead.
pub fn take(owner: u64, account: Entry) -> Option<u64> {
    let of_components = of_components(all().len());
    let of_programs = of_components.end..all().len();
    let most = of_components.len() - LEFT_BY_COMPONENT;
    let (places, program, most) = match get(owner) {
        _ if is_roottask(owner) => (COMPONENTS, 0, COMPONENTS.len()),
        None => return None,
        Some((place, _)) if COMPONENTS.contains(&place) => (of_components, 0, most),
        Some((place, _)) if of_components.contains(&place) => (of_programs, owner, MOST_OF_PROGRAM),
        Some((_, own)) => (of_programs, own.program.load(Relaxed), MOST_OF_PROGRAM),
    };
    let counts = if program == 0 { owner } else { program };
    let made = get(counts).map_or(0, |(_, ticket)| ticket.made.load(Relaxed).into());
    let place = places.clone().find(|place| all()[*place].number.load(Relaxed) == 0).filter(|_| made < most)?;
    let number = (MADE.fetch_add(1, Relaxed) + 1) << PLACE_BITS | place as u64;
    let ticket = &all()[place];
    ticket.owner.store(owner, Relaxed);
    ticket.program.store(program, Relaxed);
    ticket.held.store(account.0 as u16, Relaxed);
    ticket.is_domain.store(0, Relaxed);
    ticket.made.store(0, Relaxed);
    ticket.number.store(number, Relaxed);
    ticket.count_for_makers(1);
    Some(number)
}

/// Takes an entry out of our table again. Its owner may have emptied it before.
pub fn remove(entry: Entry) {
    let _ = op::entry_remove(Entry::OWN, entry);
    table::free(entry);
}

impl Ticket {
    fn entry(&self) -> Entry {
        Entry(self.held.load(Relaxed).into())
    }

    /// Who made it, and the program that did or for which that was made, have one more now, or one fewer (`u16::MAX`).
    fn count_for_makers(&self, more: u16) {
        let (owner, program) = (self.owner.load(Relaxed), self.program.load(Relaxed));
        let program = Some(program).filter(|program| *program != owner);
        for (_, maker) in [Some(owner), program].into_iter().flatten().filter_map(get) {
            maker.made.fetch_add(more, Relaxed);
        }
    }

    /// Lets go of what it holds, and of itself.
    fn leave(&self) {
        remove(self.entry());
        self.count_for_makers(u16::MAX);
        self.number.store(0, Relaxed);
    }

    /// Whether it was made by somebody who has left.
    fn is_orphan(&self) -> bool {
        let owner = self.owner.load(Relaxed);
        self.number.load(Relaxed) != 0 && owner != 0 && get(owner).is_none()
    }
}

/// The account of a ticket of `owner`.
pub fn account_of(owner: u64, ticket: u64) -> Option<Entry> {
    owned(owner, ticket).map(Ticket::entry)
}

/// Puts the domain into a ticket of `owner` that has none, in place of its account: that is the account of the domain.
pub fn set_domain(owner: u64, ticket: u64, domain: Entry) -> bool {
    let ticket = owned(owner, ticket).filter(|ticket| ticket.is_domain.swap(1, Relaxed) == 0);
    ticket.map(|ticket| remove(Entry(ticket.held.swap(domain.0 as u16, Relaxed).into()))).is_some()
}

/// The domain of the ticket that a badge names.
pub fn managed(badge: u64) -> Option<Entry> {
    let (_, ticket) = get(badge)?;
    (ticket.is_domain.load(Relaxed) != 0).then(|| ticket.entry())
}

/// Lets go of a ticket of `owner`, of those that were made under its number, of those made under theirs, and of what
/// they hold.
pub fn give_back(owner: u64, ticket: u64) -> bool {
    let Some(first) = owned(owner, ticket) else { return false };
    first.leave();
    if first.made.load(Relaxed) == 0 {
        return true;
    }
    // Each round finds those made by tickets of the round before.
    while let Some(orphan) = all().iter().find(|ticket| ticket.is_orphan()) {
        orphan.leave();
    }
    true
}
