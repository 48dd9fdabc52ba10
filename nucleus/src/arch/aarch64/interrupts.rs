//! The interrupt controller: GICv3 (IHI 0069) or GICv2 (IHI 0048). A line is a shared peripheral interrupt (SPI).

use super::firmware::{self, LINES as KNOWN_LINES};
use super::memory::DIRECT;
use super::processor::{read, relax};
use super::timer;
use crate::objects::Interrupt;
use crate::pointer::Boot;
use core::arch::asm;

/// Interrupt lines that can be taken.
pub const LINES: usize = KNOWN_LINES;
/// Number of the interrupt of line 0.
const FIRST_LINE: u32 = 32;
/// Number of interrupts from other CPUs.
const OTHER_CPU: u32 = 1;
/// Numbers from here on are no interrupts.
const SPURIOUS: u32 = 1020;

struct Controller {
    version: u8,
    distributor: usize,
    /// Version 2: the CPU interface. Version 3: the first redistributor.
    second: usize,
}

static CONTROLLER: Boot<Controller> = Boot::new(Controller { version: 0, distributor: 0, second: 0 });

// The distributor (IHI 0069, 12.9; IHI 0048, 4.3).
const GICD_CTLR: usize = 0;
const GICD_TYPER: usize = 4;
const GICD_IGROUPR: usize = 0x80;
const GICD_ISENABLER: usize = 0x100;
const GICD_ICENABLER: usize = 0x180;
const GICD_ICPENDR: usize = 0x280;
const GICD_IPRIORITYR: usize = 0x400;
const GICD_ITARGETSR: usize = 0x800;
const GICD_ICFGR: usize = 0xc00;
const GICD_SGIR: usize = 0xf00;
const GICD_IROUTER: usize = 0x6000;
const GICD_ISPENDR: usize = 0x200;
/// By the version. Bits 4 to 7, ArchRev, are the version that the controller has (12.9.29, 12.11.32; of version 2, as
/// ICPIDR2, IHI 0048, 4.3.18).
const GICD_PIDR2: [usize; 4] = [0, 0xfe8, 0xfe8, 0xffe8];
/// Version 3, register write pending: a write has not taken effect everywhere yet.
const GICD_CTLR_RWP: u32 = 1 << 31;
/// Priority of all interrupts, which the priority mask lets through; four of them.
const USUAL_PRIORITY: u32 = 0xa0a0_a0a0;

// A redistributor (IHI 0069, 12.10, 12.11): two frames of 64 KiB, RD_base and SGI_base. In SGI_base the registers of a CPU's
// own interrupts (GICR_IGROUPR0, GICR_ISENABLER0 …) have the offsets of the distributor's.
const REDISTRIBUTOR_BYTES: usize = 2 << 16;
const SGI_BASE: usize = 1 << 16;
const GICR_TYPER: usize = 8;
const GICR_TYPER_LAST: u32 = 1 << 4;
const GICR_TYPER_VLPIS: u32 = 1 << 1;
const GICR_WAKER: usize = 0x14;
const GICR_WAKER_PROCESSOR_SLEEP: u32 = 1 << 1;
const GICR_WAKER_CHILDREN_ASLEEP: u32 = 1 << 2;

// The CPU interface of version 2 (IHI 0048, 4.4).
const GICC_CTLR: usize = 0;
const GICC_PMR: usize = 4;
const GICC_IAR: usize = 0xc;
const GICC_EOIR: usize = 0x10;

fn write(address: usize, value: u32) {
    // SAFETY: a register of the controller, mapped as device memory.
    unsafe { (address as *mut u32).write_volatile(value) }
}

fn load(address: usize) -> u32 {
    // SAFETY: a register of the controller, mapped as device memory.
    unsafe { (address as *const u32).read_volatile() }
}

/// MPIDR_EL1 in 32 bits: the four affinities.
pub(super) fn short(identity: u64) -> u32 {
    (identity & 0xff_ffff | (identity >> 32 & 0xff) << 24) as u32
}

/// The identity of this CPU: its affinities.
pub fn identity() -> u32 {
    short(read!("mpidr_el1"))
}

/// Interrupts the CPU with this identity.
pub fn send(identity: u32) {
    // SAFETY: a barrier: the other CPU sees all earlier writes.
    unsafe { asm!("dsb ishst", options(nostack)) }
    let identity = identity as u64;
    match CONTROLLER.get().version {
        3 => {
            // ICC_SGI1R_EL1: affinities 3, 2, 1 and a bit for affinity 0 (12.2.20).
            let (zero, one, two, three) = (identity & 0xf, identity >> 8 & 0xff, identity >> 16 & 0xff, identity >> 24);
            let range = identity >> 4 & 0xf;
            let value = three << 48 | range << 44 | two << 32 | (OTHER_CPU as u64) << 24 | one << 16 | 1 << zero;
            // SAFETY: sends a CPU an interrupt for which there is a handler.
            unsafe { asm!("msr S3_0_C12_C11_5, {}", "isb", in(reg) value, options(nostack)) }
        }
        _ => write(CONTROLLER.get().distributor + GICD_SGIR, 1 << (16 + (identity & 7)) | OTHER_CPU),
    }
}

