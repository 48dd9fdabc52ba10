//! Short sequences of calls for what single calls hardly ever meet: full tables, limits, calls between
//! domains, revoked entries in use, waits that are cancelled.

use core::sync::atomic::{AtomicU64, Ordering};

use runtime::abi::{Control, Error, MAX_PRIORITY, NEVER, layout, op, rights};
use runtime::entry::Entry;
use runtime::server::{self, ServeWord};
use runtime::thread::Thread;
use runtime::{op as operation, table};

use crate::calls::{Child, FIRST, PAGE, THINGS};
use fuzzer::histogram;

/// Indices that only scenes use: after the things.
const OWN: u64 = FIRST + THINGS + 8;
const NAME: u64 = u64::from_le_bytes(*b"scene\0\0\0");
/// Where nothing is mapped in a new domain.
const NOWHERE: u64 = 0x5000_0000;

/// The objects that scenes have for the whole run.
pub struct Stage {
    portal: Option<Entry>,
    sleeper: Option<(Thread, Entry)>,
}

/// A service that answers at once.
struct Answer;

impl ServeWord for Answer {
    fn serve(_: u64, words: [u64; 5]) -> u64 {
        words[1] + 1
    }
}

/// The results of the sleeper's waits: cancelled, anything else.
static WAITS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static END: AtomicU64 = AtomicU64::new(0);

impl Stage {
    /// A service of our own, and a thread that waits for ever again and again.
    pub fn new() -> Self {
        let portal = || -> Result<Entry, Error> {
            server::activations(2)?;
            let service = server::word_service::<Answer>()?;
            let portal = table::allocate()?;
            operation::portal_new(Entry::OWN, service, 0, portal, 0)
        };
        let wait = |semaphore| {
            while END.load(Ordering::Relaxed) == 0 {
                let cancelled = operation::p(Entry(semaphore), NEVER) == Err(Error::Cancelled);
                WAITS[usize::from(!cancelled)].fetch_add(1, Ordering::Relaxed);
            }
        };
        let semaphore = operation::semaphore_new(Entry::OWN, 0);
        let start = |semaphore: Entry| Thread::start(wait, semaphore.0).map(|thread| (thread, semaphore));
        Self { portal: portal().ok(), sleeper: semaphore.and_then(start).ok() }
    }

    /// Counts what the sleeper met, and lets it end.
    pub fn end(self, child: &mut Child) {
        END.store(1, Ordering::Relaxed);
        if let Some((sleeper, semaphore)) = self.sleeper {
            let _ = operation::v(semaphore);
            sleeper.join();
        }
        let [cancelled, other] = [0, 1].map(|place| WAITS[place].load(Ordering::Relaxed));
        child.histogram.add(histogram::P, Error::Cancelled as u64, cancelled);
        child.histogram.add(histogram::P, 0, other);
    }
}

impl Child {
    /// One of the scenes.
    pub fn scene(&mut self, stage: &Stage) {
        match self.random.below(24) {
            0 => self.full_table(),
            1 => self.nested_accounts(),
            2 if self.random.once_in(8) => self.too_many_activations(),
            3 | 4 => self.call_a_victim(),
            5..=8 => self.revoked(),
            9 | 10 => {
                if let Some((sleeper, _)) = &stage.sleeper {
                    self.cancel(sleeper);
                }
            }
            11 => self.properties(),
            12 => self.small_account(),
            // A change of labels stops all CPUs.
            13 if self.random.once_in(4) => self.labels(),
            14 => self.impossible(),
            _ => self.call_ourselves(stage),
        }
    }

    fn remove(&mut self, index: u64) {
        self.call(op::ENTRY_REMOVE, [0, index, 0, 0, 0, 0]);
    }

    /// More entries than the smallest table has.
    fn full_table(&mut self) {
        let free = (layout::TABLE_ENTRIES - layout::FIRST_FREE) as u64;
        self.call(op::DOMAIN_NEW, [self.account, 0, OWN, NAME, 0, 0]);
        for _ in 0..2 * free {
            self.call(op::ENTRY_COPY, [0, self.semaphore, OWN, 0, rights::ALL.into(), 0]);
        }
        self.remove(OWN);
    }

    /// Accounts of accounts of accounts.
    fn nested_accounts(&mut self) {
        let mut parent = self.account;
        let levels = 14;
        for level in 0..levels {
            let place = OWN + level;
            if self.call(op::ACCOUNT_NEW, [parent, 2 * (levels - level), place, 0, 0, 0]) == 0 {
                parent = place;
            }
        }
        for level in (0..levels).rev() {
            self.remove(OWN + level);
        }
    }

