//! Death of a domain. It is alive, then dead (nothing runs in it), then removed by the owner of its original entry (`removal`).

use super::{dispatch, flows, seats};
use crate::cpus::{counters, cpu};
use crate::objects::{Domain, SLOW_DEAD, is_seat};
use crate::pointer::{Held, Ref};
use crate::report::log::{self, Part};
use crate::report::trace;
use abi::info::status;

/// Kills the domain: nothing runs in it from here on. A caller gets `PeerDied` when its thread next resumes, or when the domain is removed.
/// Callees continue as orphans from its removal on. The death semaphore that its maker set is signalled if labels allow it.
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

/// Stops each other CPU, so that no fast path into the dead domain is under way. Those that run in it must recheck.
fn leave_all(domain: Ref<Domain>) {
    let held = domain.held();
    for other in cpu::others(held) {
        cpu::stop(other);
        if other.domain.get() == Some(domain) && !other.idle.get() {
            other.needs_recheck.set(true);
        }
    }
}

/// As [`die`], in two preemptible steps: false after the first, which only logs. A change of the domain's labels that would forbid the second
/// one is given up in the first.
pub fn die_step(domain: Ref<Domain>, status: u64) -> bool {
    let reports = !domain.death_reported.get();
    if reports {
        flows::stop_changing(domain);
        report_death(domain, status, 0);
    } else {
        die(domain, status);
    }
    !reports
}

/// Logs the death of the domain, once. `writer` is the activation that began a line with [`log::begin`], or 0. If that line is
/// still there it is logged, with the reason; else a line without a reason is.
pub fn report_death(domain: Ref<Domain>, status: u64, writer: usize) {
    let held = domain.held();
    // A tainted domain may not write to the log: its death counts as logged.
    if flows::may_change(domain).is_err() {
        domain.death_reported.set(true);
    }
    if !domain.death_reported.replace(true) && !log::finish(held, log::part_of(domain), writer) {
        log::line_in(held, log::part_of(domain), &death_line(&domain, status), &[]);
    }
}

/// Logs the line about the place of the death, if `writer` has composed one (see [`report_death`]) and labels allow it.
pub fn report_place(domain: Ref<Domain>, writer: usize) {
    if flows::may_change(domain).is_ok() {
        log::finish(domain.held(), log::part_of(domain), writer);
    }
}

/// Start of the log line for a death.
pub fn death_line(domain: &Ref<Domain>, status: u64) -> [Part<'_>; 6] {
    let (number, name) = (Part::Number(domain.number), Part::Foreign(domain.name_bytes()));
    let (how, status) = match status {
        0..status::KILLED => (" exited with ", Part::Number(status)),
        _ => (" died, status ", Part::Hex(status)),
    };
    [Part::Text("domain "), number, Part::Text(" "), name, Part::Text(how), status]
}

/// Leaves a dead domain: resumes the running thread's caller, or lets others run.
pub fn leave_dead(held: Held) -> ! {
    match cpu::this(held).thread.get() {
        Some(thread) if !is_seat(thread) => dispatch::resume_top(thread),
        _ => dispatch::enter(held, abi::sched::Event::Choose, 0),
    }
}