/// Masks all lines and enables the controller.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn init() {
    let firmware = firmware::get();
    if firmware.version == 0 {
        panic!("the device tree has no interrupt controller that we know (GICv2 or GICv3)");
    }
    let [distributor, second] = firmware.controller.map(|range| DIRECT + range.start as usize);
    // SAFETY: the first CPU runs alone.
    unsafe { *CONTROLLER.write() = Controller { version: firmware.version, distributor, second } };
    let controller = CONTROLLER.get();
    let kind = load(distributor + GICD_PIDR2[controller.version as usize]) >> 4 & 0xf;
    // Version 4 extends version 3.
    if !matches!((controller.version, kind), (3, 3 | 4) | (2, 2)) {
        panic!("no interrupt controller is where the device tree says (it identifies as {})", u64::from(kind));
    }
    write(distributor + GICD_CTLR, 0);
    wait_for_write(distributor);
    // ITLinesNumber.
    let groups = (load(distributor + GICD_TYPER) & 0x1f) as usize + 1;
    for group in 1..groups {
        write(distributor + GICD_ICENABLER + 4 * group, u32::MAX);
        write(distributor + GICD_ICPENDR + 4 * group, u32::MAX);
        write(distributor + GICD_IGROUPR + 4 * group, if controller.version == 3 { u32::MAX } else { 0 });
        for word in 0..8 {
            write(distributor + GICD_IPRIORITYR + 32 * group + 4 * word, USUAL_PRIORITY);
        }
        for half in 0..2 {
            let mut value = 0;
            for place in 0..16 {
                value |= (!is_level(32 * (group - 1) + 16 * half + place) as u32) << (2 * place + 1);
            }
            write(distributor + GICD_ICFGR + 8 * group + 4 * half, value);
        }
    }
    wait_for_write(distributor);
    // Version 3: affinity routing and both groups; version 2: its one enable bit.
    write(distributor + GICD_CTLR, if controller.version == 3 { 1 << 4 | 3 } else { 1 });
    wait_for_write(distributor);
    try_timer(prepare_local());
}

/// The timer's interrupt must be seen within a second divided by this.
const PATIENCE: u64 = 100;

/// Panics unless the timer's interrupt is the one that the device tree names: without it no slice and no wait would end.
/// `own`: registers of this CPU's private interrupts.
fn try_timer(own: usize) {
    let number = firmware::get().timer;
    if number == 0 {
        panic!("the device tree has no timer that we know (arm,armv8-timer, with a virtual one)");
    }
    let is_pending = || load(own + GICD_ISPENDR) >> number & 1 != 0;
    let end = timer::now() + read!("cntfrq_el0") / PATIENCE;
    timer::set(0);
    while !is_pending() {
        if timer::now() > end {
            panic!("the timer's interrupt is not number {}, as the device tree says", u64::from(number));
        }
        relax();
    }
    timer::stop();
}

fn wait_for_write(distributor: usize) {
    if CONTROLLER.get().version == 3 {
        while load(distributor + GICD_CTLR) & GICD_CTLR_RWP != 0 {
            relax();
        }
    }
}

/// Enables this CPU's part of the controller.
pub fn init_local() {
    prepare_local();
}

/// As [`init_local`]; gives the address of the registers of the CPU's private interrupts.
fn prepare_local() -> usize {
    let own = match CONTROLLER.get().version {
        3 => init_local_three(),
        _ => init_local_two(),
    };
    let timer = firmware::get().timer;
    for word in 0..8 {
        write(own + GICD_IPRIORITYR + 4 * word, USUAL_PRIORITY);
    }
    write(own + GICD_ICENABLER, !(1 << timer | 1 << OTHER_CPU));
    write(own + GICD_ISENABLER, 1 << timer | 1 << OTHER_CPU);
    own
}

fn init_local_two() -> usize {
    let controller = CONTROLLER.get();
    write(controller.second + GICC_PMR, 0xff);
    write(controller.second + GICC_CTLR, 1);
    controller.distributor
}

