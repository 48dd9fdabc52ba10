//! Whom memory is drawn for: a ticket is an account, and the domain that lives on it if there is one.
//!
//! A ticket belongs to the badge that made it, which is the number of another ticket. When that one is given back,
//! because its domain is dead, so are those that the domain made and never gave back itself.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use runtime::{Entry, op, table};

/// Accounts and domains that can be managed at the same time.
const TICKETS: usize = 96;

/// `owner` while nobody has the ticket.
const FREE: u64 = u64::MAX;
/// `owner` while the ticket is made.
const CLAIMED: u64 = u64::MAX - 1;
/// Set in `owner` while the ticket is given back together with the one whose number stands below.
const LEAVING: u64 = 1 << 62;

struct Ticket {
    /// Badge of who made it.
    owner: AtomicU64,
    account: AtomicUsize,
    domain: AtomicUsize,
}

static ALL: [Ticket; TICKETS] =
    [const { Ticket { owner: AtomicU64::new(FREE), account: AtomicUsize::new(0), domain: AtomicUsize::new(0) } };
        TICKETS];

/// Where the next free ticket is looked for: a number is not used again at once.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Makes a ticket for an account that `owner` presented; `None` = there are none left, or the owner is dead.
/// Ticket 0 is never given out.
pub fn take(owner: u64, account: Entry) -> Option<u64> {
    let first = NEXT.load(Ordering::Relaxed);
    let mut numbers = (0..TICKETS - 1).map(|step| 1 + (first + step) % (TICKETS - 1));
    let is_ours = |number: &usize| {
        ALL[*number].owner.compare_exchange(FREE, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let number = numbers.find(is_ours)?;
    NEXT.store(number % (TICKETS - 1), Ordering::Relaxed);
    let ticket = &ALL[number];
    ticket.domain.store(0, Ordering::Relaxed);
    ticket.account.store(account.0, Ordering::Relaxed);
    ticket.owner.store(owner, Ordering::SeqCst);
    // Who asks may have died meanwhile, and its tickets gone: nobody would give this one back. If it was found with
    // them, it is gone too.
    let is_orphan = owner != 0 && get(owner).is_none_or(|own| own.owner.load(Ordering::SeqCst) >= LEAVING);
    if is_orphan && ticket.owner.compare_exchange(owner, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        ticket.account.store(0, Ordering::Relaxed);
        ticket.owner.store(FREE, Ordering::Release);
        return None;
    }
    Some(number as u64)
}

impl Ticket {
    /// Lets go of what it holds.
    fn empty(&self) {
        for held in [&self.domain, &self.account] {
            let entry = Entry(held.swap(0, Ordering::AcqRel));
            if entry.0 != 0 {
                // Its owner may have emptied it before.
                let _ = op::entry_remove(Entry::OWN, entry);
                table::free(entry);
            }
        }
    }
}

/// The ticket, if `owner` made it.
fn owned(owner: u64, ticket: u64) -> Option<&'static Ticket> {
    get(ticket).filter(|ticket| ticket.owner.load(Ordering::Acquire) == owner)
}

fn get(ticket: u64) -> Option<&'static Ticket> {
    ALL.get(usize::try_from(ticket).ok()?)
}

/// The account of a ticket of `owner`.
pub fn account_of(owner: u64, ticket: u64) -> Option<Entry> {
    owned(owner, ticket).map(|ticket| Entry(ticket.account.load(Ordering::Relaxed)))
}

/// Adds the domain to a ticket of `owner` that has none.
pub fn set_domain(owner: u64, ticket: u64, domain: Entry) -> bool {
    owned(owner, ticket)
        .is_some_and(|ticket| ticket.domain.compare_exchange(0, domain.0, Ordering::AcqRel, Ordering::Relaxed).is_ok())
}

/// Account and domain of the ticket that a badge names.
pub fn managed(badge: u64) -> Option<(Entry, Entry)> {
    let ticket = get(badge).filter(|ticket| ticket.owner.load(Ordering::Acquire) < LEAVING)?;
    let domain = ticket.domain.load(Ordering::Acquire);
    (domain != 0).then(|| (Entry(ticket.account.load(Ordering::Relaxed)), Entry(domain)))
}

/// Lets go of a ticket of `owner`, of those that were made under its number, of those made under theirs, and of what
/// they hold.
pub fn give_back(owner: u64, ticket: u64) -> bool {
    let leaving = LEAVING | ticket;
    let is_first = owned(owner, ticket)
        .is_some_and(|first| first.owner.compare_exchange(owner, leaving, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    if !is_first {
        return false;
    }
    // Each round finds those made by tickets of the round before.
    while ALL.iter().any(|ticket| leaves_with(ticket, leaving)) {}
    for ticket in &ALL {
        if ticket.owner.load(Ordering::Acquire) == leaving {
            ticket.empty();
            ticket.owner.store(FREE, Ordering::Release);
        }
    }
    true
}

/// Marks a ticket whose owner is one that leaves; whether it was not marked before.
fn leaves_with(ticket: &Ticket, leaving: u64) -> bool {
    let owner = ticket.owner.load(Ordering::Acquire);
    // Badge 0 is `roottask` before it has a ticket, which never dies.
    owner != 0
        && get(owner).is_some_and(|own| own.owner.load(Ordering::Acquire) == leaving)
        && ticket.owner.compare_exchange(owner, leaving, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}
