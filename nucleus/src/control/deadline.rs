//! Activations whose wait or call has a deadline, for each CPU on which they began in a leftist tree (Crane; Knuth, *The Art of Computer
//! Programming* 3, 5.2.3): the earliest is the root. Nothing is allocated, and every step takes time
//! logarithmic in the number of deadlines, a removal from the middle included.

use crate::cpus::{cpu, timer};
use crate::objects::{Activation, Cpu};
use crate::pointer::{Held, Link, Ref};
use abi::NEVER;

/// The wait or call of `activation` ends at `deadline` (ticks); 0 = never.
pub fn set(activation: Ref<Activation>, deadline: u64) {
    let held = activation.held();
    clear(activation);
    if deadline == 0 {
        return;
    }
    activation.deadline.set(deadline);
    let cpu = cpu::this(held);
    let place = &activation.place;
    for link in [&place.left, &place.right, &place.up] {
        link.set(None);
    }
    place.cpu.set(cpu.number);
    place.rank.set(1);
    let root = merge(cpu.deadlines.get(), Some(activation));
    set_root(cpu, root);
    if root == Some(activation) {
        timer::arm_no_later_than(held, deadline);
    }
}

/// The wait or call of `activation` is over.
pub fn clear(activation: Ref<Activation>) {
    let held = activation.held();
    if activation.deadline.get() == 0 {
        return;
    }
    activation.deadline.set(0);
    let rest = merge(activation.place.left.get(), activation.place.right.get());
    let Some(mut parent) = activation.place.up.get() else {
        return cpu::of(held, activation.place.cpu.get() as usize).into_iter().for_each(|cpu| set_root(cpu, rest));
    };
    if let Some(rest) = rest {
        rest.place.up.set(Some(parent));
    }
    if parent.place.left.get() == Some(activation) {
        parent.place.left.set(rest);
    } else {
        parent.place.right.set(rest);
    }
    // A rank that changes is one above the one below: as many steps as ranks.
    while parent.restore() {
        let Some(next) = parent.place.up.get() else { return };
        parent = next;
    }
}

/// The earliest deadline of this CPU in ticks.
pub fn earliest(held: Held) -> u64 {
    cpu::this(held).deadlines.get().map_or(NEVER, |root| root.deadline.get())
}

/// The activation with the earliest deadline of this CPU if that is not later than `now`.
pub fn due(held: Held, now: u64) -> Link<Activation> {
    cpu::this(held).deadlines.get().filter(|root| root.deadline.get() <= now)
}

fn set_root(cpu: Ref<Cpu>, root: Link<Activation>) {
    if let Some(root) = root {
        root.place.up.set(None);
    }
    cpu.deadlines.set(root);
}

/// Joins two trees along their right spines, which are logarithmic.
fn merge(a: Link<Activation>, b: Link<Activation>) -> Link<Activation> {
    let (Some(a), Some(b)) = (a, b) else { return a.or(b) };
    let (first, second) = if a.deadline.get() <= b.deadline.get() { (a, b) } else { (b, a) };
    let right = merge(first.place.right.get(), Some(second));
    if let Some(right) = right {
        right.place.up.set(Some(first));
    }
    first.place.right.set(right);
    first.restore();
    Some(first)
}

impl Ref<Activation> {
    /// Puts children and rank right; true if the rank changed.
    fn restore(self) -> bool {
        let rank = |link: Link<Activation>| link.map_or(0, |child| child.place.rank.get());
        let place = &self.place;
        if rank(place.left.get()) < rank(place.right.get()) {
            place.left.swap(&place.right);
        }
        let new = rank(place.right.get()) + 1;
        place.rank.replace(new) != new
    }
}
