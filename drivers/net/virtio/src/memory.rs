//! Registers and frames: where they stand in this domain, and what the device calls them.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::layout::FREE_START;
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

const PAGE: u64 = PAGE_SIZE as u64;
/// Space for the registers behind one base register.
const REGISTERS: u64 = 1 << 20;
/// Where the frames stand.
pub const FRAMES_AT: u64 = FREE_START + 16 * REGISTERS;
/// Frames of the two queues; those for packets follow.
const QUEUE_FRAMES: usize = 4;
/// All frames.
pub const FRAMES: usize = 36;

static PHYSICAL: [AtomicU64; FRAMES] = [const { AtomicU64::new(0) }; FRAMES];
static BASES: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];
static QUEUES_USED: AtomicUsize = AtomicUsize::new(0);

/// Where the registers behind a base register are mapped.
pub fn registers_at(base: u64) -> u64 {
    FREE_START + base * REGISTERS
}

/// The frame of this number has this physical address.
pub fn set_frame(number: usize, physical: u64) {
    if let Some(place) = PHYSICAL.get(number) {
        place.store(physical, Ordering::Relaxed);
    }
}

/// The registers behind a base register have this physical address.
pub fn set_base(base: usize, physical: u64) {
    BASES[base].store(physical, Ordering::Relaxed);
}

/// Clears the frames: their last user may be dead.
///
/// # Safety
/// All frames are mapped, and nothing refers to them; the device was reset.
pub unsafe fn clear() {
    // SAFETY: by contract.
    unsafe { core::ptr::write_bytes(FRAMES_AT as *mut u8, 0, FRAMES * PAGE_SIZE) }
}

/// The half page number `number` of those for packets.
///
/// # Safety
/// Each is asked for once.
pub unsafe fn packet(number: usize) -> &'static mut [u8] {
    assert!(number < 2 * (FRAMES - QUEUE_FRAMES));
    let start = FRAMES_AT as usize + QUEUE_FRAMES * PAGE_SIZE + number * PAGE_SIZE / 2;
    // SAFETY: within the frames, which stay mapped; by contract nobody else has it.
    unsafe { core::slice::from_raw_parts_mut(start as *mut u8, PAGE_SIZE / 2) }
}

/// Half pages for packets.
pub const PACKETS: usize = 2 * (FRAMES - QUEUE_FRAMES);

/// What the crate asks of us.
pub struct Memory;

// SAFETY: each frame of a queue is given once, clear and mapped for good; registers are mapped for good.
unsafe impl Hal for Memory {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // Frames need not lie side by side, and no queue of ours needs two.
        assert!(pages == 1, "one frame at a time");
        let number = QUEUES_USED.fetch_add(1, Ordering::Relaxed);
        assert!(number < QUEUE_FRAMES, "no frames left for queues");
        let address = FRAMES_AT as usize + number * PAGE_SIZE;
        let pointer = NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
        (PHYSICAL[number].load(Ordering::Relaxed), pointer)
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        // Queues live as long as this domain.
        0
    }

    unsafe fn mmio_phys_to_virt(physical: PhysAddr, size: usize) -> NonNull<u8> {
        let bases = BASES.iter().map(|base| base.load(Ordering::Relaxed)).enumerate();
        for (number, base) in bases.filter(|(_, base)| *base != 0) {
            if physical >= base && physical + size as u64 <= base + REGISTERS {
                let address = registers_at(number as u64) + (physical - base);
                return NonNull::new(address as *mut u8).unwrap_or(NonNull::dangling());
            }
        }
        panic!("registers that the bus did not give");
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        let address = buffer.as_ptr() as *mut u8 as u64;
        let number = address.wrapping_sub(FRAMES_AT) / PAGE;
        let frame = PHYSICAL.get(number as usize).map(|frame| frame.load(Ordering::Relaxed));
        frame.expect("a buffer outside the frames") + address % PAGE
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}
