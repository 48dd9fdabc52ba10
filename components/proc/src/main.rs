//! Programs: starts them, waits for them, ends them, and says what the nucleus says about the machine.
//!
//! | module | what |
//! |---|---|
//! | [`table`] | the processes; the reaper |
//! | [`child`] | making a domain for a program |
//! | [`mod@file`] | where the program comes from |
//! | [`labels`] | what programs are tainted with, and what callers may do |
//! | [`own`] | what every untainted program may know: about itself |
//! | [`window`] | the unsafe part |
//!
//! Each program is a domain of its own with an account of its own. Its domain, its account and all that was drawn
//! from it are gone when `wait` answers.
//!
//! Our own account is divided at the start: what we need ourselves, a part that is kept for one command of the shell,
//! and the rest, from which all other programs' accounts are filled. So programs that hold everything that they can
//! get stop neither us nor the person who wants to end them.
#![no_std]
#![no_main]

extern crate alloc;

mod child;
mod file;
mod labels;
mod own;
mod table;
mod window;

use abi::info;
use alloc::vec::Vec;
use idl::{Delegate, Delegated, Failure, Reply, Request};
use loader::startup::MAX_COMPARTMENTS;
use protocols::names::is_name;
use protocols::parent::{ParentClient, ParentError, ParentServer, State};
use protocols::process::{ChildServer, Force, KEPT, OWN, ProcessClient, ProcessError, ProcessServer};
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::server::{self, Serve, Service};
use runtime::{log_refused, op};

use crate::child::{Child, Limits};

runtime::entry!(main);

/// Activations that serve beside those that may wait.
const ACTIVATIONS: usize = 4;
/// Bytes of heap kept for calls: names of the programs that they start, and those that these publish. The table grows only if
/// it can.
const KEPT_BYTES: usize = 4096;
/// Pages of stack that a call takes: to start a program, messages are put together beside the launch.
const STACK_PAGES: u64 = runtime::arch::DEEP_STACK_PAGES;

static PROCESSES: Service = Service::new();
static CHILDREN: Service = Service::new();

struct Processes;

impl Serve for Processes {
    fn serve(request: &mut Request<'_>) -> Reply {
        child::begin_call();
        Processes.dispatch(request)
    }

    fn needs_memory(request: &Request<'_>) -> bool {
        request.method() == ProcessClient::SPAWN
    }
}

/// Refuses callers that may not rule the machine. Components with a portal of the system description may: its badge is not 0. So may
/// callers that have the compartment `admin`. Everybody sees what they do, so a tainted caller is refused, too.
fn allow(badge: u64) -> Result<(), ProcessError> {
    judge(badge).inspect_err(|error| {
        if *error == ProcessError::Flow {
            log_refused!("what others are and do");
        }
    })
}

fn judge(badge: u64) -> Result<(), ProcessError> {
    // One that has a compartment at level 0 observes nothing, and is not tainted.
    if !labels::CALLERS.caller_may(0).change {
        return Err(ProcessError::Flow);
    }
    if badge != 0 || labels::caller_is_admin() { Ok(()) } else { Err(ProcessError::NotAllowed) }
}

impl ProcessServer for Processes {
    fn spawn(&self, badge: u64, path: &str, launch: &[u8], frames: u64, cpus: u64) -> Result<Delegate, ProcessError> {
        if frames == KEPT {
            allow(badge)?;
        }
        table::spawn(path, launch, Limits { frames: child::frames(path, frames)?, cpus, labels: None })
            .map(|number| CHILDREN.mint(number))
            .inspect_err(|error| {
                if *error == ProcessError::Flow {
                    log_refused!("starts {path}");
                }
            })
    }

