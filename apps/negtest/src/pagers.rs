//! Pagers that do not bring pages. The pager is this program; a child needs it.

use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, Ordering};

use idl::{Reply, Request};
use runtime::abi::info::status;
use runtime::abi::{Error, MAX_DEPTH};
use runtime::entry::{Entry, Owned};
use runtime::op;
use runtime::server::{self, Serve};
use runtime::thread;

use crate::case::{Case, text};
use crate::child::Child;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("pager-missing", "a page fault for which there is no pager", missing),
    Case::tried("pager-gives-up", "a pager says that it cannot help", || dies(GIVE_UP)),
    Case::tried("pager-exits", "a pager ends its thread instead of answering", || dies(EXIT)),
    Case::tried("pager-dies", "a pager dies of a page fault of its own", dies_itself),
    Case::tried("pager-silent", "a pager never answers", || stays(SILENT)),
    Case::tried("pager-lies", "a pager says that the page is there, again and again", || stays(LIE)),
    Case::tried("pager-loop", "a pager that is its own pager, and faults", || own(2)),
    Case::tried("pager-deep", "a pager that is its own pager, with activations enough", || own(MAX_DEPTH)),
];

/// Where the child reads.
const PLACE: u64 = 0x5000_0000;
const END: u64 = PLACE + 0x10_0000;
const MILLISECOND: u64 = 1_000_000;
const PATIENCE: u64 = 4 * MILLISECOND;

// The pager's behaviour, chosen by the badge.
const GIVE_UP: u64 = 1;
const SILENT: u64 = 2;
const LIE: u64 = 3;
const EXIT: u64 = 4;

static ASKED: AtomicU64 = AtomicU64::new(0);

struct Pager;

impl Serve for Pager {
    fn serve(request: &mut Request<'_>) -> Reply {
        ASKED.fetch_add(1, Ordering::SeqCst);
        match request.badge {
            GIVE_UP => Reply::word(1),
            EXIT => op::exit(0),
            SILENT => {
                let _ = thread::sleep(2 * PATIENCE);
                Reply::word(0)
            }
            _ => Reply::word(0),
        }
    }
}

/// A child that reads, and whose pager is ours.
fn paged(how: u64) -> Result<(Child, Owned), String> {
    ASKED.store(0, Ordering::SeqCst);
    server::activations(1).map_err(text)?;
    let service = server::service::<Pager>().map(Owned::new).map_err(text)?;
    let mut child = Child::new().map_err(text)?;
    child.pages_by(service.entry(), how, PLACE, END).map_err(text)?;
    child.reads(PLACE).map_err(text)?;
    Ok((child, service))
}

/// Everything else goes on while the child does not.
fn others_go_on() -> Result<(), String> {
    let semaphore = op::semaphore_new(Entry::ACCOUNT, 0).map(Owned::new).map_err(text)?;
    let waited = op::p(semaphore.entry(), op::clock() + MILLISECOND);
    if waited == Err(Error::Timeout) { Ok(()) } else { Err(format!("a wait ended with {waited:?}")) }
}

fn died_of_it(end: Option<u64>) -> Result<String, String> {
    match end {
        Some(status::PAGE_FAULT) => Ok("the child dies of its page fault".to_string()),
        Some(other) => Err(format!("the child died with {other:#x}")),
        None => Err("the child lives".to_string()),
    }
}

fn missing() -> Result<String, String> {
    let mut child = Child::new().map_err(text)?;
    child.reads(PLACE).map_err(text)?;
    died_of_it(child.ends_within(PATIENCE)?)
}

fn dies(how: u64) -> Result<String, String> {
    let (child, _service) = paged(how)?;
    let reported = died_of_it(child.ends_within(PATIENCE)?)?;
    match ASKED.load(Ordering::SeqCst) {
        1 => Ok(reported),
        asked => Err(format!("the pager was asked {asked} times")),
    }
}

/// The pager is another child, for whose pages nobody cares.
fn dies_itself() -> Result<String, String> {
    let pager = Child::new().map_err(text)?;
    let service = pager.reading_service(1).map_err(text)?;
    let mut child = Child::new().map_err(text)?;
    child.pages_by(service, PLACE, PLACE, END).map_err(text)?;
    child.reads(PLACE).map_err(text)?;
    let reported = died_of_it(child.ends_within(PATIENCE)?)?;
    match pager.ends_within(PATIENCE)? {
        Some(_) => Ok(reported),
        None => Err("the pager lives".to_string()),
    }
}

/// The child neither goes on nor dies; it can be removed.
fn stays(how: u64) -> Result<String, String> {
    let (child, _service) = paged(how)?;
    if let Some(status) = child.ends_within(PATIENCE)? {
        return Err(format!("the child ended with {status:#x}"));
    }
    others_go_on()?;
    drop(child);
    let asked = ASKED.load(Ordering::SeqCst);
    thread::sleep(3 * PATIENCE).map_err(text)?;
    let later = ASKED.load(Ordering::SeqCst);
    match how {
        LIE if asked < 100 => Err(format!("the pager was asked {asked} times only")),
        SILENT if asked != 1 => Err(format!("the pager was asked {asked} times")),
        // A question may have been under way.
        _ if later > asked + 1 => Err(format!("it is asked {} times more after that", later - asked)),
        _ => Ok("the child waits alone, and can be removed".to_string()),
    }
}

fn own(activations: usize) -> Result<String, String> {
    let mut child = Child::new().map_err(text)?;
    child.pages_itself(activations, PLACE, END).map_err(text)?;
    child.reads(PLACE).map_err(text)?;
    let end = child.ends_within(PATIENCE)?;
    others_go_on()?;
    if activations >= MAX_DEPTH {
        return died_of_it(end);
    }
    match end {
        None => Ok("the child waits alone, and can be removed".to_string()),
        Some(status) => Err(format!("the child ended with {status:#x}")),
    }
}
