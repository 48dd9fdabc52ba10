//! Segments, interrupt descriptors, task state, and the system call registers.
//!
//! Every vector uses an interrupt stack: hardware never pushes onto memory that a user, or later a
//! verified component, can write. No 32-bit user code segment exists.

use super::memory::{MSR_FS_BASE, read_msr, write_msr};
use crate::objects::Cpu;
use crate::pointer::{Boot, Held, Ref};
use core::arch::asm;
use core::mem::offset_of;

unsafe extern "C" {
    fn system_call_entry();
    static trap_stubs: [u8; 4096];
}

/// Selector of user code, with privilege 3.
pub(super) const USER_CODE: u16 = 0x2b;
/// Selector of user data, with privilege 3.
pub(super) const USER_DATA: u16 = 0x23;
const KERNEL_CODE: u16 = 0x08;
const TASK: u16 = 0x30;

const STACK_BYTES: usize = 1024;

/// Interrupt stacks: faults; interrupts; NMI; double fault; machine check; debug. They hold one frame
/// until the handler has moved to the CPU's stack.
#[repr(C, align(16))]
struct Stacks([[u8; STACK_BYTES]; 6]);

#[repr(C, packed(4))]
struct TaskState {
    reserved0: u32,
    stacks: [u64; 3],
    reserved1: u64,
    interrupt_stacks: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    ports: u16,
}

/// The tables and interrupt stacks of one CPU.
#[repr(C)]
pub struct Tables {
    stacks: Stacks,
    task: TaskState,
    segments: [u64; 8],
}

impl Tables {
    /// Empty, until [`load`].
    pub const fn new() -> Self {
        Self {
            stacks: Stacks([[0; STACK_BYTES]; 6]),
            task: TaskState {
                reserved0: 0,
                stacks: [0; 3],
                reserved1: 0,
                interrupt_stacks: [0; 7],
                reserved2: 0,
                reserved3: 0,
                ports: 0,
            },
            segments: [0; 8],
        }
    }
}

/// Code and data of the nucleus, data and code of users; the task state follows.
const SEGMENTS: [u64; 6] =
    [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, 0, 0x00cf_f300_0000_ffff, 0x00af_fb00_0000_ffff];

static FIRST: Boot<Tables> = Boot::new(Tables::new());
static GATES: Boot<[[u64; 2]; 256]> = Boot::new([[0; 2]; 256]);

const MSR_SYSENTER: [u32; 3] = [0x174, 0x175, 0x176];
const MSR_DEBUGCTL: u32 = 0x1d9;
const MSR_PAT: u32 = 0x277;
const MSR_EFER: u32 = 0xc000_0080;
const MSR_STAR: u32 = 0xc000_0081;
const MSR_LSTAR: u32 = 0xc000_0082;
const MSR_CSTAR: u32 = 0xc000_0083;
const MSR_FMASK: u32 = 0xc000_0084;
pub(super) const MSR_GS_BASE: u32 = 0xc000_0101;
const MSR_KERNEL_GS_BASE: u32 = 0xc000_0102;
const MSR_TSC_AUX: u32 = 0xc000_0103;

/// System calls, long mode and no-execute, and nothing else.
const EFER: u64 = 1 | 1 << 8 | 1 << 10 | 1 << 11;
/// As after a reset: index 3 is not cached.
const PAT: u64 = 0x0007_0406_0007_0406;
/// Paging, write protection, errors of the floating-point unit as exceptions; the unit is off. No alignment checks for
/// users, caches on.
const CR0: u64 = 1 << 31 | 1 << 16 | 1 << 5 | 1 << 4 | 1 << 3 | 1 << 1 | 1;
/// PAE, FXSAVE and SSE with their exceptions. All else that users could notice is off: RDPMC, WRGSBASE, XSAVE, protection
/// keys, CET, user interrupts. Users may read the time-stamp counter.
const CR4: u64 = 1 << 5 | 1 << 9 | 1 << 10;

/// Flags that a system call clears: TF, IF, DF, IOPL, NT, AC. The arithmetic flags may keep the user's values.
const CLEARED_FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 10 | 3 << 12 | 1 << 14 | 1 << 18;

const BREAKPOINT: usize = 3;
const CR4_UMIP: u64 = 1 << 11;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Present, 64-bit interrupt gate; only the breakpoint may be raised by users.
fn gate_of(vector: usize) -> u64 {
    if vector == BREAKPOINT { 0xee } else { 0x8e }
}

