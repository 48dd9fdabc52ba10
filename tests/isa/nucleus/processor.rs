//! The block of each CPU, and the registers that say how the processor behaves.

use crate::objects::Cpu;
use crate::pointer::{Held, Ref};

/// Makes `cpu` the block of this CPU.
pub fn load_block(cpu: Ref<Cpu>) {
    unimplemented!()
}

/// A hint to the CPU: this is a spin loop.
pub fn relax() {
    unimplemented!()
}

/// The frame pointer: it points to the caller's frame pointer, which the return address follows.
pub fn frame_pointer() -> usize {
    unimplemented!()
}

/// The block of this CPU.
pub fn block(_: Held) -> Ref<Cpu> {
    unimplemented!()
}

/// Loads everything on the first CPU, with interrupts off: where traps and system calls go, and what users may do.
pub fn init(_: Held) {
    unimplemented!()
}

/// The tables that each CPU has of its own.
pub struct Tables;

impl Tables {
    /// Before [`load`].
    pub const fn new() -> Self {
        Self
    }
}

/// Loads everything on the CPU with this block, with tables of its own and interrupts off.
pub fn load(cpu: Ref<Cpu>, tables: &mut Tables) {
    unimplemented!()
}
