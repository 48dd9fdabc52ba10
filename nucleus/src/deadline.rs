//! Activations whose wait or call has a deadline, for each CPU on which they began in a leftist tree (Crane; Knuth, *The Art of Computer
//! Programming* 3, 5.2.3): the earliest is the root. Nothing is allocated, and every step takes time
//! logarithmic in the number of deadlines, a removal from the middle included.

use crate::activation::Activation;
use crate::arch::timer;
use crate::cpu::{self, Cpu};
use crate::pointer::{Link, Ref};
use abi::NEVER;

/// An activation's place in the tree.
#[repr(C)]
pub struct Place {
    left: Link<Activation>,
    right: Link<Activation>,
    up: Link<Activation>,
    /// The CPU in whose tree it is.
    cpu: u8,
    /// Steps to the nearest missing child; the left one's is never smaller than the right one's.
    rank: u32,
}

/// The wait or call of `activation` ends at `deadline` (ticks); 0 = never.
pub fn set(mut activation: Ref<Activation>, deadline: u64) {
    clear(activation);
    if deadline == 0 {
        return;
    }
    activation.deadline = deadline;
    let cpu = cpu::this();
    activation.place = Place { left: None, right: None, up: None, cpu: cpu.number, rank: 1 };
    let root = merge(cpu.deadlines, Some(activation));
    set_root(cpu, root);
    if root == Some(activation) {
        timer::arm_no_later_than(deadline);
    }
}

/// The wait or call of `activation` is over.
pub fn clear(mut activation: Ref<Activation>) {
    if activation.deadline == 0 {
        return;
    }
    activation.deadline = 0;
    let rest = merge(activation.place.left, activation.place.right);
    let Some(mut parent) = activation.place.up else {
        return cpu::of(activation.place.cpu as usize).into_iter().for_each(|cpu| set_root(cpu, rest));
    };
    if let Some(mut rest) = rest {
        rest.place.up = Some(parent);
    }
    if parent.place.left == Some(activation) {
        parent.place.left = rest;
    } else {
        parent.place.right = rest;
    }
    // A rank that changes is one above the one below: as many steps as ranks.
    while parent.restore() {
        let Some(next) = parent.place.up else { return };
        parent = next;
    }
}

/// The earliest deadline of this CPU in ticks.
pub fn earliest() -> u64 {
    cpu::this().deadlines.map_or(NEVER, |root| root.deadline)
}

/// The activation with the earliest deadline of this CPU if that is not later than `now`.
pub fn due(now: u64) -> Link<Activation> {
    cpu::this().deadlines.filter(|root| root.deadline <= now)
}

fn set_root(mut cpu: Ref<Cpu>, root: Link<Activation>) {
    if let Some(mut root) = root {
        root.place.up = None;
    }
    cpu.deadlines = root;
}

/// Joins two trees along their right spines, which are logarithmic.
fn merge(a: Link<Activation>, b: Link<Activation>) -> Link<Activation> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    let (mut first, second) = if a.deadline <= b.deadline { (a, b) } else { (b, a) };
    let right = merge(first.place.right, Some(second));
    if let Some(mut right) = right {
        right.place.up = Some(first);
    }
    first.place.right = right;
    first.restore();
    Some(first)
}

impl Ref<Activation> {
    /// Puts children and rank right; true if the rank changed.
    fn restore(mut self) -> bool {
        let rank = |link: Link<Activation>| link.map_or(0, |child| child.place.rank);
        let place = &mut self.place;
        if rank(place.left) < rank(place.right) {
            core::mem::swap(&mut place.left, &mut place.right);
        }
        let new = rank(place.right) + 1;
        core::mem::replace(&mut place.rank, new) != new
    }
}