fn stack_of(vector: usize) -> u64 {
    match vector {
        2 => 3,
        8 => 4,
        18 => 5,
        1 => 6,
        0..32 => 1,
        _ => 2,
    }
}

/// Makes `cpu` the block of this CPU.
pub fn load_block(cpu: Ref<Cpu>) {
    // SAFETY: the block is never freed.
    unsafe {
        write_msr(MSR_GS_BASE, cpu.address() as u64);
        write_msr(MSR_KERNEL_GS_BASE, 0);
    }
}

/// A hint to the CPU: this is a spin loop.
#[inline(always)]
pub fn relax() {
    core::hint::spin_loop();
}

/// The frame pointer. It points to the caller's frame pointer, which the return address follows.
#[inline(always)]
pub fn frame_pointer() -> usize {
    let frame;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nostack, nomem)) }
    frame
}

/// The block of this CPU.
#[inline(always)]
pub fn block(_: Held) -> Ref<Cpu> {
    let block;
    // SAFETY: a CPU loads its block before it runs anything else; the block contains its own address, which never changes.
    unsafe {
        asm!("mov {}, gs:[{own}]", out(reg) block, own = const offset_of!(Cpu, own),
            options(pure, nomem, nostack, preserves_flags));
        Ref::new(block)
    }
}

/// Loads everything on the first CPU, with interrupts off.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn init(held: Held) {
    // SAFETY: the first CPU runs alone, and no gates are loaded.
    let gates = unsafe { GATES.write() };
    for (vector, gate) in gates.iter_mut().enumerate() {
        let handler = &raw const trap_stubs as u64 + 16 * vector as u64;
        gate[0] = handler & 0xffff
            | (KERNEL_CODE as u64) << 16
            | stack_of(vector) << 32
            | gate_of(vector) << 40
            | (handler >> 16 & 0xffff) << 48;
        gate[1] = handler >> 32;
    }
    // SAFETY: the first CPU runs alone; only it uses these tables, permanently.
    load(block(held), unsafe { FIRST.write() });
}

/// Loads everything on the CPU with this block, with tables of its own and interrupts off.
pub fn load(cpu: Ref<Cpu>, tables: &mut Tables) {
    for index in 0..6 {
        let stack = tables.stacks.0[index].as_ptr() as u64 + STACK_BYTES as u64;
        tables.task.interrupt_stacks[index] = stack;
    }
    tables.task.ports = size_of::<TaskState>() as u16;
    tables.segments[..6].copy_from_slice(&SEGMENTS);
    let base = &raw const tables.task as u64;
    tables.segments[6] =
        (size_of::<TaskState>() as u64 - 1) | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    tables.segments[7] = base >> 32;
    let segment_table = Pointer { limit: 8 * 8 - 1, base: tables.segments.as_ptr() as u64 };
    let gate_table = Pointer { limit: 16 * 256 - 1, base: &raw const *GATES.get() as u64 };
    // SAFETY: the tables are complete and never freed; the data segments are not used in long mode.
    unsafe {
        asm!("lgdt [{}]", in(reg) &segment_table, options(nostack));
        asm!("lidt [{}]", in(reg) &gate_table, options(nostack));
        asm!("ltr {:x}", in(reg) TASK, options(nostack));
        asm!("mov ss, {0:e}", "mov ds, {0:e}", "mov es, {0:e}", "mov fs, {0:e}", "mov gs, {0:e}", "lldt {0:x}", in(reg) 0, options(nostack));
    }
    if cfg!(feature = "checked") {
        poison();
    }
    write_registers();
    load_block(cpu);
    if cfg!(feature = "checked") {
        audit();
    }
}

