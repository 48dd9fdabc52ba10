//! Starting components, watching them, and restarting them by the policy of the description.

use crate::{fail, load, memory, parent, records, schedulers, services, vault};
use abi::layout::{self, DEVICE, MAIN_STACK_TOP, STARTUP_PAGE, TABLE_ENTRIES};
use abi::rights::{self, ALL, MAP_READ, MAP_WRITE};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use interfaces::parent::{Force, ParentError};
use runtime::op::{self, Schedule, clock};
use runtime::sync::{Mutex, Once};
use runtime::{Entry, tree};
use system::{Account, Component, Restart, Special, System};

/// Nanoseconds after which a component that has not published what others need of it is late.
const PATIENCE: u64 = 5_000_000_000;
/// As many does the whole system wait for it at the start: the machine may be slow.
const AT_START: u64 = 60_000_000_000;
/// Nanoseconds until a component that found no memory is tried again, and until nothing else is left to try.
const AGAIN: u64 = 50_000_000;
const RESTART: u64 = 60_000_000_000;
const MINUTE: u64 = 60_000_000_000;
/// Frames kept back for `roottask` itself when a component gets the rest.
const RESERVE: u64 = 512;
/// Number of the record of the standby scheduler.
const STANDBY: u16 = u16::MAX;

/// A component that was started.
pub struct Running {
    number: u16,
    /// The number of its domain in the nucleus's lists: no two instances share it.
    instance: u64,
    /// Its domain.
    pub domain: Entry,
    account: Entry,
    thread: Option<Entry>,
    /// What draws frames for it.
    pub ticket: u64,
    /// When it died within the last minute.
    deaths: Vec<u64>,
    /// How often it was started again since boot.
    restarts: u64,
}

struct Plan {
    system: System<'static>,
    events: Entry,
}

/// Why the machine stops then.
const SIGMA0_DIED: &str = "sigma0 died";

static PLAN: Once<Plan> = Once::new();
static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());
/// What a component has of a device.
#[derive(Clone, Copy, Default)]
struct Devices {
    /// Whose it is.
    number: u16,
    interrupt: Option<Entry>,
    ports: Option<Entry>,
    /// Where we have its page of registers.
    registers: Option<u64>,
}

static DEVICES: Mutex<Vec<Devices>> = Mutex::new(Vec::new());
static PARENT_SERVICE: AtomicUsize = AtomicUsize::new(0);

fn plan() -> &'static Plan {
    PLAN.get().unwrap_or_else(|| fail("no plan"))
}

/// Keeps the description and the semaphore of events.
pub fn init(system: System<'static>, events: Entry) {
    PLAN.get_or_make(|| Plan { system, events });
}

/// The service that components find at `layout::PARENT`.
pub fn set_parent_service(service: Entry) {
    PARENT_SERVICE.store(service.0, Ordering::Relaxed);
}

/// See [`set_parent_service`].
pub fn parent_service() -> Entry {
    Entry(PARENT_SERVICE.load(Ordering::Relaxed))
}

/// Something happened that the main loop looks at.
pub fn wake() {
    let _ = op::v(plan().events);
}

/// The domain of a component that runs.
fn domain_of(number: u16) -> Option<Entry> {
    RUNNING.lock().iter().find(|running| running.number == number).map(|running| running.domain)
}

/// The domain of this instance of a component, while it is the one that runs.
pub fn domain_of_instance(instance: u64) -> Option<Entry> {
    RUNNING.lock().iter().find(|running| running.instance == instance).map(|running| running.domain)
}

/// The component with the lowest number of a domain above `after`: that number, and how often it was started
/// again; zeros if there is none.
pub fn restarts(after: u64) -> (u64, u64) {
    let running = RUNNING.lock();
    let later = running.iter().filter(|running| running.instance > after);
    later.min_by_key(|running| running.instance).map_or((0, 0), |running| (running.instance, running.restarts))
}

/// Every component gets a portal to the name service.
pub fn connect_all_to_names() {
    let all: Vec<Entry> = RUNNING.lock().iter().map(|running| running.domain).collect();
    all.into_iter().for_each(services::connect_names);
}

/// Whether a component has the whole machine, and so may do for its programs what only it can know to be right.
pub fn holds_machine(number: u16) -> bool {
    plan().system.component_number(number).is_some_and(|component| component.special == Special::Machine)
}

/// The number of the component to which the description gives this name of a service.
pub fn owner_of(service: &str) -> Option<u16> {
    plan().system.owner_of(service).map(|owner| owner.number)
}

fn is_boot_component(component: &Component) -> bool {
    matches!(component.name, "sigma0" | "roottask")
}

