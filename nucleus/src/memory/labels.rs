//! Where labels are: nodes are small objects, charged to the account whose labels they are of ([`flow`]).

use super::{frames, slab};
use crate::arch::memory::DIRECT;
use crate::cpus::cpu;
use crate::objects::{Account, Cpu, Domain, Labelled, OPEN, PortalLabels, Stage, Stop, USUAL};
use crate::pointer::{Fresh, Held, Nucleus, Ref};
use abi::{Error, MAX_PORTAL_LABELS};
use core::cell::Cell;
use flow::rules::{self, Labels, Work};
use flow::{Exhausted, Id, Label, Memory, Node, Owner, Pool, State};

/// A node's number is its address in the direct map, in granules.
const GRANULE: usize = 64;

/// See the module.
pub struct Nodes {
    held: Held,
    /// Why there was no room for the last one that was asked for.
    refused: Cell<Error>,
    /// The last one that was given back; each begins with the number of the one before. They are freed when the work is done: an account may
    /// end with its last one, and with it a label.
    given_back: Option<Id>,
}

impl Nodes {
    fn address(id: Id) -> usize {
        DIRECT + id.number() as usize * GRANULE
    }
}

impl Memory for Nodes {
    fn node(&self, id: Id) -> &Node {
        // SAFETY: the number is that of a node that was allocated, in the direct map, and the lock is held.
        unsafe { &*(Self::address(id) as *const Node) }
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        // SAFETY: the number is that of a node that was allocated; all of the pool is borrowed, and nothing else leads to nodes.
        unsafe { &mut *(Self::address(id) as *mut Node) }
    }

    fn owner(&self, id: Id) -> Owner {
        frames::record(self.held, frames::frame_of(Self::address(id))).account().address()
    }

    fn allocate(&mut self, owner: Owner) -> Option<Id> {
        // SAFETY: who pays is an account, which is there as long as somebody works for it.
        match slab::allocate_as_it_is::<Node>(unsafe { Ref::new(owner as *mut Account) }) {
            Ok(node) => Id::new(((node.share().address() - DIRECT) / GRANULE) as u32),
            Err(error) => {
                self.refused.set(error);
                None
            }
        }
    }

    fn free(&mut self, id: Id) {
        let before = self.given_back.replace(id).map_or(0, Id::number);
        // SAFETY: it was allocated, nobody has it any more, and it is longer than that.
        unsafe { (Self::address(id) as *mut u32).write(before) };
    }
}

/// What of a pool outlives the work on it.
static STATE: Nucleus<Cell<State>> = Nucleus::new(Cell::new(State::NEW));

/// Works on labels. `payer` pays for what is made.
pub fn with<T>(held: Held, payer: Ref<Account>, work: impl FnOnce(&mut Pool<Nodes>) -> T) -> T {
    let state = STATE.get(held);
    let nodes = Nodes { held, refused: Cell::new(Error::TooManyHandles), given_back: None };
    let mut pool = Pool::resume(nodes, payer.address(), state.get());
    let outcome = work(&mut pool);
    state.set(pool.state());
    let mut next = pool.memory().given_back;
    while let Some(id) = next {
        // SAFETY: it was allocated, nobody has it any more, and it begins with the number of the one before.
        let node = unsafe {
            next = Id::new((Nodes::address(id) as *const u32).read());
            Ref::new(Nodes::address(id) as *mut Node)
        };
        slab::free(node);
    }
    outcome
}

/// Why a node was not made: the account's error, or a label would have more handles that are alike than it has room for.
pub fn refusal(pool: &Pool<Nodes>, _: Exhausted) -> Error {
    pool.memory().refused.get()
}

/// Nodes of labels that are looked at in a step, and comparisons that it makes.
const EFFORT: u32 = 1;