    /// An account that is too small for whatever is made of it, and has to give what it has not.
    fn small_account(&mut self) {
        let (account, place) = (OWN, OWN + 1);
        let frames = self.random.below(3);
        self.call(op::ACCOUNT_NEW, [self.account, frames, account, 0, 0, 0]);
        for _ in 0..2 {
            if self.call(op::DOMAIN_NEW, [account, 0, place, NAME, 0, 0]) == 0 {
                self.remove(place);
            }
        }
        self.call(op::ACCOUNT_NEW, [account, 8, place, 0, 0, 0]);
        self.call(op::ACCOUNT_MOVE, [account, self.account, 8, 0, 0, 0]);
        self.remove(account);
    }

    /// Calls that the nucleus refuses in any state, each for a cause that no other scene meets.
    fn impossible(&mut self) {
        let (account, domain, raised) = (OWN, OWN + 1, OWN + 2);
        self.call(op::ACCOUNT_NEW, [self.account, 20, account, 0, 0, 0]);
        self.call(op::DOMAIN_NEW, [account, 0, domain, NAME, 0, 0]);
        self.call(op::ENTRY_COPY, [0, self.semaphore, 0, raised, rights::COPY.into(), 0]);
        self.call(op::ACTIVATION_NEW, [domain, NOWHERE, 0, 0, 0, 0]);
        for reserved in [layout::MESSAGE_START, layout::WINDOWS] {
            let order = self.random.below(4);
            self.call(op::UNMAP, [domain, reserved, order, rights::MAP_READ, 0, 0]);
            self.call(op::DOMAIN_SET, [domain, op::SET_LABELS, 0, 0, 0, 0]);
            self.call(op::THREAD_EX_REGS, [0, NEVER, NEVER, 0, 0, 0]);
            self.call(op::DOMAIN_SET, [domain, op::SET_DEATH_SEMAPHORE, raised, 0, 0, 0]);
            self.call(op::DOMAIN_SET, [layout::DOMAIN as u64, op::SET_DEATH_SEMAPHORE, self.semaphore, 0, 0, 0]);
            self.call(op::DOMAIN_SET, [domain, op::SET_MAX_PRIORITY, MAX_PRIORITY as u64, 0, 0, 0]);
            self.call(op::MAP, [domain, PAGE, PAGE, order, rights::MAP_WRITE | rights::MAP_EXECUTE, 0]);
            let foreign = self.random.any() >> 4;
            self.call(op::LABEL, [op::LABEL_RECEIVE, foreign, 4, 0, 0, 0]);
        }
        self.remove(raised);
        self.remove(domain);
        self.remove(account);
    }

    /// Labels of what we own, which forbid nothing to anybody, and of what is none.
    fn labels(&mut self) {
        let ways = [op::LABEL_SEND, op::LABEL_RECEIVE, op::LABEL_LEVELS, op::LABEL_READ, op::LABEL_EXPLICIT];
        let Ok(handle) = operation::label_handle() else { return };
        for _ in 0..6 {
            let way = self.random.one(&ways);
            let value = match way {
                op::LABEL_READ | op::LABEL_EXPLICIT => self.random.below(3),
                // Nobody reaches a domain that has other handles than its own at other levels.
                _ if self.random.once_in(8) => self.random.any() | 1 << 61,
                _ => handle,
            };
            // Ownership goes at last; R rises, and falls to what all accept.
            let level = match way {
                op::LABEL_SEND => 0,
                op::LABEL_RECEIVE => 2 + self.random.below(4),
                _ => self.random.below(100),
            };
            self.call(op::LABEL, [way, value, level, 0, 0, 0]);
        }
        if self.random.once_in(8) {
            self.labels_of_others(handle);
        }
        self.call(op::LABEL, [op::LABEL_RECEIVE, handle, 3, 0, 0, 0]);
        self.call(op::LABEL, [op::LABEL_SEND, handle, 2, 0, 0, 0]);
        let way = op::LABEL_CALLER + 1 + self.random.below(100);
        self.call(op::LABEL, [way, 0, 0, 0, 0, 0]);
    }

    /// Labels for new objects: an account, and a domain. An account at level 2 would taint a floating domain, which would reach nobody any
    /// more.
    fn labels_of_others(&mut self, handle: u64) {
        self.call(op::LABEL, [op::LABEL_EXPLICIT, 1, 0, 0, 0, 0]);
        let [send, receive, account, domain] = [OWN, OWN + 1, OWN + 2, OWN + 3];
        for label in [send, receive] {
            let from = self.random.below(8);
            self.call(op::LABEL, [op::LABEL_NEW, from, label, 0, 0, 0]);
            let level = self.random.below(6);
            self.call(op::LABEL, [op::LABEL_PUT, label, handle, level, 0, 0]);
        }
        let is_lower = self.random.below(3);
        self.call(op::LABEL, [op::LABEL_COMBINE, receive, send, is_lower, 0, 0]);
        self.call(op::LABEL, [op::LABEL_CALLER, send, 0, 0, 0, 0]);
        self.call(op::LABEL, [op::LABEL_READ, receive, 0, 0, 0, 0]);
        self.call(op::ACCOUNT_NEW, [self.account, 20, account, 0, send, 0]);
        self.call(op::DOMAIN_NEW, [account, 0, domain, NAME, 0, 0]);
        let is_explicit = self.random.below(3);
        self.call(op::DOMAIN_SET, [domain, op::SET_LABELS, send, receive, is_explicit, 0]);
        for place in [domain, account, receive, send] {
            self.remove(place);
        }
        self.call(op::LABEL, [op::LABEL_EXPLICIT, 0, 0, 0, 0, 0]);
    }