    fn list(&self, badge: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError> {
        allow(badge)?;
        Ok(table::list(position, into))
    }

    fn inspect(&self, badge: u64, what: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), ProcessError> {
        let is_own = what & OWN != 0;
        let what = what & !OWN;
        let size = match what {
            info::DOMAIN => size_of::<info::Domain>(),
            info::THREAD => size_of::<info::Thread>(),
            info::FRAMES => size_of::<info::Frames>(),
            info::COUNTERS => size_of::<info::Counters>(),
            info::PORTAL => size_of::<info::Portal>(),
            info::CPU => size_of::<info::Cpu>(),
            info::SHAPE => size_of::<info::Shape>(),
            info::CODE => size_of::<info::Code>(),
            part if info::is_log(part) => into.len(),
            _ => return Err(ProcessError::NoSuchList),
        };
        if is_own {
            return own::records(what, position, into.get_mut(..size).ok_or(ProcessError::NoRoom)?);
        }
        // Totals of the machine are for everybody, without counts that tainted programs change. Lists say that others exist.
        let is_total = matches!(what, info::FRAMES | info::COUNTERS | info::SHAPE | info::CODE);
        let list = if is_total && judge(badge).is_err() {
            what | info::UNTAINTED
        } else {
            allow(badge)?;
            what
        };
        let reported = op::info(Entry::SPECIAL, list, position, |bytes, next| {
            let count = bytes.len().min(size);
            if count > into.len() {
                return Err(ProcessError::NoRoom);
            }
            into[..count].copy_from_slice(&bytes[..count]);
            // A buffer shorter than the log's answer: the rest is asked for again.
            let next = if info::is_log(what) { next - (bytes.len() - count) as u64 } else { next };
            Ok((count, next))
        });
        match reported {
            Ok(result) => result,
            Err(abi::Error::AtEnd) => Ok((0, 0)),
            Err(error) => Err(labels::failed("a list", error)),
        }
    }

    fn stop_machine(&self, badge: u64, status: u64) -> Result<(), ProcessError> {
        allow(badge)?;
        op::machine_stop(Entry::SPECIAL, status & 0x7f).map_err(|error| labels::failed("the machine", error))
    }

    fn kill_domain(&self, badge: u64, number: u64, force: Force) -> Result<(), ProcessError> {
        allow(badge)?;
        if table::kill_domain(number)? {
            return Ok(());
        }
        ParentClient(Direct(Entry::PARENT)).kill(number, force).map_err(|error| match error {
            Failure::Refused(ParentError::Essential) => ProcessError::Essential,
            Failure::Refused(ParentError::StaysDead) => ProcessError::StaysDead,
            Failure::Refused(ParentError::NoStandby) => ProcessError::NoStandby,
            Failure::Refused(ParentError::NoSuchComponent) => ProcessError::NoSuchDomain,
            error => labels::failed("roottask", error),
        })
    }

    fn compartments(&self, badge: u64, number: u64, into: &mut [u8]) -> Result<usize, ProcessError> {
        allow(badge)?;
        let compartments = match table::compartments(number) {
            Err(ProcessError::NoSuchDomain) => of_component(number)?,
            other => other?,
        };
        let places = into.as_chunks_mut::<8>().0.iter_mut();
        let written = places.zip(&compartments).map(|(place, entry)| *place = entry.to_le_bytes()).count();
        Ok(written * size_of::<u64>())
    }
}

/// Programs, each for its loader: the badge is its number.
struct Children;

impl Serve for Children {
    fn serve(request: &mut Request<'_>) -> Reply {
        child::begin_call();
        Children.dispatch(request)
    }

    fn needs_memory(_: &Request<'_>) -> bool {
        false
    }
}

impl ChildServer for Children {
    fn domain(&self, badge: u64) -> Result<Delegate, ProcessError> {
        table::judge(badge)?;
        table::prepare(badge, |child| Ok(child.domain.give()))
    }

    fn start(&self, badge: u64) -> Result<(), ProcessError> {
        table::judge(badge)?;
        table::prepare(badge, Child::start)
    }

    fn wait(&self, badge: u64) -> Result<u64, ProcessError> {
        table::wait(badge)
    }

    fn ended(&self, badge: u64) -> Result<u64, ProcessError> {
        table::judge(badge)?;
        table::ended(badge)
    }

    fn kill(&self, badge: u64) -> Result<(), ProcessError> {
        table::judge(badge)?;
        table::kill(badge)
    }

    fn notify(&self, badge: u64, semaphore: Delegated) -> Result<(), ProcessError> {
        let semaphore = Owned::new(semaphore.into());
        table::judge(badge)?;
        // We may raise every semaphore, a tainted caller may not.
        if !labels::caller_is_untainted() {
            log_refused!("notice of an end");
            return Err(ProcessError::Flow);
        }
        table::notify(badge, semaphore)
    }

