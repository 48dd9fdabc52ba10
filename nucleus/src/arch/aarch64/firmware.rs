//! Properties, from the device tree, of the devices that the nucleus itself uses (Devicetree Specification, release 0.4, and
//! the bindings named below).

use crate::pointer::Boot;
use abi::MAX_CPUS;
use abi::boot::Region;
use devicetree::{Found, Range, Tree};

/// The instruction that calls the firmware.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Conduit {
    /// HVC.
    Hypervisor,
    /// SMC.
    Monitor,
}

/// Interrupt lines whose trigger mode is known.
pub(super) const LINES: usize = 256;

/// See the module.
pub(super) struct Firmware {
    /// The lowest frame of RAM.
    pub first_frame: usize,
    /// The device tree: the bytes that are in use.
    pub fdt: Region,
    /// Registers of a PL011.
    pub serial: Option<Range>,
    /// The version of the interrupt controller's architecture; 0: there is none that we know.
    pub version: u8,
    /// The controller's ranges: distributor, then CPU interface (version 2) or redistributors (version 3).
    pub controller: [Range; 2],
    /// Other registers of the controller, which the nucleus neither uses nor gives away: through its ITS, a domain could
    /// have it write anywhere.
    pub others: [Range; OTHERS],
    /// Number of the virtual timer's interrupt.
    pub timer: u32,
    /// Lines whose interrupts are edges, one bit each.
    pub edges: [u64; LINES / 64],
    /// How to call PSCI.
    pub psci: Option<Conduit>,
    /// The command line announces an emulator with semihosting.
    pub semihosting: bool,
    /// MPIDR_EL1 of usable CPUs.
    pub cpus: [u64; MAX_CPUS],
    /// How many entries of `cpus` are valid.
    pub cpu_count: usize,
    /// Usable CPUs for which there is no room in `cpus`.
    pub left_out: u64,
}

/// Ranges besides the two of the controller.
const OTHERS: usize = 16;
const NOWHERE: Range = Range { start: 0, bytes: 0 };

static FIRMWARE: Boot<Firmware> = Boot::new(Firmware {
    first_frame: 0,
    fdt: Region { start: 0, bytes: 0 },
    serial: None,
    version: 0,
    controller: [NOWHERE; 2],
    others: [NOWHERE; OTHERS],
    timer: 0,
    edges: [0; LINES / 64],
    psci: None,
    semihosting: false,
    cpus: [0; MAX_CPUS],
    cpu_count: 0,
    left_out: 0,
});

/// The properties found.
#[inline(always)]
pub(super) fn get() -> &'static Firmware {
    FIRMWARE.get()
}

/// Changes the properties, while the machine boots.
pub(super) fn change(change: impl FnOnce(&mut Firmware)) {
    // SAFETY: called only before other CPUs run, and no closure given to this function calls `get`.
    change(unsafe { FIRMWARE.write() });
}

/// A word of the command line: the machine is an emulator with semihosting.
pub(super) const SEMIHOSTING: &str = "semihosting";

/// Whether the command line has a word.
pub(super) fn says(tree: &Tree<'_>, word: &str) -> bool {
    let command_line = tree.find("/chosen").and_then(|chosen| chosen.strings("bootargs").next()).unwrap_or_default();
    abi::boot::has_word(command_line, word)
}

/// First cell of an interrupt: 0 = shared by all CPUs, 1 = each CPU's own (GIC binding, "arm,gic-v3").
const SHARED: u32 = 0;
/// Bits of the third cell: triggered by edges.
const EDGES: u32 = 3;
/// Interrupts of a timer: secure, non-secure, virtual, hypervisor's ("arm,armv8-timer").
const VIRTUAL: usize = 2;
/// Number of the first private peripheral interrupt (PPI) of each CPU.
const FIRST_OWN: u32 = 16;
/// How many of these there are.
const OWN: u32 = 16;

/// Notes what the nucleus needs of the device tree.
pub(super) fn note(tree: &Tree<'_>) {
    change(|firmware| {
        tree.walk(|found| {
            note_device(firmware, found);
            None::<()>
        });
    });
}

fn note_device(firmware: &mut Firmware, found: &Found<'_>) {
    note_edges(firmware, found);
    if found.strings("device_type").next() == Some(b"cpu") {
        if let Some(identity) = found.registers_of_cpu().filter(|_| found.is_enabled()) {
            match firmware.cpus.get_mut(firmware.cpu_count) {
                Some(place) => (*place, firmware.cpu_count) = (identity, firmware.cpu_count + 1),
                None => firmware.left_out += 1,
            }
        }
    } else if found.is_compatible(&["arm,gic-v3"]) {
        note_controller(firmware, found, 3);
    } else if found.is_compatible(&["arm,cortex-a15-gic", "arm,gic-400"]) {
        note_controller(firmware, found, 2);
    } else if found.is_compatible(&["arm,gic-v3-its", "arm,gic-v2m-frame"]) {
        if let Some(range) = found.registers(0) {
            note_other(firmware, range);
        }
    } else if found.is_compatible(&["arm,armv8-timer", "arm,armv7-timer"]) {
        firmware.timer = found
            .cell("interrupts", 3 * VIRTUAL + 1)
            .filter(|number| *number < OWN)
            .map_or(0, |number| number + FIRST_OWN);
    } else if found.is_compatible(&["arm,psci-1.0", "arm,psci-0.2"]) {
        firmware.psci = match found.strings("method").next() {
            Some(b"hvc") => Some(Conduit::Hypervisor),
            Some(b"smc") => Some(Conduit::Monitor),
            _ => None,
        };
    } else if found.is_compatible(&["arm,pl011"]) && found.is_enabled() && firmware.serial.is_none() {
        firmware.serial = found.registers(0).filter(|range| range.bytes != 0);
    }
}

fn note_controller(firmware: &mut Firmware, found: &Found<'_>, version: u8) {
    if let (Some(first), Some(second)) = (found.registers(0), found.registers(1)) {
        firmware.version = version;
        firmware.controller = [first, second];
    }
    (2..OTHERS).map_while(|index| found.registers(index)).for_each(|range| note_other(firmware, range));
}

/// If there are too many ranges, the last place covers all addresses: then no domain gets any device registers.
fn note_other(firmware: &mut Firmware, range: Range) {
    match firmware.others.iter_mut().find(|place| place.bytes == 0) {
        Some(place) => *place = range,
        None => firmware.others[OTHERS - 1] = Range { start: 0, bytes: u64::MAX },
    }
}

fn note_edges(firmware: &mut Firmware, found: &Found<'_>) {
    for index in 0..8 {
        let cells = [0, 1, 2].map(|cell| found.cell("interrupts", 3 * index + cell));
        let [Some(SHARED), Some(line), Some(flags)] = cells else { continue };
        if let Some(word) = firmware.edges.get_mut(line as usize / 64).filter(|_| flags & EDGES != 0) {
            *word |= 1 << (line % 64);
        }
    }
}
