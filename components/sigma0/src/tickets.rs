//! Whom memory is drawn for: a ticket is an account, and the domain that lives on it if there is one.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use runtime::{Entry, op, table};

/// Accounts and domains that can be managed at the same time.
const TICKETS: usize = 96;

/// `owner` while nobody has the ticket.
const FREE: u64 = u64::MAX;

struct Ticket {
    /// Badge of who made it.
    owner: AtomicU64,
    account: AtomicUsize,
    domain: AtomicUsize,
}

static ALL: [Ticket; TICKETS] =
    [const { Ticket { owner: AtomicU64::new(FREE), account: AtomicUsize::new(0), domain: AtomicUsize::new(0) } };
        TICKETS];

/// Makes a ticket for an account that `owner` presented. Ticket 0 is never given out.
pub fn take(owner: u64, account: Entry) -> Option<u64> {
    for (number, ticket) in ALL.iter().enumerate().skip(1) {
        if ticket.owner.compare_exchange(FREE, owner, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            ticket.domain.store(0, Ordering::Relaxed);
            ticket.account.store(account.0, Ordering::Release);
            return Some(number as u64);
        }
    }
    None
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
    let ticket = get(badge).filter(|ticket| ticket.owner.load(Ordering::Acquire) != FREE)?;
    let domain = ticket.domain.load(Ordering::Acquire);
    (domain != 0).then(|| (Entry(ticket.account.load(Ordering::Relaxed)), Entry(domain)))
}

/// Lets go of a ticket of `owner` and of what it holds.
pub fn give_back(owner: u64, ticket: u64) -> bool {
    let Some(ticket) = owned(owner, ticket) else { return false };
    for held in [&ticket.domain, &ticket.account] {
        let entry = Entry(held.swap(0, Ordering::AcqRel));
        if entry.0 != 0 {
            // Its owner may have emptied it before.
            let _ = op::entry_remove(Entry::OWN, entry);
            table::free(entry);
        }
    }
    ticket.owner.store(FREE, Ordering::Release);
    true
}
