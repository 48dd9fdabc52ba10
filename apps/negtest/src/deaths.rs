//! Negative tests for which a domain dies. Each function runs one and, if the machine lets it, comes back. Those of one ISA
//! alone are in [`crate::arch`].

use crate::arch::{self, NON_CANONICAL, jump};
use crate::case::Case;

/// An address that belongs to the nucleus.
const KERNEL: u64 = arch::KERNEL + 0x10_0000;

/// A page of data with an instruction in it.
#[repr(align(4096))]
struct DataPage {
    _code: [[u8; 4]; 1024],
}
static mut DATA: DataPage = DataPage { _code: [arch::BARE_RETURN; 1024] };

/// All of them, with what they are.
pub const ALL: &[Case] = &[
    Case::death("kernel-read", "read of a nucleus address", || read(KERNEL)),
    Case::death("kernel-write", "write to a nucleus address", || write(KERNEL)),
    Case::death("kernel-jump", "jump to a nucleus address", || jump(KERNEL)),
    Case::death("non-canonical", "read of a non-canonical address", || read(NON_CANONICAL)),
    Case::death("non-canonical-jump", "jump to a non-canonical address", || jump(NON_CANONICAL)),
    Case::death("null", "read of address 0", || read(0)),
    Case::death("null-write", "write to address 0", || write(0)),
    Case::death("null-jump", "jump to address 0", || jump(0)),
    Case::death("unmapped", "read of an address where nothing is mapped", || read(0x4000_0000)),
    Case::death("write-code", "write to our own code", || write(runtime::abi::layout::PROGRAM_START)),
    Case::death("write-constant", "write to what may only be read", || write(crate::bounds::constant())),
    Case::death("execute-data", "jump to data", || jump(&raw const DATA as u64)),
    Case::death("execute-stack", "jump to the stack", || {
        let code = [arch::BARE_RETURN; 4];
        jump(core::hint::black_box(&code).as_ptr() as u64);
    }),
    Case::death("execute-heap", "jump to the heap", || jump(runtime::abi::layout::PROGRAM_END)),
    Case::death("stack-overflow", "recursion without end", || {
        core::hint::black_box(recurse(core::hint::black_box(1)));
    }),
    Case::death("panic", "a panic of the program itself", || panic!("on purpose")),
];

pub fn read(address: u64) {
    // SAFETY: none; that is what this program is for.
    unsafe { core::hint::black_box(core::ptr::read_volatile(core::hint::black_box(address as *const u8))) };
}

fn write(address: u64) {
    // SAFETY: none; that is what this program is for.
    unsafe { core::ptr::write_volatile(core::hint::black_box(address as *mut u8), 0xcc) };
}

#[inline(never)]
#[allow(unconditional_recursion, reason = "that is the test")]
pub fn recurse(depth: u64) -> u64 {
    let mut room = [depth; 16];
    core::hint::black_box(&mut room);
    recurse(depth + 1) + room[3]
}
