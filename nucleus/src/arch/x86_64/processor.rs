//! Segments, interrupt descriptors, task state, and the system call registers.
//!
//! Every vector uses an interrupt stack: hardware never pushes onto memory that a user, or later a
//! verified component, can write. No 32-bit user code segment exists.

use super::entry::{system_call_entry, trap_stubs};
use super::memory::{read_msr, write_msr};
use crate::cpu::Cpu;
use crate::pointer::{Nucleus, Ref};
use core::arch::asm;
use core::mem::offset_of;

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

/// What each CPU has of its own.
#[repr(C)]
pub(super) struct Tables {
    stacks: Stacks,
    task: TaskState,
    segments: [u64; 8],
}

impl Tables {
    /// Before [`init`].
    pub(super) const fn new() -> Self {
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

static FIRST: Nucleus<Tables> = Nucleus::new(Tables::new());
static GATES: Nucleus<[[u64; 2]; 256]> = Nucleus::new([[0; 2]; 256]);

const MSR_EFER: u32 = 0xc000_0080;
const MSR_STAR: u32 = 0xc000_0081;
const MSR_LSTAR: u32 = 0xc000_0082;
const MSR_FMASK: u32 = 0xc000_0084;
const MSR_GS_BASE: u32 = 0xc000_0101;
const MSR_KERNEL_GS_BASE: u32 = 0xc000_0102;

/// Flags that a system call clears: TF, IF, DF, IOPL, NT, AC and the arithmetic ones need no care.
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
    // SAFETY: the block lives for ever.
    unsafe {
        write_msr(MSR_GS_BASE, cpu.address() as u64);
        write_msr(MSR_KERNEL_GS_BASE, 0);
    }
}

/// Tells the CPU that this is a waiting loop.
#[inline(always)]
pub fn relax() {
    core::hint::spin_loop();
}

/// The frame pointer: the next one stands where it points to, and the return address behind.
#[inline(always)]
pub fn frame_pointer() -> usize {
    let frame;
    // SAFETY: only reads a register.
    unsafe { asm!("mov {}, rbp", out(reg) frame, options(nostack, nomem)) }
    frame
}

/// The block of this CPU.
#[inline(always)]
pub fn block() -> Ref<Cpu> {
    let block;
    // SAFETY: the first thing that runs on a CPU loads its block, in which its own address stands and never changes.
    unsafe {
        asm!("mov {}, gs:[{own}]", out(reg) block, own = const offset_of!(Cpu, own),
            options(pure, nomem, nostack, preserves_flags));
        Ref::new(block)
    }
}

/// Loads everything on the first CPU, with interrupts off.
pub fn init() {
    for (vector, gate) in GATES.get().iter_mut().enumerate() {
        let handler = &raw const trap_stubs as u64 + 16 * vector as u64;
        gate[0] = handler & 0xffff
            | (KERNEL_CODE as u64) << 16
            | stack_of(vector) << 32
            | gate_of(vector) << 40
            | (handler >> 16 & 0xffff) << 48;
        gate[1] = handler >> 32;
    }
    load(FIRST.reference());
}

/// Loads everything, with the CPU's own tables and interrupts off.
pub(super) fn load(mut tables: Ref<Tables>) {
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
    let cpu = block();
    let segment_table = Pointer { limit: 8 * 8 - 1, base: tables.segments.as_ptr() as u64 };
    let gate_table = Pointer { limit: 16 * 256 - 1, base: GATES.reference().address() as u64 };
    // SAFETY: the tables are complete and live for ever; the data segments are not used in long mode.
    unsafe {
        asm!("lgdt [{}]", in(reg) &segment_table, options(nostack));
        asm!("lidt [{}]", in(reg) &gate_table, options(nostack));
        asm!("ltr {:x}", in(reg) TASK, options(nostack));
        asm!("mov ss, {0:e}", "mov ds, {0:e}", "mov es, {0:e}", "mov fs, {0:e}", "mov gs, {0:e}", in(reg) 0, options(nostack));
        write_msr(MSR_EFER, read_msr(MSR_EFER) | 1);
        write_msr(MSR_STAR, (KERNEL_CODE as u64) << 32 | 0x18 << 48);
        write_msr(MSR_LSTAR, system_call_entry as *const () as u64);
        write_msr(MSR_FMASK, CLEARED_FLAGS);
    }
    load_block(cpu);
    protect();
}

/// Turns on what the processor has of SMEP, SMAP and UMIP, and disables the floating-point unit.
fn protect() {
    let features = core::arch::x86_64::__cpuid_count(7, 0);
    // SAFETY: bits that CPUID names; the nucleus touches no user page and uses no floating point.
    unsafe {
        let mut control: u64;
        asm!("mov {}, cr4", out(reg) control, options(nostack, nomem));
        for (present, bit) in
            [(features.ebx >> 7 & 1, CR4_SMEP), (features.ebx >> 20 & 1, CR4_SMAP), (features.ecx >> 2 & 1, CR4_UMIP)]
        {
            if present != 0 {
                control |= bit;
            }
        }
        asm!("mov cr4, {}", in(reg) control, options(nostack));
        let mut control: u64;
        asm!("mov {}, cr0", out(reg) control, options(nostack, nomem));
        control |= 1 << 3 | 1 << 5 | 1 << 16;
        control &= !(1 << 2);
        control |= 1 << 1;
        asm!("mov cr0, {}", in(reg) control, options(nostack));
    }
}

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}
