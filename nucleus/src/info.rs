//! `op::INFO`: records about the nucleus's objects.

use crate::activation::Activation;
use crate::arch::timer;
use crate::domain::{self, Domain};
use crate::operation::Stop;
use crate::pointer::{Nucleus, Ref};
use crate::thread::{self, Thread};
use crate::{account, cpu, frames, log, schedule};
use abi::info::{self, Counters};
use abi::rights::Kind;
use abi::{Error, MESSAGE_BYTES};

static COUNTERS: Nucleus<Counters> = Nucleus::new(Counters {
    uptime: 0,
    faults: 0,
    interrupts: 0,
    dispatches: 0,
    deaths: 0,
    splits: 0,
    standby: 0,
    domains: 0,
    restarts: 0,
    root_writes: 0,
    invalidations: 0,
    longest: 0,
    longest_by: 0,
    again: 0,
    not_runnable: 0,
});

/// Numbers of threads passed between two preemption points.
const NUMBERS_PASSED: u64 = 64;

/// Entries of a table looked at by one operation.
const ENTRIES_PASSED: usize = 32;

/// The counters, to be counted up.
pub fn counters() -> &'static mut Counters {
    COUNTERS.get()
}

/// Writes the record after `position` into the message area of `activation`; gives the next position.
pub fn tell(mut activation: Ref<Activation>, what: u64, position: u64) -> Result<u64, Stop> {
    match what {
        info::DOMAIN => {
            let Some(domain) = domain::newest_below(activation, position)? else { return Ok(0) };
            write(activation, domain_record(domain));
            Ok(if domain.next_domain().is_some() { domain.number } else { 0 })
        }
        info::THREAD => {
            let used = thread::numbers_used() as u64;
            let first = position.saturating_add(1).max(activation.progress);
            let end = used.min(first.saturating_add(NUMBERS_PASSED));
            let found = (first..end).find_map(|number| Some((number, thread::by_number(number as usize)?)));
            match found {
                Some((number, thread)) => {
                    write(activation, thread_record(thread));
                    Ok(if number + 1 < used { number } else { 0 })
                }
                None if end < used => {
                    activation.progress = end;
                    Err(Stop::Repeat)
                }
                None => Err(Error::Empty.into()),
            }
        }
        info::FRAMES => {
            let (total, free, boot) = frames::numbers();
            let charged = (account::charged() + boot) as u64;
            write(activation, info::Frames { total: total as u64, charged, free: free as u64, boot: boot as u64 });
            Ok(0)
        }
        info::LOG | info::LOG_PROGRAMS => {
            // SAFETY: the message area is a page of the nucleus.
            let area =
                unsafe { core::slice::from_raw_parts_mut(activation.message_kernel as *mut u8, info::LOG_BYTES) };
            Ok(log::read(if what == info::LOG { log::SYSTEM } else { log::PROGRAMS }, position, area))
        }
        info::COUNTERS => {
            counters().uptime = timer::nanoseconds();
            let longest = cpu::all().map(|cpu| (cpu.longest, cpu.longest_by)).max();
            (counters().longest, counters().longest_by) = longest.unwrap_or_default();
            counters().dispatches = cpu::all().map(|cpu| cpu.counts.dispatches).sum();
            counters().root_writes = cpu::all().map(|cpu| cpu.counts.root_writes).sum();
            write(activation, *counters());
            Ok(0)
        }
        info::PORTAL => {
            // Of the domain that the position names, or of the next older one if it is gone.
            let below = if position == 0 { 0 } else { (position >> 16) + 1 };
            let domain = domain::newest_below(activation, below)?.ok_or(Error::Empty)?;
            let named = domain.number + 1 == below;
            let (record, next) = next_portal(domain, if named { position as usize & 0xffff } else { 0 });
            write(activation, record);
            Ok(match (next < domain.table_entries(), domain.next_domain()) {
                (true, _) => info::Portal::position(domain.number, next as u64),
                (false, Some(older)) => info::Portal::position(older.number, 0),
                (false, None) => 0,
            })
        }
        info::CPU => {
            let number = usize::try_from(position).ok().filter(|number| *number < cpu::present());
            let number = number.ok_or(Error::Empty)?;
            write(activation, cpu_record(number));
            Ok(if number + 1 < cpu::present() { position + 1 } else { 0 })
        }
        _ => Err(Error::BadArgument.into()),
    }
}

