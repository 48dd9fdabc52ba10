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
//! One call is served at a time, so nothing here changes under another one's hands.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU16, AtomicU64};
use runtime::{Entry, op, table};

/// Places of tickets that `roottask` makes: for components, itself, and the vault.
const COMPONENTS: Range<usize> = 0..68;
/// Places of those that components make: `proc`'s for programs, `netd`'s for its clients.
const PROGRAMS: Range<usize> = COMPONENTS.end..COMPONENTS.end + 96;
/// Places of those that programs make.
const GUESTS: Range<usize> = PROGRAMS.end..PROGRAMS.end + 28;

/// Most tickets of one component: as many as `proc` has programs, with one to spare.
const MOST_OF_COMPONENT: usize = 66;
/// Most tickets of a program, of the domains that it made, and so on.
const MOST_OF_PROGRAM: usize = 8;

/// Each ticket holds one entry of our table, of 256 less what has a fixed place, and two while a domain is handed over.
const _: () = assert!(GUESTS.end <= 192);

/// In a number: bits of the place. Above stands a count.
const PLACE_BITS: u32 = 8;

struct Ticket {
    /// Its number; 0 while nobody has it.
    number: AtomicU64,
    /// Number of the ticket of who made it; 0 = `roottask` before it had one.
    owner: AtomicU64,
    /// Of a guest: number of the program's ticket.
    program: AtomicU64,
    /// Index of the account, or of the domain, which stands for its account too.
    held: AtomicU16,
    /// Whether it is the domain.
    is_domain: AtomicU16,
}

static ALL: [Ticket; GUESTS.end] = [const {
    Ticket {
        number: AtomicU64::new(0),
        owner: AtomicU64::new(0),
        program: AtomicU64::new(0),
        held: AtomicU16::new(0),
        is_domain: AtomicU16::new(0),
    }
}; GUESTS.end];

/// Tickets made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// The ticket of this number and its place.
fn get(number: u64) -> Option<(usize, &'static Ticket)> {
    let place = number as usize % (1 << PLACE_BITS);
    ALL.get(place).filter(|ticket| number != 0 && ticket.number.load(Relaxed) == number).map(|ticket| (place, ticket))
}

/// The ticket, if `owner` made it.
fn owned(owner: u64, number: u64) -> Option<&'static Ticket> {
    get(number).map(|(_, ticket)| ticket).filter(|ticket| ticket.owner.load(Relaxed) == owner)
}

/// Makes a ticket for an account that `owner` presented; `None` = it has as many as it may have, or is dead.
pub fn take(owner: u64, account: Entry) -> Option<u64> {
    let of_owner = |ticket: &&Ticket| ticket.owner.load(Relaxed) == owner;
    let (places, program, most) = match get(owner) {
        None if owner == 0 => (COMPONENTS, 0, COMPONENTS.len()),
        None => return None,
        Some((_, own)) if own.owner.load(Relaxed) == 0 => (COMPONENTS, 0, COMPONENTS.len()),
        Some((place, _)) if COMPONENTS.contains(&place) => (PROGRAMS, 0, MOST_OF_COMPONENT),
        Some((place, _)) if PROGRAMS.contains(&place) => (GUESTS, owner, MOST_OF_PROGRAM),
        Some((_, own)) => (GUESTS, own.program.load(Relaxed), MOST_OF_PROGRAM),
    };
    let taken = || ALL[places.clone()].iter().filter(|ticket| ticket.number.load(Relaxed) != 0);
    let of_program = |ticket: &&Ticket| ticket.program.load(Relaxed) == program;
    let has = if program == 0 { taken().filter(of_owner).count() } else { taken().filter(of_program).count() };
    let place = places.clone().find(|place| ALL[*place].number.load(Relaxed) == 0).filter(|_| has < most)?;
    let number = (MADE.fetch_add(1, Relaxed) + 1) << PLACE_BITS | place as u64;
    let ticket = &ALL[place];
    ticket.owner.store(owner, Relaxed);
    ticket.program.store(program, Relaxed);
    ticket.held.store(account.0 as u16, Relaxed);
    ticket.is_domain.store(0, Relaxed);
    ticket.number.store(number, Relaxed);
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

    /// Lets go of what it holds, and of itself.
    fn leave(&self) {
        remove(self.entry());
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
    // Each round finds those made by tickets of the round before.
    while let Some(orphan) = ALL.iter().find(|ticket| ticket.is_orphan()) {
        orphan.leave();
    }
    true
}
