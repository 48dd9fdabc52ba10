//! Crimes of those who take all there is of what is shared, and never give it back.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use interface::{Delegate, Failure};
use interfaces::sigma0::{Sigma0Client, Sigma0Error};
use runtime::abi::rights;
use runtime::entry::Owned;
use runtime::{Direct, Entry, op};
use sockets::{Endpoint, NetError, Session};

use crate::Crime;

/// All of them. `sockets` needs a system with a network.
pub const ALL: &[Crime] = &[
    Crime::tried("tickets", "tickets of the source of memory that stay behind", tickets),
    Crime::tried("sockets", "connections on an account with too few frames, every number of them", connections),
];

/// More than half of those that there are: twice is once too often, unless they go with who took them.
const TICKETS: usize = 60;

fn tickets() -> Result<String, String> {
    let memory = Sigma0Client(Direct(Entry::SIGMA0));
    for number in 0..TICKETS {
        let account = Owned::new(op::account_new(Entry::OWN, 0).map_err(|error| error.to_string())?);
        let handed = Delegate::entry(account.entry().0, rights::ALL);
        match memory.manage_account(handed) {
            Ok(_) => {}
            Err(Failure::Refused(Sigma0Error::Full)) => return Err(format!("none is left after {number}")),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(format!("took {TICKETS} and kept them"))
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
