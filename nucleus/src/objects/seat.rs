//! The seats of schedulers.

use super::{Activation, Domain, Thread};
use crate::pointer::Ref;
use abi::sched::Ring;

/// Where a scheduler is entered.
#[derive(Clone, Copy)]
pub struct Seat {
    /// Where it runs.
    pub activation: Ref<Activation>,
    /// The thread that runs there, which has no number.
    pub thread: Ref<Thread>,
    /// Whose it is.
    pub domain: Ref<Domain>,
    /// Where the nucleus writes which threads became ready.
    pub ring: *mut Ring,
}