/// Starts the schedulers, before which nothing else can run.
pub fn start_schedulers() -> Result<(), String> {
    let scheduler = plan().system.components().find(|component| component.special == Special::Scheduler);
    let scheduler = scheduler.ok_or("the description names no scheduler")?;
    schedulers::start(&scheduler, STANDBY, |running| RUNNING.lock().push(running))
}

fn frames_of(component: &Component) -> Result<u64, String> {
    match component.account {
        Account::Frames(frames) => Ok(frames.into()),
        Account::Rest => {
            let left = records::frames_left().ok_or("the nucleus tells nothing of our account")?;
            Ok(left.saturating_sub(RESERVE))
        }
    }
}

/// Frames of the account of a component's vault.
pub fn vault_frames(number: u64) -> u64 {
    let component = plan().system.component_number(number as u16);
    component.map_or(0, |component| component.vault.into())
}

/// A domain with an account of its own and nothing in it.
pub fn make_domain(component: &Component, number: u16) -> Result<Running, String> {
    let text = |error: abi::Error| error.to_string();
    let account = op::account_new_with(Entry::OWN, frames_of(component)?, component.threads.into()).map_err(text)?;
    let flags = if component.fpu { abi::op::DOMAIN_FPU } else { 0 }
        | if component.trusted { abi::op::DOMAIN_TRUSTED } else { 0 };
    let domain = match op::domain_new(account, component.table_order.into(), flags, component.name) {
        Ok(domain) => domain,
        Err(error) => {
            services::remove(account);
            return Err(error.to_string());
        }
    };
    let instance = records::newest_child().unwrap_or(0);
    let mut running =
        Running { number, instance, domain, account, thread: None, ticket: 0, deaths: Vec::new(), restarts: 0 };
    let outcome = memory::manage_account(account).and_then(|ticket| {
        running.ticket = ticket;
        op::domain_set_max_priority(domain, component.max_priority.into()).map_err(text)?;
        op::domain_set_max_slice(domain, u64::from(component.max_slice) * 1_000).map_err(text)?;
        if let Some(cpus) = component.cpus {
            schedulers::restrict(domain, cpus)?;
        }
        op::domain_set_death_semaphore(domain, plan().events).map_err(text)?;
        op::entry_copy(Entry::OWN, account, domain, Entry(layout::ACCOUNT), ALL).map_err(text)?;
        op::entry_copy(Entry::OWN, domain, domain, Entry(layout::DOMAIN), ALL).map_err(text)?;
        Ok(())
    });
    finish(&mut running, outcome).map(|()| running)
}

/// Passes an outcome on; after an error the domain goes.
pub fn finish(running: &mut Running, outcome: Result<(), String>) -> Result<(), String> {
    if outcome.is_err() {
        remove(running);
    }
    outcome
}

fn remove(running: &mut Running) {
    let _ = op::domain_kill(running.domain, 0);
    if running.ticket != 0 {
        memory::forget(running.ticket);
        running.ticket = 0;
    }
    if let Some(thread) = running.thread.take() {
        services::remove(thread);
    }
    services::remove(running.domain);
    services::remove(running.account);
}

/// Starts everything else, in the order of the description.
pub fn start_all() -> Result<(), String> {
    for component in plan().system.components() {
        if is_boot_component(&component) || component.special == Special::Scheduler {
            continue;
        }
        wait_for_portals(&component)?;
        start(&component).map_err(|error| format!("{}: {error}{}", component.name, shortage()))?;
        services::register_new();
    }
    Ok(())
}

/// For the reason why something does not start: what is missing, if the accounts do not fit the machine.
fn shortage() -> String {
    let cpus = records::cpus().0.count_ones();
    let frames =
        |component: Component| u64::from(component.vault) + component.account.frames_of_all(component.special, cpus);
    let needed: u64 = plan().system.components().map(frames).sum();
    let there = [records::first(), records::own()].map(|number| records::limit(number).unwrap_or(0)).iter().sum();
    match needed.checked_sub(there) {
        None | Some(0) => String::new(),
        Some(missing) => {
            format!("; for {cpus} CPU(s) the accounts of the description need {} KiB of memory more", 4 * missing)
        }
    }
}

/// Waits until whatever the component has portals to is published.
fn wait_for_portals(component: &Component) -> Result<(), String> {
    let (deadline, mut news) = (clock() + AT_START, clock() + PATIENCE);
    for portal in component.portals() {
        while !services::is_published(portal.component, portal.service) {
            if op::p(plan().events, news).is_err() {
                if news >= deadline {
                    return Err(format!("{}: nobody published {}", component.name, portal.service));
                }
                runtime::log!("{} waits until {} is published", component.name, portal.service);
                news += PATIENCE;
            }
            services::register_new();
            tend();
        }
    }
    Ok(())
}

