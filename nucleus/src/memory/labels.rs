//! Memory of labels ([`flow`]): their nodes are small objects, charged to the account that pays for the label.

use super::{frames, slab};
use crate::arch::memory::DIRECT;
use crate::cpus::cpu;
use crate::objects::{Account, Cpu, Domain, Labelled, OPEN, PortalLabels, Stop, USUAL};
use crate::pointer::{Fresh, Held, Nucleus, Ref};
use abi::{Error, MAX_PORTAL_LABELS};
use core::cell::Cell;
use flow::rules::{self, Labels, Work};
use flow::{Exhausted, Id, Label, Memory, Node, Owner, State};

/// Bytes of a granule. A node's number is its offset in the direct map, in granules.
const GRANULE: usize = 64;

/// All labels of the nucleus.
pub type Pool = flow::Pool<Nodes>;

/// The memory of nodes while a [`Pool`] uses it.
pub struct Nodes {
    held: Held,
    /// Why the last allocation failed; `TooManyHandles` if none did.
    refused: Cell<Error>,
    /// Head of the list of nodes to free: each begins with the number of the next. [`with`] frees them after the work,
    /// because freeing the last node of an account may end the account, which releases a label.
    given_back: Option<Id>,
}

impl Nodes {
    fn address(id: Id) -> usize {
        DIRECT + id.number() as usize * GRANULE
    }
}

impl Memory for Nodes {
    fn node(&self, id: Id) -> &Node {
        // SAFETY: the number is that of an allocated node, in the direct map, and the nucleus lock is held.
        unsafe { &*(Self::address(id) as *const Node) }
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        // SAFETY: the number is that of an allocated node. The whole pool is mutably borrowed, and nodes are reached only
        // through it.
        unsafe { &mut *(Self::address(id) as *mut Node) }
    }

    fn owner(&self, id: Id) -> Owner {
        frames::record(self.held, frames::frame_of(Self::address(id))).account().address()
    }

    fn allocate(&mut self, owner: Owner) -> Option<Id> {
        // SAFETY: owners are addresses of accounts, and an account lives as long as work is done for it.
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
        // SAFETY: the node was allocated, nothing refers to it any more, and it is larger than a `u32`.
        unsafe { (Self::address(id) as *mut u32).write(before) };
    }
}

/// The state of the pool between two uses.
static STATE: Nucleus<Cell<State>> = Nucleus::new(Cell::new(State::NEW));

/// Runs `work` on the pool of labels; `payer` pays for new nodes.
pub fn with<T>(held: Held, payer: Ref<Account>, work: impl FnOnce(&mut Pool) -> T) -> T {
    let state = STATE.get(held);
    let nodes = Nodes { held, refused: Cell::new(Error::TooManyHandles), given_back: None };
    let mut pool = Pool::resume(nodes, payer.address(), state.get());
    let outcome = work(&mut pool);
    state.set(pool.state());
    let mut next = pool.memory().given_back;
    while let Some(id) = next {
        // SAFETY: the node was allocated, nothing refers to it any more, and `free` wrote the next number to its start.
        let node = unsafe {
            next = Id::new((Nodes::address(id) as *const u32).read());
            Ref::new(Nodes::address(id) as *mut Node)
        };
        slab::free(node);
    }
    outcome
}

/// The cause of [`Exhausted`]: the account's error, or `TooManyHandles`: a label has no room for another handle so alike.
pub fn refusal(pool: &Pool, _: Exhausted) -> Error {
    pool.memory().refused.get()
}

/// How much a step does: nodes of labels that it looks at, and comparisons.
const EFFORT: u32 = 1;

/// Rule of [`ask`]: labels that a new domain inherits. The result stays until another question on this CPU, or [`forget`].
pub const INHERITS: u8 = 2;
/// Rule: labels that a new domain is given. The result stays, too.
pub const GIVEN: u8 = 3;
/// Rule: the least upper bound of two labels; the next number: the greatest lower bound.
pub const BOUND: u8 = 4;
/// Rule: the label of a portal. The result stays, too.
pub const PORTAL: u8 = 12;
/// Rule: what a caller may do with something labelled, or a domain with a page.
pub const MAY: u8 = 6;
/// Rule: whether a domain may report something to another one.
pub const REPORTS: u8 = 7;
/// Rule: whether two domains may share memory.
pub const SHARE: u8 = 11;
/// Rule: whether a domain may change an object.
pub const CHANGES: u8 = 9;
/// Rule: the label that a new object is given. The result stays, too.
pub const OBJECT: u8 = 8;
/// Rule: the label that a new object inherits. The result stays, too.
pub const OBJECT_INHERITS: u8 = 10;
/// Rule: the labels of a message that is sent.
pub const SENDS: u8 = 13;
/// Rule: the fate of a message that a receiver takes; four numbers, for explicit receivers or not, with a verify label
/// or not.
pub const TAKES: u8 = 14;
/// Rule: a copy of a label that was lent.
pub const LENT: u8 = 18;

