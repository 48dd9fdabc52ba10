//! Removal of entries and of the objects whose originals they are, one bounded step at a time.

use crate::chain;
use crate::pointer::Ref;
use crate::table::{Entry, Object};
use crate::thread::{self, Thread};
use crate::{activation, interrupt, lending};
use abi::rights::Kind;

/// Does a bounded part of emptying `entry` with all that was derived from it; true when it is empty.
pub fn remove_step(entry: Ref<Entry>) -> bool {
    if entry.kind() == Kind::Revoked {
        entry.vacate(Kind::Empty);
        return true;
    }
    if entry.node_reference().is_original() {
        begin(entry);
    }
    if entry.revoke_one() {
        return false;
    }
    if entry.node_reference().is_original() && !destroy_step(entry) {
        return false;
    }
    entry.vacate(Kind::Empty);
    true
}

/// The object whose original is `entry` is going from here on. A domain is dead before.
fn begin(entry: Ref<Entry>) {
    match entry.object() {
        Object::Thread(thread) => thread.is_going.set(true),
        Object::Account(account) => account.is_going.set(true),
        Object::Semaphore(semaphore) => semaphore.is_going.set(true),
        _ => {}
    }
}

/// Whether the object of an entry is going. Nothing more is derived from it: else who removes it would run after copies for
/// as long as others make them.
pub fn is_going(entry: Ref<Entry>) -> bool {
    match entry.object() {
        Object::Domain(domain) | Object::Service(domain) => domain.is_dead(),
        Object::Thread(thread) => thread.is_going.get() || thread.home.is_dead(),
        Object::Account(account) => account.is_going.get(),
        Object::Semaphore(semaphore) => semaphore.is_going.get(),
        _ => false,
    }
}

/// Does a part of destroying the object whose original, now without copies, is `entry`.
fn destroy_step(entry: Ref<Entry>) -> bool {
    match entry.object() {
        Object::Domain(domain) => domain.remove_step(),
        Object::Thread(thread) => remove_thread_step(thread),
        Object::Account(account) => {
            account.disown();
            true
        }
        Object::Semaphore(semaphore) => {
            entry.shut(Kind::Empty);
            if semaphore.dismiss_one() {
                return false;
            }
            semaphore.retire();
            true
        }
        Object::None(Kind::Interrupt) => {
            interrupt::release(entry.held(), entry.word0.get() as usize);
            true
        }
        _ => true,
    }
}

/// The first activation of a thread goes, then the thread; what it called goes on as an orphan.
fn remove_thread_step(thread: Ref<Thread>) -> bool {
    if let Some(bottom) = thread.bottom.get() {
        if lending::forget(bottom) {
            return false;
        }
        chain::cut_out(bottom);
        activation::free(bottom);
        return false;
    }
    thread::free(thread);
    true
}
