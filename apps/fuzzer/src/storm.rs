//! A storm: small domains ([`crate::minion`]) that call each other, map to each other, wait and die, threads of ours
//! that call them, and a director that kills, cuts, revokes, unmaps and rebuilds in the middle of it.
//!
//! Minions get every page, their code included, from a pager of ours when they touch it, so upcalls are part of it.
//! Everything has a bounded life: a wait for ever is cancelled, killed or loses its semaphore sooner or later, and
//! at the end all of it goes.

use core::sync::atomic::{AtomicU64, Ordering};

use idl::Delegate;
use protocols::sigma0::Sigma0Client;
use runtime::abi::rights::{MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use runtime::abi::{Control, Error, MAX_DEPTH, NEVER, PAGE_BYTES, layout, op, rights};
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::server::{self, ServeWord};
use runtime::thread::Thread;
use runtime::{arch, op as operation};

use crate::calls::{Child, PAGE};
use crate::counts::{COUNTS, Counts};
use crate::minion::{LINKS, NEXT, RECEIVE, RECEIVERS, SEMAPHORE, SERVICE, WINDOW, WINDOW_PAGES};
use fuzzer::histogram;
use tool::random::Random;

/// Indices of our table from here on: after those of scenes.
const FIRST: u64 = crate::calls::FIRST + crate::calls::THINGS + 80;
const ACCOUNT: u64 = FIRST;
const SHARED: u64 = FIRST + 1;
const IDLE: u64 = FIRST + 2;
const MINIONS: u64 = 6;
/// Indices of a minion.
const INDICES: u64 = 8;
const MINION: u64 = FIRST + 8;

/// Activations of a minion. The first has more than a chain may link, and calls itself.
const fn activations(minion: u64) -> u64 {
    if minion == 0 { MAX_DEPTH as u64 + 4 } else { 6 }
}
/// Frames of a minion's account: now and then too few.
const fn frames(minion: u64) -> u64 {
    38 + activations(minion)
}
/// Stacks of the minion that has most: of its activations, of its thread.
const STACKS: u64 = activations(0) + 1;
/// Where the stacks of a minion begin in ours.
fn stacks_before(minion: u64) -> u64 {
    (0..minion).map(|before| activations(before) + 1).sum()
}
const ALL_STACKS: usize = (activations(0) + 1 + (MINIONS - 1) * (activations(1) + 1)) as usize;
/// Threads of ours that call.
const CALLERS: usize = 3;
/// Priority of programs.
const PRIORITY: u64 = 16;
/// Slices are short, so that much is cut in the middle.
const SLICE_MICROSECONDS: u64 = 100;
const NAME: u64 = u64::from_le_bytes(*b"minion\0\0");

const PAGE_SIZE: u64 = PAGE_BYTES as u64;

/// The stacks, as we see them.
#[repr(C, align(4096))]
struct Pages([[u8; PAGE_BYTES]; ALL_STACKS]);
static mut PAGES: Pages = Pages([[0; PAGE_BYTES]; ALL_STACKS]);

/// The ticket of the account for pages that only one minion has: those can be torn away. 0 = there is no such account.
static TICKET: AtomicU64 = AtomicU64::new(0);
/// Frames of that account.
const TEARABLE: u64 = 24;
/// Where we draw these pages, side by side, before a minion gets them.
const DRAWN: u64 = layout::FREE_START + (64 << 20);

static OVER: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);

/// Index of a minion's domain in our table; then come its service, our portal to it, its account, its thread.
fn domain(minion: u64) -> u64 {
    MINION + minion * INDICES
}
fn service(minion: u64) -> u64 {
    domain(minion) + 1
}
fn portal(minion: u64) -> u64 {
    domain(minion) + 2
}
fn account(minion: u64) -> u64 {
    domain(minion) + 3
}
fn thread(minion: u64) -> u64 {
    domain(minion) + 4
}

fn stack_top(stack: u64) -> u64 {
    layout::STACKS_START + (stack + 1) * PAGE_SIZE
}

/// Where we see a minion's stack.
fn own_stack(minion: u64, number: u64) -> u64 {
    &raw const PAGES as u64 + (stacks_before(minion) + number) * PAGE_SIZE
}