/// What is asked when a domain is made, or gets labels. What was found out stays until [`forget`].
pub const INHERITS: u8 = 2;
/// See [`INHERITS`].
pub const GIVEN: u8 = 3;
/// The least upper bound of two labels is asked for; the greatest lower one is the next.
pub const BOUND: u8 = 4;
/// The label of portals is asked for. What was found out stays.
pub const PORTAL: u8 = 12;
/// What a caller may do is asked, or a domain with a page.
pub const MAY: u8 = 6;
/// Whether a domain may report something to another one is asked.
pub const REPORTS: u8 = 7;
/// Whether two domains may share memory is asked.
pub const SHARE: u8 = 11;
/// Whether a domain may change an object is asked.
pub const CHANGES: u8 = 9;
/// The label of an object is asked for. What was found out stays.
pub const OBJECT: u8 = 8;
/// The same, if nobody names one.
pub const OBJECT_INHERITS: u8 = 10;
/// The labels of a message are asked for.
pub const SENDS: u8 = 13;
/// What becomes of a message is asked, in four ways.
pub const TAKES: u8 = 14;

/// Makes a step of finding out something about some labels, at most seven. `Repeat`: who asks the same again goes on with it.
pub fn ask<T>(
    held: Held,
    rule: u8,
    payer: Ref<Account>,
    labels: &[Label],
    ask: impl FnOnce(&mut Pool, &mut Work) -> Result<T, rules::Stop>,
) -> Result<T, Stop> {
    let (mut ask, mut outcome) = (Some(ask), None);
    step(held, rule, payer, labels, &mut |pool, work| {
        outcome = Some(ask.take().ok_or(rules::Stop::Again)?(pool, work)?);
        Ok(())
    })?;
    outcome.ok_or(Stop::Repeat)
}

#[inline(never)]
fn step(
    held: Held,
    rule: u8,
    payer: Ref<Account>,
    labels: &[Label],
    ask: &mut dyn FnMut(&mut Pool, &mut Work) -> Result<(), rules::Stop>,
) -> Result<(), Stop> {
    // Nobody else has it: what is asked asks nothing.
    let cpu = cpu::this(held);
    let Ok(mut unfinished) = cpu.unfinished.try_borrow_mut() else { return Err(Stop::Repeat) };
    with(held, payer, |pool| {
        unfinished
            .step(
                pool,
                rule,
                labels,
                (EFFORT, matches!(rule, INHERITS | GIVEN | OBJECT | OBJECT_INHERITS | PORTAL)),
                ask,
            )
            .map_err(|stop| match stop {
                rules::Stop::Again => Stop::Repeat,
                rules::Stop::Exhausted => refusal(pool, Exhausted).into(),
            })
    })
}

/// Whether this was asked before, by who asks on this CPU, and what was found out stays.
#[inline(never)]
pub fn knows(held: Held, rule: u8, payer: Ref<Account>, labels: &[Label]) -> bool {
    let cpu = cpu::this(held);
    cpu.unfinished.try_borrow().is_ok_and(|unfinished| with(held, payer, |pool| unfinished.knows(pool, rule, labels)))
}

/// Ends what is being found out for this account, which is about to go.
#[inline(never)]
pub fn forget(payer: Ref<Account>) {
    cpu::all(payer.held()).for_each(|cpu| forget_on(cpu, payer));
}

/// Ends what was found out for this account by who asks on this CPU, and needs it no more. Others go on with theirs.
pub fn forget_here(payer: Ref<Account>) {
    forget_on(cpu::this(payer.held()), payer);
}

#[inline(never)]
fn forget_on(cpu: Ref<Cpu>, payer: Ref<Account>) {
    if let Ok(mut unfinished) = cpu.unfinished.try_borrow_mut()
        && unfinished.payer() == payer.address()
    {
        with(payer.held(), payer, |pool| unfinished.end(pool));
    }
}

/// Frees some of the nodes that nobody refers to any more; true if there are no more. An account that ends with one may leave others.
#[inline(never)]
pub fn tidy(held: Held, payer: Ref<Account>) -> bool {
    const NODES: usize = 2;
    is_tidy(held) || {
        with(held, payer, |pool| pool.tidy(NODES));
        is_tidy(held)
    }
}

/// Whether there are no nodes to free.
#[inline(always)]
pub fn is_tidy(held: Held) -> bool {
    STATE.get(held).get().is_tidy()
}

