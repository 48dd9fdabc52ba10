//! Crimes for which a domain dies. Each function commits one and, if the machine lets it, comes back.

use core::arch::asm;

use crate::Crime;

/// An address that belongs to the nucleus.
const KERNEL: u64 = 0xffff_8000_0010_0000;
/// An address that no translation can have.
const NON_CANONICAL: u64 = 0x0000_8000_0000_0000;

/// A page of data with an instruction in it.
#[repr(align(4096))]
struct DataPage {
    _code: [u8; 4096],
}
static mut DATA: DataPage = DataPage { _code: [0xc3; 4096] };

/// All of them, with what they are.
pub const ALL: &[Crime] = &[
    Crime::death("halt", "privileged instruction: hlt", halt),
    Crime::death("cli", "privileged instruction: cli", || {
        // SAFETY: none; that is what this program is for. The same holds for every block in this file.
        unsafe { asm!("cli") }
    }),
    Crime::death("cr3", "privileged instruction: write of the page-table root", || {
        // SAFETY: see the first.
        unsafe { asm!("mov cr3, {}", in(reg) 0u64) }
    }),
    Crime::death("wrmsr", "privileged instruction: write of a model-specific register", || {
        // SAFETY: see the first.
        unsafe { asm!("wrmsr", in("ecx") 0xc000_0082u32, in("eax") 0, in("edx") 0) }
    }),
    Crime::death("lgdt", "privileged instruction: load of a descriptor table", || {
        let table = [0u8; 10];
        // SAFETY: see the first.
        unsafe { asm!("lgdt [{}]", in(reg) table.as_ptr()) }
    }),
    Crime::death("swapgs", "privileged instruction: swapgs", || {
        // SAFETY: see the first.
        unsafe { asm!("swapgs") }
    }),
    Crime::death("port", "port input and output without the right", || {
        // SAFETY: see the first.
        unsafe { asm!("out dx, al", in("dx") 0x3f8u16, in("al") b'!') }
    }),
    Crime::death("interrupt", "software interrupt of a device's vector", || {
        // SAFETY: see the first.
        unsafe { asm!("int 0x40") }
    }),
    Crime::death("kernel-read", "read of a nucleus address", || read(KERNEL)),
    Crime::death("kernel-write", "write to a nucleus address", || write(KERNEL)),
    Crime::death("kernel-jump", "jump to a nucleus address", || jump(KERNEL)),
    Crime::death("non-canonical", "read of a non-canonical address", || read(NON_CANONICAL)),
    Crime::death("non-canonical-jump", "jump to a non-canonical address", || jump(NON_CANONICAL)),
    Crime::death("non-canonical-stack", "push with a non-canonical stack pointer", || {
        // SAFETY: see the first.
        unsafe { asm!("mov rsp, {}", "push rax", in(reg) NON_CANONICAL, options(noreturn)) }
    }),
    Crime::death("null", "read of address 0", || read(0)),
    Crime::death("null-write", "write to address 0", || write(0)),
    Crime::death("null-jump", "jump to address 0", || jump(0)),
    Crime::death("unmapped", "read of an address where nothing is mapped", || read(0x4000_0000)),
    Crime::death("write-code", "write to our own code", || write(runtime::abi::layout::PROGRAM_START)),
    Crime::death("write-constant", "write to what may only be read", || write(crate::bounds::constant())),
    Crime::death("execute-data", "jump to data", || jump(&raw const DATA as u64)),
    Crime::death("execute-stack", "jump to the stack", || {
        let code = [0xc3u8; 16];
        jump(core::hint::black_box(&code).as_ptr() as u64);
    }),
    Crime::death("execute-heap", "jump to the heap", || jump(runtime::abi::layout::PROGRAM_END)),
    Crime::death("stack-overflow", "recursion without end", || {
        core::hint::black_box(recurse(core::hint::black_box(1)));
    }),
    Crime::death("divide", "division by zero", || {
        // SAFETY: see the first.
        unsafe { asm!("xor ecx, ecx", "div ecx", inout("eax") 1 => _, inout("edx") 0 => _, out("ecx") _) }
    }),
    Crime::death("ud2", "undefined instruction", || {
        // SAFETY: see the first.
        unsafe { asm!("ud2") }
    }),
    Crime::death("breakpoint", "breakpoint", || {
        // SAFETY: see the first.
        unsafe { asm!("int3") }
    }),
    Crime::death("fpu", "floating-point instruction in a domain without floating point", || {
        // SAFETY: see the first.
        unsafe { asm!("movaps xmm0, xmm0") }
    }),
    Crime::death("panic", "a panic of the program itself", || panic!("on purpose")),
];

pub fn halt() {
    // SAFETY: see the first.
    unsafe { asm!("hlt") }
}

pub fn read(address: u64) {
    // SAFETY: see the first.
    unsafe { core::hint::black_box(core::ptr::read_volatile(core::hint::black_box(address as *const u8))) };
}

fn write(address: u64) {
    // SAFETY: see the first.
    unsafe { core::ptr::write_volatile(core::hint::black_box(address as *mut u8), 0xcc) };
}

fn jump(address: u64) {
    // SAFETY: see the first.
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}

#[inline(never)]
#[allow(unconditional_recursion, reason = "that is the crime")]
pub fn recurse(depth: u64) -> u64 {
    let mut room = [depth; 16];
    core::hint::black_box(&mut room);
    recurse(depth + 1) + room[3]
}
