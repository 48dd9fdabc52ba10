//! `op::INFO`: records about the objects of the nucleus.

use crate::control::{domain, flows, numbers};
use crate::cpus::{counters, cpu, timer};
use crate::memory::{account, frames, shapes};
use crate::objects::{Activation, Domain, Stop, Thread, is_seat};
use crate::pointer::{Held, Ref, look};
use crate::report::log;
use abi::info::{self, Counters};
use abi::{Error, MESSAGE_BYTES};

/// Thread numbers checked between two preemption points.
const NUMBERS_PASSED: u64 = 64;

/// Table entries checked by one operation.
const ENTRIES_PASSED: usize = 16;

/// Writes the record after `position` into the message area of `activation`; gives the next position.
pub fn report(activation: Ref<Activation>, what: u64, position: u64) -> Result<u64, Stop> {
    let held = activation.held();
    let is_seen = |domain: Ref<Domain>| what & info::UNTAINTED == 0 || flows::may_change(domain).is_ok();
    let list = what & !(info::UNTAINTED | info::ENDED);
    match list {
        info::DOMAIN => {
            let is_own = |domain: Ref<Domain>| domain.maker == Some(activation.domain);
            let is_wanted = |domain: Ref<Domain>| what & info::ENDED == 0 || domain.is_dead() && is_own(domain);
            let is_listed = |domain| is_wanted(domain) && is_seen(domain);
            let domain = domain::newest_below(activation, position, is_listed)?.ok_or(Error::AtEnd)?;
            write(activation, domain_record(domain));
            Ok(if domain.next_domain().is_some() { domain.number } else { 0 })
        }
        info::THREAD => report_thread(activation, position, is_seen),
        info::FRAMES => {
            let (total, free, boot) = frames::numbers(held);
            let charged = (account::charged(held) + boot) as u64;
            write(activation, info::Frames { total: total as u64, charged, free: free as u64, boot: boot as u64 });
            Ok(0)
        }
        _ if info::is_log(list) => {
            // SAFETY: the message area is a page of the nucleus, in the direct map, and has room for `LOG_BYTES`.
            let area =
                unsafe { core::slice::from_raw_parts_mut(activation.message_kernel as *mut u8, info::LOG_BYTES) };
            Ok(log::read(held, log::part_of_list(list), position, area))
        }
        info::COUNTERS => {
            write(activation, counters_record(held, what & info::UNTAINTED == 0 || flows::is_off(held)));
            Ok(0)
        }
        info::PORTAL => report_portal(activation, position, is_seen),
        info::SHAPE => {
            let record = shapes::record(held, position).ok_or(Error::AtEnd)?;
            write(activation, record);
            Ok(shapes::first_from(held, record.number + 1).unwrap_or(0))
        }
        info::CODE => {
            let (number, byte) = info::Code::place(position);
            let code = shapes::code(held, number as usize, byte as usize).ok_or(Error::AtEnd)?;
            write(activation, code);
            let next = byte + code.bytes.len() as u64;
            let more = shapes::code(held, number as usize, next as usize);
            Ok(more.map_or(0, |_| info::Code::position(number, next)))
        }
        info::CPU => {
            let number = usize::try_from(position).ok().filter(|number| *number < cpu::present(held));
            let number = number.ok_or(Error::AtEnd)?;
            write(activation, cpu_record(held, number, is_seen));
            Ok(if number + 1 < cpu::present(held) { position + 1 } else { 0 })
        }
        _ => Err(Error::NoSuchWay.into()),
    }
}

/// The list [`info::THREAD`].
fn report_thread(
    activation: Ref<Activation>,
    position: u64,
    is_seen: impl Fn(Ref<Domain>) -> bool,
) -> Result<u64, Stop> {
    let held = activation.held();
    let used = numbers::used(held) as u64;
    let first = position.saturating_add(1).max(activation.progress.get());
    let end = used.min(first.saturating_add(NUMBERS_PASSED));
    let found = (first..end).find_map(|number| {
        let thread = numbers::by_number(held, number as usize)?;
        is_seen(thread.home).then_some((number, thread))
    });
    match found {
        Some((number, thread)) => {
            write(activation, thread_record(thread));
            Ok(if number + 1 < used { number } else { 0 })
        }
        None if end < used => {
            activation.progress.set(end);
            Err(Stop::Repeat)
        }
        None => Err(Error::AtEnd.into()),
    }
}

/// The list [`info::PORTAL`]: in the table of the domain that the position names, or of the next older domain if that is gone.
fn report_portal(
    activation: Ref<Activation>,
    position: u64,
    is_seen: impl Fn(Ref<Domain>) -> bool,
) -> Result<u64, Stop> {
    let (number, index) = info::Portal::place(position);
    let below = if position == 0 { 0 } else { number + 1 };
    let domain = domain::newest_below(activation, below, &is_seen)?.ok_or(Error::AtEnd)?;
    let named = domain.number + 1 == below;
    let (record, next) = next_portal(domain, if named { index as usize } else { 0 }, is_seen);
    write(activation, record);
    Ok(match (next < domain.table_entries(), domain.next_domain()) {
        (true, _) => info::Portal::position(domain.number, next as u64),
        (false, Some(older)) => info::Portal::position(older.number, 0),
        (false, None) => 0,
    })
}

