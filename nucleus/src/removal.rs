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
    // SAFETY: the kind says what the object is.
    unsafe {
        match entry.kind() {
            Kind::Thread => entry.object_as::<Thread>().is_going = true,
            Kind::Account => entry.object_as::<Account>().is_going = true,
            Kind::Semaphore => entry.object_as::<Semaphore>().is_going = true,
            _ => {}
        }
    }
}

/// Whether the object of an entry is going. Nothing more is derived from it: else who removes it would run after copies for
/// as long as others make them.
pub fn is_going(entry: Ref<Entry>) -> bool {
    // SAFETY: the kind says what the object is; a service's is its domain.
    unsafe {
        match entry.kind() {
            Kind::Domain | Kind::Service => entry.object_as::<Domain>().is_dead(),
            Kind::Thread => {
                let thread = entry.object_as::<Thread>();
                thread.is_going || thread.home.is_dead()
            }
            Kind::Account => entry.object_as::<Account>().is_going,
            Kind::Semaphore => entry.object_as::<Semaphore>().is_going,
            _ => false,
        }
    }
}

/// Does a part of destroying the object whose original, now without copies, is `entry`.
fn destroy_step(entry: Ref<Entry>) -> bool {
    match entry.kind() {
        Kind::Domain => {
            // SAFETY: the kind says what the object is.
            let domain: Ref<Domain> = unsafe { entry.object_as() };
            domain.remove_step()
        }
        Kind::Thread => {
            // SAFETY: the kind says what the object is.
            let thread: Ref<Thread> = unsafe { entry.object_as() };
            remove_thread_step(thread)
        }
        Kind::Account => {
            // SAFETY: the kind says what the object is.
            let account: Ref<Account> = unsafe { entry.object_as() };
            account.disown();
            true
        }
        Kind::Semaphore => {
            // SAFETY: the kind says what the object is.
            let semaphore: Ref<Semaphore> = unsafe { entry.object_as() };
            entry.shut(Kind::Empty);
            if semaphore.dismiss_one() {
                return false;
            }
            semaphore.retire();
            true
        }
        Kind::Interrupt => {
            interrupt::release(entry.word0 as usize);
            true
        }
        _ => true,
    }
}

/// The first activation of a thread goes, then the thread; what it called goes on as an orphan.
fn remove_thread_step(thread: Ref<Thread>) -> bool {
    if let Some(bottom) = thread.bottom {
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
