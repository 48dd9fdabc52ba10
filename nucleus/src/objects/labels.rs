//! Labels of a domain that are not kept as [`USUAL`], with the state of a change.

use super::Port;
use crate::pointer::{Link, Ref};
use abi::MAX_PORTAL_LABELS;
use core::cell::Cell;
use flow::rules::Labels;
use flow::{Label, Level};
use structures::queue::Linked;

/// Labels of nearly all domains: S = {1}, R = {2}.
pub const USUAL: Labels = Labels { send: Label::of(Level::One), receive: Label::of(Level::Two), is_explicit: false };

/// Labels of the components that all others trust: S = {★}, R = {3}.
pub const TRUSTED: Labels =
    Labels { send: Label::of(Level::Star), receive: Label::of(Level::Three), is_explicit: false };

/// Whether a domain with these labels owns every handle and accepts every taint.
pub fn owns_all(labels: &Labels) -> bool {
    (labels.send, labels.receive) == (TRUSTED.send, TRUSTED.receive)
}

/// Default label of portals: {3}.
pub const OPEN: Label = Label::of(Level::Three);

/// Labels of a domain's portals. They stay until the domain is removed.
pub struct PortalLabels {
    /// Number of labels.
    pub count: Cell<usize>,
    /// The labels, numbered from 1.
    pub labels: [Cell<Label>; MAX_PORTAL_LABELS],
}

impl PortalLabels {
    /// The label with this number; 0 = {3}.
    pub fn of(&self, number: u8) -> Label {
        self.all().nth((number as usize).wrapping_sub(1)).unwrap_or(OPEN)
    }

    /// All labels.
    pub fn all(&self) -> impl Iterator<Item = Label> {
        self.labels[..self.count.get()].iter().map(Cell::get)
    }
}

/// See the module.
pub struct Labelled {
    /// Present labels.
    pub now: Cell<Labels>,
    /// During a change: the new labels, which apply once they forbid nothing in flight.
    pub next: Cell<Option<Labels>>,
    /// Progress of a change.
    pub stage: Cell<Stage>,
    /// Status of the domain's death; 0 while it lives.
    pub status: Cell<u64>,
    /// Labels of its portals.
    pub of_portals: Cell<Link<PortalLabels>>,
    /// The port that has messages with the present send label, as it is: see `control::lent`.
    pub lent_to: Cell<Link<Port>>,
    next_lender: Cell<Link<Labelled>>,
    previous_lender: Cell<Link<Labelled>>,
    /// Names of the labels of the last message that was received without a change of the present labels, and of its port.
    pub received: Cell<[u64; 2]>,
}

impl Linked for Ref<Labelled> {
    fn next(&self) -> &Cell<Link<Labelled>> {
        &self.next_lender
    }
    fn previous(&self) -> &Cell<Link<Labelled>> {
        &self.previous_lender
    }
}

impl Labelled {
    /// Of a domain that gets these labels.
    pub const fn new(labels: Labels) -> Self {
        Self {
            now: Cell::new(labels),
            next: Cell::new(None),
            stage: Cell::new(Stage::NEW),
            status: Cell::new(0),
            of_portals: Cell::new(None),
            lent_to: Cell::new(None),
            next_lender: Cell::new(None),
            previous_lender: Cell::new(None),
            received: Cell::new(NOTHING_RECEIVED),
        }
    }
}

/// No label has this name.
pub const NOTHING_RECEIVED: [u64; 2] = [u64::MAX; 2];

/// Progress of a change of labels.
#[derive(Clone, Copy)]
pub struct Stage {
    /// Part being checked.
    pub part: Part,
    /// Progress within this part.
    pub done: u64,
    /// Number and version of the other domain whose present labels allow the present relation; its future labels are to be
    /// checked next. Zeros: none.
    pub allowed: (u64, u32),
    /// Number of the activation that began the change.
    pub by: u8,
    /// Calls in flight that the new labels forbid are split. Otherwise such a call makes the change fail.
    pub cuts: bool,
    /// Whether the new send label taints, once that was asked.
    pub taints: Option<bool>,
}

impl Stage {
    /// Nothing was checked.
    pub const NEW: Self = Self { part: Part::Messages, done: 0, allowed: (0, 0), by: 0, cuts: false, taints: None };
}

/// The checks of a change of labels, in this order.
#[derive(Clone, Copy)]
pub enum Part {
    /// Messages with its send label: they get a copy.
    Messages,
    /// The domain's fault handlers: they must admit it.
    Upcalls,
    /// Its maker, to which its death is reported.
    Maker,
    /// Domains that it made, whose deaths are reported to it.
    Children,
    /// Its semaphore entries: each is judged again on its next use.
    Table,
    /// Shared pages that it could no longer read: these forbid the change, before any call is split.
    Reads,
    /// Its calls, calls to it, and its waits.
    Activations,
    /// Shared pages that it may no longer write: these are write-protected.
    Pages,
}

impl Part {
    /// The next part.
    pub fn next(self) -> Option<Self> {
        Some(match self {
            Self::Messages => Self::Upcalls,
            Self::Upcalls => Self::Maker,
            Self::Maker => Self::Children,
            Self::Children => Self::Table,
            Self::Table => Self::Reads,
            Self::Reads => Self::Activations,
            Self::Activations => Self::Pages,
            Self::Pages => return None,
        })
    }
}