/// The counters. A tainted domain can change most of them at will, and could signal by them: unless `all`, these are 0.
fn counters_record(held: Held, all: bool) -> Counters {
    let longest = cpu::all(held).map(|cpu| (cpu.longest.get(), cpu.longest_by.get())).max();
    let (longest, longest_by) = longest.unwrap_or_default();
    let counts = counters::all(held);
    let shown = if all { u64::MAX } else { 0 };
    Counters {
        uptime: timer::nanoseconds(),
        longest,
        longest_by,
        dispatches: cpu::all(held).map(|cpu| cpu.counts.dispatches.get()).sum(),
        root_writes: shown & cpu::all(held).map(|cpu| cpu.counts.root_writes.get()).sum::<u64>(),
        faults: shown & counts.faults.get(),
        interrupts: counts.interrupts.get(),
        deaths: shown & counts.deaths.get(),
        splits: shown & counts.splits.get(),
        standby: shown & counts.standby.get(),
        domains: shown & counts.domains.get(),
        restarts: shown & counts.restarts.get(),
        invalidations: shown & counts.invalidations.get(),
        again: shown & counts.again.get(),
        not_runnable: shown & counts.not_runnable.get(),
    }
}

/// The first call entry among the next `ENTRIES_PASSED` of a table from `first` on, and the index where the search
/// continues.
fn next_portal(domain: Ref<Domain>, first: usize, is_seen: impl Fn(Ref<Domain>) -> bool) -> (info::Portal, usize) {
    let end = domain.table_entries().min(first + ENTRIES_PASSED);
    let mut record = info::Portal { from: domain.number, index: 0, to: 0, service: 0, badge: 0, shape: 0 };
    for index in first..end {
        let Ok(entry) = domain.place(index) else { break };
        if let Some(callee) = entry.callee().filter(|callee| is_seen(*callee)) {
            record.index = index as u64;
            record.to = callee.number;
            record.service = entry.word0.get();
            record.badge = entry.word1.get();
            record.shape = entry.shape() as u64;
            return (record, index + 1);
        }
    }
    (record, end)
}

fn write<T>(activation: Ref<Activation>, record: T) {
    const { assert!(size_of::<T>() <= MESSAGE_BYTES) };
    // SAFETY: the message area is a page of the nucleus, large enough (asserted), and aligned to more than any record.
    unsafe { (activation.message_kernel as *mut T).write(record) }
}

fn domain_record(domain: Ref<Domain>) -> info::Domain {
    info::Domain {
        number: domain.number,
        parent: domain.maker.map_or(0, |maker| maker.number),
        name: domain.name,
        state: domain.is_dead() as u64,
        status: domain.status(),
        charged: domain.account.quota.used.get() as u64,
        limit: domain.account.quota.limit.get() as u64,
        // Without the orphan thread.
        threads: domain.thread_count.get().saturating_sub(1) as u64,
        activations: domain.activation_count.get() as u64,
        crossings: domain.per_cpus().map(|per_cpu| per_cpu.crossings.get()).sum(),
        pages: domain.pages.get().into(),
        labels: domain.version() as u64,
        table: domain.table_entries() as u64,
    }
}

fn cpu_record(held: Held, number: usize, is_seen: impl Fn(Ref<Domain>) -> bool) -> info::Cpu {
    let identity = cpu::identity_of(held, number) as u64;
    let mut record = info::Cpu { number: number as u64, identity, ..info::Cpu::OFF };
    let Some(cpu) = cpu::of(held, number) else { return record };
    let thread = look(&cpu.thread).filter(|thread| !cpu.idle.get() && !is_seat(*thread));
    record.state = match thread {
        Some(_) => info::cpu_state::BUSY,
        None if cpu.idle.get() => info::cpu_state::IDLE,
        None => info::cpu_state::SCHEDULES,
    };
    let counts = &cpu.counts;
    let rests = if cpu.idle.get() { timer::now() - cpu.idle_since.get() } else { 0 };
    record.thread = thread.filter(|thread| is_seen(thread.home)).map_or(0, |thread| thread.number as u64);
    record.scheduler = cpu.seat.get().map_or(0, |seat| seat.domain.number);
    record.idle = timer::to_nanoseconds(counts.idle.get() + rests);
    record.dispatches = counts.dispatches.get();
    record.interrupts = counts.interrupts.get();
    record.received = counts.received.get();
    record.wakes = counts.wakes.get();
    record.stops = counts.stops.get();
    record.lock_waits = counts.lock_waits.get();
    record.lock_waited = timer::to_nanoseconds(counts.lock_waited.get());
    record.lock_longest = timer::to_nanoseconds(counts.lock_longest.get());
    record.longest = cpu.longest.get();
    record.longest_by = cpu.longest_by.get();
    record
}

fn thread_record(thread: Ref<Thread>) -> info::Thread {
    let (held, top) = (thread.held(), look(&thread.top));
    info::Thread {
        number: thread.number as u64,
        home: thread.home.number,
        now: top.map_or(thread.home.number, |top| top.domain.number),
        state: thread.runs.get() as u64,
        priority: thread.priority.get() as u64,
        depth: top.map_or(0, |top| top.depth.get() as u64 + 1),
        used: timer::to_nanoseconds(thread.used.get()),
        cpu: thread.cpu.get().number as u64,
        cpus: thread.cpus.get() & cpu::mask(held),
    }
}
