//! The text is JSON whatever the names and however small the buffer, and holds the figures it was given.
#![allow(missing_docs)]

use abi::info::{self, Counters, Cpu, Frames, Portal, Thread, cpu_state};
use abi::layout;
use proptest::prelude::*;
use serde_json::Value;
use status_json::json::Writer;
use status_json::portals::{Edge, Edges, Service, Services};
use status_json::write::{Domain, Lists, Machine, write};
use status_json::{LEAST_BYTES, cpus};

const MACHINE: Machine = Machine {
    frames: Frames { total: 16_000, charged: 9_000, free: 7_000, boot: 300 },
    counters: Counters {
        uptime: u64::MAX,
        faults: 1,
        interrupts: 2,
        dispatches: 3,
        deaths: 4,
        splits: 5,
        standby: 6,
        domains: 7,
        restarts: 8,
        root_writes: 9,
        invalidations: 10,
        longest: 11,
        longest_by: 12,
        again: 13,
        not_runnable: 14,
    },
};

fn domain(number: u64, name: &[u8]) -> Domain {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name);
    let record = info::Domain {
        number,
        parent: 1,
        name: bytes,
        state: number % 2,
        status: 3,
        charged: 4,
        limit: 5,
        threads: 6,
        activations: 7,
        crossings: u64::MAX - number,
        pages: 9,
        labels: 10,
        table: 11,
    };
    Domain { record, priority: 12, used: 13, restarts: number.is_multiple_of(3).then_some(number) }
}

fn thread(number: u64) -> Thread {
    Thread { number, home: 2, now: 3, state: number % 4, priority: 4, depth: 1, used: u64::MAX, cpu: 1, cpus: 0b1011 }
}

/// Fields that are not given count up from the number times 100.
fn cpu(number: u64, state: u64, idle: u64) -> Cpu {
    let count = |place: u64| 100 * number + place;
    Cpu {
        number,
        identity: count(0),
        state,
        thread: count(1),
        scheduler: count(2),
        idle,
        dispatches: count(3),
        interrupts: count(4),
        received: count(5),
        wakes: count(6),
        stops: count(7),
        lock_waits: count(8),
        lock_waited: count(9),
        lock_longest: count(10),
        longest: count(11),
        longest_by: count(12),
    }
}

const NOTHING: Lists<'_> = Lists { cpus: &[], domains: &[], edges: &[], threads: &[], are_complete: true };

fn name(service: Service) -> &'static [u8] {
    if service == Service::Unnamed { b"" } else { b"service \"x\"" }
}