fn start(component: &Component) -> Result<(), String> {
    let mut running = make_domain(component, component.number)?;
    let outcome = equip(component, &running).and_then(|()| {
        let entries = (TABLE_ENTRIES << component.table_order) as u32;
        let schedule = Schedule { priority: component.priority, slice: 0 };
        load::startup(component, running.ticket, running.domain, entries, schedule.word())?;
        let program = load::segments(component, running.ticket, running.domain)?;
        memory::manage_domain(running.ticket, program.end(), running.domain)?;
        // The main stack's first page is touched at once.
        load::stack(running.ticket, running.domain)?;
        Ok((program.entry, schedule))
    });
    let (entry, schedule) = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return finish(&mut running, Err(error)),
    };
    // Its first thread may precede us: what it asks for must find it among those that run.
    let domain = running.domain;
    RUNNING.lock().push(running);
    runtime::log!("started {}", component.name);
    // SAFETY: entry, stack and startup page are those of the new domain.
    let thread = unsafe { op::thread_new(domain, entry, MAIN_STACK_TOP, STARTUP_PAGE, schedule) };
    let mut all = RUNNING.lock();
    let Some(place) = all.iter().position(|running| running.domain == domain) else { return Ok(()) };
    match thread {
        Ok(thread) => all[place].thread = Some(thread),
        Err(error) => {
            let mut running = all.swap_remove(place);
            drop(all);
            return finish(&mut running, Err(error.to_string()));
        }
    }
    Ok(())
}

/// Fills the well-known indices and the portals of the description.
fn equip(component: &Component, running: &Running) -> Result<(), String> {
    let text = |error: abi::Error| error.to_string();
    let (domain, badge) = (running.domain, u64::from(running.number) + 1);
    let asks = parent::badge(running.number, running.instance);
    op::portal_new(domain, parent_service(), asks, Entry::PARENT, 0).map_err(text)?;
    services::connect_names(domain);
    if component.special == Special::Machine {
        op::entry_copy(Entry::OWN, Entry::SPECIAL, domain, Entry::SPECIAL, ALL).map_err(text)?;
    }
    if component.special == Special::Inspect {
        op::entry_copy(Entry::OWN, Entry::SPECIAL, domain, Entry::SPECIAL, rights::READ).map_err(text)?;
    }
    if component.special == Special::Trial {
        let machine = ALL & !rights::CONTROL;
        op::entry_copy(Entry::OWN, Entry::SPECIAL, domain, Entry::SPECIAL, machine).map_err(text)?;
        let to = Entry(system::MEMORY_INDEX);
        op::entry_copy(memory::SIGMA0_DOMAIN, Entry::SPECIAL, domain, to, rights::USE).map_err(text)?;
    }
    let Devices { interrupt, ports, registers, .. } = devices(component)?;
    if let Some(registers) = registers {
        // SAFETY: nothing here refers to what stands in that page.
        unsafe { op::map(domain, registers, DEVICE, 0, MAP_READ | MAP_WRITE) }.map_err(text)?;
    }
    for (entry, index) in [(interrupt, Entry::INTERRUPT), (ports, Entry::IO_PORTS)] {
        if let Some(entry) = entry {
            op::entry_copy(Entry::OWN, entry, domain, index, ALL).map_err(text)?;
        }
    }
    for portal in component.portals() {
        services::connect(domain, portal.index.into(), portal.component, portal.service, badge);
    }
    if component.name == "ramfs" {
        memory::show_archive(domain)?;
    }
    Ok(())
}

/// The component's interrupt line, and its ports or registers: made once, kept over restarts.
fn devices(component: &Component) -> Result<Devices, String> {
    let mut all = DEVICES.lock();
    if let Some(devices) = all.iter().find(|devices| devices.number == component.number) {
        return Ok(*devices);
    }
    let text = |error: abi::Error| error.to_string();
    let mut devices = Devices { number: component.number, ..Devices::default() };
    let mut line = component.interrupt.map(u64::from);
    match component.tree.and_then(tree::find) {
        Some(device) => {
            let device = device?;
            devices.registers = Some(tree::map(&device, component.number)?);
            line = device.line;
        }
        None => {
            if let Some((first, count)) = component.io_ports {
                devices.ports = Some(op::machine_ports(Entry::SPECIAL, first, count).map_err(text)?);
            }
        }
    }
    if let Some(line) = line {
        devices.interrupt = Some(op::machine_interrupt(Entry::SPECIAL, line).map_err(text)?);
    }
    all.push(devices);
    Ok(devices)
}

