//! Crimes of those who take all there is of what is shared, and never give it back.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use interface::{Delegate, Failure};
use interfaces::file::{FileClient, FileError, WRITE};
use interfaces::process::{Force, KEPT, ProcessError};
use interfaces::sigma0::{Sigma0Client, Sigma0Error};
use runtime::abi::rights;
use runtime::entry::Owned;
use runtime::stream::FILE_SYSTEM;
use runtime::{Direct, Entry, op};
use sockets::{Endpoint, NetError, Session};

use tool::inspect::{self, PROC};

use crate::{Crime, launch};

/// All of them. `sockets` needs a system with a network.
pub const ALL: &[Crime] = &[
    Crime::tried("tickets", "more tickets of the source of memory than a program may have", tickets),
    Crime::tried("all-tickets", "the same by several programs, while components die", all_tickets),
    Crime::tried("session", "all room for files, and all memory and places for programs", session),
    Crime::tried("kept", "the part kept for the shell, asked for by a program", kept),
    Crime::tried("sockets", "connections on an account with too few frames, every number of them", connections),
];

/// Tickets that a program may have.
const TICKETS: usize = 8;

/// Takes tickets until they are refused; gives how many those were.
fn take() -> Result<usize, String> {
    let memory = Sigma0Client(Direct(Entry::SIGMA0));
    let account = Owned::new(op::account_new(Entry::OWN, 0).map_err(|error| error.to_string())?);
    let mut taken = 0;
    loop {
        match memory.manage_account(Delegate::entry(account.entry().0, rights::ALL)) {
            Ok(_) => taken += 1,
            Err(Failure::Refused(Sigma0Error::Full)) => return Ok(taken),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn tickets() -> Result<String, String> {
    match (take()?, take()?) {
        (TICKETS, 0) => {
            Ok(format!("refused after {TICKETS}, which stay: {}", interface::Code::text(Sigma0Error::Full)))
        }
        other => Err(format!("{other:?} of {TICKETS}")),
    }
}

/// What is started so: takes tickets, and waits.
pub fn take_and_wait() -> u8 {
    let _ = take();
    loop {
        let _ = runtime::thread::sleep(1_000_000_000);
    }
}

/// All tickets that there are for what programs make are taken, by several of them. Meanwhile schedulers and another
/// component die, and programs are started.
fn all_tickets() -> Result<String, String> {
    const PROGRAMS: usize = 4;
    const PAUSE: u64 = 50_000_000;
    let pause = || {
        let _ = runtime::thread::sleep(PAUSE);
    };
    let made = (0..PROGRAMS).map(|_| launch::Process::small("greedy", &["--tickets"]));
    let _greedy = made.collect::<Result<Vec<_>, _>>()?;
    pause();
    if take()? != 0 {
        return Err("they did not take all".to_string());
    }
    for round in 0..10 {
        let domains = inspect::domains().map_err(|error| error.to_string())?;
        for (name, domain) in domains.iter().filter(|(name, _)| name == "sched" || name == "randomd" && round == 0) {
            match PROC.kill_domain(domain.number, Force::Gentle) {
                Ok(()) | Err(Failure::Refused(ProcessError::NoSuchDomain)) => pause(),
                Err(error) => return Err(format!("{name}: {error}")),
            }
        }
        launch::Process::small("started", &["tickets"])?.wait()?;
    }
    let domains = inspect::domains().map_err(|error| error.to_string())?;
    let count = |wanted: &str| domains.iter().filter(|(name, domain)| name == wanted && domain.state == 0).count();
    if count("sched") < 2 || count("randomd") != 1 || count("greedy") != PROGRAMS {
        return Err("somebody did not come back".to_string());
    }
    Ok("none is left for programs; schedulers and a component came back, programs started".to_string())
}

/// Frames that a connection needs at most.
const ENOUGH: u64 = 100;

fn connections() -> Result<String, String> {
    let to = Endpoint::new(Ipv4Addr::LOCALHOST.into(), 80);
    let mut refused = 0;
    for frames in 0..ENOUGH {
        let account = Owned::new(op::account_new(Entry::OWN, frames).map_err(|error| error.to_string())?);
        let outcome = Session::paid_by(account.entry()).and_then(|session| session.connect(0, to).map(drop));
        match outcome {
            Err(Failure::Refused(NetError::NoMemory)) => refused = frames,
            Err(error) => return Err(format!("with {frames} frames: {error}")),
            Ok(()) => return many(to, refused),
        }
    }
    Err(format!("{ENOUGH} frames are not enough"))
}

/// As many as one account pays for; then none is left of any.
fn many(to: Endpoint, refused: u64) -> Result<String, String> {
    let account = Owned::new(op::account_new(Entry::OWN, ENOUGH).map_err(|error| error.to_string())?);
    let session = Session::paid_by(account.entry()).map_err(|error| error.to_string())?;
    let mut streams = Vec::new();
    let cause = loop {
        match session.connect(0, to) {
            Ok(stream) => streams.push(stream),
            Err(cause) => break cause,
        }
    };
    if !matches!(cause, Failure::Refused(NetError::NoMemory)) || streams.len() < 5 {
        return Err(format!("{} connections with {ENOUGH} frames: {cause}", streams.len()));
    }
    Ok(format!("refused with 0 to {refused} frames, and after {} connections with {ENOUGH}: {cause}", streams.len()))
}

/// While this file is there, those that hold memory do.
const HELD: &str = "/tmp/held";
/// This one takes all the room for files.
const FULL: &str = "/tmp/full";
/// Frames with which they are started: as many as usual, then what is left.
const SIZES: [u64; 4] = [0, 256, 96, 48];

/// Takes all room for files and then starts programs until none can be started any more. They live until [`HELD`] is
/// removed.
fn session() -> Result<String, String> {
    let say = |error: Failure<FileError>| error.to_string();
    drop(Owned::new(FILE_SYSTEM.create(HELD, WRITE).map_err(say)?.into()));
    let file = Owned::new(FILE_SYSTEM.create(FULL, WRITE).map_err(say)?.into());
    let file = FileClient(Direct(file.entry()));
    let mut offset = 0;
    let full = loop {
        match file.write(offset, &[1; 2048]) {
            Ok(count) => offset += count as u64,
            Err(error) => break error,
        }
    };
    let (mut count, mut refusals) = (0, Vec::new());
    for frames in SIZES {
        let refusal = loop {
            match launch::holder(&format!("held-{count}"), frames) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        refusals.push(refusal.to_string());
    }
    refusals.dedup();
    tool::println!("session: files: {full}; {count} programs, then: {}", refusals.join(", "));
    while FILE_SYSTEM.stat(HELD).is_ok() {
        // What others give back is ours, too.
        for frames in SIZES {
            let _ = launch::holder("held", frames);
        }
        let _ = runtime::thread::sleep(20_000_000);
    }
    Ok("let go".to_string())
}

/// What is started so: holds what it has.
pub fn hold() -> u8 {
    while FILE_SYSTEM.stat(HELD).is_ok() {
        let _ = runtime::thread::sleep(20_000_000);
    }
    0
}

fn kept() -> Result<String, String> {
    match launch::holder("kept", KEPT) {
        Err(error @ Failure::Refused(ProcessError::NotAllowed)) => Ok(format!("refused: {error}")),
        other => Err(format!("{other:?}")),
    }
}
