//! The compiled form: it reads back unchanged, and nothing else is accepted.
#![forbid(unsafe_code)]

use abi::level;
use proptest::prelude::*;
use system::host::{Description, Surroundings};
use system::{ADMIN, ErrorKind, HEADER_BYTES, Restart, Special, System};

struct Everything;

impl Surroundings for Everything {
    fn has_component(&self, _: &str) -> bool {
        true
    }
    fn has_program(&self, _: &str) -> bool {
        true
    }
    fn has_file(&self, _: &str) -> bool {
        true
    }
    fn memory_frames(&self) -> Option<u64> {
        None
    }
    fn cpus(&self) -> u32 {
        1
    }
}

const TEXT: &str = r#"
program = [{ name = "ls", owns = ["admin"] }, { name = "ps", binary = "ps2", account = "64K", inspect = true, privileges = ["b"] }]
compartment = [{ name = "a" }, { name = "b" }, { name = "c" }]

[memory]
size = "64M"

[boot]
shell = "shell"

[[component]]
name = "shell"
account = "8K"
rest = 90
restart = "always"
portals = ["ramfs", "console/lines"]
args = ["-i", "/etc/exec"]
fpu = true
trusted = true

[[component]]
name = "ramfs"
account = "4M"
priority = 20
max_priority = 30
restart = "always"
restarts_per_minute = 60
max_slice = 20
share = 60
threads = 100
portals = ["console"]
waits = false
cpus = [63, 0]
vault = "2M"
archive = true

[[component]]
name = "console"
account = "256K"
restart = "never"
devices = { irq = 4, ports = [0x3f8, 8] }
services = ["lines", "console"]
private = ["lines"]

[[component]]
name = "sigma0"
account = "256K"
special = "memory"
restart = "reboot"
trusted = true

[[component]]
name = "roottask"
account = "1024K"
max_priority = 30
special = "standby"
restart = "reboot"

[[component]]
name = "sched"
account = "128K"
special = "scheduler"
restart = "always"
services = []
owns = ["b"]
taint = ["a"]
clearance = ["c"]
"#;

fn compiled() -> Vec<u8> {
    Description::read(TEXT).unwrap().check(&Everything).unwrap().encode()
}

fn kind(bytes: &[u8]) -> ErrorKind {
    System::parse(bytes).unwrap_err().kind
}

/// Place of a string's length byte.
fn place(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap() - 1
}

#[test]
fn components_come_in_start_order() {
    let bytes = compiled();
    let system = System::parse(&bytes).unwrap();
    let names: Vec<_> = system.components().map(|component| component.name).collect();
    assert_eq!(names, ["sigma0", "roottask", "sched", "console", "ramfs", "shell"]);
    for (number, component) in system.components().enumerate() {
        assert_eq!(component.number as usize, number);
    }
}

