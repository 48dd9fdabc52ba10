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

use log::Part;

unsafe extern "C" {
    static boot_stack_top: u8;
}

/// From the loader's assembly, in long mode on the boot stack, which becomes the CPU's kernel stack.
#[unsafe(no_mangle)]
extern "C" fn boot_rust(start_info: u64) -> ! {
    lock::begin();
    cpu::init_first();
    match boot(start_info) {
        Ok(first) => {
            account::add(frames::give_image_part(arch::paging::end_init()));
            schedule::run(first)
        }
        Err(error) => panic!("cannot start: {error}"),
    }
}

/// Everything up to the first thread. What only this needs lies in pages that are given back.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn boot(start_info: u64) -> Result<pointer::Ref<thread::Thread>, &'static str> {
    let info = arch::boot::boot_info(start_info)?;
    frames::init(&info, arch::paging::image())?;
    arch::paging::init(&info)?;
    frames::init_rest(&info, arch::paging::image());
    cpu::this().stack = &raw const boot_stack_top as usize;
    arch::processor::init();
    for part in arch::paging::boot_parts() {
        frames::give_image_part(part);
    }
    arch::special::init();
    arch::interrupts::init();
    arch::timer::init();
    trace::begin();
    arch::start::start_others(&info)?;
    frames::give_image_part(arch::start::page());
    account::init();
    let (total, free, boot) = frames::numbers();
    let [total, boot, free] = [total, boot, free].map(|count| Part::Number(count as u64));
    let (of_ram, taken) = (Part::Text(" frames of RAM, "), Part::Text(" taken at boot, "));
    log::line(&[Part::Text("nucleus: "), total, of_ram, boot, taken, free, Part::Text(" free")]);
    loader::start_components(&info)
}
