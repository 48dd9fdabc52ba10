//! A program that was downloaded, and is hostile: it tries what would hurt others, and says what came of each attempt.

use alloc::string::{String, ToString};
use core::fmt::Display;

use idl::{Delegate, Failure};
use protocols::file::WRITE;
use protocols::net::NetClient;
use protocols::parent::{Force, ParentClient};
use protocols::process::ProcessError;
use runtime::abi::Control;
use runtime::abi::info::{self, Record};
use runtime::abi::rights::ALL as ALL_RIGHTS;
use runtime::connection::{Connection, Direct};
use runtime::entry::Owned;
use runtime::message;
use runtime::server::{self, ServeWord};
use runtime::stream::FILE_SYSTEM;
use runtime::{Entry, log, log_refused, op};
use tool::inspect::PROC;
use tool::println;

use crate::case::{Case, text};

/// The attack.
pub const ALL: &[Case] =
    &[Case::tried("attack", "does all that a hostile program could, and says what it could", attack)];

/// Numbers of domains that it tries to end.
const NUMBERS: u64 = 200;
/// Lines that it writes to the log: more than there is room for.
const LINES: u64 = 1000;

/// A service of ours, which says that it refuses something to its caller: to us.
struct Forger;

impl ServeWord for Forger {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        log_refused!("forged");
        0
    }
}

fn said<T>(outcome: Result<T, impl Display>) -> String {
    outcome.map_or_else(|error| error.to_string(), |_| "done".to_string())
}

fn attack() -> Result<String, String> {
    println!("reads /compartments/diary: {}", said(FILE_SYSTEM.read_directory("/compartments/diary", 0, &mut [0; 64])));
    println!("reads /compartments/diary/today: {}", said(FILE_SYSTEM.open("/compartments/diary/today", 0)));
    println!("changes /bin/cat: {}", said(FILE_SYSTEM.open("/bin/cat", WRITE)));
    println!("lists domains: {}", said(PROC.inspect(info::Domain::WHAT, 0, &mut [0; 512])));
    println!("reads what was refused to others: {}", said(PROC.inspect(info::LOG_REFUSED, 0, &mut [0; 512])));
    println!("ends the others: {}", said(end_others()));
    println!("stops the machine: {}", said(PROC.stop_machine(1)));
    let service = server::word_service::<Forger>().map(Owned::new).map_err(text)?;
    let delegate = Delegate::entry(service.entry().0, server::SERVICE_RIGHTS);
    println!("takes the name of the clock: {}", said(ParentClient(Direct(Entry::PARENT)).publish("time", delegate)));
    let account = Delegate::entry(Entry::ACCOUNT.0, ALL_RIGHTS);
    println!("uses the network: {}", said(NetClient(Connection::named("net")).open(account)));
    for line in 0..LINES {
        log!("{line} lines fill the log, or so I hope");
    }
    println!("writes to the log: {}", said(op::log(0, 0)));
    server::activations(1).map_err(text)?;
    let own = Owned::new(op::portal_new(Entry::OWN, service.entry(), 0, Entry(0), 0).map_err(text)?);
    println!("says that it refused something: {}", said(message::call(own.entry(), [0; 5], Control(0))));
    Ok("that was all".to_string())
}

/// Ends what has one of so many numbers. Gives the refusal if each is refused, and in the same way.
fn end_others() -> Result<(), Failure<ProcessError>> {
    let own = op::domain_number(Entry::DOMAIN).unwrap_or_default();
    (1..NUMBERS).filter(|number| *number != own).try_for_each(|number| match PROC.kill_domain(number, Force::Forced) {
        Err(Failure::Refused(ProcessError::NoSuchDomain)) => Ok(()),
        outcome => outcome,
    })
}
