//! Making and freeing domains; the list of all domains.

use super::thread;
use crate::cpus::{counters, cpu, timer};
use crate::memory::{frames, labels, own, shapes, slab, space};
use crate::objects::{Account, Activation, Domain, PerCpu, SLOW_FPU, Stop, USUAL};
use crate::pointer::{Fresh, Link, Nucleus, Ref};
use crate::report::trace;
use abi::{Error, MAX_CPUS, MAX_SLICE_MICROSECONDS};
use core::cell::Cell;
use flow::rules::Labels;

/// The first version of a domain's labels.
const FIRST_VERSION: u64 = 1;

/// Slice of a domain's orphan thread.
const ORPHAN_SLICE_MICROSECONDS: u64 = 10_000;

/// Limit on how many makers a domain has: its maker, that one's maker, and so on.
const MAX_NESTING: u8 = abi::MAX_NESTING as u8;

struct All {
    first: Cell<Link<Domain>>,
    count: Cell<u64>,
    /// One for each CPU: with one for all, two walks at the same time would restart each other forever.
    walks: [Walk; MAX_CPUS],
}

/// A walk along the list: the walker, and its place.
struct Walk {
    walker: Cell<Link<Activation>>,
    cursor: Cell<Link<Domain>>,
}

static ALL: Nucleus<All> = Nucleus::new(All {
    first: Cell::new(None),
    count: Cell::new(0),
    walks: [const { Walk { walker: Cell::new(None), cursor: Cell::new(None) } }; MAX_CPUS],
});

/// Domains passed between two preemption points.
const DOMAINS_PASSED: usize = 32;

/// The newest domain that `is_seen` accepts, with a number below `position` (0: any number). `Repeat` after
/// `DOMAINS_PASSED` domains: the restarted operation of `walker` continues there, or from the first domain if another
/// walked on this CPU meanwhile.
pub fn newest_below(
    walker: Ref<Activation>,
    position: u64,
    is_seen: impl Fn(Ref<Domain>) -> bool,
) -> Result<Link<Domain>, Stop> {
    let held = walker.held();
    let all = ALL.get(held);
    let walk = &all.walks[cpu::this(held).number as usize % MAX_CPUS];
    let goes_on = walker.progress.get() != 0 && walk.walker.get() == Some(walker);
    let mut found = if goes_on { walk.cursor.get() } else { all.first.get() };
    for _ in 0..DOMAINS_PASSED {
        match found {
            Some(domain) if position != 0 && domain.number >= position || !is_seen(domain) => found = domain.next.get(),
            _ => return Ok(found),
        }
    }
    walker.progress.set(1);
    walk.walker.set(Some(walker));
    walk.cursor.set(found);
    Err(Stop::Repeat)
}

/// Makes a domain charged to `account`, with the smallest table. The labels become the domain's; an error releases them.
pub fn new(
    account: Ref<Account>,
    flags: u64,
    name: [u8; 16],
    maker: Link<Domain>,
    own: Labels,
) -> Result<Ref<Domain>, Error> {
    let made = new_usual(account, flags, name, maker);
    if own == USUAL {
        return made;
    }
    let given = made.and_then(|domain| match labels::give(domain, own) {
        Ok(_) => Ok(domain),
        Err(error) => {
            free(domain);
            Err(error)
        }
    });
    if given.is_err() {
        labels::release_both(account, own);
    }
    given
}

