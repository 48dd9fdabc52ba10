//! Drawing calls and making them.
//!
//! Things that the calls act on stand at fixed indices of the child's table: [`THINGS`]. Some are made
//! before the first call, all are made and destroyed by the calls. Operands are drawn from what makes
//! sense at their place, and in half of the calls one or more are replaced by something else.
//!
//! # What is not done
//! The child must live to report. So it never names its own domain where that would end it or take its
//! memory away, never waits without a deadline, does not return (it was not called) and traverses no
//! call entry of others. A call that could is drawn again with the victim in place of ourselves.

use runtime::abi::rights::Kind;
use runtime::abi::{Control, NEVER, layout, op, rights};
use runtime::entry::Entry;
use runtime::op as operation;

use fuzzer::histogram::{self, Histogram};
use tool::random::Random;

use crate::calls::{Child, FIRST, PAGE, THINGS};
use crate::scenes::Stage;
use crate::storm::{self, Storm};

/// Where victims get it.
const TARGET: u64 = 0x5000_0000;
/// Calls after which all things are re-created, so that accounts and tables do not stay full.
const ROUND: u64 = 300;

/// Calls that may meet a dead victim before another one is made.
const ENOUGH: u64 = 8;

/// Operations that are drawn.
const OPERATIONS: [usize; 28] = [
    op::THREAD_ID,
    op::CLOCK,
    op::CALLER,
    op::YIELD,
    op::DOMAIN_NEW,
    op::DOMAIN_KILL,
    op::DOMAIN_SET,
    op::ACCOUNT_NEW,
    op::ACCOUNT_MOVE,
    op::ACTIVATION_NEW,
    op::THREAD_NEW,
    op::THREAD_SCHEDULE,
    op::ENTRY_COPY,
    op::ENTRY_REMOVE,
    op::ENTRY_REVOKE,
    op::MAP,
    op::UNMAP,
    op::DRAW,
    op::SERVICE_NEW,
    op::PORTAL_NEW,
    op::SEMAPHORE_NEW,
    op::PORT_NEW,
    op::INTERRUPT_BIND,
    op::IO,
    op::DISPATCH,
    op::INFO,
    op::ENTRY_INFO,
    op::IPC,
];

/// Makes `count` calls.
pub fn run(seed: u64, count: u64) -> Histogram {
    // The page that is mapped must be there: written once.
    // SAFETY: an address of the heap that nobody else uses; the pager brings the page.
    unsafe { core::ptr::write_volatile(PAGE as *mut u64, 1) };
    let mut child = Child {
        random: Random(seed),
        histogram: Histogram::empty(),
        victim: 0,
        account: 0,
        semaphore: 0,
        refused_by_dead: 0,
        sent_to: FIRST,
    };
    let stage = Stage::new();
    let storm = Storm::begin(&mut child);
    for call in 0..count {
        if call % ROUND == 0 || child.refused_by_dead >= ENOUGH {
            child.start_again();
        }
        child.step(&stage, &storm);
    }
    stage.end(&mut child);
    storm.end(&mut child);
    child.clear();
    child.histogram
}

impl Child {
    /// Removes everything that was made.
    fn clear(&mut self) {
        // Domains before accounts: an account goes when nothing lives on it.
        for index in FIRST..FIRST + THINGS {
            let _ = operation::entry_remove(Entry::OWN, Entry(index as usize));
        }
    }

    /// Removes everything and makes what calls need.
    fn start_again(&mut self) {
        self.clear();
        self.refused_by_dead = 0;
        self.account = FIRST;
        self.victim = FIRST + 1;
        self.semaphore = FIRST + 2;
        let frames = 40;
        self.call(op::ACCOUNT_NEW, [layout::ACCOUNT as u64, frames, self.account, 0, 0, 0]);
        self.call(op::DOMAIN_NEW, [self.account, 0, self.victim, u64::from_le_bytes(*b"victim\0\0"), 0, 0]);
        self.call(op::SEMAPHORE_NEW, [self.account, 1, self.semaphore, 0, 0, 0]);
    }

