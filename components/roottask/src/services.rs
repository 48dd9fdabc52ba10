//! Services that components published, and the call entries that others get to them.
//!
//! A service is known by its name, which belongs to the component that published it first. It is
//! registered with `names`, and put where the system description says that a component has a portal to it;
//! both again when either side restarts. `proc` publishes here what its programs publish.

use crate::components;
use abi::layout::NAMES;
use abi::rights::{ALL, Kind};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interface::Delegate;
use interfaces::names::NamesClient;
use interfaces::parent::ParentError;
use interfaces::stream::StreamClient;
use runtime::Direct;
use runtime::sync::Mutex;
use runtime::{Entry, op, table};

/// The name service's own name.
const NAME_SERVICE: &str = "names";
/// The terminal's.
const CONSOLE: &str = "console";
/// Badges of domains that components made, in `names`: from here on.
const FIRST_GUEST: u64 = 1000;
/// Names there can be.
const MAX_SERVICES: usize = 128;

/// A name, which belongs to the component that published it first, also while that is being restarted.
struct Service {
    name: String,
    component: u16,
    /// Nothing while the component is dead.
    entry: Option<Entry>,
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
    /// Our own portal to `names` leads to the one that runs.
    is_connected: bool,
}

static STATE: Mutex<State> =
    Mutex::new(State { services: Vec::new(), guests: Vec::new(), next_badge: FIRST_GUEST, is_connected: false });

/// Held while an entry is passed to `names`, and while one is removed: its index must not stand for another
/// service meanwhile. Taken before [`STATE`].
static REGISTERING: Mutex<()> = Mutex::new(());

impl State {
    fn names(&self) -> Option<Entry> {
        self.services.iter().find(|service| service.name == NAME_SERVICE)?.entry
    }
}

/// Takes an entry out of our table.
pub fn remove(entry: Entry) {
    let _ = op::entry_remove(Entry::OWN, entry);
    table::free(entry);
}

fn is_alive(entry: Entry) -> bool {
    matches!(op::entry_info(Entry::OWN, entry), Ok((Kind::Service, _)))
}

/// Notes a service; one of the same name by the same component is replaced. `register_new` registers it.
pub fn publish(component: u16, name: &str, entry: Entry) -> Result<(), ParentError> {
    let _registering = REGISTERING.lock();
    let mut state = STATE.lock();
    if let Some(service) = state.services.iter_mut().find(|service| service.name == name) {
        if service.component != component {
            return Err(ParentError::Taken);
        }
        let old = service.entry.replace(entry);
        service.registered = false;
        old.into_iter().for_each(remove);
        return Ok(());
    }
    if state.services.len() >= MAX_SERVICES {
        // What programs published is published by who started them, and dies with them.
        state.services.retain(|service| {
            let dead = service.component == component && service.entry.is_none_or(|entry| !is_alive(entry));
            if dead {
                service.entry.into_iter().for_each(remove);
            }
            !dead
        });
    }
    if state.services.len() >= MAX_SERVICES {
        return Err(ParentError::Full);
    }
    state.services.push(Service { name: name.to_string(), component, entry: Some(entry), registered: false });
    Ok(())
}

/// What a dead component published is gone; the names stay its own.
pub fn withdraw(component: u16) {
    let _registering = REGISTERING.lock();
    let mut state = STATE.lock();
    let mut nameless = false;
    for service in state.services.iter_mut().filter(|service| service.component == component) {
        service.entry.take().into_iter().for_each(remove);
        service.registered = false;
        nameless |= service.name == NAME_SERVICE;
    }
    if nameless {
        state.services.iter_mut().for_each(|service| service.registered = false);
        state.is_connected = false;
    }
}

/// Whether `component` published `name`.
pub fn is_published(component: u16, name: &str) -> bool {
    let state = STATE.lock();
    let mut services = state.services.iter();
    services.any(|service| service.component == component && service.name == name && service.entry.is_some())
}

/// Puts a call entry to a service into a domain's table. False if it is not published.
pub fn connect(domain: Entry, index: usize, component: u16, name: &str, badge: u64) -> bool {
    let state = STATE.lock();
    let found = state.services.iter().find(|service| service.component == component && service.name == name);
    let entry = found.and_then(|service| service.entry);
    entry.is_some_and(|entry| op::portal_new(domain, entry, badge, Entry(index), 0).is_ok())
}

/// Gives a domain its portal to `names`, if there is a name service.
pub fn connect_names(domain: Entry, badge: u64) {
    let state = STATE.lock();
    if let Some(names) = state.names() {
        let _ = op::portal_new(domain, names, badge, Entry(NAMES), 0);
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
    let pending: Vec<String> = {
        let state = STATE.lock();
        if state.names().is_none() {
            return;
        }
        let new = state.services.iter().filter(|service| !service.registered && service.entry.is_some());
        new.map(|service| service.name.clone()).collect()
    };
    if pending.iter().any(|name| name == NAME_SERVICE) {
        connect_names(Entry::OWN, 0);
        STATE.lock().is_connected = true;
        components::connect_all_to_names();
        let guests: Vec<(Entry, u64)> = STATE.lock().guests.iter().map(|guest| (guest.domain, guest.badge)).collect();
        for (domain, badge) in guests {
            connect_names(domain, badge);
        }
    }
    for name in pending {
        register(&name);
    }
}

/// Registers a service with `names`, if there is one. What cannot be registered is tried again when a name
/// service comes; a new name service itself is registered by [`register_new`], which connects it.
pub fn register(name: &str) {
    let _registering = REGISTERING.lock();
    let pending = {
        let state = STATE.lock();
        let found = state.services.iter().find(|service| service.name == name && !service.registered);
        found.and_then(|service| service.entry).filter(|entry| state.is_connected && is_alive(*entry))
    };
    let Some(entry) = pending else { return };
    match NamesClient(Direct(Entry::NAMES)).register(name, Delegate::entry(entry.0, ALL)) {
        Ok(()) => {
            let mut state = STATE.lock();
            if let Some(service) = state.services.iter_mut().find(|service| service.entry == Some(entry)) {
                service.registered = true;
            }
        }
        Err(error) => runtime::log!("registering {name}: {error}"),
    }
}

/// Tells people on the console, if it can be reached.
pub fn tell_console(pieces: &[&[u8]]) {
    let console = {
        let state = STATE.lock();
        let found = state.services.iter().find(|service| service.name == CONSOLE);
        found.and_then(|service| service.entry)
    };
    let portal = |service| {
        let index = table::allocate().ok()?;
        op::portal_new(Entry::OWN, service, 0, index, 0).ok()
    };
    if let Some(console) = console.and_then(portal) {
        let client = StreamClient(Direct(console));
        for piece in pieces {
            let mut rest = *piece;
            while let Ok(count @ 1..) = client.write(rest) {
                rest = rest.get(count..).unwrap_or_default();
            }
        }
        remove(console);
    }
}