#[test]
fn everything_written_is_read() {
    let bytes = compiled();
    let system = System::parse(&bytes).unwrap();
    let shell = system.shell().unwrap();
    assert_eq!((shell.name, shell.account, shell.rest, shell.fpu, shell.trusted), ("shell", 2, 90, true, true));
    let portals: Vec<_> = shell.portals().map(|portal| (portal.index, portal.component, portal.service)).collect();
    assert_eq!(portals, [(96, 4, "ramfs"), (97, 3, "lines")]);
    assert_eq!(shell.arguments().collect::<Vec<_>>(), ["-i", "/etc/exec"]);
    let ramfs = system.component("ramfs").unwrap();
    assert_eq!((ramfs.account, ramfs.rest, ramfs.priority, ramfs.max_priority), (1024, 0, 20, 30));
    assert_eq!((ramfs.max_slice, ramfs.threads, ramfs.share), (20, 100, 60));
    assert_eq!((ramfs.restart, ramfs.restarts_per_minute), (Restart::Always, 60));
    assert_eq!((ramfs.cpus, ramfs.vault, ramfs.archive), (Some(1 << 63 | 1), 512, true));
    assert_eq!((ramfs.interrupt, ramfs.io_ports, ramfs.special), (None, None, Special::None));
    let console = system.component("console").unwrap();
    assert_eq!((console.cpus, console.vault, console.archive), (None, 0, false));
    assert_eq!((console.interrupt, console.io_ports), (Some(4), Some((0x3f8, 8))));
    assert_eq!((console.restart, console.portals().count()), (Restart::Never, 0));
    assert_eq!(console.services().collect::<Vec<_>>(), ["console", "lines"]);
    assert!(console.is_private("lines") && !console.is_private("console") && !shell.is_private("shell"));
    assert_eq!((console.waits, ramfs.waits), (true, false));
    assert_eq!(ramfs.services().collect::<Vec<_>>(), ["ramfs"]);
    assert_eq!(system.component("sched").unwrap().services().count(), 0);
    let owner = |service| system.owner_of(service).map(|owner| owner.name);
    assert_eq!((owner("lines"), owner("shell"), owner("sched")), (Some("console"), Some("shell"), None));
    let sigma0 = system.component("sigma0").unwrap();
    assert_eq!((sigma0.special, sigma0.trusted, sigma0.restart), (Special::Memory, true, Restart::Reboot));
    let programs: Vec<_> =
        system.programs().map(|program| (program.name, program.binary, program.account, program.inspect)).collect();
    assert_eq!(programs, [("ls", "ls", None, false), ("ps", "ps2", Some(16), true)]);
    assert_eq!(system.component("nobody"), None);
    assert_eq!(system.compartments().collect::<Vec<_>>(), ["a", "b", "c"]);
    let levels: Vec<_> = system.component("sched").unwrap().levels.collect();
    assert_eq!(levels, [(1, level::STAR), (2, level::ONE), (0, level::THREE)]);
    let [ls, ps] =
        system.programs().map(|program| program.levels.collect::<Vec<_>>()).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((ls, ps), (vec![(ADMIN, level::STAR)], vec![(1, level::ZERO)]));
}

#[test]
fn every_truncation_is_refused() {
    let bytes = compiled();
    for length in 0..bytes.len() {
        assert_eq!(kind(&bytes[..length]), ErrorKind::Truncated, "{length} bytes");
    }
}

