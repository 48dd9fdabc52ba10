//! Removes entries, and objects through their original entries, one bounded step at a time.

use super::death::die_step;
use super::{activation, chain, domain, interrupt, lent, priorities, thread};
use crate::arch::processor;
use crate::cpus::{cpu, root};
use crate::memory::{labels, lend, shapes, space};
use crate::objects::{Account, Domain, Entry, PLAIN, Port, Semaphore, State, Thread};
use crate::pointer::Ref;
use abi::info::status;
use abi::layout::PAGE_FAULT;
use abi::rights::Kind;
use structures::derivation::Derived;
use structures::quota::Paying;

/// This many empty entries are a step of their own.
const MANY_ENTRIES: usize = 16;
/// Table pages that one removal step frees.
const PAGES_PER_STEP: usize = 4;

/// A bounded step of removing `entry` and all derived from it; true when it is empty.
#[inline(never)]
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

/// Marks the object whose original is `entry` as going. A domain is already dead.
fn begin(entry: Ref<Entry>) {
    if let Some(thread) = entry.object::<Thread>() {
        thread.is_going.set(true);
    } else if let Some(account) = entry.object::<Account>() {
        account.is_going.set(true);
    } else if let Some(semaphore) = entry.object::<Semaphore>() {
        semaphore.is_going.set(true);
    } else if let Some(port) = entry.object::<Port>() {
        port.semaphore.is_going.set(true);
    }
}

/// A step of destroying the object whose original is `entry`, which has no copies left.
fn destroy_step(entry: Ref<Entry>) -> bool {
    if let Some(domain) = entry.object::<Domain>() {
        return domain.remove_step();
    }
    if let Some(thread) = entry.object::<Thread>() {
        return remove_thread_step(thread);
    }
    if let Some(account) = entry.object::<Account>() {
        // Cancels its label checks: a domain's maker may be gone, or never finish.
        labels::forget(account);
        if account.quota().used.get() == 0
            && let Some(parent) = account.parent()
        {
            labels::release_of(parent, account.label.replace(PLAIN));
        }
        if !labels::tidy(entry.held(), account) {
            return false;
        }
        account.disown();
    } else if let Some(semaphore) = entry.object::<Semaphore>() {
        entry.shut(Kind::Empty);
        if semaphore.dismiss_one() {
            return false;
        }
        semaphore.retire();
    } else if let Some(port) = entry.object::<Port>() {
        entry.shut(Kind::Empty);
        return port.remove_step();
    } else if let Some(label) = entry.label() {
        labels::release_of(entry.domain().account, label);
    } else if entry.kind() == Kind::Shape {
        shapes::retire(entry);
    } else if entry.kind() == Kind::Interrupt {
        interrupt::release(entry.held(), entry.word0.get() as usize);
    }
    true
}

/// A step of freeing a thread: first its bottom activation, whose callee continues as an orphan, then the thread. True when it
/// is gone.
fn remove_thread_step(thread: Ref<Thread>) -> bool {
    if let Some(bottom) = thread.bottom.get() {
        if priorities::forget(bottom) {
            return false;
        }
        chain::cut_out(bottom);
        activation::free(bottom);
        return false;
    }
    thread::free(thread);
    true
}

/// The removal cursor of a domain whose removal has begun, and which still has its labels.
const BEGUN: u32 = 1;

impl Ref<Domain> {
    /// Notes that the removal of a dead domain begins: labels allow it. Its later steps ask them no more.
    pub fn begin_removal(self) {
        self.removal_cursor.update(|cursor| cursor.max(BEGUN));
    }
    /// Whether its removal has begun.
    pub fn is_being_removed(self) -> bool {
        self.removal_cursor.get() != 0
    }
    /// A bounded step of removing a dead domain; true when it is gone. A domain in its table goes first, after those in its own
    /// table: at most `abi::MAX_NESTING`.
    pub fn remove_step(self) -> bool {
        let (mut outer, mut innermost) = (None, self);
        while let Some(inner) = innermost.inner.get() {
            outer = Some(innermost);
            innermost = inner;
        }
        let entry = innermost.entry.get();
        let is_gone = innermost.remove_own_step();
        let (true, Some(outer)) = (is_gone, outer) else { return is_gone };
        outer.inner.set(None);
        if let Some(entry) = entry {
            entry.vacate(Kind::Empty);
        }
        false
    }

