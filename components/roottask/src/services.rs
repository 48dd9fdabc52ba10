//! Services that components and programs published, and the call entries that others get to them.
//!
//! The names of components' services are theirs by the system description, whether they run or not; a program may have
//! any other name while it lives. A service is registered with `names`, and put where the description says that a
//! component has a portal to it; both again when either side restarts. `proc` publishes here what its programs publish.

use crate::numbers;
use crate::running::RUNNING;
use abi::layout::NAMES;
use abi::rights::{ALL, Kind};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use idl::Delegate;
use protocols::names::{COMPONENT, NamesClient, PROGRAM, ROOTTASK};
use protocols::parent::ParentError;
use protocols::stream::StreamClient;
use runtime::Direct;
use runtime::entry::Owned;
use runtime::label::Compartments;
use runtime::sync::Mutex;
use runtime::{Entry, log_refused, op, table};
use system::Component;

/// The name service's own name.
pub const NAME_SERVICE: &str = "names";
/// The terminal's.
const CONSOLE: &str = "console";

/// The publisher of a service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Publisher {
    /// The component's own, under a name that the description gives it.
    Component,
    /// The same, never registered with `names`: only portals of the description lead to it.
    Hidden,
    /// A program's that the component started.
    Program,
}

/// Answers whether a caller is tainted.
static CALLERS: Compartments = Compartments::new();

struct Service {
    name: String,
    component: u16,
    publisher: Publisher,
    /// Nothing while the component is dead.
    entry: Option<Entry>,
    registered: bool,
    /// Portals of the description lead to it.
    is_connected: bool,
}

impl Service {
    fn is_to_be_registered(&self) -> bool {
        !self.registered && self.publisher != Publisher::Hidden
    }
}

struct State {
    services: Vec<Service>,
    /// Domains that components made and that get a portal to `names`.
    guests: Vec<Owned>,
    /// Which of them is looked at next.
    next_guest: usize,
    /// Our own portal to `names` leads to the one that runs.
    is_connected: bool,
    /// Names under which components will publish, and whose they are.
    expected: Vec<(u16, &'static str)>,
}

static STATE: Mutex<State> = Mutex::new(State {
    services: Vec::new(),
    guests: Vec::new(),
    next_guest: 0,
    is_connected: false,
    expected: Vec::new(),
});

/// Held while an entry is passed to `names`, and while one is removed: its index must not stand for another
/// service meanwhile. Taken before [`STATE`].
static REGISTERING: Mutex<()> = Mutex::new(());

impl State {
    fn names(&self) -> Option<Entry> {
        self.services.iter().find(|service| service.name == NAME_SERVICE)?.entry
    }

    fn program_names(&self) -> usize {
        self.services.iter().filter(|service| service.publisher == Publisher::Program).count()
    }

