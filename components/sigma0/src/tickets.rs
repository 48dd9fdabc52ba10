//! The tickets that memory is drawn for: a ticket is an account, and from the moment that it is handed over the domain that lives on
//! it.
//!
//! A ticket belongs to its maker, which is named by the ticket of its own. When that one is given back, because its
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
use protocols::sigma0::{FEWEST_TICKETS, MOST_TICKETS, Sigma0Error};
use runtime::{Entry, op, program, table};

/// Places of tickets that `roottask` makes: for components, itself, and the vault. Behind them lie those that components make
/// (`proc`'s for programs, `netd`'s for its clients), then those that programs make.
const COMPONENTS: Range<usize> = 0..68;
/// Places of those that programs make, of the fewest tickets that there can be.
const FEWEST_OF_PROGRAMS: usize = 28;
/// Of so many further places, programs get one.
const PLACES_FOR_ONE_OF_PROGRAMS: usize = 8;

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
    /// Place of its maker's ticket, which is there as long as this is; [`NOBODY`] = `roottask` before it had one.
    owner: AtomicU16,
    /// Of what a program made: place of the program's ticket; else [`NOBODY`].
    program: AtomicU16,
    /// Index of the account, or of the domain ([`IS_DOMAIN`] is added), which stands for its account too.
    held: AtomicU16,
    /// How many others were made under its number; if it is a program's, also under theirs.
    made: AtomicU16,
}

const NOBODY: u16 = u16::MAX;
const IS_DOMAIN: u16 = 1 << 15;
const _: () = assert!(table::WITHOUT_HEAP <= IS_DOMAIN as usize);

/// Places that there are.
static PLACES: AtomicUsize = AtomicUsize::new(0);
/// Tickets made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Where they begin: after the program, in its last page, where others have their heap.
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
    let of_programs = FEWEST_OF_PROGRAMS + (places - FEWEST_TICKETS) / PLACES_FOR_ONE_OF_PROGRAMS;
    COMPONENTS.end..places - of_programs
}

/// Makes room for so many tickets. Existing ones stay, and their place too: nothing that a component or a program made may be
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

/// The place of the ticket of the caller with this badge, unless it is dead.
fn place_of(badge: u64) -> Option<u16> {
    if badge == 0 { Some(NOBODY) } else { get(badge).map(|(place, _)| place as u16) }
}

/// The ticket, if `owner` made it.
fn owned(owner: u64, number: u64) -> Option<&'static Ticket> {
    let place = place_of(owner)?;
    get(number).map(|(_, ticket)| ticket).filter(|ticket| ticket.owner.load(Relaxed) == place)
}

/// Whether it is `roottask` that calls with this badge.
pub fn is_roottask(badge: u64) -> bool {
    badge == 0 || get(badge).is_some_and(|(_, own)| own.owner.load(Relaxed) == NOBODY)
}

/// Makes a ticket for an account that `owner` presented. Errors: `Gone`; `Full`: it has as many as it may have; `AllGiven`: there is none left.
pub fn take(owner: u64, account: Entry) -> Result<u64, Sigma0Error> {
    let of_components = of_components(all().len());
    let of_programs = of_components.end..all().len();
    let most = of_components.len() - LEFT_BY_COMPONENT;
    let own = place_of(owner).ok_or(Sigma0Error::Gone)?;
    let (places, program, most) = match get(owner) {
        _ if is_roottask(owner) => (COMPONENTS, NOBODY, COMPONENTS.len()),
        None => return Err(Sigma0Error::Gone),
        Some((place, _)) if COMPONENTS.contains(&place) => (of_components, NOBODY, most),
        Some((place, _)) if of_components.contains(&place) => (of_programs, own, MOST_OF_PROGRAM),
        Some((_, ticket)) => (of_programs, ticket.program.load(Relaxed), MOST_OF_PROGRAM),
    };
    let counts = if program == NOBODY { own } else { program };
    let made = all().get(usize::from(counts)).map_or(0, |ticket| ticket.made.load(Relaxed).into());
    if made >= most {
        return Err(Sigma0Error::Full);
    }
    let place = places.clone().find(|place| !all()[*place].is_taken()).ok_or(Sigma0Error::AllGiven)?;
    let number = (MADE.fetch_add(1, Relaxed) + 1) << PLACE_BITS | place as u64;
    let ticket = &all()[place];
    ticket.owner.store(own, Relaxed);
    ticket.program.store(program, Relaxed);
    ticket.held.store(account.0 as u16, Relaxed);
    ticket.made.store(0, Relaxed);
    ticket.number.store(number, Relaxed);
    ticket.count_for_makers(1);
    Ok(number)
}

/// Takes an entry out of our table again. Its owner may have emptied it before.
pub fn remove(entry: Entry) {
    let _ = op::entry_remove(Entry::OWN, entry);
    table::free(entry);
}

impl Ticket {
    fn is_taken(&self) -> bool {
        self.number.load(Relaxed) != 0
    }

    fn entry(&self) -> Entry {
        Entry((self.held.load(Relaxed) & !IS_DOMAIN).into())
    }

    /// Adds 1 to, or with `u16::MAX` subtracts 1 from, the counts of its maker and of the program at the top of that.
    fn count_for_makers(&self, more: u16) {
        let (owner, program) = (self.owner.load(Relaxed), self.program.load(Relaxed));
        let program = Some(program).filter(|program| *program != owner);
        for place in [Some(owner), program].into_iter().flatten() {
            if let Some(maker) = all().get(usize::from(place)) {
                maker.made.fetch_add(more, Relaxed);
            }
        }
    }

    /// Lets go of what it holds, and of itself.
    fn leave(&self) {
        remove(self.entry());
        self.count_for_makers(u16::MAX);
        self.number.store(0, Relaxed);
    }

    /// Whether its maker has left.
    fn is_orphan(&self) -> bool {
        let owner = usize::from(self.owner.load(Relaxed));
        self.is_taken() && all().get(owner).is_some_and(|owner| !owner.is_taken())
    }
}

/// The account of a ticket of `owner`.
pub fn account_of(owner: u64, ticket: u64) -> Option<Entry> {
    owned(owner, ticket).map(Ticket::entry)
}

/// Puts the domain into a ticket of `owner` that has none, in place of its account: that is the account of the domain.
pub fn set_domain(owner: u64, ticket: u64, domain: Entry) -> bool {
    let Some(ticket) = owned(owner, ticket).filter(|ticket| ticket.held.load(Relaxed) & IS_DOMAIN == 0) else {
        return false;
    };
    remove(ticket.entry());
    ticket.held.store(domain.0 as u16 | IS_DOMAIN, Relaxed);
    true
}

/// The domain of the ticket that a badge names.
pub fn managed(badge: u64) -> Option<Entry> {
    let (_, ticket) = get(badge)?;
    (ticket.held.load(Relaxed) & IS_DOMAIN != 0).then(|| ticket.entry())
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