/// The first call entry among some of a table's from `first` on, and where to look next.
fn next_portal(domain: Ref<Domain>, first: usize) -> (info::Portal, usize) {
    let end = domain.table_entries().min(first + ENTRIES_PASSED);
    let mut record = info::Portal { from: domain.number, index: 0, to: 0, service: 0, badge: 0 };
    for index in first..end {
        if let Ok(entry) = domain.entry(index, Kind::Call, 0) {
            // SAFETY: a call's object is the domain it leads to.
            let callee: Ref<Domain> = unsafe { entry.object_as() };
            (record.index, record.to) = (index as u64, callee.number);
            (record.service, record.badge) = (entry.word0, entry.word1);
            return (record, index + 1);
        }
    }
    (record, end)
}

fn write<T>(activation: Ref<Activation>, record: T) {
    const { assert!(size_of::<T>() <= MESSAGE_BYTES) };
    // SAFETY: the message area is a page of the nucleus, aligned to more than any record.
    unsafe { (activation.message_kernel as *mut T).write(record) }
}

fn domain_record(domain: Ref<Domain>) -> info::Domain {
    info::Domain {
        number: domain.number,
        parent: domain.parent,
        name: domain.name,
        state: domain.is_dead() as u64,
        status: domain.status,
        charged: domain.account.used as u64,
        limit: domain.account.limit as u64,
        // The orphan thread is not one of its own.
        threads: domain.thread_count.saturating_sub(1) as u64,
        activations: domain.activation_count as u64,
        crossings: domain.shares().map(|share| share.crossings).sum(),
        pages: domain.pages,
        pair: domain.pair as u64,
        table: domain.table_entries() as u64,
    }
}

fn cpu_record(number: usize) -> info::Cpu {
    let identity = cpu::identity_of(number) as u64;
    let mut record = info::Cpu { number: number as u64, identity, ..info::Cpu::OFF };
    let Some(cpu) = cpu::of(number) else { return record };
    let thread = cpu.thread.filter(|thread| !cpu.idle && !schedule::is_seat(*thread));
    record.state = match thread {
        Some(_) => info::cpu_state::BUSY,
        None if cpu.idle => info::cpu_state::IDLE,
        None => info::cpu_state::SCHEDULES,
    };
    let counts = cpu.counts;
    let rests = if cpu.idle { timer::now() - cpu.idle_since } else { 0 };
    record.thread = thread.map_or(0, |thread| thread.number as u64);
    record.scheduler = cpu.seat.map_or(0, |seat| seat.domain.number);
    record.idle = timer::to_nanoseconds(counts.idle + rests);
    (record.dispatches, record.interrupts) = (counts.dispatches, counts.interrupts);
    (record.received, record.wakes, record.halts) = (counts.received, counts.wakes, counts.halts);
    record.lock_waits = counts.lock_waits;
    record.lock_waited = timer::to_nanoseconds(counts.lock_waited);
    record.lock_longest = timer::to_nanoseconds(counts.lock_longest);
    (record.longest, record.longest_by) = (cpu.longest, cpu.longest_by);
    record
}

fn thread_record(thread: Ref<Thread>) -> info::Thread {
    info::Thread {
        number: thread.number as u64,
        home: thread.home.number,
        now: thread.top.map_or(thread.home.number, |top| top.domain.number),
        state: thread.runs as u64,
        priority: thread.priority as u64,
        depth: thread.top.map_or(0, |top| top.depth as u64 + 1),
        used: timer::to_nanoseconds(thread.used),
        cpu: thread.cpu.number as u64,
        cpus: thread.cpus & cpu::mask(),
    }
}