/// Any minion's domain.
pub fn any_domain(random: &mut Random) -> u64 {
    domain(random.below(MINIONS))
}

/// Makes a system call that is counted with those of the minions.
fn count_call(row: usize, index: u64, words: [u64; 5], control: u64) -> u64 {
    // SAFETY: nothing here names our own memory, but to map it to minions that can do no harm with it.
    let (status, ..) = unsafe { arch::call(index as usize, words, Control(control)) };
    COUNTS.count(row, status);
    status
}

/// The pager of minions.
struct Pager;

impl ServeWord for Pager {
    fn serve(minion: u64, [address, _, code, ..]: [u64; 5]) -> u64 {
        let mut random = Random(FAULTS.fetch_add(1, Ordering::Relaxed) ^ minion << 32);
        let page = address & !(PAGE_SIZE - 1);
        let map = |source: u64, rights: u64| {
            let words = [domain(minion), source, page, 0, rights];
            count_call(op::MAP, op::MAP as u64, words, 0)
        };
        let (was_there, writes) = (code & 1 != 0, code & 2 != 0);
        let stacks = layout::STACKS_START..stack_top(STACKS - 1);
        let window = WINDOW..WINDOW + WINDOW_PAGES * PAGE_SIZE;
        if random.once_in(200) {
            // It dies while it is served.
            count_call(op::DOMAIN_KILL, op::DOMAIN_KILL as u64, [domain(minion), 5, 0, 0, 0], 0);
        }
        let status = if was_there && (window.contains(&page) || stacks.contains(&page)) {
            count_call(op::UNMAP, op::UNMAP as u64, [domain(minion), page, 0, MAP_READ | UNMAP_SELF, 0], 0)
        } else if Counts::pages().contains(&page) {
            map(page, MAP_READ | MAP_WRITE)
        } else if stacks.contains(&page) {
            let number = ((page - layout::STACKS_START) / PAGE_SIZE).min(activations(minion));
            map(own_stack(minion, number), MAP_READ | MAP_WRITE)
        } else if window.contains(&page) {
            if random.once_in(24) {
                return 1;
            }
            match drawn(&mut random) {
                Some(own) => map(own, MAP_READ | MAP_WRITE | MAP_GRANT),
                None => map(PAGE, MAP_READ | MAP_WRITE),
            }
        } else if was_there || writes {
            return 1;
        } else if (layout::PROGRAM_START..layout::PROGRAM_END).contains(&page) {
            match map(page, MAP_READ | MAP_EXECUTE) {
                status if status == Error::PageRights as u64 => map(page, MAP_READ),
                status => status,
            }
        } else {
            return 1;
        };
        // Two threads may ask for the same page.
        u64::from(status != 0 && status != Error::Occupied as u64)
    }
}

/// A page of its own for a minion, now and then.
fn drawn(random: &mut Random) -> Option<u64> {
    let (ticket, at) = (TICKET.load(Ordering::Relaxed), DRAWN + random.below(TEARABLE) * PAGE_SIZE);
    if ticket == 0 || random.once_in(2) {
        return None;
    }
    // `Occupied`: an earlier page is still there, because it could not be granted.
    let _ = Sigma0Client(Direct(Entry::SIGMA0)).draw_for(ticket, at, 0, MAP_READ | MAP_WRITE);
    Some(at)
}

/// A thread of ours: calls minions until the storm is over.
fn caller(seed: usize) {
    let mut random = Random(seed as u64);
    while OVER.load(Ordering::Relaxed) == 0 {
        let depth = if random.once_in(8) { 40 } else { 0 };
        let index = portal(if depth > 0 { 0 } else { random.below(MINIONS) });
        let script = if depth > 0 { 2 } else { random.any() };
        let mut words = [script, random.any(), depth, 0, 0];
        let control = match random.below(8) {
            0 => Control::NO_WAIT,
            1 => Control::NO_WAIT | random.below(4100),
            2 | 3 | 21..28 => {
                words[4] = operation::clock() + random.below(60_000);
                Control::DEADLINE
            }
            4 => Control(0).delegate(SHARED as usize, rights::ALL).0,
            5 => Control(Control::MINT).delegate(service(random.below(MINIONS)) as usize, 0).0,
            _ => 0,
        };
        match count_call(histogram::OTHER, index, words, control) {
            0 => COUNTS.count(layout::RETURN, 0),
            _ => {
                let deadline = operation::clock() + random.below(400_000);
                if random.once_in(4) {
                    count_call(histogram::V, IDLE, [op::V, 0, 0, 0, 0], 0);
                }
                count_call(histogram::P, IDLE, [op::P, deadline, 0, 0, 0], 0);
            }
        }
    }
}

