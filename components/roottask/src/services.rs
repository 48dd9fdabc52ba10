//! Services that components published, and the call entries that others get to them.
//!
//! A service is known by its name and who published it. It is registered with `names`, and put where
//! the system description says that a component has a portal to it; both again when either side restarts.

use crate::components;
use abi::layout::NAMES;
use abi::rights::ALL;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interface::Delegate;
use interfaces::names::NamesClient;
use runtime::Direct;
use runtime::sync::Mutex;
use runtime::{Entry, op, table};

/// The name service's own name.
const NAME_SERVICE: &str = "names";
/// Badges of domains that components made, in `names`: from here on.
const FIRST_GUEST: u64 = 1000;

struct Service {
    name: String,
    component: u16,
    entry: Entry,
    registered: bool,
}

/// A domain that a component made and that gets a portal to `names`.
struct Guest {
    domain: Entry,
    badge: u64,
}

struct State {
    services: Vec<Service>,
    guests: Vec<Guest>,
    next_badge: u64,
}

static STATE: Mutex<State> = Mutex::new(State { services: Vec::new(), guests: Vec::new(), next_badge: FIRST_GUEST });

/// Takes an entry out of our table.
pub fn remove(entry: Entry) {
    let _ = op::entry_remove(Entry::OWN, entry);
    table::free(entry);
}

/// Notes a service; one of the same name by the same component is replaced.
pub fn publish(component: u16, name: &str, entry: Entry) {
    let mut state = STATE.lock();
    if let Some(place) =
        state.services.iter().position(|service| service.name == name && service.component == component)
    {
        let old = state.services.swap_remove(place);
        remove(old.entry);
    }
    state.services.push(Service { name: name.to_string(), component, entry, registered: false });
}

/// What a dead component published is gone.
pub fn withdraw(component: u16) {
    let mut state = STATE.lock();
    let mut place = 0;
    while place < state.services.len() {
        if state.services[place].component == component {
            let old = state.services.swap_remove(place);
            remove(old.entry);
            if old.name == NAME_SERVICE {
                for service in &mut state.services {
                    service.registered = false;
                }
            }
        } else {
            place += 1;
        }
    }
}

/// Whether `component` published `name`.
pub fn is_published(component: u16, name: &str) -> bool {
    STATE.lock().services.iter().any(|service| service.component == component && service.name == name)
}

/// Puts a call entry to a service into a domain's table. False if it is not published.
pub fn connect(domain: Entry, index: usize, component: u16, name: &str, badge: u64) -> bool {
    let state = STATE.lock();
    let found = state.services.iter().find(|service| service.component == component && service.name == name);
    found.is_some_and(|service| op::portal_new(domain, service.entry, badge, Entry(index), 0).is_ok())
}

/// Gives a domain its portal to `names`, if there is a name service.
pub fn connect_names(domain: Entry, badge: u64) {
    let state = STATE.lock();
    if let Some(names) = state.services.iter().find(|service| service.name == NAME_SERVICE) {
        let _ = op::portal_new(domain, names.entry, badge, Entry(NAMES), 0);
    }
}

/// A domain that a component made gets a portal to `names`, now and after each restart of it.
pub fn equip(domain: Entry) {
    let badge = {
        let mut state = STATE.lock();
        state.next_badge += 1;
        state.next_badge
    };
    connect_names(domain, badge);
    let mut state = STATE.lock();
    // Those whose domain is gone make room.
    let mut place = 0;
    while place < state.guests.len() {
        if is_gone(state.guests[place].domain) {
            let gone = state.guests.swap_remove(place);
            remove(gone.domain);
        } else {
            place += 1;
        }
    }
    state.guests.push(Guest { domain, badge });
}

fn is_gone(domain: Entry) -> bool {
    op::entry_info(domain, Entry(NAMES)).is_err()
}

/// Registers with `names` what is not registered yet. A name service that came just now gets portals
/// made to it first.
pub fn register_new() {
    let pending: Vec<(String, Entry)> = {
        let state = STATE.lock();
        if !state.services.iter().any(|service| service.name == NAME_SERVICE) {
            return;
        }
        let new = state.services.iter().filter(|service| !service.registered);
        new.map(|service| (service.name.clone(), service.entry)).collect()
    };
    if pending.iter().any(|(name, _)| name == NAME_SERVICE) {
        connect_names(Entry::OWN, 0);
        components::connect_all_to_names();
        let guests: Vec<(Entry, u64)> = STATE.lock().guests.iter().map(|guest| (guest.domain, guest.badge)).collect();
        for (domain, badge) in guests {
            connect_names(domain, badge);
        }
    }
    let names = NamesClient(Direct(Entry::NAMES));
    for (name, entry) in pending {
        match names.register(&name, Delegate::entry(entry.0, ALL)) {
            Ok(()) => {
                let mut state = STATE.lock();
                if let Some(service) = state.services.iter_mut().find(|service| service.entry == entry) {
                    service.registered = true;
                }
            }
            Err(error) => runtime::log!("registering {name}: {error}"),
        }
    }
}

/// Tells people on the console, if it can be reached.
pub fn tell_console(text: &str) {
    runtime::eprintln!("roottask: {text}");
}
