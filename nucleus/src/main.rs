//! The nucleus: the only privileged code of Cairn.
//!
//! It switches between protection domains and keeps the objects that this takes: accounts, domains,
//! activations, threads, portal tables, mappings, semaphores. It has one system call (traverse a portal),
//! one kernel stack per CPU, and no policy.
#![no_std]
#![no_main]

mod account;
mod activation;
mod arch;
mod chain;
mod cpu;
mod deadline;
mod domain;
mod fault;
mod frames;
mod info;
mod interrupt;
mod ledger;
mod lending;
mod loader;
mod lock;
mod log;
mod mapping;
mod operation;
mod panic;
#[path = "../../crates/pointer/src/objects.rs"]
mod pointer;
mod queue;
mod removal;
mod schedule;
mod semaphore;
mod slab;
mod space;
mod table;
mod thread;
mod trace;

use crate::pointer::Held;
use copy as _;
use log::Part;

unsafe extern "C" {
    static boot_stack_top: u8;
}

/// From the loader's assembly, in long mode on the boot stack, which becomes the CPU's kernel stack.
#[unsafe(no_mangle)]
extern "C" fn boot_rust(start_info: u64) -> ! {
    let held = lock::begin();
    cpu::init_first(held);
    match boot(held, start_info) {
        Ok(first) => {
            account::add(held, frames::give_image_part(held, arch::paging::end_init(held)));
            schedule::run(first)
        }
        Err(error) => panic!("cannot start: {error}"),
    }
}

/// Everything up to the first thread. What only this needs lies in pages that are given back.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn boot(held: Held, start_info: u64) -> Result<pointer::Ref<thread::Thread>, &'static str> {
    let info = arch::boot::boot_info(held, start_info)?;
    frames::init(held, &info, arch::paging::image())?;
    arch::paging::init(held, &info)?;
    frames::init_rest(held, &info, arch::paging::image());
    cpu::this(held).stack.set(&raw const boot_stack_top as usize);
    arch::processor::init(held);
    for part in arch::paging::boot_parts() {
        frames::give_image_part(held, part);
    }
    arch::special::init();
    arch::interrupts::init(held);
    arch::timer::init();
    trace::begin(held);
    arch::start::start_others(held, &info)?;
    frames::give_image_part(held, arch::start::page());
    account::init(held);
    let (total, free, boot) = frames::numbers(held);
    let [total, boot, free] = [total, boot, free].map(|count| Part::Number(count as u64));
    let (of_ram, taken) = (Part::Text(" frames of RAM, "), Part::Text(" taken at boot, "));
    log::line(held, &[Part::Text("nucleus: "), total, of_ram, boot, taken, free, Part::Text(" free")]);
    loader::start_components(held, &info)
}