    fn step(&mut self, stage: &Stage, storm: &Storm) {
        if self.random.once_in(6) {
            return storm.step(self);
        }
        if self.random.once_in(16) {
            return self.scene(stage);
        }
        match self.random.below(15) {
            0 => self.semaphores(),
            4 => self.ports(),
            2 => self.calls(),
            // Nobody called us.
            3 if self.random.once_in(4) => drop(self.call(layout::RETURN, [0; 6])),
            1 => {
                // An index where no call entry can stand: the things (no portals to others are made), or beyond.
                let wild = [FIRST + THINGS + 1, 1 << 10, 1 << 20, u64::MAX / layout::ENTRY_BYTES as u64];
                let index = self.random.one(&wild);
                self.call(index as usize, [0; 6]);
            }
            _ => {
                let index = self.random.one(&OPERATIONS);
                let mut words = self.sensible(index);
                if self.random.once_in(2) {
                    let place = self.random.below(6) as usize;
                    words[place] = self.anything();
                }
                self.protect(index, &mut words);
                if words[0] == self.victim && self.random.once_in(16) {
                    // In the middle of a storm.
                    words[0] = storm::any_domain(&mut self.random);
                }
                self.call(index, words);
            }
        }
    }

    fn semaphores(&mut self) {
        let index = if self.random.once_in(3) { self.thing() } else { self.semaphore };
        // The same numbers are operations of ports: see [`Self::ports`].
        match operation::entry_info(Entry::OWN, Entry(index as usize)) {
            Ok((Kind::Call | Kind::Port, _)) | Err(_) => return,
            _ => {}
        }
        let (row, status) = if self.random.once_in(2) {
            (histogram::V, operation::v(Entry(index as usize)))
        } else {
            let deadline = if self.random.once_in(8) { operation::clock() + self.random.below(20_000) } else { 0 };
            (histogram::P, operation::p(Entry(index as usize), deadline))
        };
        self.histogram.count(row, status.err().map_or(0, |error| error as u64));
    }

    /// Sends to a port, or takes a message there, in all sorts of ways.
    fn ports(&mut self) {
        let takes = self.random.once_in(3);
        // Most of what is taken was sent just before.
        let index = if takes && !self.random.once_in(4) { self.sent_to } else { self.of_kind(Kind::Port) };
        let found = operation::entry_info(Entry::OWN, Entry(index as usize));
        if !found.is_ok_and(|(kind, _)| kind == Kind::Port) {
            return;
        }
        let once = |this: &mut Self, count| if this.random.once_in(count) { this.anything() } else { 0 };
        let (row, words) = if !takes {
            // A sixth of them fits any port.
            let sizes = [1, 64, 65, 2048, 4096, 4097, u64::from(u32::MAX >> 8)];
            let bytes = if self.random.once_in(6) { 0 } else { self.random.one(&sizes) };
            let along = if self.random.once_in(6) { self.thing() } else { 0 };
            let what = op::SEND | bytes << 8 | along << 32;
            (histogram::SEND, [what, once(self, 12), once(self, 12), 0, 0, 0])
        } else {
            let until = if self.random.once_in(8) { operation::clock() + self.random.below(20_000) } else { 0 };
            let what = if self.random.once_in(16) { self.anything() & !0xff } else { 0 };
            (histogram::RECEIVE, [op::RECEIVE | what, until, once(self, 6), 0, 0, 0])
        };
        let status = self.enter(index as usize, words);
        if !takes && status == 0 {
            self.sent_to = index;
        }
        self.histogram.count(row, status);
    }

    /// An index of a thing.
    fn thing(&mut self) -> u64 {
        FIRST + self.random.below(THINGS)
    }

    /// An index to fill.
    fn vacancy(&mut self) -> u64 {
        FIRST + 3 + self.random.below(THINGS - 3)
    }

    /// An index where something of this kind stands, if a few looks find one.
    fn of_kind(&mut self, wanted: Kind) -> u64 {
        for _ in 0..32 {
            let index = self.thing();
            if matches!(operation::entry_info(Entry::OWN, Entry(index as usize)), Ok((kind, _)) if kind == wanted) {
                return index;
            }
        }
        self.thing()
    }

    /// An index where something stands that can be spared.
    fn filled(&mut self) -> u64 {
        for _ in 0..8 {
            let index = self.vacancy();
            let info = operation::entry_info(Entry::OWN, Entry(index as usize));
            if !matches!(info, Ok((Kind::Empty, _)) | Err(_)) {
                return index;
            }
        }
        self.vacancy()
    }

    /// An index of a victim's table, which is of the smallest size.
    fn in_victim(&mut self) -> u64 {
        layout::FIRST_FREE as u64 + self.random.below((layout::TABLE_ENTRIES - layout::FIRST_FREE) as u64)
    }

