//! The first component: starts the system from its description, and restarts what dies.
//!
//! The nucleus starts it after `sigma0`, with the boot archive shown at `layout::ARCHIVE`, the
//! archive's length as argument, the machine at `layout::SPECIAL` and all memory in its account.
//!
//! | module | what |
//! |---|---|
//! | [`records`] | what the nucleus's list says about domains |
//! | [`memory`] | drawing frames from `sigma0`, the archive, the window for filling pages |
//! | [`load`] | an executable into a new domain |
//! | [`components`] | starting, watching and restarting components |
//! | [`schedulers`] | one for each CPU, and the standby |
//! | [`services`] | what was published, and the portals made from it |
//! | [`parent`] | the interface `Parent` |
//! | [`vault`] | memory that outlives the component that uses it |
#![no_std]
#![no_main]

extern crate alloc;

mod components;
mod load;
mod memory;
mod parent;
mod records;
mod schedulers;
mod services;
mod vault;

use abi::Error;
use abi::boot::SYSTEM_PATH;
use abi::rights::ALL;
use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, Ordering};
use runtime::entry::Owned;
use runtime::op::Schedule;
use runtime::{Entry, op, server, table};
use system::{Account, System};

runtime::entry!(main);

/// Exit status of the machine when the system cannot be started or go on.
const FAILED: u64 = 101;

/// Calls that are served at the same time.
const ACTIVATIONS: usize = 2;

fn main() -> u8 {
    let error = match start() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    fail(&error)
}

/// Stops the machine because nothing can go on; the reason goes to the log and, with the end of the log, to
/// the console, as far as there is one. The first reason is the one that is told.
pub fn fail(reason: &str) -> ! {
    static FAILS: AtomicBool = AtomicBool::new(false);
    if FAILS.swap(true, Ordering::Relaxed) {
        server::park();
    }
    runtime::log!("cannot go on: {reason}");
    records::with_log_tail(|log| {
        services::tell_console(&[b"The machine stops: ", reason.as_bytes(), b". The end of the kernel log:\n", log]);
    });
    let _ = op::machine_stop(Entry::SPECIAL, FAILED);
    runtime::program::exit(1)
}

/// The nucleus started `sigma0` and us before it could know the description: account and priorities of both become
/// what it says. Our account stays whatever the others leave.
fn settle(system: &System) -> Result<(), Error> {
    for component in system.components() {
        let domain = match component.name {
            "sigma0" => memory::SIGMA0_DOMAIN,
            "roottask" => Entry::DOMAIN,
            _ => continue,
        };
        op::domain_set_max_priority(domain, component.max_priority.into())?;
        if component.name == "roottask" {
            op::thread_schedule(Entry::OWN, Schedule { priority: component.priority, slice: 0 })?;
        } else if let (Account::Frames(frames), Some(limit)) = (component.account, records::limit(records::first())) {
            let account = Owned::new(table::allocate()?);
            op::entry_copy(domain, Entry::ACCOUNT, Entry::OWN, account.entry(), ALL)?;
            let frames = u64::from(frames);
            op::account_move(account.entry(), Entry::OWN, limit.saturating_sub(frames))?;
            op::account_move(Entry::OWN, account.entry(), frames.saturating_sub(limit))?;
        }
    }
    Ok(())
}

fn start() -> Result<core::convert::Infallible, String> {
    memory::connect().map_err(|error| format!("sigma0: {error}"))?;
    runtime::log!("boot archive of {} bytes", memory::archive().len());
    let file = memory::file(SYSTEM_PATH)?;
    let system = System::parse(file).map_err(|error| error.to_string())?;
    let events = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?;
    settle(&system).map_err(|error| format!("the account and priorities of sigma0 and roottask: {error}"))?;
    components::init(system, events);
    op::domain_set_death_semaphore(memory::SIGMA0_DOMAIN, events).map_err(|error| format!("sigma0: {error}"))?;
    parent::serve(ACTIVATIONS)?;
    components::start_schedulers()?;
    components::begin();
    loop {
        services::register_new();
        services::connect_new();
        components::tend();
        let next = components::start_due();
        let _ = op::p(events, next);
    }
}
