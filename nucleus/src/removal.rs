//! Removal of entries and of the objects whose originals they are, one bounded step at a time.

use crate::account::Account;
use crate::chain;
use crate::domain::Domain;
use crate::pointer::Ref;
use crate::semaphore::Semaphore;
use crate::table::Entry;
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
    if let Some(thread) = entry.object::<Thread>() {
        thread.is_going.set(true);
    } else if let Some(account) = entry.object::<Account>() {
        account.is_going.set(true);
    } else if let Some(semaphore) = entry.object::<Semaphore>() {
        semaphore.is_going.set(true);
    }
}

/// Whether the object of an entry is going. Nothing more is derived from it: else who removes it would run after copies for
/// as long as others make them.
pub fn is_going(entry: Ref<Entry>) -> bool {
    if let Some(domain) = entry.server().or(entry.object()) {
        return domain.is_dead();
    }
    if let Some(thread) = entry.object::<Thread>() {
        return thread.is_going.get() || thread.home.is_dead();
    }
    if let Some(semaphore) = entry.object::<Semaphore>() {
        return semaphore.is_going.get();
    }
    entry.object::<Account>().is_some_and(|account| account.is_going.get())
}

/// Does a part of destroying the object whose original, now without copies, is `entry`.
fn destroy_step(entry: Ref<Entry>) -> bool {
    if let Some(domain) = entry.object::<Domain>() {
        return domain.remove_step();
    }
    if let Some(thread) = entry.object::<Thread>() {
        return remove_thread_step(thread);
    }
    if let Some(account) = entry.object::<Account>() {
        account.disown();
    } else if let Some(semaphore) = entry.object::<Semaphore>() {
        entry.shut(Kind::Empty);
        if semaphore.dismiss_one() {
            return false;
        }
        semaphore.retire();
    } else if entry.kind() == Kind::Interrupt {
        interrupt::release(entry.held(), entry.word0.get() as usize);
    }
    true
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