    fn wait_or_end(&self, badge: u64) -> Result<u64, ProcessError> {
        table::wait_or_end(badge)
    }
}

/// The compartments of the component whose domain has this number.
fn of_component(number: u64) -> Result<Vec<u64>, ProcessError> {
    let mut bytes = [0; MAX_COMPARTMENTS * size_of::<u64>()];
    let reported = ParentClient(Direct(Entry::PARENT)).compartments_of(number, &mut bytes);
    let reported = reported.map_err(|error| match error {
        Failure::Refused(ParentError::NoSuchComponent) => ProcessError::NoSuchDomain,
        error => labels::failed("roottask", error),
    })?;
    let reported = reported.min(bytes.len());
    Ok(bytes[..reported].as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

struct Parent;

impl Serve for Parent {
    fn serve(request: &mut Request<'_>) -> Reply {
        child::begin_call();
        Parent.dispatch(request)
    }

    fn needs_memory(request: &Request<'_>) -> bool {
        request.method() == ParentClient::PUBLISH
    }
}

impl ParentServer for Parent {
    fn publish(&self, badge: u64, name: &str, service: Delegated) -> Result<(), ParentError> {
        let service = Owned::new(service.into());
        let delegate = Delegate::entry(service.entry().0, abi::rights::ALL);
        // Everybody sees names.
        if !labels::caller_is_untainted() {
            log_refused!("the name {name}");
            return Err(ParentError::Flow);
        }
        // Our parent refuses such a name, too; until then it would be kept here.
        if !is_name(name) {
            return Err(ParentError::BadName);
        }
        table::reserve_name(badge, name)?;
        // Our parent registers it, and again when the name service is restarted. The entries of others are derived
        // from ours.
        let outcome = ParentClient(Direct(Entry::PARENT)).publish_for_program(name, delegate).map_err(refused);
        table::keep(badge, name, outcome.is_ok().then_some(service));
        outcome
    }

    fn publish_for_program(&self, _badge: u64, _name: &str, service: Delegated) -> Result<(), ParentError> {
        // Programs start no programs of their own: we do, for them.
        drop(Owned::new(service.into()));
        Err(ParentError::NotForPrograms)
    }

    fn equip(&self, _badge: u64, domain: Delegated) -> Result<(), ParentError> {
        // Nobody counts the domains that programs make.
        drop(Owned::new(domain.into()));
        Err(ParentError::NotForPrograms)
    }

    fn vault(&self, _badge: u64) -> Result<Delegate, ParentError> {
        Err(ParentError::NoVault)
    }

    fn kill(&self, _badge: u64, _domain: u64, _force: Force) -> Result<(), ParentError> {
        // Programs have the interface `Process` for this.
        Err(ParentError::NotForPrograms)
    }

    fn programs(&self, _badge: u64, _position: u64, _into: &mut [u8]) -> Result<(usize, u64), ParentError> {
        Err(ParentError::NotForPrograms)
    }

    fn compartments(&self, _badge: u64, _position: u64, _into: &mut [u8]) -> Result<(usize, u64), ParentError> {
        Err(ParentError::NotTrusted)
    }

    fn compartments_of(&self, _badge: u64, _domain: u64, _into: &mut [u8]) -> Result<usize, ParentError> {
        Err(ParentError::NotTrusted)
    }

    fn restarts(&self, _badge: u64, after: u64) -> Result<(u64, u64), ParentError> {
        // Programs that we start are not restarted by anybody: only our parent has something to report.
        ParentClient(Direct(Entry::PARENT)).restarts(after).map_err(refused)
    }

    fn state(&self, _badge: u64, component: &str) -> Result<State, ParentError> {
        ParentClient(Direct(Entry::PARENT)).state(component).map_err(refused)
    }
}

/// The parent's refusal, as our own.
fn refused(error: Failure<ParentError>) -> ParentError {
    match error {
        Failure::Refused(error) => error,
        error => {
            runtime::log!("roottask: {error}");
            ParentError::Failed
        }
    }
}

fn main() -> u8 {
    match start() {
        Ok(()) => {
            let error = table::reap();
            runtime::log!("cannot wait for deaths: {error}");
            1
        }
        Err(error) => {
            runtime::log!("cannot start: {error}");
            1
        }
    }
}

fn start() -> Result<(), Failure<ParentError>> {
    child::death();
    let services = || {
        child::PARENT.make::<Parent>()?;
        CHILDREN.make::<Children>()?;
        PROCESSES.make::<Processes>()
    };
    services().map_err(Failure::Transport)?;
    server::prepared_activations(table::set_most_waits() + ACTIVATIONS, STACK_PAGES).map_err(Failure::Transport)?;
    child::divide_account().map_err(Failure::Transport)?;
    child::read_accounts()?;
    labels::find_admin()?;
    server::keep_memory(KEPT_BYTES);
    server::publish_service("proc", PROCESSES.entry())
}
