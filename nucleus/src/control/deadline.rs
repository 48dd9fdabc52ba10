//! Deadlines of waits and calls: a tree of activations ([`structures::deadlines`]) for each CPU on which they began.

use crate::cpus::{cpu, timer};
use crate::objects::Activation;
use crate::pointer::{Held, Link, Ref};
use abi::NEVER;
use structures::deadlines;

/// Sets the deadline (ticks) of the wait or call of `activation`; 0 = never.
pub fn set(activation: Ref<Activation>, deadline: u64) {
    let held = activation.held();
    clear(activation);
    if deadline == 0 {
        return;
    }
    activation.deadline.set(deadline);
    let cpu = cpu::this(held);
    activation.place.tree.set(cpu.number);
    let root = deadlines::add(cpu.deadlines.get(), activation);
    cpu.deadlines.set(root);
    if root == Some(activation) {
        timer::arm_no_later_than(held, deadline);
    }
}

/// Clears the deadline of `activation`.
pub fn clear(activation: Ref<Activation>) {
    let held = activation.held();
    if activation.deadline.get() == 0 {
        return;
    }
    activation.deadline.set(0);
    deadlines::remove(activation, |root| {
        cpu::of(held, activation.place.tree.get() as usize).into_iter().for_each(|cpu| cpu.deadlines.set(root));
    });
}

/// The earliest deadline of this CPU in ticks.
pub fn earliest(held: Held) -> u64 {
    cpu::this(held).deadlines.get().map_or(NEVER, |root| root.deadline.get())
}

/// This CPU's activation with the earliest deadline, if that is not later than `now`.
pub fn due(held: Held, now: u64) -> Link<Activation> {
    cpu::this(held).deadlines.get().filter(|root| root.deadline.get() <= now)
}