fn init_local_three() -> usize {
    let redistributor = own_redistributor();
    write(redistributor + GICR_WAKER, load(redistributor + GICR_WAKER) & !GICR_WAKER_PROCESSOR_SLEEP);
    while load(redistributor + GICR_WAKER) & GICR_WAKER_CHILDREN_ASLEEP != 0 {
        relax();
    }
    write(redistributor + SGI_BASE + GICD_IGROUPR, u32::MAX);
    // SAFETY: the controller's registers of this CPU: ICC_SRE_EL1, ICC_PMR_EL1, ICC_BPR1_EL1, ICC_CTLR_EL1, ICC_IGRPEN1_EL1.
    unsafe {
        asm!("msr S3_0_C12_C12_5, {one}", "isb", "msr S3_0_C4_C6_0, {all}", "msr S3_0_C12_C12_3, xzr",
            "msr S3_0_C12_C12_4, xzr", "msr S3_0_C12_C12_7, {one}", "isb", one = in(reg) 1u64, all = in(reg) 0xffu64,
            options(nostack));
    }
    redistributor + SGI_BASE
}

/// This CPU's redistributor: the one with its affinities.
fn own_redistributor() -> usize {
    let (mut at, own) = (CONTROLLER.get().second, identity());
    let end = at + firmware::get().controller[1].bytes as usize;
    while at + REDISTRIBUTOR_BYTES <= end {
        if load(at + GICR_TYPER + 4) == own {
            return at;
        }
        let kind = load(at + GICR_TYPER);
        if kind & GICR_TYPER_LAST != 0 {
            break;
        }
        // In version 4 each has two more frames.
        at += if kind & GICR_TYPER_VLPIS != 0 { 2 * REDISTRIBUTOR_BYTES } else { REDISTRIBUTOR_BYTES };
    }
    panic!("the interrupt controller has no redistributor for CPU {:#x}", own as usize)
}

fn place(line: usize) -> (usize, u32) {
    let number = line + FIRST_LINE as usize;
    (CONTROLLER.get().distributor + number / 32 * 4, 1 << (number % 32))
}

/// Masks the line.
pub fn mask(line: usize) {
    let (word, bit) = place(line);
    write(word + GICD_ICENABLER, bit);
}

/// Unmasks the line and routes it to the CPU with this identity.
pub fn unmask(line: usize, identity: u32, _: u32) {
    let (word, bit) = place(line);
    let controller = CONTROLLER.get();
    let number = line + FIRST_LINE as usize;
    if controller.version == 3 {
        let route = (controller.distributor + GICD_IROUTER + 8 * number) as *mut u64;
        let identity = identity as u64;
        // SAFETY: a register of the controller, mapped as device memory. It has 64 bits: affinities 0 to 2, and 3 from
        // bit 32 on.
        unsafe { route.write_volatile(identity & 0xff_ffff | (identity >> 24) << 32) };
    } else {
        let targets = (controller.distributor + GICD_ITARGETSR + number) as *mut u8;
        // SAFETY: a register of the controller, mapped as device memory; bytes are allowed (4.3.12).
        unsafe { targets.write_volatile(1 << (identity & 7)) };
    }
    write(word + GICD_ISENABLER, bit);
}

/// Whether the line must be masked until its device was served.
pub fn is_level(line: usize) -> bool {
    firmware::get().edges.get(line / 64).is_none_or(|word| word >> (line % 64) & 1 == 0)
}

/// Acknowledges the pending interrupt; gives its number, in version 2 with the CPU that sent it.
pub fn claim(_: u64) -> u32 {
    let controller = CONTROLLER.get();
    if controller.version == 3 {
        // ICC_IAR1_EL1.
        let number = read!("S3_0_C12_C12_0") as u32;
        // SAFETY: a barrier: later reads see what the device wrote before its interrupt.
        unsafe { asm!("dsb sy", options(nostack)) }
        number & 0xff_ffff
    } else {
        load(controller.second + GICC_IAR)
    }
}

/// The meaning of a claimed interrupt.
pub fn meaning(claimed: u32) -> Interrupt {
    // Version 2: the upper bits say which CPU sent it.
    match claimed & 0x3ff {
        SPURIOUS.. => Interrupt::Nothing,
        OTHER_CPU => Interrupt::OtherCpu,
        number if number == firmware::get().timer => Interrupt::Timer,
        number => Interrupt::Line(number.wrapping_sub(FIRST_LINE) as usize),
    }
}

/// Ends a claimed interrupt.
pub fn complete(claimed: u32) {
    let controller = CONTROLLER.get();
    if controller.version == 3 {
        // SAFETY: ICC_EOIR1_EL1: ends the interrupt that `claim` acknowledged.
        unsafe { asm!("msr S3_0_C12_C12_1, {}", "isb", in(reg) claimed as u64, options(nostack)) }
    } else {
        write(controller.second + GICC_EOIR, claimed);
    }
}