    /// Calls a server that cannot answer: one of ours, for which there is no activation, or a victim's.
    fn calls(&mut self) {
        let index = self.of_kind(Kind::Call) as usize;
        if matches!(operation::entry_info(Entry::OWN, Entry(index)), Ok((Kind::Call, _))) {
            self.call(index, [0, 0, 0, 0, 0, Control::NO_WAIT]);
        }
    }

    /// Operands that make sense.
    fn sensible(&mut self, index: usize) -> [u64; 6] {
        let (victim, account, semaphore) = (self.victim, self.account, self.semaphore);
        let place = self.vacancy();
        let page = TARGET + self.random.below(16) * 0x1000;
        let stack = layout::STACKS_START + (1 + self.random.below(8)) * layout::STACK_BYTES;
        let map = self.random.one(&[rights::MAP_READ, rights::MAP_READ | rights::MAP_WRITE]);
        let domains = [0, victim, layout::DOMAIN as u64];
        match index {
            op::DOMAIN_NEW => [account, 0, place, u64::from_le_bytes(*b"fuzz-new"), 0, 0],
            op::DOMAIN_KILL => [self.of_kind(Kind::Domain), self.random.below(256), 0, 0, 0, 0],
            op::DOMAIN_SET => match self.random.below(3) {
                0 => [victim, op::SET_FAULT_RANGE, self.random.below(4), TARGET, TARGET + 0x1_0000, 0],
                1 => [victim, op::SET_DEATH_SEMAPHORE, semaphore, 0, 0, 0],
                _ => [victim, op::SET_MAX_PRIORITY, self.random.below(16), 0, 0, 0],
            },
            op::ACCOUNT_NEW => [self.of_kind(Kind::Account), self.random.below(4), place, 0, 0, 0],
            op::ACCOUNT_MOVE => {
                let own = layout::ACCOUNT as u64;
                // Of the last neither is the other's parent.
                let (from, to) = self.random.one(&[(own, account), (account, own), (account, account)]);
                [from, to, self.random.below(3), 0, 0, 0]
            }
            op::ACTIVATION_NEW => [victim, stack, 0, 0, 0, 0],
            op::THREAD_NEW => [victim, layout::PROGRAM_START, stack, 0, self.random.below(8) | 1000 << 8, place],
            op::THREAD_SCHEDULE => {
                let cpus = self.random.one(&[0, 1, 1 << 61, 1 << 62, 1 << 63]);
                [self.of_kind(Kind::Thread), self.random.below(8) | 1000 << 8, cpus, 0, 0, 0]
            }
            op::ENTRY_COPY => {
                let from = self.filled();
                let from = self.random.one(&[semaphore, account, victim, from]);
                let rights = self.random.below(32) | u64::from(rights::COPY);
                match self.random.below(4) {
                    0 => [0, from, victim, self.in_victim(), rights, 0],
                    1 => [victim, self.in_victim(), 0, place, rights, 0],
                    _ => [0, from, 0, place, rights, 0],
                }
            }
            op::ENTRY_REMOVE | op::ENTRY_REVOKE => [0, self.filled(), 0, 0, 0, 0],
            op::MAP => [self.random.one(&[victim, victim, victim, 0]), PAGE, page, 0, map, 0],
            op::UNMAP => [victim, page, 0, rights::MAP_READ | rights::UNMAP_SELF, 0, 0],
            op::DRAW => [self.thing(), account, victim, page, 0, map],
            op::SERVICE_NEW => match self.random.below(2) {
                0 => [victim, layout::PROGRAM_START, 0, self.in_victim(), 0, 0],
                _ => [victim, layout::PROGRAM_START, op::SERVICE_DEADLINE, 0, 0, 0],
            },
            op::PORTAL_NEW => {
                let service = self.of_kind(Kind::Service);
                self.random.one(&[[victim, service, 7, 0, 0, 0], [0, service, 7, place, 0, 0]])
            }
            op::SEMAPHORE_NEW => [account, self.random.below(3), place, 0, 0, 0],
            op::PORT_NEW => {
                let size = self.random.one(&[0, 64, 2048, 4096]) | (1 + self.random.below(16)) << 16;
                let inbox = if self.random.once_in(3) { self.of_kind(Kind::Port) } else { 0 };
                [account, size, place, 0, inbox, self.random.below(1 << 48)]
            }
            op::INTERRUPT_BIND => [self.thing(), semaphore, 0, 0, 0, 0],
            op::IO => [self.thing(), self.random.below(8), 0, op::IO_READ, 0, 0],
            op::INFO => [self.thing(), self.random.below(5), 0, 0, 0, 0],
            op::ENTRY_INFO => [self.random.one(&domains), self.thing(), 0, 0, 0, 0],
            _ => [0; 6],
        }
    }

