//! The seats of schedulers.

use super::{Activation, Domain, Thread};
use crate::pointer::Ref;
use abi::sched::Ring;

/// The seat of a scheduler on one CPU.
#[derive(Clone, Copy)]
pub struct Seat {
    /// Activation through which the scheduler is entered.
    pub activation: Ref<Activation>,
    /// Pseudo-thread of the activation; it has number 0.
    pub thread: Ref<Thread>,
    /// Domain of the scheduler.
    pub domain: Ref<Domain>,
    /// Ring to which the nucleus posts ready threads.
    pub ring: *mut Ring,
}
