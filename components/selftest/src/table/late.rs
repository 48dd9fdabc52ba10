//! Calls to services of ours. One whose caller was removed may begin, or end, when the next case runs already: it must find nothing of that
//! case, least of all its entries under indices that were used before.

use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

use abi::NEVER;
use idl::Reply;
use runtime::{Entry, op};

use super::case::text;
use super::places::until;
use super::programs::ANSWER;

/// The calls to one service, and a semaphore that they wait for. It stays for good, as a late call may wait for it.
pub struct Calls {
    semaphore: AtomicU64,
    /// That of the portals of the present case.
    badge: AtomicU64,
    is_open: AtomicU64,
    /// Calls that entered and left, of all cases.
    entered: AtomicU64,
    left: AtomicU64,
}

impl Calls {
    pub const fn new() -> Self {
        let [semaphore, badge, is_open, entered, left] = [const { AtomicU64::new(0) }; 5];
        Self { semaphore, badge, is_open, entered, left }
    }

    /// Begins the next case: ends the calls of the last one. Then nothing is open.
    pub fn begin(&self) -> Result<(), &'static str> {
        if self.semaphore.load(SeqCst) == 0 {
            self.semaphore.store(op::semaphore_new(Entry::OWN, 0).map_err(text)?.0 as u64, SeqCst);
        }
        self.badge.fetch_add(1, SeqCst);
        self.open();
        let are_over = || {
            let _ = self.let_go(1);
            self.left.load(SeqCst) == self.entered.load(SeqCst)
        };
        until(are_over, "a call of the case before does not end")?;
        while op::p(self.semaphore(), 0).is_ok() {}
        self.is_open.store(0, SeqCst);
        Ok(())
    }

    /// Runs `work` for a call of the present case. A late call returns at once.
    pub fn serve(&self, badge: u64, work: impl FnOnce() -> Reply) -> Reply {
        self.entered.fetch_add(1, SeqCst);
        let reply = if badge == self.badge() { work() } else { Reply::word(ANSWER) };
        self.left.fetch_add(1, SeqCst);
        reply
    }

    pub fn badge(&self) -> u64 {
        self.badge.load(SeqCst)
    }

    /// The semaphore that calls wait for.
    pub fn semaphore(&self) -> Entry {
        Entry(self.semaphore.load(SeqCst) as usize)
    }

    pub fn wait(&self) {
        let _ = op::p(self.semaphore(), NEVER);
    }

    /// Lets so many that wait go on.
    pub fn let_go(&self, sleepers: u64) -> Result<(), &'static str> {
        (0..sleepers).try_for_each(|_| op::v(self.semaphore())).map_err(text)
    }

    /// Lets a thread go on that looks at [`Self::is_open`] all the time.
    pub fn open(&self) {
        self.is_open.store(1, SeqCst);
    }

    pub fn is_open(&self) -> bool {
        self.is_open.load(SeqCst) != 0
    }
}
