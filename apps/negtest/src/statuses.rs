//! Negative tests of programs that ask for the state of the system without end.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use protocols::status::StatusClient;
use runtime::connection::{Connection, Name};
use runtime::{op, thread};

use crate::case::{Case, text};

/// It needs a system with `status`.
pub const ALL: &[Case] = &[Case::tried("statuses", "asks for the state of the system again and again", statuses)];

const SECOND: u64 = 1_000_000_000;
/// How often it is asked.
const TIMES: u64 = 300;

static STATUS: StatusClient<Connection<Name<'static>>> = StatusClient(Connection::named("status"));

/// All of a status.
fn whole(number: u64, bytes: u64) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    while (all.len() as u64) < bytes {
        let mut piece = [0; 1000];
        match STATUS.read(number, all.len() as u64, &mut piece).map_err(text)? {
            0 => break,
            count => all.extend_from_slice(&piece[..count]),
        }
    }
    Ok(all)
}

/// While more domains are there than a status has room for, it shows the components all the same.
pub fn of_many() -> Result<(), String> {
    let (number, bytes) = STATUS.take().map_err(text)?;
    let status = String::from_utf8_lossy(&whole(number, bytes)?).into_owned();
    if status.contains("\"complete\":true") {
        return Err("the status says that it is complete".to_string());
    }
    match ["sigma0", "sched", "proc", "status"].iter().find(|name| !status.contains(&format!("\"name\":\"{name}\""))) {
        Some(name) => Err(format!("the status lacks {name}")),
        None => Ok(()),
    }
}

fn statuses() -> Result<String, String> {
    let status = &STATUS;
    let start = op::clock();
    let (first, bytes) = status.take().map_err(text)?;
    let before = whole(first, bytes)?;
    let mut taken = BTreeSet::from([first]);
    for _ in 0..TIMES {
        taken.insert(status.take().map_err(text)?.0);
    }
    // One may have been there, and one begins with each second.
    let most = 2 + (op::clock() - start) / SECOND;
    if taken.len() as u64 > most {
        return Err(format!("{} statuses for {TIMES} questions in {} s", taken.len(), most - 2));
    }
    // A second later there is a new one; a reader of the old one is not disturbed.
    thread::sleep(SECOND + SECOND / 10).map_err(text)?;
    let (next, _) = status.take().map_err(text)?;
    if taken.contains(&next) || whole(first, bytes)? != before || before.len() as u64 != bytes {
        return Err("an old one was given, or one that was being read is gone".to_string());
    }
    Ok(format!("a status a second for {TIMES} questions"))
}
