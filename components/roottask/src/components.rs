//! Starting components, watching them, and restarting them by the policy of the description.
//!
//! A component to be started waits in a list until its time has come and what it has portals to is published. The main loop
//! starts one after the other and never waits for any: calls are served, and others are watched, meanwhile.

use crate::badge::{self, parent_service};
use crate::domains::{finish, make_domain, remove};
use crate::failure::fail;
use crate::plan::{holds_machine, plan};
use crate::running::{Life, RUNNING, Running, domain_of};
use crate::{cpus, load, memory, records, room, schedulers, services, vault};
use abi::NEVER;
use abi::info::status::NO_ROOM;
use abi::layout::{DEVICE, MAIN_STACK_TOP, STARTUP_PAGE};
use abi::rights::{self, ALL, MAP_READ, MAP_WRITE};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use protocols::parent::{Force, ParentError, State};
use runtime::op::{self, Schedule, clock};
use runtime::program::STATUS_OF_NO_DEVICE;
use runtime::sync::Mutex;
use runtime::{Entry, fdt};
use system::restarts::FIRST_DELAY;
use system::{Component, Restart, Special};

/// Nanoseconds for which a component at the start of the system delays those after it at most, while the services that it has
/// portals to are not published.
const PATIENCE: u64 = 5_000_000_000;
/// Number of the record of the standby scheduler.
const STANDBY: u16 = u16::MAX;

/// A component that is to be started.
struct Pending {
    number: u16,
    life: Life,
    /// Not before.
    due: u64,
    /// Whether it ran before.
    ran: bool,
    /// When it first could have been started, but for a service that it has a portal to; 0 = not yet.
    waits_since: u64,
    /// How often it could not be started.
    failures: u32,
    /// Why it could not be started the last time.
    cause: String,
}

/// So many failed starts in a row are repeated after [`FIRST_DELAY`] each, which takes three seconds: a server that holds frames of
/// the dead instance has found its client gone by then, and the new instance starts as soon as it lets go.
const SHORT_WAITS: u32 = (3_000_000_000 / FIRST_DELAY) as u32;

/// Why the machine stops then.
const SIGMA0_DIED: &str = "sigma0 died";

/// In the order in which they are tried. A component in neither list stays dead.
static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());
/// The component that is being started: taken from the second list, and not yet in the first.
static STARTING: AtomicUsize = AtomicUsize::new(0);
/// The entries for devices that a component has.
#[derive(Clone, Copy, Default)]
struct Devices {
    /// Number of the component.
    number: u16,
    interrupt: Option<Entry>,
    ports: Option<Entry>,
    /// Where we have its page of registers.
    registers: Option<u64>,
}

static DEVICES: Mutex<Vec<Devices>> = Mutex::new(Vec::new());

/// The state of the component with this name.
pub fn state(name: &str) -> Result<State, ParentError> {
    let component = plan().system.component(name).ok_or(ParentError::NoSuchComponent)?;
    if is_boot_component(&component) || domain_of(component.number).is_some() {
        return Ok(State::Runs);
    }
    let waits = PENDING.lock().iter().any(|pending| pending.number == component.number);
    let starts = STARTING.load(Ordering::Relaxed) == component.number.into();
    Ok(if waits || starts { State::Waits } else { State::Dead })
}

