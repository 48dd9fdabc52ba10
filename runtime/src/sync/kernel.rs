//! The synchronisation primitives' needs of the kernel; a trait, so that they are tested on the
//! host with threads.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::{Error, PAGE_BYTES, layout};

use crate::entry::Owned;
use crate::{Entry, area, op};

/// The running thread, and semaphores. A semaphore is named by a number above 0.
pub trait Kernel {
    /// Name of the running activation in this program, from 1 to 2^30 - 1.
    fn me() -> u32;
    /// A semaphore with count 0.
    fn make() -> Result<u32, Error>;
    /// Removes a semaphore that nobody else knows.
    fn remove(semaphore: u32);
    /// P, at most until an absolute time.
    fn p(semaphore: u32, deadline: u64) -> Result<(), Error>;
    /// P for what the activation of this name has, which gets our priority meanwhile.
    fn p_lending(semaphore: u32, holder: u32) -> Result<(), Error> {
        let _ = holder;
        Self::p(semaphore, abi::NEVER)
    }
    /// V.
    fn v(semaphore: u32);
    /// The running activation's own semaphore, for waits of its own.
    fn own() -> Result<u32, Error>;
    /// V on the own semaphore of the activation of this name, which waits there.
    fn v_own(activation: u32);
    /// Lets others run.
    fn relax();
    /// Passes an instant without the kernel.
    #[inline(always)]
    fn pause() {
        spin_loop();
    }
}

/// The real one.
#[derive(Clone, Copy, Debug)]
pub struct Nucleus;

/// One semaphore for each activation, made when it first waits for something of its own.
static OWN: [AtomicU32; layout::MAX_ACTIVATIONS] = [const { AtomicU32::new(0) }; layout::MAX_ACTIVATIONS];

/// Names of activations are the numbers of the pages of their message areas: this is that of the first.
const FIRST_NAME: u32 = (layout::MESSAGE_START / PAGE_BYTES as u64) as u32;

impl Kernel for Nucleus {
    #[inline(always)]
    fn me() -> u32 {
        (area::address() / PAGE_BYTES as u64) as u32
    }
    fn make() -> Result<u32, Error> {
        op::semaphore_new(Entry::OWN, 0).map(|entry| entry.0 as u32)
    }
    fn remove(semaphore: u32) {
        drop(Owned::new(Entry(semaphore as usize)));
    }
    fn p(semaphore: u32, deadline: u64) -> Result<(), Error> {
        op::p(Entry(semaphore as usize), deadline)
    }
    fn p_lending(semaphore: u32, holder: u32) -> Result<(), Error> {
        // The nucleus counts activations from 1.
        op::p_lending(Entry(semaphore as usize), abi::NEVER, holder.wrapping_sub(FIRST_NAME - 1))
    }
    fn v(semaphore: u32) {
        // It cannot be removed while the lock or queue that names it is in use.
        let _ = op::v(Entry(semaphore as usize));
    }
    fn own() -> Result<u32, Error> {
        let place = &OWN[area::activation()];
        // Only this activation reads and writes its place.
        match place.load(Ordering::Relaxed) {
            0 => {
                let semaphore = Self::make()?;
                place.store(semaphore, Ordering::Relaxed);
                Ok(semaphore)
            }
            semaphore => Ok(semaphore),
        }
    }
    fn v_own(activation: u32) {
        if let Some(own) = OWN.get(activation.wrapping_sub(FIRST_NAME) as usize) {
            Self::v(own.load(Ordering::Relaxed));
        }
    }
    fn relax() {
        op::yield_now();
    }
}

/// Makes the own semaphore of an activation on which nothing ran yet, given its message area.
pub(crate) fn prepare_wait(area: u64) -> Result<(), Error> {
    OWN[area::number_of(area)].store(Nucleus::make()?, Ordering::Relaxed);
    Ok(())
}

/// The running activation's own semaphore.
pub(crate) fn private_semaphore() -> Result<Entry, Error> {
    Nucleus::own().map(|semaphore| Entry(semaphore as usize))
}
