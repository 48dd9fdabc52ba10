//! The text: one object; its keys are described in the book (`status.md`).

use crate::json::Writer;
use crate::portals::{Edge, Service};
use abi::PAGE_BYTES;
use abi::info::{Counters, Frames};
use alloc::vec::Vec;

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

/// Everything that is told, besides domains and portals.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Where the frames are.
    pub frames: Frames,
    /// The nucleus's counters.
    pub counters: Counters,
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
/// `is_complete`: the lists hold all that there is. `name` tells what a service is called.
pub fn write<'a, 'n>(
    into: &mut Vec<u8>,
    machine: &Machine,
    domains: impl IntoIterator<Item = &'a Domain>,
    edges: &[Edge],
    is_complete: bool,
    name: impl Fn(Service) -> &'n [u8],
) -> bool {
    let mut writer = Writer::new(into);
    let mut complete = is_complete;
    writer.object(|writer| {
        writer.key("machine");
        writer.object(|writer| write_machine(writer, machine));
        writer.key("domains");
        writer.array(|writer| {
            complete &= domains.into_iter().all(|domain| writer.element(|writer| write_domain(writer, domain)));
        });
        writer.key("portals");
        writer.array(|writer| {
            complete &= edges.iter().all(|edge| {
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
            ("labels", record.pair),
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
