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
//! | [`running`] | the components that run |
//! | [`services`] | what was published, and the portals made from it |
//! | [`failure`] | the end of the machine, when nothing can go on |
//! | [`plan`] | the description |
//! | [`compartments`] | those of the description, and the labels of their components |
//! | [`domains`] | domains of components, each with its account |
//! | [`numbers`], [`room`] | what grows with the memory of the machine |
//! | [`cpus`], [`schedulers`] | which CPUs run; a scheduler for each, and the standby |
//! | [`vault`] | memory that outlives the component that uses it |
//! | [`components`] | starting, watching and restarting components |
//! | [`badge`], [`parent`] | the interface `Parent` |
#![no_std]
#![no_main]

extern crate alloc;

mod badge;
mod compartments;
mod components;
mod cpus;
mod domains;
mod failure;
mod load;
mod memory;
mod numbers;
mod parent;
mod plan;
mod records;
mod room;
mod running;
mod schedulers;
mod services;
mod vault;

use abi::Error;
use abi::boot::SYSTEM_PATH;
use abi::rights::ALL;
use alloc::format;
use alloc::string::{String, ToString};
use runtime::arch::RandomInstruction;
use runtime::entry::Owned;
use runtime::op::Schedule;
use runtime::{Entry, op, table};
use system::System;

runtime::entry!(main);

/// Calls that are served at the same time.
const ACTIVATIONS: usize = 2;

fn main() -> u8 {
    let error = match start() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    failure::fail(&error)
}

/// The nucleus started `sigma0` and us before it could know the description: account and priorities of both become
/// what it says. Our account stays whatever the others leave.
fn apply(system: &System) -> Result<(), Error> {
    for component in system.components() {
        let domain = match component.name {
            "sigma0" => memory::SIGMA0_DOMAIN,
            "roottask" => Entry::DOMAIN,
            _ => continue,
        };
        op::domain_set_max_priority(domain, component.max_priority.into())?;
        if component.name == "roottask" {
            op::thread_schedule(Entry::OWN, Schedule { priority: component.priority, slice: 0 })?;
        } else if let Some(limit) = records::limit(records::first()) {
            let account = Owned::new(table::allocate()?);
            op::entry_copy(domain, Entry::ACCOUNT, Entry::OWN, account.entry(), ALL)?;
            let frames = room::account(&component);
            op::account_move(account.entry(), Entry::OWN, limit.saturating_sub(frames))?;
            op::account_move(Entry::OWN, account.entry(), frames.saturating_sub(limit))?;
        }
    }
    Ok(())
}

/// The nucleus makes handles of labels from a key that nobody else knows. It is as good as the processor's random numbers.
fn set_handles() {
    let random = RandomInstruction::new().and_then(|random| csprng::key(|| random.word()));
    let key = random.unwrap_or_else(|| {
        runtime::log!("handles of labels can be guessed: the processor has no random numbers");
        [op::clock(), runtime::arch::ticks()]
    });
    if let Err(error) = op::machine_handles(Entry::SPECIAL, key) {
        runtime::log!("handles of labels: {error}");
    }
}

fn start() -> Result<core::convert::Infallible, String> {
    memory::connect().map_err(|error| format!("sigma0: {error}"))?;
    runtime::log!("boot archive of {} bytes", memory::archive().len());
    let file = memory::file(SYSTEM_PATH)?;
    let system = System::parse(file).map_err(|error| error.to_string())?;
    let events = op::semaphore_new(Entry::OWN, 0).map_err(|error| error.to_string())?;
    plan::init(system, events);
    room::make().map_err(|error| format!("room for threads: {error}"))?;
    apply(&system).map_err(|error| format!("the account and priorities of sigma0 and roottask: {error}"))?;
    room::make_tickets().map_err(|error| format!("room for tickets of sigma0: {error}"))?;
    set_handles();
    compartments::make_handles().map_err(|error| format!("compartments: {error}"))?;
    op::domain_set_death_semaphore(memory::SIGMA0_DOMAIN, events).map_err(|error| format!("sigma0: {error}"))?;
    parent::serve(ACTIVATIONS)?;
    components::start_schedulers()?;
    components::begin();
    loop {
        services::register_new();
        services::take_new().iter().for_each(|(component, name)| components::connect(*component, name));
        components::tend();
        let next = components::start_due();
        let _ = op::p(events, next);
    }
}