/// Evaluates a rule about some labels, at most seven, for one step. After `Repeat`, the same question continues the work.
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
    // Never borrowed here: a rule does not ask another one.
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

/// Whether this CPU has the result of this question, of a kind whose results stay.
#[inline(never)]
pub fn knows(held: Held, rule: u8, payer: Ref<Account>, labels: &[Label]) -> bool {
    let cpu = cpu::this(held);
    cpu.unfinished.try_borrow().is_ok_and(|unfinished| with(held, payer, |pool| unfinished.knows(pool, rule, labels)))
}

/// Drops all CPUs' questions and results that this account pays for; it is about to be removed.
#[inline(never)]
pub fn forget(payer: Ref<Account>) {
    cpu::all(payer.held()).for_each(|cpu| forget_on(cpu, payer));
}

/// Drops this CPU's question and result that the account pays for, once the result was used; those of other CPUs stay.
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

/// Frees some unused nodes; true if none are left. Freeing one may end an account, whose label then leaves more.
#[inline(never)]
pub fn tidy(held: Held, payer: Ref<Account>) -> bool {
    const NODES: usize = 2;
    is_tidy(held) || {
        with(held, payer, |pool| pool.tidy(NODES));
        is_tidy(held)
    }
}

/// Whether there are no unused nodes to free.
#[inline(always)]
pub fn is_tidy(held: Held) -> bool {
    STATE.get(held).get().is_tidy()
}

/// Gives `labels` to a domain that has the usual ones; it must release them.
pub fn give(domain: Ref<Domain>, labels: Labels) -> Result<Ref<Labelled>, Error> {
    let mut labelled: Fresh<Labelled> = slab::allocate_as_it_is(domain.account)?;
    *labelled = Labelled::new(labels);
    let labelled = labelled.share();
    domain.labels_or_status.set(labelled.address() as u64);
    domain.is_labelled.set(true);
    note(domain, &labels);
    Ok(labelled)
}

/// The labels of a domain's portals, made if missing.
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

/// A step of releasing the labels of a dead domain's portals; false if there was nothing left.
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

/// Releases the labels of a dead domain.
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

/// The label of a small object: that of the account that pays for it.
pub fn of_object<T>(object: Ref<T>) -> Label {
    payer(object).label.get()
}

/// Updates whether the domain may use objects with the label {1}, as it gets these labels.
#[inline(never)]
pub fn note(domain: Ref<Domain>, labels: &Labels) {
    domain.is_barred.set(!may_use_plain(domain, labels));
}

/// Whether a domain with these labels may use objects with the label {1}: see [`rules::may_use_plain`].
#[inline(never)]
pub fn may_use_plain(domain: Ref<Domain>, labels: &Labels) -> bool {
    with(domain.held(), domain.account, |pool| rules::may_use_plain(pool, labels))
}

/// Whether the domain could do with these labels whatever it may do now with objects of the label {1}.
#[inline(never)]
pub fn keeps_plain(domain: Ref<Domain>, next: &Labels) -> bool {
    with(domain.held(), domain.account, |pool| {
        let [now, next] = [&domain.labels(), next].map(|labels| rules::plain_rights(pool, labels));
        now.0 <= next.0 && now.1 <= next.1
    })
}

/// Whether the domain may change objects with the label {1}.
#[inline(never)]
pub fn may_change_plain(domain: Ref<Domain>) -> bool {
    let asked = |labelled: Ref<Labelled>| {
        with(domain.held(), domain.account, |pool| rules::may_change_plain(pool, &labelled.now.get()))
    };
    domain.labelled().is_none_or(asked)
}

/// Releases labels that a domain had, or was to get.
pub fn release(domain: Ref<Domain>, labels: Labels) {
    release_both(domain.account, labels);
}

/// Releases both labels, for which an account pays.
pub fn release_both(account: Ref<Account>, labels: Labels) {
    release_all(account, &[labels.send, labels.receive]);
}

/// Releases a label, for which an account pays.
#[inline(never)]
pub fn release_of(account: Ref<Account>, label: Label) {
    release_all(account, &[label]);
}

/// Releases labels, for which an account pays; their unused nodes are freed later.
#[inline(never)]
pub fn release_all(account: Ref<Account>, labels: &[Label]) {
    with(account.held(), account, |pool| labels.iter().for_each(|label| pool.release_later(*label)));
}

const _: () = assert!(size_of::<Labelled>() <= 2 * GRANULE && size_of::<Node>() == 8 * GRANULE);
