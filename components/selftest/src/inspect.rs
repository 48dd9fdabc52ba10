//! Looking at the nucleus's lists: the content of the list of portals, and the operations refused to a domain that may only look.

use abi::info::{self, Portal};
use abi::{Error, NEVER, layout, rights};
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::{Entry, op, table};

use crate::check::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("a domain that may look at the machine may do nothing else with it", only_look),
    ("the right to write to the machine is not that to control it", not_control),
    ("the list of portals holds those that there are", portals),
    ("a portal is found wherever it stands in a table", alone),
    ("a position in the list of portals that means nothing is refused, or goes on", positions),
];

const PORTALS: u64 = 8;

struct Nobody;

impl Serve for Nobody {
    fn serve(_: &mut Request<'_>) -> Reply {
        Reply::word(0)
    }
}

fn text(error: Error) -> &'static str {
    error.text()
}

/// Our own domain's number: that of our entry, and of the domain in which the running thread started.
fn own() -> Result<u64, &'static str> {
    let (thread, _) = op::record::<info::Thread>(Entry::SPECIAL, op::thread_id() - 1).map_err(text)?;
    hold(op::domain_number(Entry::DOMAIN) == Ok(thread.home), "our entry has another number")?;
    hold(op::domain_number(Entry::ACCOUNT) == Err(Error::WrongKind), "an account has the number of a domain")?;
    Ok(thread.home)
}

/// The record at a position, and the next position.
fn portal(position: u64) -> Result<(Portal, u64), Error> {
    op::record(Entry::SPECIAL, position)
}

/// All call entries of ours.
fn ours() -> Result<alloc::vec::Vec<Portal>, &'static str> {
    let own = own()?;
    let mut all = alloc::vec::Vec::new();
    let (mut position, mut last) = (0, (NEVER, 0));
    loop {
        let (found, next) = portal(position).map_err(text)?;
        if found.index != 0 {
            // From the newest domain to the oldest, and each table from its start to its end.
            let is_later = found.from < last.0 || found.from == last.0 && found.index > last.1;
            hold(is_later, "the order is wrong")?;
            last = (found.from, found.index);
            if found.from == own {
                all.push(found);
            }
        }
        if next == 0 {
            return Ok(all);
        }
        position = next;
    }
}

fn portals() -> Result<(), &'static str> {
    let own = own()?;
    let before = ours()?;
    let at = |all: &[Portal], index: usize| all.iter().find(|portal| portal.index == index as u64).copied();
    let parent = at(&before, layout::PARENT).ok_or("no portal to our parent")?;
    let memory = at(&before, layout::SIGMA0).ok_or("no portal to the source of memory")?;
    hold((parent.to, memory.to) == (2, 1), "they lead elsewhere")?;
    let service = Owned::new(server::service::<Nobody>().map_err(text)?);
    let mut made = alloc::vec::Vec::new();
    for badge in 0..PORTALS {
        let index = table::allocate().map_err(text)?;
        made.push(Owned::new(op::portal_new(Entry::OWN, service.entry(), badge, index, 0).map_err(text)?));
    }
    let with = ours()?;
    hold(with.len() == before.len() + made.len(), "so many portals more are not so many more")?;
    let first = at(&with, made[0].entry().0).ok_or("the first new portal is not there")?;
    hold(first.service >= layout::PROGRAM_START, "another place to enter")?;
    for (badge, entry) in (0..).zip(&made) {
        let found = at(&with, entry.entry().0).ok_or("a new portal is not there")?;
        hold(found.to == own, "a new portal leads elsewhere")?;
        hold(found.badge == badge, "a new portal has another badge")?;
        hold(found.service == first.service, "a portal of the same service enters elsewhere")?;
    }
    // A service that goes takes its portals along.
    drop(service);
    hold(ours()?.len() == before.len(), "portals that were revoked are still there")
}