    /// As [`Self::remove_step`], for this domain alone. If a domain is found in its table, the next steps remove that one first.
    fn remove_own_step(self) -> bool {
        let held = self.held();
        if let Some(other) = cpu::others(held).find(|other| other.domain_there() == Some(self)) {
            // The CPU is about to leave, or sleeps there. CPUs of an emulator take turns.
            cpu::send_ipi(other);
            processor::relax();
            return false;
        }
        if self.end_calls_step() || self.remove_activation_step() || self.remove_thread_step() {
            return false;
        }
        if let Some(mapping) = self.mappings.get() {
            mapping.remove_step();
            return false;
        }
        if space::prune_emptied(self) {
            return false;
        }
        if let Some(semaphore) = self.death_semaphore.take() {
            semaphore.drop_hold();
            return false;
        }
        self.empty_table_step()
    }

    /// A step of ending the calls of the domain, and those that wait for it; false if there are none.
    #[inline(always)]
    fn end_calls_step(self) -> bool {
        if chain::wake_waiter(self) {
            return true;
        }
        if let Some(caller) = self.called.head.get() {
            chain::end_called(caller);
            return true;
        }
        if let Some(spare) = self.spare.take() {
            activation::release(spare);
            return true;
        }
        false
    }

    /// A step of removing its first activation; false if there is none.
    #[inline(always)]
    fn remove_activation_step(self) -> bool {
        let Some(activation) = self.activations.get() else { return false };
        if priorities::forget(activation) {
            return true;
        }
        let was_free = activation.state.get() == State::Free;
        if activation.state.get() == State::Calling && activation.callee.get().is_some() {
            // A step of its own: the chain above may be long.
            chain::split_above(activation);
            return true;
        }
        chain::cut_out(activation);
        if was_free {
            activation::free_first(self);
        }
        true
    }

    /// A step of removing its first thread; false if only the orphan thread is left. That was made first and goes last, so the
    /// domain has a thread number as long as it has anything.
    #[inline(always)]
    fn remove_thread_step(self) -> bool {
        let Some(thread) = self.threads.get().filter(|thread| !thread.carries_orphans) else { return false };
        if let Some(entry) = thread.entry.get() {
            if entry.revoke_one() {
                return true;
            }
            entry.vacate(Kind::Revoked);
        }
        thread::free_first(self);
        true
    }

    /// A step of emptying the table and freeing it; true when the domain is gone.
    #[inline(always)]
    fn empty_table_step(self) -> bool {
        let index = self.removal_cursor.get() as usize;
        if index < PAGE_FAULT[0] {
            if labels::take_of_portals(self) {
                return false;
            }
            if self.labelled().is_some_and(|labelled| lent::end_step(labelled).is_err()) {
                return false;
            }
            labels::take(self);
            labels::forget(self.account);
            self.removal_cursor.set(PAGE_FAULT[0] as u32);
            return false;
        }
        if index >= self.table_entries() {
            return self.remove_table_step();
        }
        let passed = self.empty_from(index);
        let index = index + passed;
        self.removal_cursor.set(index as u32);
        if passed >= MANY_ENTRIES {
            return false;
        }
        let Some(place) = self.place(index).ok().filter(|place| place.kind() != Kind::Empty) else { return false };
        if let Some(inner) = place.object::<Domain>().filter(|_| place.node_reference().is_original()) {
            if !inner.is_dead() {
                die_step(inner, status::KILLED);
                return false;
            }
            inner.begin_removal();
            if !place.revoke_one() {
                self.inner.set(Some(inner));
            }
        } else {
            remove_step(place);
        }
        false
    }

    /// A step of freeing the table, which is empty; when no page is left, frees the domain: then true.
    fn remove_table_step(self) -> bool {
        let held = self.held();
        if cpu::this(held).domain.get() == Some(self) {
            root::leave(held);
        }
        if lend::free_tables(self) {
            return false;
        }
        if !self.shrink_table() {
            domain::free(self);
            return true;
        }
        for _ in 1..PAGES_PER_STEP {
            self.shrink_table();
        }
        self.removal_cursor.set(self.table_entries() as u32);
        false
    }
}
