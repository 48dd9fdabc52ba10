//! The interrupt controller: GICv3 (IHI 0069) or GICv2 (IHI 0048). A line is a shared peripheral interrupt (SPI).

use super::firmware::{self, LINES as KNOWN_LINES};
use super::memory::DIRECT;
use super::processor::{read, relax};
use super::timer;
use super::trap::SYSTEM_ERROR;
use crate::objects::Interrupt;
use crate::pointer::Boot;
use core::arch::asm;

/// Lines that can be taken.
pub const LINES: usize = KNOWN_LINES;
/// Number of the interrupt of line 0.
const FIRST_LINE: u32 = 32;
/// Number of interrupts from other CPUs.
const OTHER_CPU: u32 = 1;
/// Numbers from here on are none.
const SPURIOUS: u32 = 1020;

struct Controller {
    version: u8,
    distributor: usize,
    /// Version 2: the CPU interface. Version 3: the first redistributor.
    second: usize,
}

static CONTROLLER: Boot<Controller> = Boot::new(Controller { version: 0, distributor: 0, second: 0 });

// The distributor (IHI 0069, 12.9; IHI 0048, 4.3).
const CONTROL: usize = 0;
const GROUP: usize = 0x80;
const ENABLE: usize = 0x100;
const DISABLE: usize = 0x180;
const CLEAR_PENDING: usize = 0x280;
const PRIORITY: usize = 0x400;
const TARGETS: usize = 0x800;
const TRIGGER: usize = 0xc00;
const SOFTWARE: usize = 0xf00;
const ROUTE: usize = 0x6000;
const PENDING: usize = 0x200;
/// Which version of the architecture it is: in bits 4 to 7 of a register (12.9.29, 12.11.32; of version 2 IHI 0048, 4.3.18).
const KINDS: [usize; 4] = [0, 0xfe8, 0xfe8, 0xffe8];
/// In the control register of version 3: a write is not seen everywhere yet.
const PENDING_WRITE: u32 = 1 << 31;
/// Priority of all: less urgent than the mask, which lets all through.
const USUAL_PRIORITY: u32 = 0xa0a0_a0a0;

// A redistributor (IHI 0069, 12.10, 12.11): two frames of 64 KiB, the second as a distributor for a CPU's own.
const REDISTRIBUTOR_BYTES: usize = 2 << 16;
const OWN_INTERRUPTS: usize = 1 << 16;
const KIND: usize = 8;
const LAST: u32 = 1 << 4;
const VIRTUAL: u32 = 1 << 1;
const WAKER: usize = 0x14;
const SLEEPS: u32 = 1 << 1;
const CHILDREN_SLEEP: u32 = 1 << 2;

// The CPU interface of version 2 (IHI 0048, 4.4).
const MASK: usize = 4;
const CLAIM: usize = 0xc;
const COMPLETE: usize = 0x10;

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

/// What the machine calls this CPU.
pub fn identity() -> u32 {
    short(read!("mpidr_el1"))
}

/// Interrupts the CPU that the machine calls so.
pub fn send(identity: u32) {
    // SAFETY: a barrier: the other CPU sees what was written before.
    unsafe { asm!("dsb ishst", options(nostack)) }
    let identity = identity as u64;
    match CONTROLLER.get().version {
        3 => {
            // ICC_SGI1R_EL1: affinities 3, 2, 1 and a bit for affinity 0 (12.2.20).
            let (zero, one, two, three) = (identity & 0xf, identity >> 8 & 0xff, identity >> 16 & 0xff, identity >> 24);
            let range = identity >> 4 & 0xf;
            let value = three << 48 | range << 44 | two << 32 | (OTHER_CPU as u64) << 24 | one << 16 | 1 << zero;
            // SAFETY: makes a CPU take an interrupt for which there is a handler.
            unsafe { asm!("msr S3_0_C12_C11_5, {}", "isb", in(reg) value, options(nostack)) }
        }
        _ => write(CONTROLLER.get().distributor + SOFTWARE, 1 << (16 + (identity & 7)) | OTHER_CPU),
    }
}