/// A domain gets labels, which are its from now on. It has the usual ones.
pub fn give(domain: Ref<Domain>, labels: Labels) -> Result<Ref<Labelled>, Error> {
    let mut labelled: Fresh<Labelled> = slab::allocate(domain.account)?;
    *labelled = Labelled {
        now: Cell::new(labels),
        next: Cell::new(None),
        stage: Cell::new(Stage::default()),
        status: Cell::new(0),
        of_portals: Cell::new(None),
    };
    let labelled = labelled.share();
    domain.labels_or_status.set(labelled.address() as u64);
    domain.is_labelled.set(true);
    note(domain, &labels);
    Ok(labelled)
}

/// Where the labels of a domain's portals stand.
pub fn of_portals(domain: Ref<Domain>) -> Result<Ref<PortalLabels>, Error> {
    let labelled = domain.labelled().map_or_else(|| give(domain, USUAL), Ok)?;
    if let Some(labels) = labelled.of_portals.get() {
        return Ok(labels);
    }
    let mut labels: Fresh<PortalLabels> = slab::allocate(domain.account)?;
    *labels = PortalLabels { count: Cell::new(0), labels: [const { Cell::new(OPEN) }; MAX_PORTAL_LABELS] };
    let labels = labels.share();
    labelled.of_portals.set(Some(labels));
    Ok(labels)
}

/// Lets go of a label of the portals of a domain, which is dead; false if there is none left.
pub fn take_of_portals(domain: Ref<Domain>) -> bool {
    let Some(labelled) = domain.labelled() else { return false };
    let Some(labels) = labelled.of_portals.get() else { return false };
    match labels.all().last() {
        Some(label) => {
            labels.count.update(|count| count - 1);
            release_of(domain.account, label);
        }
        None => {
            labelled.of_portals.set(None);
            slab::free(labels);
        }
    }
    true
}

/// Lets go of the labels of a domain, which is dead.
#[inline(never)]
pub fn take(domain: Ref<Domain>) {
    let Some(labelled) = domain.labelled() else { return };
    release(domain, labelled.now.get());
    if let Some(next) = labelled.next.get() {
        release(domain, next);
    }
    domain.is_labelled.set(false);
    domain.labels_or_status.set(labelled.status.get());
    slab::free(labelled);
}

/// The account that pays for a small object.
pub fn payer<T>(object: Ref<T>) -> Ref<Account> {
    frames::record(object.held(), frames::frame_of(object.address())).account()
}

/// The label of what a small object is, which an account pays for.
pub fn of_object<T>(object: Ref<T>) -> Label {
    payer(object).label.get()
}

/// The domain has these labels from now on.
#[inline(never)]
pub fn note(domain: Ref<Domain>, labels: &Labels) {
    domain.is_barred.set(!may_use_plain(domain, labels));
}

/// Whether a domain with these labels may use what has the label {1}: see [`rules::may_use_plain`].
#[inline(never)]
pub fn may_use_plain(domain: Ref<Domain>, labels: &Labels) -> bool {
    with(domain.held(), domain.account, |pool| rules::may_use_plain(pool, labels))
}

/// Whether the domain may change what has the label {1}.
#[inline(never)]
pub fn may_change_plain(domain: Ref<Domain>) -> bool {
    let asked = |labelled: Ref<Labelled>| {
        with(domain.held(), domain.account, |pool| rules::may_change_plain(pool, &labelled.now.get()))
    };
    domain.labelled().is_none_or(asked)
}

/// Lets go of labels that a domain had, or was to have.
pub fn release(domain: Ref<Domain>, labels: Labels) {
    release_both(domain.account, labels);
}

/// Lets go of both labels, of an account.
pub fn release_both(account: Ref<Account>, labels: Labels) {
    release_all(account, &[labels.send, labels.receive]);
}

/// Lets go of a label of an account.
#[inline(never)]
pub fn release_of(account: Ref<Account>, label: Label) {
    release_all(account, &[label]);
}

/// Lets go of labels of an account.
#[inline(never)]
pub fn release_all(account: Ref<Account>, labels: &[Label]) {
    with(account.held(), account, |pool| labels.iter().for_each(|label| pool.release_later(*label)));
}

const _: () = assert!(size_of::<PortalLabels>() == size_of::<Node>());
const _: () = assert!(size_of::<Labelled>() <= 2 * GRANULE && size_of::<Node>() == 4 * GRANULE);