    /// More activations than a domain may have.
    fn too_many_activations(&mut self) {
        let frames = layout::MAX_ACTIVATIONS as u64 + 30;
        self.call(op::ACCOUNT_NEW, [layout::ACCOUNT as u64, frames, OWN, 0, 0, 0]);
        self.call(op::DOMAIN_NEW, [OWN, 0, OWN + 1, NAME, 0, 0]);
        for _ in 0..layout::MAX_ACTIVATIONS + 80 {
            self.call(op::ACTIVATION_NEW, [OWN + 1, NOWHERE, 0, 0, 0, 0]);
        }
        self.remove(OWN + 1);
        self.remove(OWN);
    }

    /// A victim that takes no entries, and dies of the first call that reaches it.
    fn call_a_victim(&mut self) {
        let (domain, service, portal) = (OWN, OWN + 1, OWN + 2);
        self.call(op::DOMAIN_NEW, [self.account, 0, domain, NAME, 0, 0]);
        let first = layout::FIRST_FREE as u64;
        let deadlines = self.random.below(2);
        self.call(op::SERVICE_NEW, [domain, NOWHERE, deadlines, first, 0, 0]);
        self.call(op::ENTRY_COPY, [domain, first, 0, service, rights::ALL.into(), 0]);
        self.call(op::PORTAL_NEW, [0, service, 7, portal, 0, 0]);
        for _ in 0..2 {
            // There is no activation yet.
            self.call(portal as usize, [0, 0, 0, 0, 0, Control::NO_WAIT]);
        }
        self.call(op::ACTIVATION_NEW, [domain, NOWHERE, 0, 0, 0, 0]);
        for _ in 0..3 {
            let control = Control(Control::NO_WAIT).delegate(self.semaphore as usize, rights::ALL);
            self.call(portal as usize, [0, 0, 0, 0, 0, control.0]);
        }
        // If there was nothing left for an activation, this waits, or is refused for the service allows no deadline.
        let deadline = operation::clock() + 20_000;
        self.call(portal as usize, [0, 0, 0, 0, deadline, Control::DEADLINE]);
        self.call(portal as usize, [0, 0, 0, 0, 0, Control::NO_WAIT]);
        self.call(portal as usize, [0, 0, 0, 0, 0, Control::NO_WAIT]);
        self.remove(domain);
        self.call(portal as usize, [0, 0, 0, 0, 0, Control::NO_WAIT]);
        self.remove(service);
        self.remove(portal);
    }

    /// A copy whose original went.
    fn revoked(&mut self) {
        let (original, copy) = (OWN, OWN + 1);
        self.call(op::SEMAPHORE_NEW, [self.account, 1, original, 0, 0, 0]);
        self.call(op::ENTRY_COPY, [0, original, 0, copy, rights::ALL.into(), 0]);
        self.remove(original);
        let status = operation::v(Entry(copy as usize)).err().map_or(0, |error| error as u64);
        self.histogram.count(histogram::V, status);
        self.remove(copy);
    }

    /// Aborts whatever a thread of ours waits for.
    pub fn cancel(&mut self, sleeper: &Thread) {
        operation::yield_now();
        self.call(op::THREAD_EX_REGS, [sleeper.entry().0 as u64, NEVER, NEVER, 0, 0, 0]);
        operation::yield_now();
    }

    /// Properties of our own activation that nothing here depends on, the log, a page that is not there.
    fn properties(&mut self) {
        let pointer = self.random.one(&[0, 0x1000, layout::USER_END, NEVER]);
        self.call(op::ACTIVATION_SET, [op::ACTIVATION_THREAD_POINTER, pointer, 0, 0, 0, 0]);
        self.call(op::ACTIVATION_SET, [op::ACTIVATION_THREAD_POINTER, 0, 0, 0, 0, 0]);
        self.call(op::MAP, [self.victim, NOWHERE, NOWHERE, 0, rights::MAP_READ, 0]);
        let bytes = self.random.one(&[0, 0, 0, 257, 258, NEVER]);
        self.call(op::LOG, [bytes, 0, 0, 0, 0, 0]);
    }

    /// Calls our own service: a call and a return.
    fn call_ourselves(&mut self, stage: &Stage) {
        let Some(portal) = stage.portal else { return };
        for number in 0..4 {
            let length = if number == 3 { self.random.below(100) } else { 0 };
            if self.call(portal.0, [0, number, 0, 0, 0, length]) == 0 {
                self.histogram.count(layout::RETURN, 0);
            }
        }
    }
}