fn is_scheduler(component: &Component) -> bool {
    component.special == Special::Scheduler
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

/// From now on everything else is started, in the order of the description.
pub fn begin() {
    let others = plan().system.components();
    let others = others.filter(|other| !is_boot_component(other) && other.special != Special::Scheduler);
    PENDING.lock().extend(others.inspect(services::await_names).map(|component| Pending {
        number: component.number,
        life: Life::default(),
        due: 0,
        ran: false,
        waits_since: 0,
        failures: 0,
        cause: String::new(),
    }));
}

/// Starts what is due; gives when there is something to do again.
pub fn start_due() -> u64 {
    loop {
        let (next, due) = next_due();
        let Some(mut pending) = due else { return next };
        let Some(component) = component_of(pending.number) else { continue };
        if let Some(cause) = component.cpus.and_then(cpus::impossible) {
            give_up(&component, &cause);
            continue;
        }
        // Of a system that does not fit the machine any part may be missing, for good: reported as soon as possible.
        if !pending.ran
            && services::has_console()
            && let Some(reason) = shortage()
        {
            fail(&reason);
        }
        let mut life = pending.life;
        life.restarts += u64::from(pending.ran);
        let outcome = match component.special {
            // The standby took the seat when the scheduler died: a new one stands by, as a rule.
            Special::Scheduler => {
                schedulers::seat(&component, pending.number, schedulers::vacancy()).map(|mut running| {
                    running.life = Life { started: clock(), ..life };
                    RUNNING.lock().push(running);
                })
            }
            _ => start(&component, life),
        };
        let Err(cause) = outcome else {
            services::register_new();
            continue;
        };
        match component.restart {
            Restart::Reboot | Restart::Never => give_up(&component, &cause),
            // Frames that others keep for a dead instance are still charged to its account, for example. They let go when they
            // notice that it is gone, or die themselves.
            Restart::Always => {
                pending.failures += 1;
                let is_short = pending.failures <= SHORT_WAITS;
                pending.due = clock() + if is_short { FIRST_DELAY } else { pending.life.history.failed() };
                if pending.cause != cause {
                    runtime::log!("{} cannot be started yet: {cause}", component.name);
                    pending.cause = cause;
                }
                PENDING.lock().insert(0, pending);
            }
        }
    }
}

/// Why this machine is too small for the accounts of the description, if it is.
fn shortage() -> Option<String> {
    let missing = -room::balance();
    if missing <= 0 {
        return None;
    }
    let cpus = records::cpus().0.count_ones();
    Some(format!("too little memory: for {cpus} CPU(s) the accounts of the description need {} KiB more", 4 * missing))
}

/// A component stays dead, or the machine stops if nothing works without it.
fn give_up(component: &Component, cause: &str) {
    match component.restart {
        Restart::Reboot => fail(&format!("{}: {cause}", component.name)),
        _ => {
            runtime::log!("{} stays dead: {cause}", component.name);
            services::lose(component);
        }
    }
}

/// Takes what can be started now, if there is something; when to look again.
fn next_due() -> (u64, Option<Pending>) {
    let now = clock();
    let mut next = NEVER;
    let mut all = PENDING.lock();
    for place in 0..all.len() {
        let pending = &mut all[place];
        if pending.due > now {
            next = next.min(pending.due);
            continue;
        }
        let Some((provider, service)) = component_of(pending.number).and_then(|component| missing(&component)) else {
            STARTING.store(pending.number.into(), Ordering::Relaxed);
            return (now, Some(all.remove(place)));
        };
        if pending.waits_since == 0 {
            pending.waits_since = now.max(1);
        }
        // Then every component that can do without starts.
        let end = pending.waits_since + PATIENCE;
        if now < end {
            next = next.min(end);
            if !pending.ran && domain_of(provider).is_some() {
                break;
            }
        } else if pending.cause.is_empty() {
            pending.cause = format!("{service} is not published");
            let name = component_of(pending.number).map_or("", |component| component.name);
            runtime::log!("{name} waits until {service} is published");
        }
    }
    STARTING.store(0, Ordering::Relaxed);
    (next, None)
}

/// A service that the component has a portal to, waits for, and that is not published; and whose it is.
fn missing(component: &Component<'static>) -> Option<(u16, &'static str)> {
    let mut portals = component.portals().filter(|_| component.waits).map(|portal| (portal.component, portal.service));
    portals.find(|(provider, service)| !services::is_published(*provider, service))
}

/// The component that runs in the domain with this number.
pub fn in_domain(number: u64) -> Option<Component<'static>> {
    let is_in = |domain| op::domain_number(domain) == Ok(number);
    match () {
        _ if is_in(memory::SIGMA0_DOMAIN) => plan().system.component("sigma0"),
        _ if is_in(Entry::DOMAIN) => plan().system.component("roottask"),
        _ => {
            let running = RUNNING.lock();
            component_of(running.iter().find(|running| running.instance == number)?.number)
        }
    }
}

/// The component that a number means.
fn component_of(number: u16) -> Option<Component<'static>> {
    let is_it = |component: &Component| match number {
        STANDBY => component.special == Special::Scheduler,
        number => component.number == number,
    };
    plan().system.components().find(is_it)
}