/// The state of the storm.
pub struct Storm {
    pager: Option<Entry>,
    /// Those of portals which pass windows, to three of eight minions, and which tear pages away, to one.
    shapes: [Option<Owned>; 2],
    /// Pays for pages that may be torn away.
    drawn: Option<Owned>,
    callers: [Option<Thread>; CALLERS],
}

impl Storm {
    /// Lets it begin.
    pub fn begin(child: &mut Child) -> Self {
        let _ = server::activations(4);
        let pager = server::word_service::<Pager>().ok();
        child.call(
            op::ACCOUNT_NEW,
            [layout::ACCOUNT as u64, (0..MINIONS).map(|minion| frames(minion) + 2).sum(), ACCOUNT, 0, 0, 0],
        );
        child.call(op::SEMAPHORE_NEW, [0, 0, IDLE, 0, 0, 0]);
        child.call(op::SEMAPHORE_NEW, [ACCOUNT, 0, SHARED, 0, 0, 0]);
        child.call(op::THREAD_SCHEDULE, [0, PRIORITY | SLICE_MICROSECONDS << 8, 0, 0, 0, 0]);
        let schedule = operation::Schedule { priority: PRIORITY as u8, slice: SLICE_MICROSECONDS as u32 / 2 };
        let callers = [(); CALLERS].map(|()| {
            let seed = child.random.any() as usize;
            Thread::start_with(caller, seed, schedule).ok()
        });
        let shapes = [idl::WINDOW_PORTAL, idl::TORN_PORTAL].map(|specification| server::shape(specification).ok());
        let drawn = operation::account_new(Entry::ACCOUNT, TEARABLE).map(Owned::new).ok();
        let ticket = drawn.as_ref().and_then(|account| {
            let account = Delegate::entry(account.entry().0, rights::ALL);
            Sigma0Client(Direct(Entry::SIGMA0)).manage_account(account).ok()
        });
        TICKET.store(ticket.unwrap_or(0), Ordering::Relaxed);
        let storm = Self { pager, shapes, drawn, callers };
        for minion in 0..MINIONS {
            storm.build(child, minion);
        }
        storm
    }

    /// Replaces a minion by a new one.
    fn build(&self, child: &mut Child, minion: u64) {
        self.raze(child, minion);
        let Some(pager) = self.pager else { return };
        let it = domain(minion);
        let fpu = if child.random.once_in(4) { op::DOMAIN_FPU } else { 0 };
        child.call(op::ACCOUNT_NEW, [ACCOUNT, frames(minion), account(minion), 0, 0, 0]);
        if child.call(op::DOMAIN_NEW, [account(minion), fpu, it, NAME, 0, 0]) != 0 {
            return;
        }
        child.call(op::DOMAIN_SET, [it, op::SET_FAULT_RANGE, 0, 0, layout::PROGRAM_END, 0]);
        child.call(op::DOMAIN_SET, [it, op::SET_FAULT_RANGE, 1, layout::PROGRAM_END, layout::USER_END, 0]);
        child.call(op::DOMAIN_SET, [it, op::SET_DEATH_SEMAPHORE, SHARED, 0, 0, 0]);
        child.call(op::PORTAL_NEW, [it, pager.0 as u64, minion, layout::PAGE_FAULT[0] as u64, 0, 0]);
        // Now and then another minion is the pager of the window: its answer is anything.
        let other = child.random.below(MINIONS);
        let of_window = if child.random.once_in(8) { service(other) } else { pager.0 as u64 };
        child.call(op::PORTAL_NEW, [it, of_window, minion, layout::PAGE_FAULT[1] as u64, 0, 0]);
        for number in 0..activations(minion) {
            let receive = RECEIVE + number % RECEIVERS;
            child.call(op::ACTIVATION_NEW, [it, stack_top(number), receive, 0, 0, 0]);
        }
        if minion == 0 {
            // At the end of a chain there would be no room for the call to the pager.
            for number in 0..activations(0) {
                let page = stack_top(number) - PAGE_SIZE;
                child.call(op::MAP, [it, own_stack(0, number), page, 0, MAP_READ | MAP_WRITE, 0]);
            }
        }
        self.open(child, minion);
        self.share(child, minion);
        self.relink(child, minion);
        if child.random.once_in(2) {
            self.animate(child, minion);
        }
    }