    /// Any word: small numbers, indices, addresses of all kinds.
    fn anything(&mut self) -> u64 {
        let any = self.random.any();
        match self.random.below(10) {
            0 => self.random.below(64),
            1 | 2 => self.thing(),
            3 => self.random.below(1100),
            4 => TARGET + self.random.below(64) * 0x1000,
            5 => TARGET + self.random.below(0x10000),
            6 => 0xffff_8000_0000_0000 | any & 0x7fff_ffff_f000,
            7 => self.random.one(&[0x8000_0000_0000, layout::USER_END, layout::USER_END - 0x1000, NEVER, 1 << 63]),
            8 => 1 << self.random.below(64),
            _ => any,
        }
    }

    /// Is it an index of something that this program lives on? All of the table outside of the things.
    fn is_ours(index: u64) -> bool {
        index < layout::MAX_TABLE_ENTRIES as u64 && !(FIRST..FIRST + THINGS).contains(&index)
    }

    /// Replaces operands that would end this program instead of testing the nucleus.
    fn protect(&mut self, index: usize, words: &mut [u64; 6]) {
        let (victim, vacancy) = (self.victim, self.vacancy());
        match index {
            // Our own domain, under whatever index, must not be killed, unmapped or redirected.
            op::DOMAIN_KILL | op::DOMAIN_SET | op::UNMAP | op::ACTIVATION_NEW | op::THREAD_NEW | op::DRAW => {
                let place = if index == op::DRAW { 2 } else { 0 };
                if Self::is_ours(words[place]) || self.is_own_domain(words[place]) {
                    words[place] = victim;
                }
            }
            // A call to a service of ours would run here.
            op::SERVICE_NEW if Self::is_ours(words[0]) || self.is_own_domain(words[0]) => words[0] = victim,
            // A thread 0 is the running one.
            op::THREAD_SCHEDULE if Self::is_ours(words[0]) => words[0] = vacancy,
            op::MAP => {
                words[1] = if words[1] == PAGE { PAGE } else { TARGET };
                // Never a grant of what we have.
                words[4] &= !rights::MAP_GRANT;
            }
            op::ENTRY_REMOVE | op::ENTRY_REVOKE => {
                let own = words[0] == 0 || Self::is_ours(words[0]) || self.is_own_domain(words[0]);
                if own && Self::is_ours(words[1]) {
                    words[1] = vacancy;
                }
            }
            // Nothing may be put where the runtime would take it for its own.
            op::DOMAIN_NEW => Self::fill(&mut words[2], vacancy),
            op::ACCOUNT_NEW | op::SEMAPHORE_NEW | op::PORT_NEW => Self::fill(&mut words[2], vacancy),
            // Nor copied to where the next call finds it.
            op::ENTRY_COPY if (words[0] == 0 || Self::is_ours(words[0])) && Self::is_ours(words[1]) => {
                words[1] = self.semaphore;
                Self::fill(&mut words[3], vacancy);
            }
            op::ENTRY_COPY if words[2] == 0 || self.is_own_domain(words[2]) || Self::is_ours(words[2]) => {
                Self::fill(&mut words[3], vacancy);
            }
            op::PORTAL_NEW if words[0] == 0 || self.is_own_domain(words[0]) || Self::is_ours(words[0]) => {
                Self::fill(&mut words[3], vacancy);
            }
            _ => {}
        }
        if index == op::THREAD_NEW {
            Self::fill(&mut words[5], vacancy);
        }
        // Our account may give but must keep something for our own stack and heap.
        if index == op::ACCOUNT_MOVE {
            words[2] &= !0x3f | 3;
        }
        if matches!(index, op::ACCOUNT_NEW | op::DOMAIN_NEW | op::SEMAPHORE_NEW | op::PORT_NEW)
            && Self::is_ours(words[0])
        {
            words[0] = self.account;
        }
    }

    fn fill(word: &mut u64, vacancy: u64) {
        if *word == 0 || Self::is_ours(*word) {
            *word = vacancy;
        }
    }

    /// Can the index be a copy of our own domain's entry? Copies of it are never made, so only its own.
    fn is_own_domain(&self, index: u64) -> bool {
        index == layout::DOMAIN as u64
    }
}
