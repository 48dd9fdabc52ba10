//! The cost of making portals, in time and memory.

use alloc::string::{String, ToString};

use runtime::abi::layout::{ENTRY_BYTES, FIRST_FREE};
use runtime::abi::{Error, PAGE_BYTES, info, rights};
use runtime::arch::ticks;
use runtime::entry::{Entry, Owned};
use runtime::{op, server, table};
use tool::inspect;

use crate::measure::{Row, per_round, timed};

/// The specification of all these portals.
const SPECIFICATION: &str = "npciii>i";
/// One of which no program gets the shape.
const UNKNOWN: &str = "npt>ttt";
/// Portals that are made of a shape that is there.
const MANY: u64 = 500;
/// Repetitions before counting starts.
const WARM_UP: u64 = 10;

struct Sum;

impl server::ServeShort for Sum {
    fn serve(badge: u64, word1: u64, word2: u64, word3: u64) -> u64 {
        badge + word1 + word2 + word3
    }
}

/// Makes the server's part: a service of the shape that the portal manager gives.
fn make_service() -> Option<Owned> {
    server::short_service::<Sum>().ok().map(Owned::new)
}

/// Makes the client's part: a call entry.
fn make_entry(service: &Owned) -> Option<Owned> {
    let call = Owned::new(table::allocate().ok()?);
    op::portal_new(Entry::OWN, service.entry(), 0, call.entry(), 0).ok()?;
    Some(call)
}

/// Returns the result of `work`, and adds the ticks that it takes to `sum`.
fn part<T>(sum: &mut u64, work: impl FnOnce() -> T) -> T {
    let start = ticks();
    let made = work();
    *sum += ticks() - start;
    made
}

/// The shape of our portals, if there is one.
fn shape() -> Result<Option<info::Shape>, String> {
    let shapes = inspect::shapes().map_err(|error| error.to_string())?;
    Ok(shapes.into_iter().find(|shape| text(shape) == SPECIFICATION.as_bytes()))
}

/// A shape's specification.
fn text(shape: &info::Shape) -> &[u8] {
    let end = shape.specification.iter().position(|byte| *byte == 0);
    &shape.specification[..end.unwrap_or(shape.specification.len())]
}

/// The first portal of a shape: its code is made. Programs get one shape only, so this is measured once, and only
/// before anybody else has asked for it.
pub fn of_new_shape() -> Result<Row, String> {
    // The way to the portal manager is warm, and the making of a service.
    for _ in 0..WARM_UP {
        if server::shape(UNKNOWN).is_ok() || server::word_service::<Words>().map(Owned::new).is_err() {
            return Err("the portal manager made what it makes for components only".into());
        }
    }
    if shape()?.is_some() {
        return Err("the shape is there already: this can be measured once after boot".into());
    }
    let (mut made, mut service, mut entry) = (None, 0, 0);
    timed(|| {
        let served = part(&mut service, make_service);
        made = served.and_then(|service| Some((part(&mut entry, || make_entry(&service))?, service)));
    });
    if made.is_none() || shape()?.is_none() {
        return Err("no portal was made".into());
    }
    Ok(Row::instructions(per_round(service + entry, 1)).with("call_entry", entry).of(1))
}

struct Words;

impl server::ServeWord for Words {
    fn serve(_badge: u64, words: [u64; 5]) -> u64 {
        words[0]
    }
}

/// A portal of a shape that is there, as its client makes it: the service is its server's.
pub fn of_known_shape() -> Result<Row, String> {
    let (mut service, mut entry, mut asked) = (0, 0, 0);
    for round in 0..WARM_UP + MANY {
        if round == WARM_UP {
            (service, entry, asked) = (0, 0, 0);
        }
        let served = part(&mut service, make_service).ok_or("no service was made")?;
        let mut made = None;
        timed(|| made = part(&mut entry, || make_entry(&served)));
        let shape = part(&mut asked, || server::shape(SPECIFICATION));
        drop((made.ok_or("no portal was made")?, shape.map_err(|error| error.to_string())?));
    }
    let row = Row::instructions(per_round(entry, MANY));
    Ok(row.with("service", service.div_ceil(MANY)).with("shape", asked.div_ceil(MANY)).of(WARM_UP + MANY))
}

/// Bytes of code of the shape `npciii>i`, and of the one that most interfaces use.
pub fn code() -> Result<Row, String> {
    drop(server::shape(SPECIFICATION).map_err(|error| error.to_string())?);
    let known = shape()?.ok_or("the shape is not listed")?;
    let shapes = inspect::shapes().map_err(|error| error.to_string())?;
    let with_control = shapes.iter().find(|shape| shape.number == 0).ok_or("no shape has a control word")?;
    Ok(Row::bytes(known.length).with("with_a_control_word", with_control.length))
}

/// Entries that are put into a table: so many pages of it.
const TABLE_PAGES: u64 = 64;
const ENTRIES: u64 = TABLE_PAGES * (PAGE_BYTES / ENTRY_BYTES) as u64;
/// The quota of the account of the domain with that table.
const FRAMES: u64 = 2 * TABLE_PAGES;

/// A domain in which nothing is, and the account that it alone is charged to.
struct Empty {
    domain: Owned,
    _account: Owned,
}

impl Empty {
    const NAME: &str = "bench-empty";

    fn new() -> Result<Self, Error> {
        let account = Owned::new(op::account_new(Entry::OWN, FRAMES)?);
        let domain = Owned::new(op::domain_new(account.entry(), 0, Self::NAME)?);
        Ok(Self { domain, _account: account })
    }

    /// Frames charged to its account.
    fn frames(&self) -> Result<u64, String> {
        let number = op::domain_number(self.domain.entry()).map_err(|error| error.to_string())?;
        let domains = inspect::own::<info::Domain>().map_err(|error| error.to_string())?;
        let found = domains.iter().find(|domain| domain.number == number).ok_or("the domain is not listed")?;
        if found.limit > FRAMES { Err("the account is not its own".into()) } else { Ok(found.charged) }
    }
}

/// Bytes of a domain in which nothing is: its account, its record, its page tables and its portal table.
pub fn empty_domain() -> Result<Row, String> {
    let empty = Empty::new().map_err(|error| error.to_string())?;
    let frames = empty.frames()?;
    Ok(Row::bytes(frames * PAGE_BYTES as u64).with("frames", frames))
}

/// Bytes that an entry takes: the charge for a full table, divided by entries. Copies of one semaphore fill it.
pub fn entry() -> Result<Row, String> {
    let text = |error: Error| error.to_string();
    let empty = Empty::new().map_err(text)?;
    let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let first = FIRST_FREE.next_multiple_of(PAGE_BYTES / ENTRY_BYTES);
    let fill = |from: usize, count: u64| {
        (from..from + count as usize).try_for_each(|index| {
            op::entry_copy(Entry::OWN, semaphore.entry(), empty.domain.entry(), Entry(index), rights::WRITE).map(drop)
        })
    };
    // The window of the table that the others lie in is there.
    fill(first, 1).map_err(text)?;
    let before = empty.frames()?;
    fill(first + PAGE_BYTES / ENTRY_BYTES, ENTRIES).map_err(text)?;
    let frames = empty.frames()? - before;
    Ok(Row::bytes((frames * PAGE_BYTES as u64).div_ceil(ENTRIES)).with("entries", ENTRIES).with("frames", frames))
}