    /// Its service, and our portal to it.
    fn open(&self, child: &mut Child, minion: u64) {
        let entry = crate::arch::service_entry as *const () as u64;
        let flags = if child.random.once_in(4) { 0 } else { op::SERVICE_DEADLINE };
        let shape = match child.random.below(8) {
            0..4 => None,
            4 => self.shapes[1].as_ref(),
            _ => self.shapes[0].as_ref(),
        };
        let shape = shape.map_or(0, |shape| shape.entry().0 as u64);
        let flags = if shape == 0 { flags } else { 0 };
        child.call(op::SERVICE_NEW, [domain(minion), entry, flags, SERVICE, shape, 0]);
        child.call(op::ENTRY_COPY, [domain(minion), SERVICE, 0, service(minion), rights::ALL.into(), 0]);
        child.call(op::PORTAL_NEW, [0, service(minion), minion, portal(minion), 0, 0]);
    }

    /// The semaphore of all.
    fn share(&self, child: &mut Child, minion: u64) {
        child.call(op::ENTRY_REMOVE, [domain(minion), SEMAPHORE, 0, 0, 0, 0]);
        child.call(op::ENTRY_COPY, [0, SHARED, domain(minion), SEMAPHORE, rights::ALL.into(), 0]);
    }

    /// Its portals to others, and the domain to which it maps.
    fn relink(&self, child: &mut Child, minion: u64) {
        for link in LINKS {
            child.call(op::ENTRY_REMOVE, [domain(minion), link, 0, 0, 0, 0]);
            let to = if minion == 0 && link == LINKS[0] { 0 } else { child.random.below(MINIONS) };
            let to = service(to);
            child.call(op::PORTAL_NEW, [domain(minion), to, minion, link, 0, 0]);
        }
        child.call(op::ENTRY_REMOVE, [domain(minion), NEXT, 0, 0, 0, 0]);
        let next = domain(child.random.below(MINIONS));
        let control = if child.random.once_in(8) { rights::CONTROL } else { 0 };
        child.call(op::ENTRY_COPY, [0, next, domain(minion), NEXT, (rights::WRITE | control).into(), 0]);
    }

    /// A thread of its own.
    fn animate(&self, child: &mut Child, minion: u64) {
        child.call(op::ENTRY_REMOVE, [0, thread(minion), 0, 0, 0, 0]);
        let entry = crate::arch::thread_entry as *const () as u64;
        let schedule = (1 + child.random.below(PRIORITY)) | (20 + child.random.below(100)) << 8;
        let seed = child.random.any();
        let words = [domain(minion), entry, stack_top(activations(minion)), seed, schedule, thread(minion)];
        child.call(op::THREAD_NEW, words);
    }

    /// Removes a minion, in any order.
    fn raze(&self, child: &mut Child, minion: u64) {
        let first = child.random.below(INDICES);
        for number in 0..5 {
            let index = domain(minion) + (first + number) % 5;
            child.call(op::ENTRY_REMOVE, [0, index, 0, 0, 0, 0]);
        }
    }

