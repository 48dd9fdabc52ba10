//! The nucleus: the only privileged code of Cairn.
//!
//! It switches between protection domains and keeps the objects that this needs: accounts, domains, activations, threads,
//! portal tables, mappings, semaphores, ports, labels. It has one system call (traverse a portal), one kernel stack per CPU,
//! and no policy.
#![no_std]
#![no_main]

// Editors check for the host, where `std` has the panic handler: see `runtime`.
#[cfg(not(target_os = "none"))]
extern crate std;

mod arch;
mod control;
mod cpus;
mod memory;
mod objects;
mod operation;
mod pointer;
mod report;
mod start;

use crate::control::{dispatch, flows, numbers};
use crate::cpus::{cpu, lock, timer};
use crate::memory::{account, frames, own, shapes, space, tables};
use crate::objects::Thread;
use crate::pointer::{Held, Ref};
use crate::report::log::{self, Part};
use crate::report::panic::Text;
use crate::report::trace;
use crate::start::{loader, others};
use abi::boot::Region;
use memfuncs as _;

unsafe extern "C" {
    static boot_stack_top: u8;
}

/// Entered from the boot assembly, on the boot stack, which becomes the first CPU's kernel stack.
#[unsafe(no_mangle)]
extern "C" fn boot_rust(start_info: u64) -> ! {
    let held = lock::begin();
    cpu::init_first(held);
    match boot(held, start_info) {
        Ok(first) => {
            account::add(held, frames::give_image_part(held, own::end_init(held)));
            dispatch::run_rarely(first)
        }
        Err(error) => panic!("cannot start: {}", Text(error)),
    }
}

/// Boots up to the first thread. Code that only this needs lies in pages that are freed afterwards.
#[unsafe(link_section = ".init")]
#[inline(never)]
fn boot(held: Held, start_info: u64) -> Result<Ref<Thread>, &'static str> {
    let info = arch::boot::boot_info(start_info)?;
    if info.left_out != 0 {
        log::line(held, &[Part::Text("nucleus: RAM that is not used, in MiB: "), Part::Number(info.left_out >> 20)]);
    }
    let begin = arch::start::code();
    let kept = [arch::memory::image(), if arch::start::KEEPS_CODE { begin } else { Region { start: 0, bytes: 0 } }];
    frames::init(held, &info, kept)?;
    own::init(held, &info)?;
    shapes::init(held)?;
    space::make_archive_directory(held, info.archive)?;
    frames::init_rest(held, &info, kept);
    tables::init(held, &operation::TABLE)?;
    cpu::this(held).stack.set(&raw const boot_stack_top as usize);
    arch::processor::init(held);
    for part in own::boot_parts() {
        frames::give_image_part(held, part);
    }
    arch::special::turn_off();
    arch::interrupts::init();
    cpu::name_first(held, arch::interrupts::identity());
    timer::init();
    trace::begin(held);
    others::start_others(held, &info)?;
    frames::give_image_part(held, kept[1]);
    numbers::init(held)?;
    account::init(held);
    let (total, free, boot) = frames::numbers(held);
    if info.labels_off {
        flows::switch_off(held);
        log::line(held, &[Part::Text("nucleus: labels are off: they forbid nothing")]);
    }
    let [total, boot, free] = [total, boot, free].map(|count| Part::Number(count as u64));
    let (of_ram, taken) = (Part::Text(" frames of RAM, "), Part::Text(" taken at boot, "));
    log::line(held, &[Part::Text("nucleus: "), total, of_ram, boot, taken, free, Part::Text(" free")]);
    loader::start_components(held, &info)
}
