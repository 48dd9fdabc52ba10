//! The schedulers: an instance for each CPU that runs, and one that stands by for all of them.
//!
//! When one dies, the nucleus gives its CPU to the standby at once and notifies us; the instance that we start then stands by.
//! So the record of an instance does not say which CPU's seat it holds.

use crate::cpus::{CPUS, cpus, is_alone, numbers};
use crate::domains::{finish, make_domain};
use crate::running::Running;
use crate::{load, memory, numbers, records};
use abi::rights::MAP_WRITE;
use abi::sched::{SEVERAL_CPUS, STACK_BYTES};
use alloc::string::{String, ToString};
use core::sync::atomic::Ordering;
use runtime::op::{self, Seat};
use system::Component;

/// Starts all schedulers, before which nothing else can run.
pub fn start(component: &Component, standby: u16, begin: impl Fn(Running)) -> Result<(), String> {
    CPUS.store(records::cpus().0, Ordering::Relaxed);
    if !is_alone() {
        memory::make_load_table(cpus())?;
    }
    for cpu in numbers(cpus()) {
        begin(seat(component, component.number, Seat::Cpu(cpu))?);
    }
    begin(seat(component, standby, Seat::Standby)?);
    Ok(())
}

/// Where a new scheduler is needed: on a CPU that has none because two died at once, else it stands by.
pub fn vacancy() -> Seat {
    let vacant = records::cpus().1 & cpus();
    numbers(vacant).next().map_or(Seat::Standby, Seat::Cpu)
}

/// Loads the scheduler's executable and gives it a seat, or lets it stand by.
pub fn seat(component: &Component, number: u16, seat: Seat) -> Result<Running, String> {
    let mut running = make_domain(component, number)?;
    let outcome =
        load::segments(component, running.ticket, running.domain, numbers::notes_pages()).and_then(|program| {
            let writable = program.segments().iter().find(|segment| segment.rights & MAP_WRITE != 0);
            let stack = writable.ok_or("the scheduler has nothing that it may write")?.address;
            let mut entry = program.entry;
            if !is_alone() {
                memory::give_load_table(running.domain)?;
                entry += SEVERAL_CPUS;
            }
            // SAFETY: entry and stack were just made for this.
            unsafe { op::domain_set_scheduler(running.domain, seat, entry, stack + STACK_BYTES) }
                .map_err(|error| error.to_string())
        });
    finish(&mut running, outcome)?;
    // It has no heap and no stack to be paged.
    memory::forget(running.ticket);
    running.ticket = 0;
    Ok(running)
}