    /// One intervention.
    pub fn step(&self, child: &mut Child) {
        let minion = child.random.below(MINIONS);
        let it = domain(minion);
        match child.random.below(40) {
            0 => {
                let status = child.random.below(256);
                child.call(op::DOMAIN_KILL, [it, status, 0, 0, 0, 0]);
            }
            1 => self.build(child, minion),
            2 | 3 | 21..28 => {
                let dead = operation::entry_info(Entry(it as usize), Entry(1)).is_err();
                if dead {
                    self.build(child, minion);
                }
            }
            4..=6 => {
                if let Some(caller) = &self.callers[child.random.below(CALLERS as u64) as usize] {
                    child.call(op::THREAD_EX_REGS, [caller.entry().0 as u64, NEVER, NEVER, 0, 0, 0]);
                }
            }
            7 => {
                let entry = crate::arch::thread_entry as *const () as u64;
                child.call(op::THREAD_EX_REGS, [thread(minion), entry, stack_top(activations(minion)), 0, 0, 0]);
            }
            8 => {
                child.call(op::ENTRY_REMOVE, [0, SHARED, 0, 0, 0, 0]);
                child.call(op::SEMAPHORE_NEW, [ACCOUNT, 0, SHARED, 0, 0, 0]);
                for minion in 0..MINIONS {
                    self.share(child, minion);
                }
            }
            9 | 10 => {
                for _ in 0..child.random.below(4) {
                    count_call(histogram::V, SHARED, [op::V, 0, 0, 0, 0], 0);
                }
            }
            11 => {
                child.call(op::ENTRY_REVOKE, [it, SERVICE, 0, 0, 0, 0]);
                for index in [service(minion), portal(minion)] {
                    child.call(op::ENTRY_REMOVE, [0, index, 0, 0, 0, 0]);
                }
                child.call(op::ENTRY_REMOVE, [it, SERVICE, 0, 0, 0, 0]);
                self.open(child, minion);
            }
            12 => self.unmap(child, it),
            13 => {
                let schedule = child.random.below(PRIORITY + 1) | (20 + child.random.below(100)) << 8;
                child.call(op::THREAD_SCHEDULE, [thread(minion), schedule, 0, 0, 0, 0]);
            }
            14 => self.relink(child, minion),
            15 => self.animate(child, minion),
            16 => {
                // Revokes whatever was derived from our page, wherever it is by now; ours stays.
                let taken = child.random.one(&[MAP_READ, MAP_WRITE]);
                child.call(op::UNMAP, [0, PAGE, 0, taken, 0, 0]);
            }
            17 => {
                let page = WINDOW + child.random.below(WINDOW_PAGES) * PAGE_SIZE;
                child.call(op::MAP, [it, PAGE, page, 0, MAP_READ | MAP_WRITE, 0]);
            }
            18 => {
                let frames = child.random.below(8);
                let [from, to] = child.random.one(&[[ACCOUNT, account(minion)], [account(minion), ACCOUNT]]);
                child.call(op::ACCOUNT_MOVE, [from, to, frames, 0, 0, 0]);
            }
            19 => {
                child.call(op::ENTRY_REMOVE, [0, account(minion), 0, 0, 0, 0]);
            }
            20 => {
                child.call(op::YIELD, [0; 6]);
            }
            _ => {
                let deadline = operation::clock() + child.random.below(200_000);
                count_call(histogram::P, IDLE, [op::P, deadline, 0, 0, 0], 0);
            }
        }
    }

    /// Takes pages away from a minion: of its window, its stacks, its code.
    fn unmap(&self, child: &mut Child, it: u64) {
        let (address, order) = match child.random.below(4) {
            0 => (layout::STACKS_START, 3),
            1 => (layout::PROGRAM_START, child.random.below(7)),
            _ => (WINDOW, child.random.below(6)),
        };
        let taken = child.random.one(&[MAP_READ | UNMAP_SELF, MAP_WRITE | UNMAP_SELF, MAP_READ]);
        child.call(op::UNMAP, [it, address, order, taken, 0, 0]);
    }

    /// Ends it: all minions go, waiters are notified, and the callers see that it is over.
    pub fn end(self, child: &mut Child) {
        OVER.store(1, Ordering::Relaxed);
        for minion in 0..MINIONS {
            self.raze(child, minion);
        }
        child.call(op::ENTRY_REMOVE, [0, SHARED, 0, 0, 0, 0]);
        for caller in self.callers.into_iter().flatten() {
            caller.join();
        }
        child.call(op::ENTRY_REMOVE, [0, ACCOUNT, 0, 0, 0, 0]);
        let _ = Sigma0Client(Direct(Entry::SIGMA0)).forget(TICKET.swap(0, Ordering::Relaxed));
        for page in 0..TEARABLE {
            child.call(op::UNMAP, [0, DRAWN + page * PAGE_SIZE, 0, MAP_READ | UNMAP_SELF, 0, 0]);
        }
        drop(self.drawn);
        COUNTS.add_to(&mut child.histogram);
    }
}
