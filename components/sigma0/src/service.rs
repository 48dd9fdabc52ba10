//! The interface `Sigma0`. The badge is the caller's ticket; 0 is `roottask` before it has one.

use crate::callers::{CALLERS, report};
use crate::{pager, tickets};
use abi::rights::{CONTROL, Kind, WRITE};
use abi::{Error, MAX_ORDER, layout};
use idl::{Delegated, Reply, Request};
use protocols::sigma0::{MOST_TICKETS, Sigma0Error, Sigma0Server};
use runtime::server::Serve;
use runtime::{Entry, log_refused, message, op};

/// Where `roottask` finds the service in this domain's table.
pub const PLACE: Entry = Entry(layout::FIRST_FREE);

/// The service.
pub struct Service;

impl Serve for Service {
    fn serve(request: &mut Request<'_>) -> Reply {
        let reply = Service.dispatch(request);
        // An entry that came along used up the place for the next one.
        let _ = message::prepare_receive();
        reply
    }
}

/// Refuses a tainted caller. An untainted domain may have lent it the entry, and would notice that we use it.
fn judge() -> Result<(), Sigma0Error> {
    if CALLERS.caller_may(0).change {
        return Ok(());
    }
    log_refused!("memory for others");
    Err(Sigma0Error::Flow)
}

/// The refusal of the nucleus as an error of this interface.
fn reported(error: Error) -> Sigma0Error {
    match error {
        Error::AccountExhausted | Error::OtherExhausted => Sigma0Error::AccountExhausted,
        Error::NoFrames => Sigma0Error::NoFrames,
        Error::Occupied => Sigma0Error::Occupied,
        Error::BadAddress => Sigma0Error::BadAddress,
        Error::NotAligned => Sigma0Error::NotAligned,
        Error::Reserved => Sigma0Error::Reserved,
        Error::BadArgument => Sigma0Error::BadRights,
        Error::WritableCode => Sigma0Error::WritableCode,
        error => {
            report("the nucleus", error);
            Sigma0Error::Failed
        }
    }
}

fn draw(account: Entry, domain: Entry, address: u64, order: u64, rights: u64) -> Result<(), Sigma0Error> {
    if order > MAX_ORDER {
        return Err(Sigma0Error::BadSize);
    }
    op::draw(Entry::SPECIAL, account, domain, address, order, rights).map_err(|error| match error {
        Error::PeerDied | Error::Revoked if account == domain => Sigma0Error::Gone,
        Error::PeerDied | Error::Revoked => Sigma0Error::AccountGone,
        error => reported(error),
    })
}

impl Sigma0Server for Service {
    fn draw(&self, badge: u64, address: u64, order: u64, rights: u64) -> Result<(), Sigma0Error> {
        let domain = tickets::managed(badge).ok_or(Sigma0Error::NotManaged)?;
        draw(domain, domain, address, order, rights)
    }

    fn draw_for(&self, badge: u64, ticket: u64, address: u64, order: u64, rights: u64) -> Result<(), Sigma0Error> {
        let domain = tickets::managed(badge).ok_or(Sigma0Error::NotManaged)?;
        let account = tickets::account_of(badge, ticket).ok_or(Sigma0Error::NotManaged)?;
        judge()?;
        draw(account, domain, address, order, rights)
    }

    fn manage_account(&self, badge: u64, account: Delegated) -> Result<u64, Sigma0Error> {
        let account = Entry::from(account);
        let ticket = judge().and_then(|()| {
            if !account.is(Kind::Account, WRITE) {
                return Err(Sigma0Error::NotAnAccount);
            }
            tickets::take(badge, account)
        });
        ticket.inspect_err(|_| tickets::remove(account))
    }

    fn manage_domain(&self, badge: u64, ticket: u64, heap: u64, domain: Delegated) -> Result<(), Sigma0Error> {
        let domain = Entry::from(domain);
        let kept = judge().and_then(|()| {
            if !domain.is(Kind::Domain, WRITE | CONTROL) {
                return Err(Sigma0Error::NotADomain);
            }
            if tickets::set_domain(badge, ticket, domain) { Ok(()) } else { Err(Sigma0Error::NotManaged) }
        });
        kept.inspect_err(|_| tickets::remove(domain))?;
        equip(domain, ticket, heap).map_err(|error| match error {
            Error::Occupied => Sigma0Error::Equipped,
            error => reported(error),
        })
    }

    fn make_room(&self, badge: u64, tickets: u64) -> Result<(), Sigma0Error> {
        if !tickets::is_roottask(badge) {
            return Err(Sigma0Error::NotRoottask);
        }
        tickets::make_room(tickets.min(MOST_TICKETS as u64) as usize).map_err(reported)
    }

    fn forget(&self, badge: u64, ticket: u64) -> Result<(), Sigma0Error> {
        if tickets::give_back(badge, ticket) { Ok(()) } else { Err(Sigma0Error::NotManaged) }
    }
}

/// Gives a domain its portals to this one: memory on request, and page faults in heap and stacks.
fn equip(domain: Entry, ticket: u64, heap: u64) -> Result<(), Error> {
    op::portal_new(domain, PLACE, ticket, Entry::SIGMA0, 0)?;
    for (slot, (start, end)) in pager::ranges(heap).into_iter().enumerate() {
        op::portal_new(domain, pager::PLACE, ticket, Entry(layout::PAGE_FAULT[slot]), 0)?;
        op::domain_set_fault_range(domain, slot as u64, start, end)?;
    }
    Ok(())
}
