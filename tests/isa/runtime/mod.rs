//! An ISA of stubs, as that of the nucleus: `./x test isa` compiles the portable runtime against it.
//!
//! The binding of words to registers would be one of [`abi::registers`].

use loader::Machine;

mod call;
mod enter;
mod operation;
mod random;

pub use call::{call, call_all_words, call_short, leave, port, semaphore, thread_exit_after_v};
pub use enter::{all_words_entry, program_entry, service_entry, short_entry, thread_entry, word_entry};
pub use operation::{operation0, operation1, operation2, operation3, operation4, operation5, operation6, question};
pub use random::RandomInstruction;

/// The machine number in the ELF header of programs for this ISA.
pub const MACHINE: Machine = Machine::X86_64;

/// Pages of stack that the deepest calls of a server take: those that put messages together beside another call.
pub const DEEP_STACK_PAGES: u64 = 2;

/// The stack pointer.
pub fn stack_pointer() -> u64 {
    unimplemented!()
}

/// Informs the compiler that system calls may read and write what `pointer` leads to, although no system
/// call names it. Without this a `&mut` to the message area counts as untouched by them.
pub fn expose<T>(pointer: *mut T) {
    unimplemented!()
}

/// A counter that users may read. The length of a tick depends on the machine (in an emulator that counts them, an instruction).
pub fn ticks() -> u64 {
    unimplemented!()
}

/// A hint to the CPU: this is a spin loop.
pub fn relax() {
    unimplemented!()
}

/// The meaning of the processor's number of an exception, for people.
pub fn exception(number: u64) -> Option<&'static str> {
    unimplemented!()
}