fn parse(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

#[test]
fn figures_are_those_that_were_given() {
    let mut buffer = Vec::with_capacity(4096);
    let edges = [Edge { from: 3, to: 2, service: Service::WellKnown("parent"), entries: 5 }];
    let cpus = [cpu(0, cpu_state::BUSY, 5), cpu(1, cpu_state::OFFLINE, 0), cpu(63, cpu_state::IDLE, u64::MAX)];
    let domains = [domain(3, b"netd"), domain(2, b"bus")];
    let lists = Lists { cpus: &cpus, domains: &domains, edges: &edges, threads: &[thread(7), thread(8)], ..NOTHING };
    assert!(write(&mut buffer, &MACHINE, &lists, name));
    let value = parse(&buffer);
    assert_eq!(value["complete"], true);
    assert_eq!(value["machine"]["uptime"].as_u64(), Some(u64::MAX));
    assert_eq!(value["machine"]["frames"]["free"], 7_000);
    assert_eq!(value["machine"]["domains_made"], 7);
    let netd = &value["domains"][0];
    assert_eq!((&netd["name"], &netd["number"], &netd["alive"]), (&"netd".into(), &3.into(), &false.into()));
    assert_eq!(netd["crossings"].as_u64(), Some(u64::MAX - 3));
    let numbers = ["parent", "status", "charged", "limit", "threads", "activations", "pages", "labels", "table"];
    let expected = [1, 3, 4, 5, 6, 7, 9, 10, 11];
    assert_eq!(numbers.map(|key| netd[key].as_u64().unwrap()), expected);
    assert_eq!((&netd["priority"], &netd["used"], &netd["restarts"]), (&12.into(), &13.into(), &3.into()));
    assert_eq!(value["domains"][1]["restarts"], Value::Null);
    let portal = &value["portals"][0];
    assert_eq!((&portal["from"], &portal["to"], &portal["entries"]), (&3.into(), &2.into(), &5.into()));
    assert_eq!(portal["service"], "service \"x\"");
    let [busy, off, idle] = &value["cpus"].as_array().unwrap()[..] else { panic!("{}", value["cpus"]) };
    assert_eq!((&busy["state"], &off["state"], &idle["state"]), (&"busy".into(), &"offline".into(), &"idle".into()));
    assert_eq!((&idle["number"], &idle["identity"], idle["idle"].as_u64()), (&63.into(), &6300.into(), Some(u64::MAX)));
    let counts = ["thread", "scheduler", "dispatches", "interrupts", "received", "wakes", "stops", "lock_waits"];
    assert_eq!(counts.map(|key| idle[key].as_u64().unwrap() - 6300), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((&idle["lock_waited"], &idle["lock_longest"]), (&6309.into(), &6310.into()));
    assert_eq!((off["number"].as_u64(), off["identity"].as_u64(), &off["idle"]), (Some(1), Some(100), &Value::Null));
    let [blocked, running] = &value["threads"].as_array().unwrap()[..] else { panic!("{}", value["threads"]) };
    assert_eq!((&blocked["state"], &running["state"]), (&"blocked".into(), &"running".into()));
    let keys = ["number", "home", "now", "priority", "cpu", "used"];
    assert_eq!(keys.map(|key| running[key].as_u64().unwrap()), [8, 2, 3, 4, 1, u64::MAX]);
    assert_eq!(running["cpus"], "0,1,3");
}

#[test]
fn loads_are_shares_of_the_time() {
    let (before, after) = (cpu(0, cpu_state::IDLE, 1_000), cpu(0, cpu_state::BUSY, 1_750));
    assert_eq!(cpus::load(Some(&before), &after, 1_000), Some(250));
    assert_eq!(cpus::load(None, &after, 2_000), Some(125));
    // Idle for longer than the time is a reading that was taken later.
    assert_eq!(cpus::load(Some(&before), &after, 700), Some(0));
    assert_eq!(cpus::load(Some(&after), &before, 700), Some(1000));
    assert_eq!(cpus::load(Some(&before), &after, 0), None);
    assert_eq!(cpus::load(None, &cpu(3, cpu_state::OFFLINE, 0), 1_000), None);
    assert_eq!(cpus::load(None, &cpu(0, cpu_state::BUSY, 1), u64::MAX), Some(999));
}

#[test]
fn waits_and_sets() {
    assert_eq!(cpus::mean_wait(&Cpu { lock_waits: 3, lock_waited: 10, ..cpu(0, 1, 0) }), 3);
    assert_eq!(cpus::mean_wait(&Cpu { lock_waits: 0, lock_waited: 0, ..cpu(0, 1, 0) }), 0);
    let all = [cpu(0, cpu_state::BUSY, 0), cpu(1, cpu_state::OFFLINE, 0), cpu(63, cpu_state::IDLE, 0), cpu(64, 1, 0)];
    assert_eq!(cpus::online(&all), 1 | 1 << 63);
}

#[test]
fn incomplete_lists_say_so() {
    let domains: Vec<_> = (0..100).map(|number| domain(number, b"many")).collect();
    let mut buffer = Vec::with_capacity(4096);
    assert!(write(&mut buffer, &MACHINE, &Lists { domains: &domains, ..NOTHING }, name));
    assert_eq!(buffer.capacity(), 4096);
    let value = parse(&buffer);
    assert_eq!(value["complete"], false);
    let count = value["domains"].as_array().unwrap().len();
    assert!((5..100).contains(&count), "{count} domains");
    assert!(write(&mut buffer, &MACHINE, &Lists { are_complete: false, ..NOTHING }, name));
    assert_eq!(parse(&buffer)["complete"], false);
    assert!(!write(&mut Vec::with_capacity(100), &MACHINE, &NOTHING, name));
}

#[test]
fn numbers_and_nesting() {
    let mut buffer = Vec::with_capacity(200);
    let mut writer = Writer::new(&mut buffer);
    writer.array(|writer| {
        [0, 9, 10, u64::MAX].into_iter().for_each(|number| writer.number(number));
        writer.array(|_| ());
        writer.object(|writer| {
            writer.key("a");
            writer.nothing();
            writer.key("b");
            writer.truth(true);
        });
        writer.truth(false);
    });
    assert!(writer.fits());
    assert_eq!(buffer, br#"[0,9,10,18446744073709551615,[],{"a":null,"b":true},false]"#);
}

#[test]
fn names_are_found_by_where_they_enter() {
    let portal = |index, to, service| Portal { from: 1, index, to, service, badge: 0, shape: 0 };
    let mut services = Services::<2>::new();
    assert_eq!(services.find(&portal(layout::PARENT as u64, 1, 5)), Some(Service::WellKnown("parent")));
    assert_eq!(services.find(&portal(100, 2, 5)), None);
    services.note(&portal(100, 2, 5), Some(b"net"));
    services.note(&portal(100, 2, 6), None);
    let found = services.find(&portal(99, 2, 5)).unwrap();
    assert_eq!(services.name(found), b"net");
    assert_eq!(services.find(&portal(100, 2, 6)), Some(Service::Unnamed));
    assert_eq!(services.name(Service::Unnamed), b"");
    services.note(&portal(100, 3, 6), Some(b"no room"));
    assert_eq!(services.find(&portal(100, 3, 6)), None);
    services.make_room();
    assert_eq!(services.find(&portal(99, 2, 5)), None);
    services.note(&portal(100, 3, 6), Some(&[b'x'; 100]));
    assert_eq!(services.name(services.find(&portal(100, 3, 6)).unwrap()).len(), 64);
}

#[test]
fn entries_are_counted_and_what_finds_no_room_is_reported() {
    let mut edges = Edges::with_room(2);
    edges.add(1, 2, Service::Unnamed);
    edges.add(1, 2, Service::WellKnown("parent"));
    edges.add(1, 2, Service::Unnamed);
    assert!(edges.is_complete());
    assert_eq!(edges.all()[0].entries, 2);
    edges.add(2, 1, Service::Unnamed);
    assert!(!edges.is_complete());
    edges.clear();
    assert!(edges.is_complete() && edges.all().is_empty());
}

proptest! {
    /// Any bytes as a text come back as what they mean, and no character of HTML comes through.
    #[test]
    fn texts(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut text = Vec::with_capacity(1024);
        let mut writer = Writer::new(&mut text);
        writer.text(&bytes);
        prop_assert!(writer.fits());
        prop_assert_eq!(parse(&text), Value::from(String::from_utf8_lossy(&bytes)));
        prop_assert!(!text.iter().any(|byte| *byte < b' ' || b"<>&".contains(byte)));
    }

    #[test]
    fn texts_of_any_characters(text in "\\PC*|[\\x00-\\u{ff}\\u{2028}\\u{2029}\\u{ffff}\\u{10000}\\u{10ffff}]{0,20}") {
        let mut buffer = Vec::with_capacity(12 * text.len() + 2);
        Writer::new(&mut buffer).text(text.as_bytes());
        prop_assert_eq!(parse(&buffer), Value::from(text));
    }

    /// Cut off anywhere, the text is JSON with whole elements, or nothing at all.
    #[test]
    fn small_buffers(size in 0_usize..8000, names in prop::collection::vec(any::<[u8; 16]>(), 0..12)) {
        let domains: Vec<_> = names.iter().zip(1..).map(|(name, number)| domain(number, name)).collect();
        let edges: Vec<_> = (0..20).map(|to| Edge { from: 1, to, service: Service::Unnamed, entries: 1 }).collect();
        let mut buffer = Vec::with_capacity(size);
        let (cpus, threads): (Vec<_>, Vec<_>) = (0..5).map(|number| (cpu(number, 2, 3), thread(number))).unzip();
        let lists = Lists { cpus: &cpus, domains: &domains, edges: &edges, threads: &threads, are_complete: true };
        let fits = write(&mut buffer, &MACHINE, &lists, name);
        prop_assert_eq!(buffer.capacity(), size);
        if size >= LEAST_BYTES {
            let value = parse(&buffer);
            let (domains_reported, edges_reported) = (value["domains"].as_array().unwrap(), value["portals"].as_array().unwrap());
            let [cpus_reported, threads_reported] = ["cpus", "threads"].map(|key| value[key].as_array().unwrap().len());
            let lists_are_whole = (cpus_reported, threads_reported) == (cpus.len(), threads.len());
            let all = domains_reported.len() == domains.len() && edges_reported.len() == edges.len() && lists_are_whole;
            prop_assert_eq!(&value["complete"], all);
            prop_assert!(domains_reported.iter().zip(1..).all(|(domain, number)| domain["number"] == number));
            prop_assert!(fits);
        } else if fits {
            parse(&buffer);
        }
    }
}
