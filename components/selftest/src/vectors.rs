//! Floating-point registers: kept over switches, clear at the entry of a service, back after a call.

use core::sync::atomic::{AtomicU64, Ordering};

use abi::Control;
use idl::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::thread::Thread;
use runtime::{Entry, message, op, table};

use crate::arch::vectors::{CLEAR, expected, get, set};
use crate::check::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("threads keep their vector registers", switches),
    ("a service finds vector registers clear, its caller finds its own", call),
    ("a new thread finds vector registers clear", fresh),
];

fn switches() -> Result<(), &'static str> {
    static WRONG: AtomicU64 = AtomicU64::new(0);
    let start = |value| {
        Thread::start(
            |value| {
                let value = value as u64;
                set(value);
                for _ in 0..200 {
                    op::yield_now();
                    WRONG.fetch_add(u64::from(get() != expected(value)), Ordering::SeqCst);
                }
            },
            value,
        )
    };
    let threads = [1, 2, 3].map(start);
    for thread in threads {
        thread.map_err(|error| error.text())?.join();
    }
    hold(WRONG.load(Ordering::SeqCst) == 0, "a register changed")
}

/// Answers whether its registers were clear, and leaves others behind.
struct Looker;

impl Serve for Looker {
    fn serve(_: &mut Request<'_>) -> Reply {
        let clear = get() == CLEAR;
        set(77);
        Reply::word(clear.into())
    }
}

fn call() -> Result<(), &'static str> {
    let text = |error: abi::Error| error.text();
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::service::<Looker>().map_err(text)?);
    let portal = Owned::new(table::allocate().map_err(text)?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0).map_err(text)?;
    for value in 1..20 {
        set(value);
        let clear = message::call(portal.entry(), [0; 5], Control(0)).map_err(text)?.0[0];
        hold(get() == expected(value), "the caller's registers changed")?;
        hold(clear == 1, "the service saw registers of others")?;
    }
    Ok(())
}

fn fresh() -> Result<(), &'static str> {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    for value in 1..4 {
        set(value);
        let look = |_| SEEN.store(u64::from(get() == CLEAR), Ordering::SeqCst);
        Thread::start(look, 0).map_err(|error| error.text())?.join();
        hold(SEEN.swap(0, Ordering::SeqCst) == 1, "not clear")?;
        hold(get() == expected(value), "the starter's registers changed")?;
    }
    Ok(())
}
