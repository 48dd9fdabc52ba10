//! Threads, domains, programs, files.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::hint::black_box;

use protocols::file::{FileClient, TRUNCATE};
use protocols::sigma0::Sigma0Client;
use runtime::abi::layout::FREE_START;
use runtime::abi::rights::{MAP_GRANT, MAP_READ, MAP_WRITE};
use runtime::abi::{Error, PAGE_BYTES};
use runtime::arch::ticks;
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::op;
use runtime::stream::FILE_SYSTEM;
use runtime::thread::Thread;
use runtime::window::Page;

use crate::measure::{Row, average, per_round, timed};
use crate::{pages, peer};

/// Repetitions of what takes thousands of instructions.
const MANY: u64 = 500;
/// Repetitions of what takes ten thousands.
const SOME: u64 = 100;
/// Repetitions before counting starts.
const WARM_UP: u64 = 10;

const PAGE: u64 = PAGE_BYTES as u64;

/// A thread: made, started, ended, waited for, destroyed.
pub fn thread() -> Result<Row, String> {
    let mut failures = 0u64;
    let mut once = || match Thread::start(|_| (), 0) {
        Ok(thread) => thread.join(),
        Err(_) => failures += 1,
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(MANY, &mut once);
    match failures {
        0 => Ok(Row::instructions(value).of(MANY)),
        _ => Err("a thread could not be started".into()),
    }
}

/// A tiny program: started from the file system, its end seen.
pub fn spawn() -> Result<Row, String> {
    let mut problem = None;
    let mut once = || match peer::spawn(&["/bin/true"], 0) {
        Ok(child) => match child.wait() {
            Ok(0) => {}
            Ok(status) => problem = Some(alloc::format!("status {status}")),
            Err(error) => problem = Some(error.to_string()),
        },
        Err(cause) => problem = Some(cause),
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(SOME, &mut once);
    match problem {
        None => Ok(Row::instructions(value).of(SOME)),
        Some(problem) => Err(problem),
    }
}

/// A file: made, a page written and read back, removed.
pub fn file() -> Result<Row, String> {
    // Two contents in turn: no read returns the value of the read before.
    let pages = pages_of(&[0x5a, 0xa5]);
    let contents = [&pages[0].0, &pages[1].0];
    let mut room = pages_of(&[0]);
    let back = &mut room[0].0;
    let mut problem = None;
    let mut round = 0;
    let mut once = || {
        round ^= 1;
        let contents = contents[round];
        match one_file(contents, &mut *back) {
            Ok(()) if back[0] == contents[0] && back[PAGE_BYTES - 1] == contents[0] => {}
            Ok(()) => problem = Some("other bytes were read than were written".into()),
            Err(cause) => problem = Some(cause),
        }
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(MANY, &mut once);
    match problem {
        None if contents.contains(&&*back) => Ok(Row::instructions(value).of(MANY)),
        None => Err("other bytes were read than were written".into()),
        Some(problem) => Err(problem),
    }
}

fn one_file(contents: &[u8], back: &mut [u8]) -> Result<(), String> {
    const PATH: &str = "/tmp/bench";
    let text = |error: protocols::Failure<_>| error.to_string();
    let entry = Owned::new(FILE_SYSTEM.create(PATH, TRUNCATE).map_err(text)?.into());
    let file = FileClient(Direct(entry.entry()));
    let written = file.write(0, contents).map_err(text)?;
    let read = file.read(0, back).map_err(text)?;
    FILE_SYSTEM.remove(PATH).map_err(text)?;
    if written == contents.len() && read == back.len() { Ok(()) } else { Err("not all at once".into()) }
}

/// Pages full of these bytes.
fn pages_of(bytes: &[u8]) -> Vec<Page> {
    bytes.iter().map(|byte| Page([*byte; PAGE_BYTES])).collect()
}

/// A page of a file, read and then summed: without what the loop takes that sums it.
pub fn file_read() -> Result<Row, String> {
    const PATH: &str = "/tmp/bench-read";
    let text = |error: protocols::Failure<_>| error.to_string();
    // Two contents in turn: no read returns the value of the read before.
    let contents = pages_of(&[0x5a, 0xa5]);
    let sums = [peer::sum(&contents[0].0), peer::sum(&contents[1].0)];
    let entry = Owned::new(FILE_SYSTEM.create(PATH, TRUNCATE).map_err(text)?.into());
    let file = FileClient(Direct(entry.entry()));
    for (number, page) in contents.iter().enumerate() {
        file.write(number as u64 * PAGE, &page.0).map_err(text)?;
    }
    let mut back = pages_of(&[0]);
    let (mut round, mut right) = (0, true);
    let mut once = || {
        round ^= 1;
        let count = file.read(round as u64 * PAGE, &mut back[0].0);
        right &= count == Ok(PAGE_BYTES) && peer::sum(&back[0].0) == sums[round];
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(MANY, &mut once);
    let start = ticks();
    for _ in 0..MANY {
        black_box(peer::sum(black_box(&contents[0].0)));
    }
    let loops = per_round(ticks() - start, MANY);
    FILE_SYSTEM.remove(PATH).map_err(text)?;
    let rest = value.checked_sub(loops).ok_or("the loop takes longer than the read")?;
    if right { Ok(Row::instructions(rest).with("loop", loops).of(MANY)) } else { Err("other bytes were read".into()) }
}

/// A file: opened and closed.
pub fn open() -> Result<Row, String> {
    const PATH: &str = "/bin/true";
    let mut problem = None;
    // Our handle is all that an open file is: it is closed when that goes.
    let mut once = || match FILE_SYSTEM.open(PATH, 0) {
        Ok(file) => drop(Owned::new(file.into())),
        Err(error) => problem = Some(error.to_string()),
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(MANY, &mut once);
    match problem {
        None => Ok(Row::instructions(value).of(MANY)),
        Some(problem) => Err(problem),
    }
}

/// A domain with three pages, which lie far apart or side by side, its own or mapped from ours.
pub fn destroy() -> Result<Row, String> {
    const FAR: [u64; 3] = [0x40_0000_0000, 0x2000_0000_0000, 0x7e00_0000_0000];
    const NEAR: [u64; 3] = [FREE_START, FREE_START + PAGE, FREE_START + 2 * PAGE];
    let text = |error: Error| error.to_string();
    let mut values = [0; 2];
    for (value, places) in values.iter_mut().zip([FAR, NEAR]) {
        for rights in [MAP_READ | MAP_WRITE | MAP_GRANT, MAP_READ] {
            let mut sum = 0;
            for _ in 0..SOME {
                sum += destroy_one(places, rights).map_err(text)?;
            }
            *value = per_round(sum, SOME).max(*value);
        }
    }
    let [far, near] = values;
    Ok(Row::instructions(far.max(near)).with("far", far).with("near", near).of(4 * SOME))
}

/// Makes one, and gives the ticks that destroying it takes.
fn destroy_one(places: [u64; 3], rights: u64) -> Result<u64, Error> {
    /// Frames of its account: page tables above all.
    const FRAMES: u64 = 64;
    let sigma0 = Sigma0Client(Direct(Entry::SIGMA0));
    let account = Owned::new(op::account_new(Entry::OWN, FRAMES)?);
    let domain = op::domain_new(account.entry(), 0, "bench-victim")?;
    for (page, place) in places.into_iter().enumerate() {
        let own = FREE_START + page as u64 * PAGE;
        sigma0.draw(own, 0, MAP_READ | MAP_WRITE).map_err(|_| Error::NoFrames)?;
        pages::map(domain, own, place, rights)?;
    }
    let domain = Owned::new(domain);
    let ticks = timed(|| drop(domain));
    if rights & MAP_GRANT == 0 {
        (0..3).try_for_each(|page| pages::give_back(FREE_START + page * PAGE))?;
    }
    Ok(ticks)
}