fn start(component: &Component<'static>, life: Life) -> Result<(), String> {
    let mut running = make_domain(component, component.number)?;
    let outcome = equip(component, &running).and_then(|()| {
        let schedule = Schedule { priority: component.priority, slice: 0 };
        load::startup(component, running.ticket, running.domain, schedule.word())?;
        let program = load::segments(component, running.ticket, running.domain, u64::MAX)?;
        memory::manage_domain(running.ticket, program.end(), running.domain)?;
        // The main stack's first page is touched at once.
        load::stack(running.ticket, running.domain)?;
        Ok((program.entry, schedule))
    });
    let (entry, schedule) = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return finish(&mut running, Err(error)),
    };
    // Its first thread may precede us: a request of its own must find it among those that run.
    let domain = running.domain;
    running.life = Life { started: clock(), ..life };
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
    let asks = badge::badge(running.number, running.instance);
    op::portal_new(domain, parent_service(), asks, Entry::PARENT, 0).map_err(text)?;
    services::connect_names(domain);
    if component.name == services::NAME_SERVICE {
        // It has shapes made, and can do nothing else with the machine.
        op::entry_copy(Entry::OWN, Entry::SPECIAL, domain, Entry::SPECIAL, rights::USE).map_err(text)?;
    }
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
    if component.archive {
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
    match component.compatible.and_then(fdt::find) {
        Some(device) => {
            let device = device?;
            devices.registers = Some(fdt::map(&device, component.number)?);
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

/// Ends the component whose domain has this number, for a component that asks. A component that the description does
/// not start again is ended only by force. If the machine stops for it, it does before this answers: the asking component could
/// otherwise stop it first, for another reason.
pub fn kill(asks: u16, domain: u64, force: Force) -> Result<(), ParentError> {
    // The holder of the machine entry could stop it as well.
    if !holds_machine(asks) {
        return Err(ParentError::NotHolder);
    }
    let boot = [(records::first(), memory::SIGMA0_DOMAIN), (records::own(), Entry::DOMAIN)];
    if let Some((_, entry)) = boot.into_iter().find(|(number, _)| *number == domain) {
        if force == Force::Gentle {
            return Err(ParentError::Essential);
        }
        if entry == Entry::DOMAIN {
            fail("roottask was killed");
        }
        op::domain_kill(entry, 0).map_err(not_killed)?;
        fail(SIGMA0_DIED);
    }
    let mut running = RUNNING.lock();
    let place = running.iter().position(|one| one.instance == domain).ok_or(ParentError::NoSuchComponent)?;
    let component = component_of(running[place].number);
    match component.as_ref().map(|component| component.restart) {
        _ if force == Force::Forced => {}
        Some(Restart::Always) if component.as_ref().is_some_and(is_scheduler) && !one_stands_by(&running) => {
            return Err(ParentError::NoStandby);
        }
        Some(Restart::Always) => {}
        Some(Restart::Never) => return Err(ParentError::StaysDead),
        _ => return Err(ParentError::Essential),
    }
    let victim = &mut running[place];
    op::domain_kill(victim.domain, 0).map_err(not_killed)?;
    victim.life.is_killed = true;
    match component.filter(|component| component.restart == Restart::Reboot) {
        Some(component) => fail(&format!("{} died", component.name)),
        None => Ok(()),
    }
}

/// Why a domain could not be killed: it is dead already, or for a cause that the log has.
fn not_killed(error: abi::Error) -> ParentError {
    match error {
        abi::Error::PeerDied | abi::Error::Revoked => ParentError::NoSuchComponent,
        error => {
            runtime::log!("a component is not killed: {error}");
            ParentError::Failed
        }
    }
}

/// Whether there are more schedulers than CPUs, of those that live.
fn one_stands_by(running: &[Running]) -> bool {
    let lives = |one: &&Running| op::entry_info(one.domain, Entry::PARENT).is_ok();
    let schedulers = running.iter().filter(|one| component_of(one.number).as_ref().is_some_and(is_scheduler));
    schedulers.filter(lives).count() > cpus::numbers(cpus::cpus()).count()
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
    let Some(component) = component_of(dead.number) else { return };
    let name = component.name;
    let status = records::status(dead.instance);
    if status == Some(NO_ROOM) {
        runtime::log!(
            "{name} needed a page more than its account has: give it a larger `account` in the system description"
        );
    }
    services::withdraw(dead.number);
    // Calls that it was in go on without it: no new one of its begins from now on, and this waits for
    // the one that may be changing the vault.
    vault::drain();
    remove(&mut dead);
    match component.restart {
        Restart::Reboot => fail(&format!("{name} died")),
        Restart::Always if status != Some(STATUS_OF_NO_DEVICE) => {}
        Restart::Always => return give_up(&component, "there is no device for it"),
        Restart::Never => return give_up(&component, "nobody starts it again"),
    }
    let now = clock();
    let mut life = dead.life;
    let did_nothing = !life.has_published && component.services().next().is_some() && !is_scheduler(&component);
    let at_once = if did_nothing { 0 } else { component.restarts_per_minute };
    let delay = if life.is_killed { 0 } else { life.history.died(life.started, now, at_once.into()) };
    match delay {
        0 => runtime::log!("restarting {name}"),
        delay => runtime::log!("restarting {name} in {} ms", delay / 1_000_000),
    }
    life.has_published = false;
    life.is_killed = false;
    // First of all: components that wait for their first start can wait a little longer.
    let (number, due) = (dead.number, now + delay);
    PENDING
        .lock()
        .insert(0, Pending { number, life, due, ran: true, waits_since: 0, failures: 0, cause: String::new() });
}

/// Re-creates the description's portals to this service.
pub fn connect(number: u16, service: &str) {
    for holder in plan().system.components() {
        for portal in holder.portals().filter(|portal| portal.component == number && portal.service == service) {
            if let Some(domain) = domain_of(holder.number) {
                let badge = u64::from(holder.number) + 1;
                services::connect(domain, portal.index.into(), number, portal.service, badge);
            }
        }
    }
}
