//! Making and freeing activations.

use super::priorities;
use crate::arch::memory;
use crate::cpus::assembly;
use crate::cpus::special;
use crate::memory::frames::{self, Use};
use crate::memory::{account, lend, shapes, slab, space};
use crate::objects::arch::FpuState;
use crate::objects::{Activation, Domain, FRAME, Frame, SLOW_FPU, SavedFrame};
use crate::pointer::{Fresh, Link, Ref};
use abi::Error;
use abi::layout::{MAX_ACTIVATIONS, MESSAGE_START, USER_END};
use abi::window::SLOTS;

/// Checks a user address that is to be entered, or the top of a stack (0 is allowed for an unused stack).
pub fn check_address(address: u64) -> Result<u64, Error> {
    if address < USER_END { Ok(address) } else { Err(Error::BadAddress) }
}

/// Makes an activation of `domain` with its message area; it is in no pool and no chain.
pub fn new(domain: Ref<Domain>, stack: u64) -> Result<Ref<Activation>, Error> {
    check_address(stack)?;
    if let Some(kept) = domain.spare.take() {
        let (message, message_kernel, fpu) = (kept.message, kept.message_kernel, kept.fpu);
        // SAFETY: the spare activation is in no chain, pool or queue, and no longer the domain's spare.
        let kept = unsafe { Fresh::new(kept.pointer()) };
        return Ok(enlist(domain, kept, stack, message, message_kernel, fpu));
    }
    let slot = (!domain.message_slots.get()).trailing_zeros() as usize;
    if slot >= MAX_ACTIVATIONS {
        return Err(Error::TooManyActivations);
    }
    if slot >= SLOTS && shapes::takes_windows(domain) {
        return Err(Error::TooManyForWindows);
    }
    let message = MESSAGE_START + (slot * FRAME) as u64;
    // The longest part comes last, so that a refusal takes few instructions.
    let activation = slab::allocate_as_it_is::<Activation>(domain.account)?;
    let made = new_fpu(domain).and_then(|fpu| match new_area(domain, message) {
        Ok(frame) => Ok((fpu, frame)),
        Err(error) => {
            fpu.into_iter().for_each(slab::free);
            Err(error)
        }
    });
    match made {
        Ok((fpu, frame)) => {
            domain.message_slots.update(|value| value | 1 << slot);
            Ok(enlist(domain, activation, stack, message, frames::address_of(frame), fpu))
        }
        Err(error) => {
            slab::free(activation.share());
            Err(error)
        }
    }
}

/// Allocates a message area and maps it at the address `message`.
fn new_area(domain: Ref<Domain>, message: u64) -> Result<Frame, Error> {
    let frame = domain.account.allocate_clear(Use::Kernel)?;
    space::map_nucleus_page(domain, message, frame).inspect_err(|_| account::release(domain.held(), frame))?;
    Ok(frame)
}

fn new_fpu(domain: Ref<Domain>) -> Result<Link<FpuState>, Error> {
    if domain.slow() & SLOW_FPU == 0 {
        Ok(None)
    } else {
        slab::allocate::<FpuState>(domain.account).map(|state| Some(state.share()))
    }
}

fn enlist(
    domain: Ref<Domain>,
    mut activation: Fresh<Activation>,
    stack: u64,
    message: u64,
    message_kernel: usize,
    fpu: Link<FpuState>,
) -> Ref<Activation> {
    // SAFETY: all zeros are a valid activation.
    unsafe { core::ptr::write_bytes(&raw mut *activation, 0, 1) };
    domain.activation_count.update(|value| value + 1);
    activation.domain = domain;
    activation.stack = stack;
    activation.message = message;
    activation.message_kernel = message_kernel;
    activation.fpu = fpu;
    activation.number = ((message - MESSAGE_START) as usize / FRAME) as u8 + 1;
    activation.slot = lend::slot(activation.number);
    activation.slot_offset = lend::place(activation.number);
    let activation = activation.share();
    activation.reset_fpu();
    activation.set_back();
    activation.domain_next.set(domain.activations.get());
    domain.activations.set(Some(activation));
    activation
}

/// Frees an activation that is in no chain, pool or queue. A live domain keeps the last one as its spare: an operation may
/// have removed the activation that it runs in, and still ends there.
pub fn free(activation: Ref<Activation>) {
    let domain = activation.domain;
    delist(activation);
    let gone = if domain.is_dead() { Some(activation) } else { domain.spare.replace(Some(activation)) };
    if let Some(gone) = gone {
        release(gone);
    }
}

/// Frees the first activation of a domain's list; it is in no chain, pool or queue, and does not become the spare.
pub fn free_first(domain: Ref<Domain>) {
    if let Some(activation) = domain.activations.get() {
        delist(activation);
        release(activation);
    }
}

fn delist(activation: Ref<Activation>) {
    let domain = activation.domain;
    if domain.activations.get() == Some(activation) {
        domain.activations.set(activation.domain_next.get());
    } else {
        let mut previous = domain.activations.get();
        // At most `MAX_ACTIVATIONS` steps.
        while let Some(candidate) = previous {
            if candidate.domain_next.get() == Some(activation) {
                candidate.domain_next.set(activation.domain_next.get());
                break;
            }
            previous = candidate.domain_next.get();
        }
    }
    activation.forget_cursor();
    priorities::set_lent(activation, 0);
    domain.activation_count.update(|value| value - 1);
}

/// Frees an activation that is in no list any more, with its message area and floating-point state.
pub fn release(activation: Ref<Activation>) {
    let held = activation.held();
    let domain = activation.domain;
    domain.message_slots.update(|value| value & !(1 << (activation.number - 1)));
    space::unmap_nucleus_page(domain, activation.message);
    account::release(held, frames::frame_of(activation.message_kernel));
    if let Some(state) = activation.fpu {
        special::forget(activation);
        slab::free(state);
    }
    slab::free(activation);
}

impl Ref<Activation> {
    /// Has its return continue at `return_any`, which assumes nothing about its caller.
    #[inline(always)]
    pub fn set_back(self) {
        self.back.set(assembly::return_any as *const () as usize);
    }
    /// Resets the floating-point registers, if it has any, to their initial state, and unloads them.
    pub fn reset_fpu(self) {
        if let Some(state) = self.fpu {
            special::forget(self);
            // SAFETY: since `forget`, no CPU has this state loaded or will save it.
            unsafe { (*state.pointer()).reset() };
        }
    }
    /// Restarts its system call when it runs next.
    pub fn repeat_system_call(self) {
        self.registers.pc.update(|pc| pc - memory::SYSTEM_CALL_BYTES);
        self.frame.set(SavedFrame::Words);
    }
    /// Condemns it: when it would resume, its domain dies with this status. `which` is the address or vector, `code` the
    /// processor's error code. `error` says why no handler was called; 0 = the handler gave up. A page fault with code 0: the
    /// handler ended without an answer.
    pub fn condemn(self, status: u64, [which, code, error]: [u64; 3]) {
        self.registers.set_words([status, 0, which, code, error], 0);
        self.registers.set_status(0);
        self.frame.set(SavedFrame::Condemned);
    }
}