/// One portal at a time in a table that is empty otherwise: also where the pieces end in which a table is looked at.
fn alone() -> Result<(), &'static str> {
    let service = Owned::new(server::service::<Nobody>().map_err(text)?);
    let child = Owned::new(op::domain_new(Entry::OWN, 0, "callers").map_err(text)?);
    let (newest, _) = portal(0).map_err(text)?;
    for index in layout::FIRST_FREE..2 * layout::TABLE_ENTRIES {
        let made = op::portal_new(child.entry(), service.entry(), 5, Entry(index), 0).map_err(text)?;
        let mut found = alloc::vec::Vec::new();
        let mut position = Portal::position(newest.from, 0);
        while Portal::place(position).0 == newest.from {
            let (portal, next) = portal(position).map_err(text)?;
            found.extend((portal.index != 0).then_some((portal.index, portal.badge)));
            position = next;
        }
        hold(found == [(index as u64, 5)], "it is not found, or something else is")?;
        op::entry_remove(child.entry(), made).map_err(text)?;
    }
    Ok(())
}

fn positions() -> Result<(), &'static str> {
    let own = own()?;
    let nothing = |position| matches!(portal(position), Err(Error::AtEnd));
    hold(nothing(1) && nothing(0x3_ffff), "there is a domain with number 0")?;
    // Beyond the end of a table: nothing there, and on with an older domain.
    let (found, next) = portal(Portal::position(own, 0x3_ffff)).map_err(text)?;
    hold((found.from, found.index) == (own, 0), "an entry beyond the table's end")?;
    hold(Portal::place(next).0 < own && Portal::place(next).1 == 0, "it does not go on with an older domain")?;
    // A domain that is not there, or not yet: the next older one, from its start.
    let (found, _) = portal(Portal::position(own + 1000, 60)).map_err(text)?;
    hold(found.from == own, "not the newest domain")?;
    let (found, _) = portal(NEVER).map_err(text)?;
    hold(found.from == own, "not the newest domain")?;
    let unknown = op::info(Entry::SPECIAL, info::LOG_REFUSED + 1, 0, |_, _| ());
    hold(unknown == Err(Error::NoSuchWay), "a list that there is not")
}

/// To change what all domains have in common takes more than to write.
fn not_control() -> Result<(), &'static str> {
    let writes = Owned::new(op::entry_duplicate(Entry::SPECIAL, rights::WRITE).map_err(text)?);
    let machine = writes.entry();
    hold(op::machine_threads(machine) == Err(Error::NoRight), "it may make room for threads")?;
    hold(op::machine_handles(machine, [1, 2]) == Err(Error::NoRight), "it may set the key of handles")?;
    hold(op::machine_device(machine, 0xfee0_0000, layout::FREE_START) == Err(Error::NoRight), "it may map devices")?;
    hold(op::machine_physical(machine, layout::PROGRAM_START) == Err(Error::NoRight), "it may ask for addresses")
}

fn only_look() -> Result<(), &'static str> {
    let look = Owned::new(op::entry_duplicate(Entry::SPECIAL, rights::READ).map_err(text)?);
    let machine = look.entry();
    for what in [
        info::DOMAIN,
        info::THREAD,
        info::FRAMES,
        info::COUNTERS,
        info::PORTAL,
        info::LOG,
        info::LOG_PROGRAMS,
        info::LOG_REFUSED,
        info::SHAPE,
        info::CODE,
    ] {
        op::info(machine, what, 0, |_, _| ()).map_err(text)?;
    }
    hold(op::machine_stop(machine, 1) == Err(Error::NoRight), "it may stop it")?;
    hold(op::machine_interrupt(machine, 5) == Err(Error::NoRight), "it may take interrupts")?;
    hold(op::machine_ports(machine, 0x2f8, 8) == Err(Error::NoRight), "it may take ports")?;
    hold(op::machine_device(machine, 0xfee0_0000, layout::FREE_START) == Err(Error::NoRight), "it may map devices")?;
    hold(op::machine_physical(machine, layout::PROGRAM_START) == Err(Error::NoRight), "it may ask for addresses")?;
    hold(op::machine_threads(machine) == Err(Error::NoRight), "it may make room for threads")?;
    hold(op::machine_archive(machine, Entry::DOMAIN) == Err(Error::NoRight), "it may show the boot archive")?;
    hold(op::entry_duplicate(machine, rights::ALL) == Err(Error::NoRight), "it may pass it on")?;
    let without = Owned::new(op::entry_duplicate(Entry::SPECIAL, rights::WRITE).map_err(text)?);
    let reported = op::info(without.entry(), info::PORTAL, 0, |_, _| ());
    hold(reported == Err(Error::NoRight), "a domain that may not look gets an answer")
}