/// Masks everything and enables the controller.
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
    let kind = load(distributor + KINDS[controller.version as usize]) >> 4 & 0xf;
    // Version 4 is version 3 with more.
    if !matches!((controller.version, kind), (3, 3 | 4) | (2, 2)) {
        panic!("no interrupt controller is where the device tree says (it identifies as {})", u64::from(kind));
    }
    write(distributor + CONTROL, 0);
    wait_for_write(distributor);
    // GICD_TYPER.ITLinesNumber.
    let groups = (load(distributor + 4) & 0x1f) as usize + 1;
    for group in 1..groups {
        write(distributor + DISABLE + 4 * group, u32::MAX);
        write(distributor + CLEAR_PENDING + 4 * group, u32::MAX);
        write(distributor + GROUP + 4 * group, if controller.version == 3 { u32::MAX } else { 0 });
        for word in 0..8 {
            write(distributor + PRIORITY + 32 * group + 4 * word, USUAL_PRIORITY);
        }
        for half in 0..2 {
            let mut value = 0;
            for place in 0..16 {
                value |= (!is_level(32 * (group - 1) + 16 * half + place) as u32) << (2 * place + 1);
            }
            write(distributor + TRIGGER + 8 * group + 4 * half, value);
        }
    }
    wait_for_write(distributor);
    // Version 3: affinity routing, groups of all kinds; version 2: the one group there is.
    write(distributor + CONTROL, if controller.version == 3 { 1 << 4 | 3 } else { 1 });
    wait_for_write(distributor);
    try_timer(prepare_local());
}

/// Part of a second after which the timer's interrupt must have been seen.
const PATIENCE: u64 = 100;

/// Whether the timer's interrupt is the one that the device tree says: without it nothing would ever end. `own`: registers of
/// this CPU's own interrupts.
fn try_timer(own: usize) {
    let number = firmware::get().timer;
    if number == 0 {
        panic!("the device tree has no timer that we know (arm,armv8-timer, with a virtual one)");
    }
    let is_pending = || load(own + PENDING) >> number & 1 != 0;
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
        while load(distributor + CONTROL) & PENDING_WRITE != 0 {
            relax();
        }
    }
}

/// Enables what of the controller is this CPU's.
pub fn init_local() {
    prepare_local();
}

/// As [`init_local`]; gives where the registers of the CPU's own interrupts are.
fn prepare_local() -> usize {
    let own = match CONTROLLER.get().version {
        3 => init_local_three(),
        _ => init_local_two(),
    };
    let timer = firmware::get().timer;
    for word in 0..8 {
        write(own + PRIORITY + 4 * word, USUAL_PRIORITY);
    }
    write(own + DISABLE, !(1 << timer | 1 << OTHER_CPU));
    write(own + ENABLE, 1 << timer | 1 << OTHER_CPU);
    own
}

fn init_local_two() -> usize {
    let controller = CONTROLLER.get();
    write(controller.second + MASK, 0xff);
    write(controller.second, 1);
    controller.distributor
}

fn init_local_three() -> usize {
    let redistributor = own_redistributor();
    write(redistributor + WAKER, load(redistributor + WAKER) & !SLEEPS);
    while load(redistributor + WAKER) & CHILDREN_SLEEP != 0 {
        relax();
    }
    write(redistributor + OWN_INTERRUPTS + GROUP, u32::MAX);
    // SAFETY: the controller's registers of this CPU: ICC_SRE_EL1, ICC_PMR_EL1, ICC_BPR1_EL1, ICC_CTLR_EL1, ICC_IGRPEN1_EL1.
    unsafe {
        asm!("msr S3_0_C12_C12_5, {one}", "isb", "msr S3_0_C4_C6_0, {all}", "msr S3_0_C12_C12_3, xzr",
            "msr S3_0_C12_C12_4, xzr", "msr S3_0_C12_C12_7, {one}", "isb", one = in(reg) 1u64, all = in(reg) 0xffu64,
            options(nostack));
    }
    redistributor + OWN_INTERRUPTS
}

