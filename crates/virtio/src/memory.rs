//! Registers and frames: where they stand in this domain, and what the device calls them.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::layout::FREE_START;
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

/// Space for the registers behind one base register, in bytes: as much as the bus maps at most.
const REGISTERS: u64 = 1 << 16;
/// Where the frames stand: one page table reaches over the registers and them.
pub const FRAMES_AT: u64 = FREE_START + 16 * REGISTERS;
/// Frames of a driver, at most.
pub use protocols::bus::MAX_FRAMES;

/// Physical address of each frame.
static PHYSICAL: [AtomicU64; MAX_FRAMES] = [const { AtomicU64::new(0) }; MAX_FRAMES];
/// Physical address and bytes of the registers behind each base register.
static BASES: [(AtomicU64, AtomicU64); 6] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 6];
/// Frames that there are. Written last: frames given before are mapped.
static FRAMES: AtomicUsize = AtomicUsize::new(0);
/// Frames that were given out.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Where the registers behind a base register are mapped.
pub fn registers_at(base: u64) -> u64 {
    FREE_START + base * REGISTERS
}

/// The registers behind a base register have this physical address and size.
pub(crate) fn set_base(base: usize, physical: u64, bytes: u64) {
    BASES[base].0.store(physical, Ordering::Relaxed);
    BASES[base].1.store(bytes.min(REGISTERS), Ordering::Relaxed);
}

/// Are there frames?
pub(crate) fn is_open() -> bool {
    FRAMES.load(Ordering::Acquire) != 0
}

/// Clears the frames with these physical addresses (their last user may be dead) and lets them be given out.
///
/// # Safety
/// They are mapped at [`FRAMES_AT`] in this order, for good; nothing refers to them, and no device writes them.
/// There are at most [`MAX_FRAMES`].
pub(crate) unsafe fn open(physical: impl Iterator<Item = u64>) {
    let mut count = 0;
    for (place, physical) in PHYSICAL.iter().zip(physical) {
        place.store(physical, Ordering::Relaxed);
        count += 1;
    }
    // SAFETY: by contract.
    unsafe { core::ptr::write_bytes(FRAMES_AT as *mut u8, 0, count * PAGE_SIZE) }
    FRAMES.store(count, Ordering::Release);
}

/// The next frame that nobody has: its number.
fn take() -> Option<usize> {
    let count = FRAMES.load(Ordering::Acquire);
    USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| (used < count).then_some(used + 1)).ok()
}

/// A frame that nobody has, for what the device reads or writes. `None` = there are no more.
pub fn page() -> Option<&'static mut [u8]> {
    let start = FRAMES_AT as usize + take()? * PAGE_SIZE;
    // SAFETY: mapped for good by the contract of `open`, and given out once.
    Some(unsafe { core::slice::from_raw_parts_mut(start as *mut u8, PAGE_SIZE) })
}

/// The crate's needs of us.
pub struct Memory;

// SAFETY: each frame of a queue is given once, clear and mapped for good; registers are mapped for good.
unsafe impl Hal for Memory {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // Frames need not lie side by side, and no queue of ours needs two.
        assert!(pages == 1, "one frame at a time");
        let number = take().expect("no frames left for queues");
        let address = FRAMES_AT as usize + number * PAGE_SIZE;
        let pointer = NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
        (PHYSICAL[number].load(Ordering::Relaxed), pointer)
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        // Queues live as long as this domain.
        0
    }

    unsafe fn mmio_phys_to_virt(physical: PhysAddr, size: usize) -> NonNull<u8> {
        for (number, (base, bytes)) in BASES.iter().enumerate() {
            let (base, bytes) = (base.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
            let offset = physical.wrapping_sub(base);
            if bytes != 0 && offset < bytes && size as u64 <= bytes - offset {
                let address = registers_at(number as u64) + offset;
                return NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
            }
        }
        panic!("registers that the bus did not give");
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        let offset = (buffer.as_ptr() as *mut u8 as usize).wrapping_sub(FRAMES_AT as usize);
        let (number, within) = (offset / PAGE_SIZE, offset % PAGE_SIZE);
        assert!(number < FRAMES.load(Ordering::Relaxed), "a buffer outside the frames");
        assert!(buffer.len() <= PAGE_SIZE - within, "a buffer over the end of its frame");
        PHYSICAL[number].load(Ordering::Relaxed) + within as u64
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_lie_within_what_the_bus_gave() {
        set_base(2, 0x8_0000_0000, 0x4000);
        let place = |physical, size| {
            // SAFETY: nothing is done with the pointer.
            unsafe { Memory::mmio_phys_to_virt(physical, size) }.as_ptr() as u64
        };
        assert_eq!(place(0x8_0000_0000, 0x4000), registers_at(2));
        assert_eq!(place(0x8_0000_3ffc, 4), registers_at(2) + 0x3ffc);
        for (physical, size) in
            [(0x8_0000_3ffd, 4), (0x7_ffff_ffff, 1), (0x8_0000_4000, 0), (0, 1), (0x8_0000_0000, usize::MAX)]
        {
            assert!(std::panic::catch_unwind(|| place(physical, size)).is_err(), "{physical:#x}, {size}");
        }
    }

    #[test]
    fn nothing_is_given_before_there_is_something() {
        assert!(!is_open());
        assert!(page().is_none());
    }
}
