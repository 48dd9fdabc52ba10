//! The death of a domain: alive, then dead (nothing runs in it any more), then removed by the owner of its original entry
//! (`removal`).

use super::{dispatch, flows, seats};
use crate::cpus::{counters, cpu};
use crate::objects::{Domain, SLOW_DEAD, is_seat};
use crate::pointer::{Held, Ref};
use crate::report::log::{self, Part};
use crate::report::trace;
use abi::info::status;

/// The domain stops for good: what it called goes on as orphans once it is removed, who called it gets
/// `PeerDied`, and V is made on the semaphore that its maker set for that, if any. Nothing runs in it from here on.
pub fn die(domain: Ref<Domain>, status: u64) {
    let held = domain.held();
    if domain.is_dead() {
        return;
    }
    flows::stop_changing(domain);
    domain.set_slow(SLOW_DEAD, true);
    domain.set_status(status);
    trace::died(domain);
    counters::all(held).deaths.up();
    if status != 0 {
        report_death(domain, status, 0);
    }
    leave_all(domain);
    seats::domain_died(domain);
    if let Some(semaphore) = domain.death_semaphore.get().filter(|semaphore| flows::may_end_loudly(domain, *semaphore))
    {
        semaphore.signal();
    }
}

/// Every other CPU that is in a domain that died leaves it; none is on a fast path into it.
fn leave_all(domain: Ref<Domain>) {
    let held = domain.held();
    for other in cpu::others(held) {
        cpu::stop(other);
        if other.domain.get() == Some(domain) && !other.idle.get() {
            other.needs_recheck.set(true);
        }
    }
}

/// As [`die`], in two preemptible steps: false after the first, which only logs.
pub fn die_step(domain: Ref<Domain>, status: u64) -> bool {
    let reports = !domain.death_reported.get();
    if reports {
        report_death(domain, status, 0);
    } else {
        die(domain, status);
    }
    !reports
}

/// Says in the log, once, that the domain dies, and why if `writer` has put that together.
pub fn report_death(domain: Ref<Domain>, status: u64, writer: usize) {
    let held = domain.held();
    // The log is not for what tainted domains say, by their end neither.
    if flows::may_change(domain).is_err() {
        domain.death_reported.set(true);
    }
    if !domain.death_reported.replace(true) && !log::finish(held, log::part_of(domain), writer) {
        log::line_in(held, log::part_of(domain), &death_line(&domain, status), &[]);
    }
}

/// Says in the log where a domain was when it died, if `writer` has put that together and the log may know.
pub fn report_place(domain: Ref<Domain>, writer: usize) {
    if flows::may_change(domain).is_ok() {
        log::finish(domain.held(), log::part_of(domain), writer);
    }
}

/// How the line about a death begins.
pub fn death_line(domain: &Ref<Domain>, status: u64) -> [Part<'_>; 6] {
    let (number, name) = (Part::Number(domain.number), Part::Foreign(domain.name_bytes()));
    let (how, status) = match status {
        0..status::KILLED => (" exited with ", Part::Number(status)),
        _ => (" died, status ", Part::Hex(status)),
    };
    [Part::Text("domain "), number, Part::Text(" "), name, Part::Text(how), status]
}

/// The running thread is in a domain that died: goes on with its caller, or lets others run.
pub fn leave_dead(held: Held) -> ! {
    match cpu::this(held).thread.get() {
        Some(thread) if !is_seat(thread) => dispatch::resume_top(thread),
        _ => dispatch::enter(held, abi::sched::Event::Choose, 0),
    }
}