/// This CPU's redistributor: the one with its affinities.
fn own_redistributor() -> usize {
    let (mut at, own) = (CONTROLLER.get().second, identity());
    let end = at + firmware::get().controller[1].bytes as usize;
    while at + REDISTRIBUTOR_BYTES <= end {
        if load(at + KIND + 4) == own {
            return at;
        }
        let kind = load(at + KIND);
        if kind & LAST != 0 {
            break;
        }
        // Version 4 has two more frames each.
        at += if kind & VIRTUAL != 0 { 2 * REDISTRIBUTOR_BYTES } else { REDISTRIBUTOR_BYTES };
    }
    panic!("the interrupt controller has no redistributor for CPU {:#x}", own as usize)
}

fn place(line: usize) -> (usize, u32) {
    let number = line + FIRST_LINE as usize;
    (CONTROLLER.get().distributor + number / 32 * 4, 1 << (number % 32))
}

/// The line gives no interrupts.
pub fn mask(line: usize) {
    let (word, bit) = place(line);
    write(word + DISABLE, bit);
}

/// The line gives interrupts to the CPU that the machine calls so.
pub fn unmask(line: usize, identity: u32, _: u32) {
    let (word, bit) = place(line);
    let controller = CONTROLLER.get();
    let number = line + FIRST_LINE as usize;
    if controller.version == 3 {
        let route = (controller.distributor + ROUTE + 8 * number) as *mut u64;
        let identity = identity as u64;
        // SAFETY: a register of the controller, mapped as device memory. It has 64 bits: affinities 0 to 2, and 3 from
        // bit 32 on.
        unsafe { route.write_volatile(identity & 0xff_ffff | (identity >> 24) << 32) };
    } else {
        let targets = (controller.distributor + TARGETS + number) as *mut u8;
        // SAFETY: a register of the controller, mapped as device memory; bytes are allowed (4.3.12).
        unsafe { targets.write_volatile(1 << (identity & 7)) };
    }
    write(word + ENABLE, bit);
}

/// Whether the line must be masked until its device was served.
pub fn is_level(line: usize) -> bool {
    firmware::get().edges.get(line / 64).is_none_or(|word| word >> (line % 64) & 1 == 0)
}

/// Takes the interrupt that waits.
pub fn claim(vector: u64) -> u32 {
    if vector == SYSTEM_ERROR {
        panic!("the machine reports an error (SError), syndrome {:#x}", read!("esr_el1"));
    }
    let controller = CONTROLLER.get();
    if controller.version == 3 {
        let number = read!("S3_0_C12_C12_0") as u32;
        // SAFETY: a barrier: what the device did before is seen.
        unsafe { asm!("dsb sy", options(nostack)) }
        number & 0xff_ffff
    } else {
        load(controller.second + CLAIM)
    }
}

/// What an interrupt that was claimed means.
pub fn meaning(claimed: u32) -> Interrupt {
    // Version 2: the upper bits say which CPU sent it.
    match claimed & 0x3ff {
        SPURIOUS.. => Interrupt::Nothing,
        OTHER_CPU => Interrupt::OtherCpu,
        number if number == firmware::get().timer => Interrupt::Timer,
        number => Interrupt::Line(number.wrapping_sub(FIRST_LINE) as usize),
    }
}

/// The interrupt was taken; what [`claim`] gave.
pub fn complete(claimed: u32) {
    let controller = CONTROLLER.get();
    if controller.version == 3 {
        // SAFETY: ends what `claim` began.
        unsafe { asm!("msr S3_0_C12_C12_1, {}", "isb", in(reg) claimed as u64, options(nostack)) }
    } else {
        write(controller.second + COMPLETE, claimed);
    }
}