/// Writes every register that users can notice, in full: no value of the firmware or a loader stays.
fn write_registers() {
    let system_calls = [
        (MSR_EFER, EFER),
        (MSR_STAR, (KERNEL_CODE as u64) << 32 | 0x18 << 48),
        (MSR_LSTAR, system_call_entry as *const () as u64),
        (MSR_FMASK, CLEARED_FLAGS),
        (MSR_PAT, PAT),
    ];
    let [code, stack, entry] = MSR_SYSENTER;
    let unused = [code, stack, entry, MSR_DEBUGCTL, MSR_CSTAR, MSR_FS_BASE].map(|register| (register, 0));
    let features = core::arch::x86_64::__cpuid_count(7, 0);
    let has = [(features.ebx >> 7, CR4_SMEP), (features.ebx >> 20, CR4_SMAP), (features.ecx >> 2, CR4_UMIP)];
    let control = has.iter().filter(|(present, _)| present & 1 != 0).fold(CR4, |control, (_, bit)| control | bit);
    // SAFETY: every processor of this ISA has these registers, and TSC_AUX if CPUID says so. The nucleus accesses no user
    // page and uses no floating point.
    unsafe {
        for (register, value) in system_calls.into_iter().chain(unused) {
            write_msr(register, value);
        }
        if has_auxiliary() {
            write_msr(MSR_TSC_AUX, 0);
        }
        asm!("mov cr4, {}", in(reg) control, options(nostack));
        asm!("mov cr0, {}", in(reg) CR0, options(nostack));
        // No breakpoints (Intel SDM volume 3, 18.2).
        asm!("mov dr7, {0}", "mov dr6, {1}", "mov dr0, {2}", "mov dr1, {2}", "mov dr2, {2}", "mov dr3, {2}",
            in(reg) 0x400u64, in(reg) 0xffff_0ff0u64, in(reg) 0u64, options(nostack));
    }
}

/// Whether users can read TSC_AUX, by RDTSCP or RDPID.
fn has_auxiliary() -> bool {
    core::arch::x86_64::__cpuid(0x8000_0001).edx >> 27 & 1 != 0
        || core::arch::x86_64::__cpuid_count(7, 0).ecx >> 22 & 1 != 0
}

/// For a checked build: registers, a value that firmware could leave in each, and the right one. TSC_AUX is the last.
const LEFT: [(u32, u64, u64); 10] = [
    (0x174, 0x2b, 0),
    (0x175, 0x1_0000, 0),
    (0x176, 0x1_0000, 0),
    (0x277, 0x0606_0606_0606_0606, 0x0007_0406_0007_0406),
    (0xc000_0080, 0x4d01, 0xd01),
    (0xc000_0083, 0x1_0000, 0),
    (0xc000_0084, 0, 0x4_7700),
    (0xc000_0100, 0x1_0000, 0),
    (0xc000_0102, 0x1_0000, 0),
    (0xc000_0103, 0x77, 0),
];

fn left() -> impl Iterator<Item = (u32, u64, u64)> {
    LEFT.into_iter().take(LEFT.len() - usize::from(!has_auxiliary()))
}

/// In a checked build: gives registers values that firmware could leave there.
fn poison() {
    // SAFETY: nothing depends on these registers until `write_registers`. Sets CR4.TSD, PCE and DE, CR0.AM, and a breakpoint
    // at a user's address.
    unsafe {
        left().for_each(|(register, poisoned, _)| write_msr(register, poisoned));
        asm!("mov {0}, cr4", "or {0}, {1}", "mov cr4, {0}", "mov {0}, cr0", "or {0}, {2}", "mov cr0, {0}", "mov dr0, {3}",
            "mov dr7, {4}", out(reg) _, const 1 << 2 | 1 << 3 | 1 << 8, const 1 << 18, in(reg) 0x1_0000u64,
            in(reg) 0x401u64, options(nostack));
    }
}

/// Panics if one of these values, or a bit set by [`poison`], is left.
fn audit() {
    let (cr4, cr0, dr7, dr0, ldt): (u64, u64, u64, u64, u64);
    // SAFETY: only reads.
    unsafe {
        for (register, _, right) in left() {
            let found = read_msr(register);
            assert!(found == right, "register {register:#x}: {found:#x}");
        }
        asm!("mov {}, cr4", "mov {}, cr0", "mov {}, dr7", "mov {}, dr0", "sldt {}", out(reg) cr4, out(reg) cr0,
            out(reg) dr7, out(reg) dr0, out(reg) ldt, options(nostack, nomem));
    }
    let may = 1 << 5 | 1 << 9 | 1 << 10 | CR4_UMIP | CR4_SMEP | CR4_SMAP;
    assert!(cr4 & !may == 0 && cr4 & 0x620 == 0x620, "CR4: {cr4:#x}");
    assert!(cr0 == 0x8001_003b && dr7 == 0x400 && dr0 == 0 && ldt == 0, "{cr0:#x} {dr7:#x} {dr0:#x} {ldt:#x}");
}

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}