fn new_usual(account: Ref<Account>, flags: u64, name: [u8; 16], maker: Link<Domain>) -> Result<Ref<Domain>, Error> {
    let held = account.held();
    let depth = maker.map_or(0, |maker| maker.depth + 1);
    if depth > MAX_NESTING {
        return Err(Error::TooNested);
    }
    if flags & !(abi::op::DOMAIN_FPU | abi::op::DOMAIN_TRUSTED) != 0 {
        return Err(Error::BadArgument);
    }
    let mut domain: Fresh<Domain> = allocate(account)?;
    let root = match space::new_root(account) {
        Ok(root) => root,
        Err(error) => {
            release(domain.share());
            return Err(error);
        }
    };
    domain.root = root;
    domain.account = account;
    domain.as_caller.set(FIRST_VERSION);
    domain.low.set(frames::address_of(own::zeros()));
    domain.cpus.set(maker.map_or(u64::MAX, |maker| maker.cpus.get()));
    let all = ALL.get(held);
    domain.number = all.count.get() + 1;
    domain.name = name;
    domain.maker = maker;
    domain.depth = depth;
    let domain = domain.share();
    domain.per_cpus().for_each(|per_cpu| per_cpu.root.set(root));
    domain.set_slow(SLOW_FPU, flags & abi::op::DOMAIN_FPU != 0);
    let slice = timer::from_microseconds(ORPHAN_SLICE_MICROSECONDS);
    // The longest part comes last, so that a refusal takes few instructions.
    let made = thread::new_empty(domain, 0, slice, true).and_then(|thread| {
        domain.orphan_thread.set(Some(thread));
        domain.begin_table()
    });
    if let Err(error) = made {
        thread::free_first(domain);
        domain.free_table();
        space::free_root(domain);
        release(domain);
        return Err(error);
    }
    all.count.set(domain.number);
    counters::all(held).domains.up();
    domain.max_priority.set(maker.map_or(63, |maker| maker.max_priority.get()));
    domain.max_slice.set(maker.map_or(MAX_SLICE_MICROSECONDS as u32, |maker| maker.max_slice.get()));
    domain.time_share.set(maker.map_or(0, |maker| maker.time_share.get()));
    domain.next.set(all.first.get());
    if let Some(next) = domain.next.get() {
        next.previous.set(Some(domain));
    }
    all.first.set(Some(domain));
    trace::domain(domain);
    Ok(domain)
}

/// Frees a domain at the end of its removal, with its orphan thread, page-table root and portal table.
pub fn free(domain: Ref<Domain>) {
    let held = domain.held();
    if let Some(thread) = domain.orphan_thread.get() {
        cpu::all(held).for_each(|cpu| cpu.again.unmark(thread.number as usize));
    }
    thread::free_first(domain);
    shapes::disown(domain);
    space::free_root(domain);
    domain.free_table();
    let all = ALL.get(held);
    for walk in all.walks.iter().take(cpu::present(held)).filter(|walk| walk.cursor.get() == Some(domain)) {
        walk.cursor.set(domain.next.get());
    }
    match domain.previous.get() {
        Some(previous) => previous.next.set(domain.next.get()),
        None => all.first.set(domain.next.get()),
    }
    if let Some(next) = domain.next.get() {
        next.previous.set(domain.previous.get());
    }
    release(domain);
}

const _: () = assert!(bytes_with(FEW) <= 512, "its granules double");
const fn bytes_with(cpus: usize) -> usize {
    size_of::<Domain>() + cpus * size_of::<PerCpu>()
}

/// Allocates a cleared domain with its per-CPU state: for [`FEW`] CPUs if the machine has no more.
fn allocate(account: Ref<Account>) -> Result<Fresh<Domain>, Error> {
    let held = account.held();
    // SAFETY: both sizes begin with room for a domain, and zeros are a valid domain.
    unsafe {
        if cpu::present(held) <= FEW {
            slab::allocate::<Bytes<{ bytes_with(FEW) }>>(account)
                .map(|bytes| Fresh::new(bytes.share().pointer().cast()))
        } else {
            slab::allocate::<Bytes<{ bytes_with(MAX_CPUS) }>>(account)
                .map(|bytes| Fresh::new(bytes.share().pointer().cast()))
        }
    }
}

fn release(domain: Ref<Domain>) {
    let held = domain.held();
    // SAFETY: it was allocated with this size: the number of CPUs is known before the first domain is made.
    unsafe {
        if cpu::present(held) <= FEW {
            slab::free::<Bytes<{ bytes_with(FEW) }>>(Ref::new(domain.pointer().cast()));
        } else {
            slab::free::<Bytes<{ bytes_with(MAX_CPUS) }>>(Ref::new(domain.pointer().cast()));
        }
    }
}

#[repr(align(8))]
struct Bytes<const COUNT: usize>([u8; COUNT]);

/// CPUs for which a domain has per-CPU state on most machines.
const FEW: usize = 4;
