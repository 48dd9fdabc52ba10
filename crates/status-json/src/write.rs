//! The text: one object; its keys are described in the book (`status.md`).

use crate::cpus;
use crate::json::Writer;
use crate::portals::{Edge, Service};
use abi::PAGE_BYTES;
use abi::info::{Counters, Cpu, Frames, Thread, cpu_state};
use alloc::vec::Vec;
use cpuset::CpuSet;

/// A domain, with what is known besides the nucleus's record.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    /// The nucleus's record.
    pub record: abi::info::Domain,
    /// Highest priority of its threads.
    pub priority: u64,
    /// Nanoseconds of processor time that they used.
    pub used: u64,
    /// How often the component was started again since boot; `None` for what is none.
    pub restarts: Option<u64>,
}

/// Everything that is reported, besides the lists.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Where the frames are.
    pub frames: Frames,
    /// The nucleus's counters.
    pub counters: Counters,
}

/// The lists.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// CPUs.
    pub cpus: &'a [Cpu],
    /// Domains.
    pub domains: &'a [Domain],
    /// The possible calls.
    pub edges: &'a [Edge],
    /// Threads.
    pub threads: &'a [Thread],
    /// They hold all that there is.
    pub are_complete: bool,
}

/// A name that ends at the first zero.
fn trimmed(name: &[u8; 16]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn fields(writer: &mut Writer<'_>, fields: &[(&str, u64)]) {
    for (key, number) in fields {
        writer.key(key);
        writer.number(*number);
    }
}

/// Writes the text into a buffer, within its capacity; false if that is below [`crate::LEAST_BYTES`] and too small.
/// `name` says what a service is called.
pub fn write<'n>(into: &mut Vec<u8>, machine: &Machine, lists: &Lists<'_>, name: impl Fn(Service) -> &'n [u8]) -> bool {
    let mut writer = Writer::new(into);
    let mut complete = lists.are_complete;
    writer.object(|writer| {
        writer.key("machine");
        writer.object(|writer| write_machine(writer, machine));
        writer.key("cpus");
        writer.array(|writer| {
            complete &= lists.cpus.iter().all(|cpu| writer.element(|writer| write_cpu(writer, cpu)));
        });
        writer.key("domains");
        writer.array(|writer| {
            complete &= lists.domains.iter().all(|domain| writer.element(|writer| write_domain(writer, domain)));
        });
        writer.key("portals");
        writer.array(|writer| {
            complete &= lists.edges.iter().all(|edge| {
                writer.element(|writer| {
                    writer.object(|writer| {
                        fields(writer, &[("from", edge.from), ("to", edge.to)]);
                        writer.key("service");
                        writer.text(name(edge.service));
                        fields(writer, &[("entries", edge.entries)]);
                    });
                })
            });
        });
        writer.key("threads");
        writer.array(|writer| {
            complete &= lists.threads.iter().all(|thread| writer.element(|writer| write_thread(writer, thread)));
        });
        writer.key("complete");
        writer.truth(complete);
    });
    writer.fits()
}

fn write_machine(writer: &mut Writer<'_>, machine: &Machine) {
    let Machine { frames, counters } = machine;
    fields(writer, &[("uptime", counters.uptime), ("frame_bytes", PAGE_BYTES as u64)]);
    writer.key("frames");
    writer.object(|writer| {
        let all = [("total", frames.total), ("charged", frames.charged), ("free", frames.free), ("boot", frames.boot)];
        fields(writer, &all);
    });
    let counted = [
        ("faults", counters.faults),
        ("interrupts", counters.interrupts),
        ("dispatches", counters.dispatches),
        ("deaths", counters.deaths),
        ("domains_made", counters.domains),
    ];
    fields(writer, &counted);
}

fn write_cpu(writer: &mut Writer<'_>, cpu: &Cpu) {
    writer.object(|writer| {
        fields(writer, &[("number", cpu.number), ("identity", cpu.identity)]);
        writer.key("state");
        writer.text(cpus::state(cpu).as_bytes());
        if cpu.state == cpu_state::OFFLINE {
            return;
        }
        let numbers = [
            ("idle", cpu.idle),
            ("thread", cpu.thread),
            ("scheduler", cpu.scheduler),
            ("dispatches", cpu.dispatches),
            ("interrupts", cpu.interrupts),
            ("received", cpu.received),
            ("wakes", cpu.wakes),
            ("stops", cpu.stops),
            ("lock_waits", cpu.lock_waits),
            ("lock_waited", cpu.lock_waited),
            ("lock_longest", cpu.lock_longest),
        ];
        fields(writer, &numbers);
    });
}

fn write_thread(writer: &mut Writer<'_>, thread: &Thread) {
    // With the scheduler, or on the way to it.
    let state: &[u8] = match thread.state {
        0 => b"running",
        1 | 2 => b"ready",
        _ => b"blocked",
    };
    writer.object(|writer| {
        fields(writer, &[("number", thread.number), ("home", thread.home), ("now", thread.now)]);
        writer.key("state");
        writer.text(state);
        fields(writer, &[("priority", thread.priority), ("cpu", thread.cpu)]);
        writer.key("cpus");
        writer.shown(CpuSet(thread.cpus));
        fields(writer, &[("used", thread.used)]);
    });
}

fn write_domain(writer: &mut Writer<'_>, domain: &Domain) {
    let record = &domain.record;
    writer.object(|writer| {
        fields(writer, &[("number", record.number), ("parent", record.parent)]);
        writer.key("name");
        writer.text(trimmed(&record.name));
        writer.key("alive");
        writer.truth(record.state == 0);
        let numbers = [
            ("status", record.status),
            ("charged", record.charged),
            ("limit", record.limit),
            ("threads", record.threads),
            ("activations", record.activations),
            ("crossings", record.crossings),
            ("pages", record.pages),
            ("table", record.table),
            ("labels", record.labels),
            ("priority", domain.priority),
            ("used", domain.used),
        ];
        fields(writer, &numbers);
        writer.key("restarts");
        match domain.restarts {
            Some(restarts) => writer.number(restarts),
            None => writer.nothing(),
        }
    });
}
