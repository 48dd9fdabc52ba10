//! The heap: grows upwards from where the program ends, a few pages at a time; the pages come by page fault and
//! are charged to this domain's account. When that is exhausted, the fault ends the domain.

use core::alloc::GlobalAlloc;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use abi::layout::HEAP_END;
use talc::DefaultBinning;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

use crate::sync::RawMutex;

/// The heap grows by multiples of this: each page still comes only when it is touched.
const STEP: u64 = 0x4000;
/// What the allocator needs besides the bytes asked for: its lists at the first growth, and tags.
const MARGIN: u64 = 0x1000;

/// Hands out the address range.
#[derive(Debug)]
struct Range {
    /// 0 at first.
    end: u64,
    claimed: Option<NonNull<u8>>,
}

// SAFETY: uses neither an allocator nor anything that allocates.
unsafe impl Source for Range {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let bytes = (layout.size() as u64).checked_add(layout.align() as u64 + MARGIN).ok_or(())?;
        let bytes = bytes.checked_next_multiple_of(STEP).ok_or(())?;
        // The first blocks lie in the last page of the program.
        let start =
            if talc.source.end == 0 { crate::program::image_end().next_multiple_of(16) } else { talc.source.end };
        let end = start.checked_add(bytes).filter(|end| *end <= HEAP_END).ok_or(())?;
        talc.source.end = end;
        talc.source.claimed = match talc.source.claimed.take() {
            // SAFETY: the range up to HEAP_END belongs to this allocator alone; `claimed` is the end
            // that it last gave.
            Some(old) => Some(unsafe { talc.extend(old, end as *mut u8) }),
            // SAFETY: as above.
            None => unsafe { talc.claim(start as *mut u8, bytes as usize) },
        };
        talc.source.claimed.map(drop).ok_or(())
    }
}

/// The allocator behind the runtime's mutex.
struct Heap {
    lock: RawMutex,
    talc: UnsafeCell<Talc<Range, DefaultBinning>>,
}

// SAFETY: used under the lock only.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { lock: RawMutex::new(), talc: UnsafeCell::new(Talc::new(Range { end: 0, claimed: None })) };

impl Heap {
    fn with<R>(&self, work: impl FnOnce(&mut Talc<Range, DefaultBinning>) -> R) -> R {
        self.lock.lock();
        // SAFETY: under the lock.
        let result = work(unsafe { &mut *self.talc.get() });
        self.lock.unlock();
        result
    }
}

// SAFETY: the allocator does what `GlobalAlloc` asks; the mutex makes it safe for several threads.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout is not empty.
        self.with(|talc| unsafe { talc.allocate(layout) }).map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller has it from `alloc` with this layout.
        self.with(|talc| unsafe { talc.deallocate(pointer, layout) });
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let in_place = self.with(|talc| {
            if size <= layout.size() {
                // SAFETY: the caller has it from `alloc` with this layout; the size is not zero.
                unsafe { talc.shrink(pointer, layout, size) };
                return true;
            }
            // SAFETY: as above.
            unsafe { talc.try_grow_in_place(pointer, layout, size) }
        });
        if in_place {
            return pointer;
        }
        // SAFETY: the caller's size, rounded to the alignment, is a valid layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: `new` is not empty; both blocks hold `layout.size()` bytes and do not overlap.
        unsafe {
            let place = self.alloc(new);
            if !place.is_null() {
                core::ptr::copy_nonoverlapping(pointer, place, layout.size());
                self.dealloc(pointer, layout);
            }
            place
        }
    }
}