#[test]
fn each_cause_has_its_error() {
    let good = compiled();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        kind(&bytes)
    };
    assert_eq!(with(0, b'c'), ErrorKind::BadMagic);
    assert_eq!(with(8, 1), ErrorKind::BadVersion);
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(kind(&longer), ErrorKind::BadLength);
    // Fewer programs than records; then fewer components, among which the shell no longer is.
    assert_eq!(with(18, 1), ErrorKind::BadLength);
    assert_eq!(with(16, 5), ErrorKind::BadReference);
    assert_eq!(with(16, 200), ErrorKind::BadValue);
    assert_eq!(with(20, 6), ErrorKind::BadReference);
    assert_eq!(with(22, 33), ErrorKind::BadValue);
    // The compartments follow the header: length and name each. Fewer than are named; one with something after its name.
    assert_eq!(with(22, 2), ErrorKind::Truncated);
    assert_eq!(good[HEADER_BYTES..HEADER_BYTES + 4], [4, 0, 1, b'a']);
    let mut longer = good.clone();
    longer[HEADER_BYTES] = 5;
    longer.insert(HEADER_BYTES + 4, 0);
    longer[12] += 1;
    assert_eq!(kind(&longer), ErrorKind::BadLength);
    // The last record is that of `ps`, and ends with its compartment: number and level.
    let end = good.len();
    assert_eq!(good[end - 2..], [1, level::ZERO as u8]);
    assert_eq!(with(end - 2, 3), ErrorKind::BadReference);
    assert_eq!(with(end - 1, level::TWO as u8), ErrorKind::BadValue);
    let last = place(&good, "ps") - 7;
    let mut odd = good.clone();
    odd.push(0);
    odd[last] += 1;
    odd[12] += 1;
    assert_eq!(kind(&odd), ErrorKind::BadLength);
    // As many compartments as there can be, and one more.
    let mut many = good.clone();
    many.extend([1, level::ZERO as u8].repeat(7));
    (many[last], many[12]) = (many[last] + 14, many[12] + 14);
    assert!(System::parse(&many).is_ok());
    many.extend([1, level::ZERO as u8]);
    (many[last], many[12]) = (many[last] + 2, many[12] + 2);
    assert_eq!(kind(&many), ErrorKind::BadLength);
    // The first record of a component: length, account, priority, highest, flags, special, restart.
    let record = HEADER_BYTES + 12;
    assert_eq!(with(record, 1), ErrorKind::BadLength);
    assert_eq!(with(record + 2, 0), ErrorKind::BadValue);
    assert_eq!(with(record + 6, 64), ErrorKind::BadValue);
    assert_eq!(with(record + 7, 64), ErrorKind::BadValue);
    assert_eq!(with(record + 9, Special::ALL.len() as u8), ErrorKind::BadValue);
    assert_eq!(with(record + 10, 3), ErrorKind::BadValue);
    assert_eq!(with(record + 12, 24), ErrorKind::BadValue);
    // The longest slice: 10 + 256 * 200 milliseconds.
    assert_eq!(with(record + 22, 200), ErrorKind::BadValue);
    // More private services than services.
    assert_eq!(with(record + 20, 2), ErrorKind::BadValue);
    // The CPUs of ramfs, its share and the frames of its vault stand before its name: none at all.
    let cpus = place(&good, "ramfs") - 13;
    let mut without = good.clone();
    without[cpus..cpus + 8].fill(0);
    assert_eq!(good[cpus..cpus + 8], (1u64 << 63 | 1).to_le_bytes());
    assert_eq!(kind(&without), ErrorKind::BadValue);
    assert_eq!(good[cpus + 8], 60);
    for share in [0, 101] {
        assert_eq!(with(cpus + 8, share), ErrorKind::BadValue);
    }
    assert_eq!(good[cpus + 9..cpus + 13], 512u32.to_le_bytes());
    assert_eq!(with(cpus + 10, 0), ErrorKind::BadValue);
    let name = place(&good, "sigma0");
    assert_eq!(with(name, 0), ErrorKind::BadString);
    assert_eq!(with(place(&good, "shell"), 17), ErrorKind::BadString);
    assert_eq!(with(name + 1, 0xff), ErrorKind::BadString);
    // The portal `lines` of the shell, number 5: index 97 and component 3 stand before its name.
    let portal = good.windows(5).rposition(|window| window == b"lines").unwrap() - 5;
    assert_eq!(&good[portal..portal + 4], [97, 0, 3, 0]);
    assert_eq!(with(portal, 96), ErrorKind::BadValue);
    assert_eq!(with(portal, 64), ErrorKind::BadValue);
    assert_eq!(with(portal + 2, 5), ErrorKind::BadReference);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(System::parse(&bytes).is_err());
    }

    #[test]
    fn damage_never_panics(changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..8)) {
        let mut bytes = compiled();
        for (place, value) in changes {
            let place = place as usize % bytes.len();
            bytes[place] = value;
        }
        if let Ok(system) = System::parse(&bytes) {
            for component in system.components() {
                prop_assert!(component.portals().all(|portal| portal.component < component.number));
                component.arguments().for_each(drop);
                component.services().for_each(drop);
            }
            system.programs().for_each(drop);
            system.compartments().for_each(drop);
        }
    }

    #[test]
    fn descriptions_never_panic(text in "[a-z\\[\\]=\"{},.#0-9 \n]{0,200}") {
        if let Ok(description) = Description::read(&text) {
            let _ = description.check(&Everything);
        }
    }
}

#[test]
fn labels_are_off_by_a_word_for_the_nucleus() {
    let words = |boot: &str| {
        Description::read(&TEXT.replace("[boot]\n", &format!("[boot]\n{boot}\n"))).map(|read| read.command_line)
    };
    assert_eq!(words("labels = \"off\"").as_deref(), Ok(abi::boot::LABELS_OFF));
    assert_eq!(
        words("labels = \"off\"\ncommand_line = \"quiet\"").unwrap(),
        format!("quiet {}", abi::boot::LABELS_OFF)
    );
    assert_eq!(words("labels = \"on\"").as_deref(), Ok(""));
}
