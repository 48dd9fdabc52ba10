//! The labels of a domain that has others than [the usual ones](USUAL), and how far a change of them is.

use core::cell::Cell;
use flow::rules::Labels;
use flow::{Label, Level};

/// What nearly all domains have: S = {1}, R = {2}.
pub const USUAL: Labels = Labels { send: Label::of(Level::One), receive: Label::of(Level::Two), is_explicit: false };

/// What the components have that all others trust: S = {★}, R = {3}.
pub const TRUSTED: Labels =
    Labels { send: Label::of(Level::Star), receive: Label::of(Level::Three), is_explicit: false };

/// See the module.
pub struct Labelled {
    /// What the domain has.
    pub now: Cell<Labels>,
    /// What it gets once nothing is in flight that this forbids.
    pub next: Cell<Option<Labels>>,
    /// Of a change: how much was looked at, and the activation of the domain that began it.
    pub stage: Cell<Stage>,
}

/// See [`Labelled::stage`].
#[derive(Clone, Copy, Default)]
pub struct Stage {
    /// Upcall portals, then activations, by their numbers.
    pub done: u16,
    /// What is looked at now is allowed by what the other domain has, and is to be by what that will have.
    pub side: bool,
    /// Number of the activation.
    pub by: u8,
    /// Calls in flight that the change forbids are cut off; else it is given up.
    pub cuts: bool,
}
