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

fn statuses() -> Result<String, String> {
    let status = StatusClient(Connection::<Name<'_>>::named("status"));
    let whole = |number: u64, bytes: u64| {
        let mut all = Vec::new();
        while (all.len() as u64) < bytes {
            let mut piece = [0; 1000];
            match status.read(number, all.len() as u64, &mut piece).map_err(text)? {
                0 => break,
                count => all.extend_from_slice(&piece[..count]),
            }
        }
        Ok::<_, String>(all)
    };
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