    /// Forgets what programs published that are dead; gives the names.
    fn take_dead_programs(&mut self) -> Vec<String> {
        let is_dead =
            |service: &mut Service| service.publisher == Publisher::Program && !service.entry.is_some_and(is_alive);
        let gone = self.services.extract_if(.., is_dead);
        gone.map(|service| {
            service.entry.into_iter().for_each(remove);
            service.name
        })
        .collect()
    }
}

/// Takes an entry out of our table.
pub fn remove(entry: Entry) {
    let _ = op::entry_remove(Entry::OWN, entry);
    table::free(entry);
}

fn is_alive(entry: Entry) -> bool {
    entry.is(Kind::Service, runtime::server::SERVICE_RIGHTS)
}

/// Notes a service; one of the same name is replaced. `register_new` registers it. Whether the component may have the
/// name is the caller's to know.
pub fn publish(component: u16, name: &str, service: Owned, publisher: Publisher) -> Result<(), ParentError> {
    if !is_alive(service.entry()) {
        return Err(ParentError::NotAService);
    }
    let _registering = REGISTERING.lock();
    let mut state = STATE.lock();
    if let Some(known) = state.services.iter_mut().find(|known| known.name == name) {
        if known.component != component && known.entry.is_some_and(is_alive) {
            return Err(ParentError::Taken);
        }
        // A tainted component that published a name again would send a signal.
        if known.entry.is_some_and(is_alive) && !CALLERS.caller_may(0).change {
            log_refused!("the name {name}");
            return Err(ParentError::Flow);
        }
        let old = known.entry.replace(service.leak());
        known.component = component;
        known.registered = false;
        known.is_connected = false;
        old.into_iter().for_each(remove);
        return Ok(());
    }
    let most = numbers::program_names();
    if publisher == Publisher::Program && state.program_names() >= most {
        let gone = state.take_dead_programs();
        let is_connected = state.is_connected;
        drop(state);
        for name in gone.iter().filter(|_| is_connected) {
            // A name service that is just dying takes its table along.
            let _ = NamesClient(Direct(Entry::NAMES)).unregister(name);
        }
        state = STATE.lock();
        if state.program_names() >= most {
            return Err(ParentError::Full);
        }
    }
    let entry = Some(service.leak());
    let name = name.to_string();
    state.services.push(Service { name, component, publisher, entry, registered: false, is_connected: false });
    Ok(())
}

/// Withdraws the services of a dead component; it keeps their names.
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

/// A component is about to be started, and will publish under its names.
pub fn await_names(component: &Component<'static>) {
    let names = component.public_services().map(|name| (component.number, name));
    STATE.lock().expected.extend(names);
}

/// A component stays dead: its names are nobody's from now on, and nobody waits for them.
pub fn lose(component: &Component) {
    let is_connected = {
        let mut state = STATE.lock();
        state.expected.retain(|(number, _)| *number != component.number);
        state.is_connected
    };
    for name in component.public_services().filter(|_| is_connected) {
        // A name service that is just dying takes its table along.
        let _ = NamesClient(Direct(Entry::NAMES)).unregister(name);
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

/// Gives a domain its portal to `names`, if there is a name service, and that knows which names to expect. Only ours may write the
/// table of names.
pub fn connect_names(domain: Entry) {
    give_names(&STATE.lock(), domain, if domain == Entry::OWN { ROOTTASK } else { COMPONENT });
}

fn give_names(state: &State, domain: Entry, badge: u64) {
    if let Some(names) = state.names().filter(|_| state.is_connected || badge == ROOTTASK) {
        let _ = op::portal_new(domain, names, badge, Entry(NAMES), 0);
    }
}

/// A domain that a component made gets a portal to `names`, now and after each restart of it.
pub fn equip(domain: Owned) {
    let mut state = STATE.lock();
    give_names(&state, domain.entry(), PROGRAM);
    // Those whose domain is gone make room. Whether it is takes a system call, so some are asked each time.
    for _ in 0..GUESTS_AT_ONCE.min(state.guests.len()) {
        let next = state.next_guest % state.guests.len();
        let is_gone = is_gone(state.guests[next].entry());
        if is_gone {
            state.guests.swap_remove(next);
        }
        state.next_guest = next + usize::from(!is_gone);
        if state.guests.is_empty() {
            break;
        }
    }
    state.guests.push(domain);
}

/// Guests that are looked at when one comes.
const GUESTS_AT_ONCE: usize = 8;

fn is_gone(domain: Entry) -> bool {
    op::entry_info(domain, Entry(NAMES)).is_err()
}

/// Services that came since this was asked, to which the portals of the description are to be made. Only the main loop asks,
/// which also starts the components that have such portals.
pub fn take_new() -> Vec<(u16, String)> {
    let mut state = STATE.lock();
    let new = state.services.iter_mut().filter(|service| service.entry.is_some() && !service.is_connected);
    new.map(|service| {
        service.is_connected = true;
        (service.component, service.name.clone())
    })
    .collect()
}

/// Every component gets a portal to the name service.
fn connect_all_to_names() {
    let all: Vec<Entry> = RUNNING.lock().iter().map(|running| running.domain).collect();
    all.into_iter().for_each(connect_names);
}

/// A component has this name, and will publish a service under it.
fn expect(name: &str) {
    if let Err(error) = NamesClient(Direct(Entry::NAMES)).expect(name) {
        runtime::log!("expecting {name}: {error}");
    }
}

/// Registers with `names` what is not registered yet. A name service that came just now gets portals
/// made to it first.
pub fn register_new() {
    let pending: Vec<String> = {
        let state = STATE.lock();
        if state.names().is_none() {
            return;
        }
        let new = state.services.iter().filter(|service| service.is_to_be_registered() && service.entry.is_some());
        new.map(|service| service.name.clone()).collect()
    };
    if pending.iter().any(|name| name == NAME_SERVICE) {
        connect_names(Entry::OWN);
        // Before anybody else can ask: a client that asks for a name without an owner does not wait for it.
        let expected = STATE.lock().expected.clone();
        expected.iter().for_each(|(_, name)| expect(name));
        STATE.lock().is_connected = true;
        connect_all_to_names();
        let state = STATE.lock();
        state.guests.iter().for_each(|guest| give_names(&state, guest.entry(), PROGRAM));
    }
    for name in pending {
        register(&name);
    }
}

/// Registers a service with `names`, if there is one. A failed registration is tried again when a name
/// service comes; a new name service itself is registered by [`register_new`], which connects it.
pub fn register(name: &str) {
    let _registering = REGISTERING.lock();
    let pending = {
        let state = STATE.lock();
        let found = state.services.iter().find(|service| service.name == name && service.is_to_be_registered());
        let pending = found.and_then(|service| Some((service.entry?, service.publisher)));
        pending.filter(|(entry, _)| state.is_connected && is_alive(*entry))
    };
    let Some((entry, publisher)) = pending else { return };
    match NamesClient(Direct(Entry::NAMES)).register(name, Delegate::entry(entry.0, ALL)) {
        Ok(()) => {
            let mut state = STATE.lock();
            if let Some(service) = state.services.iter_mut().find(|service| service.entry == Some(entry)) {
                service.registered = true;
            }
        }
        Err(error) if publisher == Publisher::Program => runtime::log_about_program!("registering {name}: {error}"),
        Err(error) => runtime::log!("registering {name}: {error}"),
    }
}

/// Whether there is a console for reports.
pub fn has_console() -> bool {
    STATE.lock().services.iter().any(|service| service.name == CONSOLE && service.entry.is_some())
}

/// Writes a report to the console, if it can be reached.
pub fn report_to_console(pieces: &[&[u8]]) {
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
