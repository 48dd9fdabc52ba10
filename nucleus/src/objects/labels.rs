//! The labels of a domain that has others than [the usual ones](USUAL), and how far a change of them is.

use crate::pointer::Link;
use abi::MAX_PORTAL_LABELS;
use core::cell::Cell;
use flow::rules::Labels;
use flow::{Label, Level};

/// What nearly all domains have: S = {1}, R = {2}.
pub const USUAL: Labels = Labels { send: Label::of(Level::One), receive: Label::of(Level::Two), is_explicit: false };

/// What the components have that all others trust: S = {★}, R = {3}.
pub const TRUSTED: Labels =
    Labels { send: Label::of(Level::Star), receive: Label::of(Level::Three), is_explicit: false };

/// The label of portals, if nobody names one: {3}.
pub const OPEN: Label = Label::of(Level::Three);

/// Labels of a domain's portals, which stay until the domain goes.
pub struct PortalLabels {
    /// So many are there.
    pub count: Cell<usize>,
    /// The first of them has number 1.
    pub labels: [Cell<Label>; MAX_PORTAL_LABELS],
}

impl PortalLabels {
    /// The one with this number.
    pub fn of(&self, number: u8) -> Label {
        self.all().nth((number as usize).wrapping_sub(1)).unwrap_or(OPEN)
    }

    /// Those that are there.
    pub fn all(&self) -> impl Iterator<Item = Label> {
        self.labels[..self.count.get()].iter().map(Cell::get)
    }
}

/// See the module.
pub struct Labelled {
    /// What the domain has.
    pub now: Cell<Labels>,
    /// What it gets once nothing is in flight that this forbids.
    pub next: Cell<Option<Labels>>,
    /// Of a change: how much was looked at, and the activation of the domain that began it.
    pub stage: Cell<Stage>,
    /// Once the domain is dead: why.
    pub status: Cell<u64>,
    /// Those of its portals.
    pub of_portals: Cell<Link<PortalLabels>>,
}

/// See [`Labelled::stage`].
#[derive(Clone, Copy, Default)]
pub struct Stage {
    /// What is looked at.
    pub part: Part,
    /// How far that is.
    pub done: u64,
    /// What is looked at now is allowed by what the other domain has, and is to be by what that will have.
    pub side: bool,
    /// Number of the activation.
    pub by: u8,
    /// Calls in flight that the change forbids are cut off; else it is given up.
    pub cuts: bool,
}

/// What a change of labels looks at, in this order.
#[derive(Clone, Copy, Default)]
pub enum Part {
    /// The domain's handlers of faults, which must admit it.
    #[default]
    Upcalls,
    /// Its maker, which learns of its end.
    Maker,
    /// Domains that it made.
    Children,
    /// Its semaphores: what it may do with them is judged anew.
    Table,
    /// Pages that it could not read any more, which forbid the change, before that cuts anything off.
    Reads,
    /// Its calls, calls to it, and its waits.
    Activations,
    /// Pages that it shares with others: it may not write them any more.
    Pages,
}

impl Part {
    /// What comes after it.
    pub fn next(self) -> Option<Self> {
        Some(match self {
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