/// Ends the component whose domain has this number, for a component that asks. What the description does
/// not start again is ended only by force. If the machine stops for it, it does before this answers: who asked could
/// otherwise stop it first, for another reason.
pub fn kill(asks: u16, domain: u64, force: Force) -> Result<(), ParentError> {
    let find = |number: u16| {
        let mut all = plan().system.components();
        all.find(|component| component.number == number || number == STANDBY && component.special == Special::Scheduler)
    };
    // Who holds the machine could stop it as well.
    if !holds_machine(asks) {
        return Err(ParentError::NotAllowed);
    }
    let boot = [(records::first(), memory::SIGMA0_DOMAIN), (records::own(), Entry::DOMAIN)];
    if let Some((_, entry)) = boot.into_iter().find(|(number, _)| *number == domain) {
        if force == Force::Gentle {
            return Err(ParentError::Essential);
        }
        if entry == Entry::DOMAIN {
            fail("roottask was killed");
        }
        op::domain_kill(entry, 0).map_err(|_| ParentError::NoSuchComponent)?;
        fail(SIGMA0_DIED);
    }
    let running = RUNNING.lock();
    let victim = running.iter().find(|running| running.instance == domain).ok_or(ParentError::NoSuchComponent)?;
    let component = find(victim.number);
    match component.as_ref().map(|component| component.restart) {
        Some(Restart::Always) => {}
        Some(Restart::Never) if force == Force::Gentle => return Err(ParentError::StaysDead),
        _ if force == Force::Gentle => return Err(ParentError::Essential),
        _ => {}
    }
    op::domain_kill(victim.domain, 0).map_err(|_| ParentError::NoSuchComponent)?;
    match component.filter(|component| component.restart == Restart::Reboot) {
        Some(component) => fail(&format!("{} died", component.name)),
        None => Ok(()),
    }
}

/// Looks for components that died, and restarts them by their policy.
pub fn tend() {
    if op::entry_info(memory::SIGMA0_DOMAIN, Entry::PARENT).is_err() {
        fail(SIGMA0_DIED);
    }
    loop {
        let dead = {
            let mut running = RUNNING.lock();
            let place = running.iter().position(|running| op::entry_info(running.domain, Entry::PARENT).is_err());
            place.map(|place| running.swap_remove(place))
        };
        match dead {
            Some(dead) => bury(dead),
            None => return,
        }
    }
}

fn bury(mut dead: Running) {
    let is_standby = dead.number == STANDBY;
    let mut components = plan().system.components();
    let component = components
        .find(|component| component.number == dead.number || is_standby && component.special == Special::Scheduler);
    let Some(component) = component else { return };
    services::withdraw(dead.number);
    // Calls that it was in go on without it: no new one of its begins from now on, and this waits for
    // the one that may be changing the vault.
    vault::settle();
    remove(&mut dead);
    let now = clock();
    dead.deaths.retain(|time| now - time < MINUTE);
    dead.deaths.push(now);
    let too_often = dead.deaths.len() > component.restarts_per_minute.into();
    match component.restart {
        Restart::Never => runtime::log!("{} died and stays dead", component.name),
        Restart::Always if !too_often => restart(&component, dead),
        Restart::Always => fail(&format!("{} died {} times within a minute", component.name, dead.deaths.len())),
        Restart::Reboot => fail(&format!("{} died", component.name)),
    }
}

fn restart(component: &Component, dead: Running) {
    let number = dead.number;
    runtime::log!("restarting {}", component.name);
    let deadline = clock() + RESTART;
    loop {
        let outcome = match component.special {
            // The standby took the seat when the scheduler died: what is new stands by, as a rule.
            Special::Scheduler => {
                schedulers::seat(component, number, schedulers::vacancy()).map(|running| RUNNING.lock().push(running))
            }
            _ => start(component),
        };
        let Err(error) = outcome else { break };
        if clock() > deadline {
            fail(&format!("{} cannot be restarted: {error}", component.name));
        }
        // What others keep for the dead instance is still charged to its account. They let go when they notice that it
        // is gone, or die themselves.
        let _ = op::p(plan().events, clock() + AGAIN);
        tend();
    }
    // There may be several schedulers of one number: the newest is the one that was started.
    let mut running = RUNNING.lock();
    let same = running.iter_mut().filter(|running| running.number == number);
    if let Some(running) = same.max_by_key(|running| running.instance) {
        running.deaths = dead.deaths;
        running.restarts = dead.restarts + 1;
    }
    drop(running);
    reconnect(component.number);
}

/// Waits until a restarted component published what it did, and makes the portals of others again.
fn reconnect(number: u16) {
    for holder in plan().system.components() {
        for portal in holder.portals().filter(|portal| portal.component == number) {
            let deadline = clock() + PATIENCE;
            while !services::is_published(number, portal.service) && op::p(plan().events, deadline).is_ok() {}
            if let Some(domain) = domain_of(holder.number) {
                let badge = u64::from(holder.number) + 1;
                services::connect(domain, portal.index.into(), number, portal.service, badge);
            }
        }
    }
    services::register_new();
    wake();
}
