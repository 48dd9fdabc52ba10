//! Priorities that were lent: where they go, and that a thread which loses one gives way.

use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use interface::Words;
use runtime::abi::info::{self, Record};
use runtime::abi::rights::MAP_READ;
use runtime::abi::{Control, PAGE_BYTES};
use runtime::entry::Owned;
use runtime::op;
use runtime::server::{self, ServeWord};
use runtime::{Entry, message, table};
use tool::inspect::PROC;

use crate::child::Child;
use crate::crime::Crime;
use crate::turns::{let_on, prepare, start, text, wait_inside};

/// All of them. Each runs in a process of its own.
pub const ALL: &[Crime] =
    &[Crime::tried("lent-dead", "the domain dies in which a call has the priority of its portal", dead)];

const LOW: u8 = 4;
const HIGH: u8 = 12;

/// The priority of a thread, with what was lent to it.
fn priority(thread: u64) -> u64 {
    let mut record = [0; size_of::<info::Thread>()];
    let told = PROC.inspect(info::THREAD, thread - 1, &mut record);
    told.ok().and(info::Thread::read(&record)).map_or(u64::MAX, |thread| thread.priority)
}

fn expect(what: &str, found: u64, right: u8) -> Result<(), String> {
    if found == right.into() { Ok(()) } else { Err(format!("{what} is {found}, not {right}")) }
}

/// A portal to a service of the child, which page-faults at `ADDRESS` and so calls [`Pager`].
static FAULTS: AtomicUsize = AtomicUsize::new(0);
const ADDRESS: u64 = 1 << 40;

/// The thread that calls it, and the priority it has when the call has ended.
static CALLER: AtomicU64 = AtomicU64::new(0);
static AFTERWARDS: AtomicU64 = AtomicU64::new(0);
/// The priority with which the pager goes on.
static PAGER: AtomicU64 = AtomicU64::new(0);

/// Waits inside; the page is there from now on.
struct Pager;

impl ServeWord for Pager {
    fn serve(victim: u64, [address, ..]: Words) -> u64 {
        wait_inside();
        PAGER.store(priority(op::thread_id()), Ordering::SeqCst);
        // SAFETY: a page that is only read.
        let mapped = unsafe { op::map(Entry(victim as usize), PAGE.0.as_ptr() as u64, address, 0, MAP_READ) };
        u64::from(mapped.is_err())
    }
}

/// The page that the children read.
#[repr(C, align(4096))]
struct Page([u64; PAGE_BYTES / 8]);
static PAGE: Page = Page([7; PAGE_BYTES / 8]);

/// A child that serves [`FAULTS`], which has a ceiling, and its pager's service.
fn faulting_child(ceiling: u8) -> Result<(Child, Owned), String> {
    let pager = Owned::new(server::word_service::<Pager>().map_err(text)?);
    let victim = Child::new().map_err(text)?;
    let badge = victim.entry().0 as u64;
    victim.pages_by(pager.entry(), badge, ADDRESS, ADDRESS + PAGE_BYTES as u64).map_err(text)?;
    let service = victim.reading_service(1).map_err(text)?;
    let portal = table::allocate().map_err(text)?;
    op::portal_new(Entry::OWN, service, ADDRESS, portal, ceiling.into()).map_err(text)?;
    FAULTS.store(portal.0, Ordering::SeqCst);
    Ok((victim, pager))
}

fn call_child(_: usize) {
    CALLER.store(op::thread_id(), Ordering::SeqCst);
    let _ = message::call(Entry(FAULTS.load(Ordering::SeqCst)), [0; 5], Control(0));
    AFTERWARDS.store(priority(op::thread_id()), Ordering::SeqCst);
}

/// Its thread waits in a pager that the domain called, so the call ends when the domain is removed.
fn dead() -> Result<String, String> {
    let _kept = prepare()?;
    let (victim, _pager) = faulting_child(HIGH)?;
    let caller = start(LOW, call_child)?;
    expect("the priority of the call", priority(CALLER.load(Ordering::SeqCst)), HIGH)?;
    drop(victim);
    caller.join();
    let_on(|| PAGER.load(Ordering::SeqCst) != 0)?;
    expect("the priority after the call", AFTERWARDS.load(Ordering::SeqCst), LOW)?;
    Ok("its caller has its own priority again".to_string())
}
